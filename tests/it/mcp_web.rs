//! MCP servers on the network: both forms of HTTP, against a server of a few lines.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server::Server,
};

/// Listens on a free port; returns it.
fn start(sse: bool) -> u16 {
    start_as("", sse)
}

/// The same with a kind of server.
fn start_as(kind: &'static str, sse: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let stream = stream.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while let Some(request) = read(&mut reader) {
                    respond(kind, request, &socket, sse.then_some(&*stream));
                }
            });
        }
    });
    port
}

struct Request {
    method: String,
    authorized: bool,
    token: String,
    body: Value,
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|it| *it > 0)?;
    let method = line.split(' ').next()?.to_owned();
    let (mut length, mut token) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(": ") {
            None => break,
            Some(("content-length", it)) => length = it.parse().ok()?,
            Some(("authorization", it)) => token = it.to_owned(),
            Some(_) => (),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let authorized = token == "bearer t0ken";
    Some(Request { method, authorized, token, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// `stream`: where answers of the older form go.
fn respond(kind: &str, request: Request, mut socket: &TcpStream, stream: Option<&Mutex<Option<TcpStream>>>) {
    let plain = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    let answer = || Server::new(kind).answer(&request.body).filter(|_| request.body.get("id").is_some());
    let text = match (request.authorized, &*request.method, stream) {
        (false, ..) => plain("403 Forbidden"),
        (_, "GET", Some(stream)) => {
            *stream.lock().unwrap_or_else(PoisonError::into_inner) = socket.try_clone().ok();
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /post?id=1\n\n".to_owned()
        }
        (_, "POST", Some(stream)) => {
            let (answer, mut stream) = (answer(), stream.lock().unwrap_or_else(PoisonError::into_inner));
            if let (Some(answer), Some(stream)) = (answer, &mut *stream) {
                let _ = stream.write_all(format!("event: message\ndata: {answer}\n\n").as_bytes());
            }
            plain("202 Accepted")
        }
        (_, "POST", None) if kind == "torn" && request.body["method"] == "tools/call" => {
            let text = request.body["params"]["arguments"]["text"].as_str().unwrap_or_default();
            let event = text.replace("ID", &request.body["id"].to_string());
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {event}\n\n")
        }
        (_, "POST", None) => match answer() {
            Some(it) => {
                let it = it.to_string();
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{it}", it.len())
            }
            None => plain("202 Accepted"),
        },
        _ => plain("405 Method Not Allowed"),
    };
    let _ = socket.write_all(text.as_bytes());
}

/// The updates of a turn in which the server's echo is called.
fn play(server: Option<Value>, settings: &str) -> String {
    play_calls(server, settings, &["echo {\"text\":\"a\"}"])
}

/// The same with these calls, one after the other.
fn play_calls(server: Option<Value>, settings: &str, calls: &[&str]) -> String {
    let mut sandbox = Sandbox::new();
    let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let calls: String = calls.iter().map(|it| line(&format!("call mcp_web_{it}"))).collect();
    let script = sandbox.write("script.jsonl", &(calls + &line("text \"b\"")));
    sandbox.write("home/.castor/settings.json", settings);
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session_with(&sandbox.workspace(), json!(Vec::from_iter(server))).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (_, updates) = client.call("session/prompt", params).unwrap();
    updates.iter().map(Value::to_string).collect()
}

fn server(kind: &str, port: u16, token: &str) -> Option<Value> {
    let headers = json!([{"name": "Authorization", "value": token}]);
    Some(json!({"type": kind, "name": "web", "url": format!("http://127.0.0.1:{port}/x"), "headers": headers}))
}

#[test]
fn servers_are_reached_over_both_forms_of_http() {
    for (kind, sse) in [("http", false), ("sse", true)] {
        let said = play(server(kind, start(sse), "Bearer t0ken"), "{}");
        assert!(said.contains("echo: a"), "{kind}: {said}");
    }
}

#[test]
fn the_older_form_is_tried_when_the_newer_one_fails() {
    for sse in [false, true] {
        let url = format!("http://127.0.0.1:{}/x", start(sse));
        let web = json!({"url": url, "headers": {"Authorization": "Bearer t0ken"}});
        let said = play(None, &json!({"mcpServers": {"web": web}}).to_string());
        assert!(said.contains("echo: a"), "sse {sse}: {said}");
    }
}

/// What it sends is not kept beyond 16 MB, and the next call is answered.
#[test]
fn an_answer_of_22_mb_fails_its_call_alone() {
    for (kind, sse) in [("http", false), ("sse", true)] {
        let web = server(kind, start_as("offers", sse), "Bearer t0ken");
        let said = play_calls(web, "{}", &[r#"big {"lines":1300000}"#, r#"echo {"text":"a"}"#]);
        let short = said.get(..20_000).unwrap_or(&said);
        assert!(short.contains("MCP tool 'big' failed: ") && short.contains("16"), "{kind}: {short}");
        assert!(said.len() < 20_000 && said.contains("echo: a"), "{kind}: {short}");
    }
}

/// Takes one token until it has told its tools, and another one after that; refusals are with or without a challenge.
fn start_expiring(challenge: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while let Some(request) = read(&mut reader) {
                    let is_call = request.body["method"] == "tools/call";
                    match request.token.as_str() {
                        "bearer old-t0ken" if !is_call => {
                            respond("", Request { authorized: true, ..request }, &socket, None)
                        }
                        "bearer new-t0ken" => respond("", Request { authorized: true, ..request }, &socket, None),
                        _ => {
                            let text = format!("HTTP/1.1 401 Unauthorized\r\n{challenge}Content-Length: 0\r\n\r\n");
                            let _ = (&socket).write_all(text.as_bytes());
                        }
                    }
                }
            });
        }
    });
    port
}

