//! Connections as settings and environment say: proxies, authorities, time. The proxy here is the model's server as well:
//! it ends TLS itself, with a certificate of an authority that nobody else trusts.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    model_server::{read, stream},
};

const TEXT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Here.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

struct Proxy {
    url: String,
    /// The first line of what it was asked.
    asked: Receiver<String>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = mpsc::channel();
        thread::spawn(move || {
            for it in listener.incoming().map_while(Result::ok) {
                if sender.send(serve(it)).is_err() {
                    break;
                }
            }
        });
        Self { url, asked }
    }

    fn next(&self) -> String {
        self.asked.recv_timeout(WATCHDOG).expect("the proxy was not asked")
    }
}

/// Opens the tunnel and is what lies behind it.
fn serve(mut tcp: TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(tcp.read(&mut byte), Ok(1)) {
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let certificates = vec![CertificateDer::from_pem_file(file("models.test.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("models.test.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(certificates, key).unwrap();
    let mut tls = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), tcp);
    // Who does not trust us leaves before the first request.
    if tls.conn.complete_io(&mut tls.sock).is_ok() {
        read(&mut tls);
        tls.write_all(stream(TEXT).as_bytes()).unwrap();
        tls.conn.send_close_notify();
        _ = tls.flush();
    }
    head.lines().next().unwrap_or_default().to_owned()
}

/// One prompt to a model of `base_url`.
fn ask(base_url: &str, connection: &Value, attempts: u8, env: &[(&str, &str)], files: &[(&str, &str)]) -> Value {
    let mut sandbox = Sandbox::new();
    let settings = json!({
        "providers": { "far": { "baseUrl": base_url } },
        "connection": connection,
        "general": { "maxAttempts": attempts },
    });
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    for (path, text) in files {
        sandbox.write(path, text);
    }
    sandbox.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    sandbox.args.extend(["--model", "far/m"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    json!([answer, updates])
}

#[test]
fn through_the_proxy_and_with_the_authority_of_the_environment() {
    let proxy = Proxy::start();
    let authority = file("authority.pem").display().to_string();
    let env = [("HTTPS_PROXY", proxy.url.as_str()), ("NODE_EXTRA_CA_CERTS", &authority)];
    let got = ask("https://models.test/v1", &json!({}), 1, &env, &[]);
    assert!(got.to_string().contains("Here."), "{got}");
    assert_eq!(proxy.next(), "CONNECT models.test:443 HTTP/1.1");
}

#[test]
fn settings_go_before_the_environment() {
    let proxy = Proxy::start();
    let connection = json!({ "proxy": proxy.url, "caFile": file("authority.pem") });
    let env = [("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "example.com")];
    let got = ask("https://models.test/v1", &connection, 1, &env, &[]);
    assert!(got.to_string().contains("Here."), "{got}");
    assert_eq!(proxy.next(), "CONNECT models.test:443 HTTP/1.1");
}

#[test]
fn server_with_an_untrusted_certificate_gets_no_key() {
    let proxy = Proxy::start();
    let got = ask("https://models.test/v1", &json!({}), 1, &[("HTTPS_PROXY", proxy.url.as_str())], &[]);
    let error = got[0]["error"]["message"].as_str().unwrap();
    assert!(error.contains("certificate") && error.contains("connection.caFile"), "{got}");
}

/// It is the proxy that refuses, and nobody should look for the fault at the model's server.
#[test]
fn a_dead_proxy_is_named_without_its_password() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = format!("http://user:canary@{free}");
    let got = ask("https://models.test/v1", &json!({}), 1, &[("https_proxy", proxy.as_str())], &[]);
    let error = got[0]["error"]["message"].as_str().unwrap();
    assert!(error.contains(&format!("models.test through the proxy {free}: ")), "{error}");
    assert!(error.contains("connection.proxy, HTTPS_PROXY") && !got.to_string().contains("canary"), "{got}");
}

/// A repository must not see what is said to models.
#[test]
fn no_proxy_comes_from_a_workspace() {
    let proxy = Proxy::start();
    let env_file = format!("HTTPS_PROXY={0}\nhttps_proxy={0}\nALL_PROXY={0}\n", proxy.url);
    let settings = json!({ "connection": { "proxy": proxy.url } }).to_string();
    let files = [("ws/.env", env_file.as_str()), ("ws/.castor/settings.json", &settings)];
    // Nobody is there; this machine itself would be asked directly in any case.
    let got = ask("https://192.0.2.1/v1", &json!({ "connectTimeout": 1 }), 1, &[], &files);
    assert!(got[0]["error"]["message"].as_str().unwrap().contains("192.0.2.1"), "{got}");
    assert!(proxy.asked.try_recv().is_err());
}

/// A server that begins and then says nothing is given up, and asked again as after a break. This machine is reached
/// without the proxy.
#[test]
fn silent_stream_is_abandoned_and_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut silent, _) = listener.accept().unwrap();
        read(&silent);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: wait\n\n";
        silent.write_all(head.as_bytes()).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        read(&second);
        second.write_all(stream(TEXT).as_bytes()).unwrap();
        silent
    });
    let nowhere = "http://127.0.0.1:1";
    let got = ask(&url, &json!({ "idleTimeout": 1 }), 2, &[("HTTP_PROXY", nowhere), ("ALL_PROXY", nowhere)], &[]);
    let text = got.to_string();
    assert!(text.contains("nothing came for 1 s") && text.contains("Here."), "{got}");
    assert_eq!(got[0]["result"]["stopReason"], "end_turn", "{got}");
    server.join().unwrap();
}
