//! `castor serve` keeps out whoever has no token, asks too much, or comes by another name.

use std::{
    io::{Read, Write},
    path::Path,
};

use serde_json::json;

use super::{Server, Socket, verb};
use crate::client::Sandbox;

#[test]
fn whoever_has_no_token_is_refused() {
    let server = Server::start("", &[]);
    let json = ("Content-Type", "application/json");
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}).to_string();
    let bearer = server.bearer();
    let mine = ("Authorization", bearer.as_str());
    let [up, version] = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")];
    let key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let evil = ("Origin", "https://evil.example");
    for (what, head, headers, body, status) in [
        ("no token", "POST /acp", vec![json], hello.as_str(), 401),
        ("a wrong token", "POST /acp", vec![json, ("Authorization", "Bearer castor_x")], &hello, 401),
        ("another scheme", "POST /acp", vec![json, ("Authorization", "Basic eDp4")], &hello, 401),
        ("another origin", "POST /acp", vec![json, mine, ("Origin", "https://evil.example")], &hello, 403),
        ("no origin", "POST /acp", vec![json, mine, ("Origin", "null")], &hello, 403),
        ("a name that leads here", "POST /acp", vec![json, mine, ("Host", "evil.example")], &hello, 403),
        ("two names", "POST /acp", vec![json, mine, ("Host", "localhost"), ("Host", "localhost")], &hello, 400),
        ("an address with a tail", "POST /acp", vec![json, mine, ("Host", "[::1].evil.com")], &hello, 403),
        ("a name before a name", "POST /acp", vec![json, mine, ("Host", "localhost:80@evil")], &hello, 403),
        ("a WebSocket of another origin", "GET /acp", vec![mine, up, version, key, evil], "", 403),
        ("a WebSocket by such a name", "GET /acp", vec![mine, up, version, key, ("Host", "evil.example:80")], "", 403),
        ("events for another origin", "GET /acp", vec![mine, evil, ("Accept", "text/event-stream")], "", 403),
        ("an end by another origin", "DELETE /acp", vec![mine, evil], "", 403),
        ("a question before that", "OPTIONS /acp", vec![evil], "", 403),
        ("a WebSocket of another time", "GET /acp", vec![mine, up, key], "", 400),
        ("another place", "POST /", vec![json, mine], &hello, 404),
        ("another method", "PUT /acp", vec![json, mine], &hello, 405),
        ("a stream of nothing", "GET /acp", vec![mine], "", 406),
        ("a stream without a connection", "GET /acp", vec![mine, ("Accept", "text/event-stream")], "", 400),
        ("a form", "POST /acp", vec![mine, ("Content-Type", "text/plain")], &hello, 415),
        ("a batch", "POST /acp", vec![json, mine], "[]", 501),
        ("no JSON", "POST /acp", vec![json, mine], "{", 400),
        ("no connection", "POST /acp", vec![json, mine], r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#, 400),
    ] {
        let (got, said, why) = server.http(head, &headers, body);
        assert_eq!(got, status, "{what}: {why}");
        assert!(!said.contains("access-control-allow-origin"), "{what}: {said}");
        assert!(!why.trim().is_empty(), "{what} is told why");
    }
    assert_eq!(Socket::open(&server, "castor_x", None).err(), Some(401));
    assert_eq!(Socket::open(&server, &server.token, Some(("x", 0))).err(), Some(404));
    server.client();
}

/// It can send no header with a WebSocket, but for the subprotocols that it offers.
#[test]
fn a_page_sends_its_token_as_a_subprotocol() {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("CASTOR_LOG".into(), "trace".into()));
    let server = Server::start_in(sandbox, &["--allow-origin=https://app.example"]);
    let (token, app) = (&server.token, "https://app.example");
    let ask = |origin: &str, offers: &str| {
        server.handshake(&format!("Origin: {origin}\r\nSec-WebSocket-Protocol: {offers}\r\n"))
    };
    let (status, head, _) = ask(app, &format!("acp, bearer.{token}"));
    assert!(status == 101 && head.contains("\r\nsec-websocket-protocol: acp\r\n"), "{head}");
    assert!(!head.contains("bearer"), "{head}");
    for (origin, offers, expected) in [
        ("https://evil.example", format!("acp, bearer.{token}"), 403),
        (app, "acp".to_owned(), 401),
        (app, "acp, bearer.castor_x".to_owned(), 401),
        (app, format!("acp, {token}"), 401),
        // A page would get none of those that it offers, and close.
        (app, format!("bearer.{token}"), 400),
    ] {
        let (status, head, _) = ask(origin, &offers);
        assert_eq!(status, expected, "{offers}");
        assert!(!head.contains("sec-websocket-protocol"), "{head}");
    }
    let log = std::fs::read_to_string(server.sandbox.stderr()).unwrap();
    assert!(!log.contains(token.as_str()), "the token is in the log");
}