/// The token of a server expires: the user is asked, the settings are read again, and the call is made once more.
#[test]
fn a_server_that_wants_another_token_is_called_again_with_it() {
    for (challenge, renews) in [("", true), ("WWW-Authenticate: Bearer\r\n", true), ("", false)] {
        let port = start_expiring(challenge);
        let settings = |token: &str| {
            let web = json!({"url": format!("http://127.0.0.1:{port}/x?key=canary"), "type": "http",
                "headers": {"Authorization": format!("Bearer {token}")}});
            json!({"mcpServers": {"web": web}}).to_string()
        };
        let mut sandbox = Sandbox::new();
        let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
        let script = line("call mcp_web_echo {\"text\":\"a\"}") + &line("text \"b\"");
        let script = sandbox.write("script.jsonl", &script);
        sandbox.write("home/.castor/settings.json", &settings("old-t0ken"));
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({"elicitation": {"url": {}}})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        client.request_as(json!("go"), "session/prompt", params);
        let mut said = String::new();
        let end = loop {
            let message = client.next().unwrap().expect("castor has ended");
            said += &format!("{message}\n");
            if message["method"] == "elicitation/create" {
                let params = &message["params"];
                assert_eq!(
                    (&params["mode"], &params["url"]),
                    (&json!("url"), &json!(format!("http://127.0.0.1:{port}/")))
                );
                assert_eq!(params["_meta"]["castor"]["authRequired"]["credential"], "server/web", "{message}");
                if renews {
                    sandbox.write("home/.castor/settings.json", &settings("new-t0ken"));
                }
                let action = if renews { "accept" } else { "decline" };
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": action}}));
            }
            if message["id"] == "go" {
                break message;
            }
        };
        assert_eq!(end["result"]["stopReason"], "end_turn", "{said}");
        assert_eq!(said.contains("echo: a"), renews, "{said}");
        assert_eq!(said.matches("elicitation/create").count(), 1, "{said}");
        assert!(!said.contains("t0ken") && !said.contains("canary"), "{said}");
    }
}

/// A token that is too old from the beginning: the user is asked before the model is.
#[test]
fn a_server_that_refuses_castor_at_its_start_is_asked_about() {
    for answers in [&["accept"][..], &["accept", "accept"], &["decline"]] {
        let port = start_expiring("WWW-Authenticate: Bearer\r\n");
        let settings = |token: &str| {
            let web = json!({"url": format!("http://127.0.0.1:{port}/x"), "type": "http",
                "headers": {"Authorization": format!("Bearer {token}")}});
            json!({"mcpServers": {"web": web}}).to_string()
        };
        let mut sandbox = Sandbox::new();
        let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
        let script = line("call mcp_web_echo {\"text\":\"a\"}") + &line("text \"b\"");
        let script = sandbox.write("script.jsonl", &script);
        sandbox.write("home/.castor/settings.json", &settings("lost-t0ken"));
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({"elicitation": {"url": {}}})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        client.request_as(json!("go"), "session/prompt", params);
        let (mut said, mut left) = (String::new(), answers.len());
        loop {
            let message = client.next().unwrap().expect("castor has ended");
            said += &format!("{message}\n");
            if message["method"] == "elicitation/create" {
                let says_unchanged = message["params"]["message"].as_str().unwrap().starts_with("Nothing has changed");
                assert_eq!(says_unchanged, left < answers.len(), "{message}");
                let action = answers[answers.len() - left];
                left -= 1;
                if action == "accept" && left == 0 {
                    sandbox.write("home/.castor/settings.json", &settings("new-t0ken"));
                }
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": action}}));
            }
            if message["id"] == "go" {
                assert_eq!(message["result"]["stopReason"], "end_turn", "{said}");
                break;
            }
        }
        let renews = answers != ["decline"];
        assert_eq!((left, said.contains("echo: a")), (0, renews), "{said}");
        assert_eq!(said.contains("is not available"), !renews, "{said}");
        assert!(!said.contains("t0ken"), "{said}");
    }
}

