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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let stream = stream.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while let Some(request) = read(&mut reader) {
                    respond(request, &socket, sse.then_some(&*stream));
                }
            });
        }
    });
    port
}

struct Request {
    method: String,
    authorized: bool,
    body: Value,
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|it| *it > 0)?;
    let method = line.split(' ').next()?.to_owned();
    let (mut length, mut authorized) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(": ") {
            None => break,
            Some(("content-length", it)) => length = it.parse().ok()?,
            Some(("authorization", it)) => authorized = it == "bearer t0ken",
            Some(_) => (),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, authorized, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// `stream`: where answers of the older form go.
fn respond(request: Request, mut socket: &TcpStream, stream: Option<&Mutex<Option<TcpStream>>>) {
    let plain = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    let answer = || Server::new("").answer(&request.body).filter(|_| request.body.get("id").is_some());
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
    let mut sandbox = Sandbox::new();
    let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let script = line("call mcp_web_echo {\"text\":\"a\"}") + &line("text \"b\"");
    let script = sandbox.write("script.jsonl", &script);
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

#[test]
fn refused_server_is_named_without_secrets() {
    for (kind, sse) in [("http", false), ("sse", true)] {
        let said = play(server(kind, start(sse), "Bearer canary"), "{}");
        assert!(said.contains("MCP server \\\"web\\\" is not available: "), "{kind}: {said}");
        assert!(!said.contains("canary"), "{kind}: {said}");
    }
}