#[test]
fn one_that_announces_a_gigabyte_is_refused_before_it_comes() {
    let server = Server::start("", &[]);
    let bearer = format!("Authorization: Bearer {}", server.token);
    let mut post = server.connect();
    write!(post, "POST /acp HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\nContent-Type: application/json\r\n").unwrap();
    write!(post, "Content-Length: 1073741824\r\n\r\n").unwrap();
    let mut head = [0; 12];
    post.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");

    let mut other = server.client();
    let mut it = server.client();
    // A text frame, masked, of 2^30 bytes, of which none comes.
    it.stream().write_all(&[0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4]).unwrap();
    assert_eq!(it.try_next().unwrap_err(), "1009 a message has at most 32 MiB");
    assert!(other.call("session/list", json!({}))["result"]["sessions"].is_array());
}

#[test]
fn beyond_the_limits_clients_are_told_to_come_back() {
    let server = Server::start("", &["--max-connections=2", "--max-sessions=1"]);
    let (mut one, two) = (server.client(), server.client());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let (status, head, _) = server.post(None, None, &hello);
    assert!(status == 503 && head.contains("retry-after:"), "{head}");
    // Those that are in do not notice.
    one.new_session(&server);
    let more = one.call("session/new", json!({"cwd": server.sandbox.workspace(), "mcpServers": []}));
    assert_eq!(more["error"]["data"]["kind"], "busy");
    drop(two);
    let server = Server::start("", &["--max-sockets=2"]);
    let held = [(); 2].map(|()| server.client());
    let mut refused = server.connect();
    let mut text = String::new();
    refused.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("Retry-After"), "{text}");
    drop(held);
}

/// The name of the certificate leads to this machine.
#[test]
fn tls_carries_http_2_and_an_open_address_needs_it() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls");
    let flag = |name: &str, file: &str| format!("--tls-{name}={}", data.join(file).display());
    let (cert, key) = (flag("cert", "models.test.pem"), flag("key", "models.test.key"));
    let server = Server::start("", &[&cert, &key, "--allow-host=models.test"]);
    let authority = std::fs::read(data.join("authority.pem")).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .resolve("models.test", ([127, 0, 0, 1], server.port).into())
        .tls_certs_merge(reqwest::Certificate::from_pem_bundle(&authority).unwrap())
        .build()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let url = format!("https://models.test:{}/acp", server.port);
    let request = client.post(url).bearer_auth(&server.token).json(&hello).send();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(request).unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));

    let mut sandbox = Sandbox::new();
    sandbox.args = ["serve", "--listen", "0.0.0.0:0"].map(Into::into).to_vec();
    let refused = sandbox.command().output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("--tls-cert"), "{why}");
}

#[test]
fn a_token_that_is_removed_ends_its_connections() {
    let mut server = Server::start("", &[]);
    let token = verb(&mut server.sandbox, &["serve", "token", "add", "phone"]);
    let mut it = Socket::open(&server, &token, None).unwrap();
    it.call("initialize", json!({"protocolVersion": 1}));
    let listed = verb(&mut server.sandbox, &["serve", "token", "list"]);
    assert!(listed.contains("phone") && !listed.contains(&token), "{listed}");
    verb(&mut server.sandbox, &["serve", "token", "remove", "phone"]);
    assert_eq!(it.try_next().unwrap_err(), "1013 the token was removed");
    assert_eq!(Socket::open(&server, &token, None).err(), Some(401));
}