#[test]
fn refused_server_is_named_without_secrets() {
    for (kind, sse) in [("http", false), ("sse", true)] {
        let said = play(server(kind, start(sse), "Bearer canary"), "{}");
        assert!(said.contains("MCP server \\\"web\\\" is not available: "), "{kind}: {said}");
        assert!(!said.contains("canary"), "{kind}: {said}");
    }
}

/// Without a handshake, and without a connection that lasts: what it needs travels with the requests.
#[test]
fn a_stateless_server_gets_roots_beside_a_form() {
    let port = start_as("modern needs", false);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let form = json!({"method": "elicitation/create", "params": {"message": "Where to?", "requestedSchema": schema}});
    let needs = json!({"needs": {"city": form, "where": {"method": "roots/list"}}});
    let mut sandbox = Sandbox::new();
    let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let script = line(&format!("call mcp_web_needs {needs}")) + &line("text \"b\"");
    let script = sandbox.write("script.jsonl", &script);
    sandbox.write("home/.castor/settings.json", "{}");
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({"elicitation": {"form": {}}})).unwrap();
    let web = server("http", port, "Bearer t0ken").unwrap();
    let session = client.new_session_with(&sandbox.workspace(), json!([web])).unwrap();
    client.request_as(
        json!("p"),
        "session/prompt",
        json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}),
    );
    let mut said = String::new();
    loop {
        let message = client.next().unwrap().expect("castor ended");
        if message["method"] == "elicitation/create" {
            let result = json!({"action": "accept", "content": {"city": "Rome"}});
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        said.push_str(&message.to_string());
        if message["id"] == "p" {
            break;
        }
    }
    assert!(said.contains("Rome") && said.contains(r#"\"roots\":["#), "{said}");
}

/// A server that sends castor elsewhere: to an address of this machine, in both families, and to one that clouds keep
/// their credentials at.
#[test]
fn redirects_of_a_server_are_not_followed() {
    let elsewhere = ["127.0.0.1:0", "[::1]:0"].map(|it| TcpListener::bind(it).ok());
    let places = elsewhere.iter().flatten().map(|it| it.local_addr().unwrap().to_string());
    for place in places.chain(["169.254.169.254".to_owned()]) {
        let asked = Arc::new(Mutex::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let counted = asked.clone();
        let answer =
            format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{place}/x\r\nContent-Length: 0\r\n\r\n");
        thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while read(&mut reader).is_some() {
                    *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                    let _ = socket.write_all(answer.as_bytes());
                }
            }
        });
        let said = play(server("http", port, "Bearer t0ken"), r#"{"mcp": {"maxRestarts": 0}}"#);
        assert!(!said.contains("echo: a") && said.contains("mcp_web_echo"), "{place}: {said}");
        assert!(*asked.lock().unwrap_or_else(PoisonError::into_inner) > 0, "{place}");
    }
    for it in elsewhere.iter().flatten() {
        it.set_nonblocking(true).unwrap();
        assert!(it.accept().is_err(), "castor went to {it:?}");
    }
}

/// An event that cannot be read fails its call with the reason; half a character is U+FFFD.
#[test]
fn events_are_read_as_lines_of_a_process_are() {
    let result = |text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    for (event, expected) in [
        (result("whole"), r#""text":"whole""#),
        (result(r"cut \ud83c"), "cut \u{fffd}"),
        (result(r"\q"), "its answer cannot be read: invalid escape"),
        (result("fine").replace(r#""jsonrpc":"2.0","#, ""), r#""text":"fine""#),
    ] {
        let web = server("http", start_as("torn", false), "Bearer t0ken");
        let said = play_calls(web, "{}", &[&format!("echo {}", json!({ "text": event }))]);
        assert!(said.contains(expected), "{event}: {said}");
    }
}
