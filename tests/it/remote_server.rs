//! A server of a few lines that speaks A2A 1.0 in both bindings, and keeps what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

use serde_json::{Value, json};

/// A request as the server got it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `POST /path`.
    pub line: String,
    pub headers: String,
    pub body: Value,
}

impl Asked {
    /// The A2A method, whatever the binding.
    pub fn method(&self) -> &'static str {
        let name = self.body["method"].as_str().unwrap_or_default();
        let rest = [
            ("message:send", "SendMessage"),
            ("message:stream", "SendStreamingMessage"),
            (":cancel", "CancelTask"),
            (":subscribe", "SubscribeToTask"),
            ("/tasks/", "GetTask"),
            ("agent-card", "card"),
        ];
        let rpc = rest.iter().find(|(_, method)| *method == name);
        rpc.or_else(|| rest.iter().find(|(path, _)| self.line.contains(path))).map_or("?", |it| it.1)
    }

    pub fn message(&self) -> &Value {
        if self.body["method"].is_string() { &self.body["params"]["message"] } else { &self.body["message"] }
    }

    pub fn text(&self) -> &str {
        self.message()["parts"][0]["text"].as_str().unwrap_or_default()
    }
}

/// What the server does with a request.
pub enum Answer {
    /// One result.
    One(Value),
    Events(Vec<Value>),
    /// The same, but the connection stays open without a further event.
    Hang(Vec<Value>),
    /// Status line, headers and body as they are.
    Raw(String),
}

#[derive(Default)]
struct Log {
    asked: Mutex<Vec<Asked>>,
    more: Condvar,
}

pub struct Remote {
    pub port: u16,
    log: Arc<Log>,
}

impl Remote {
    pub fn start(rest: bool, answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, log) = (listener.local_addr().unwrap().port(), Arc::new(Log::default()));
        let (seen, answer) = (log.clone(), Arc::new(answer));
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || serve(socket, rest, &seen, &*answer));
            }
        });
        Self { port, log }
    }

    pub fn asked(&self, method: &str) -> Vec<Asked> {
        self.log.asked.lock().unwrap().iter().filter(|it| it.method() == method).cloned().collect()
    }

    /// Waits for a request of this method.
    pub fn wait_for(&self, method: &str) {
        let guard = self.log.asked.lock().unwrap();
        let limit = std::time::Duration::from_secs(20);
        let is_missing = |it: &mut Vec<Asked>| !it.iter().any(|it| it.method() == method);
        let (guard, waited) = self.log.more.wait_timeout_while(guard, limit, is_missing).unwrap();
        assert!(!waited.timed_out(), "no {method}: {guard:?}");
    }
}

fn serve(socket: TcpStream, rest: bool, log: &Log, answer: &dyn Fn(&Asked, usize) -> Answer) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let Some(asked) = read(&mut reader) else { return };
    let count = {
        let mut all = log.asked.lock().unwrap();
        all.push(asked.clone());
        log.more.notify_all();
        all.iter().filter(|it| it.method() == asked.method()).count()
    };
    let wrap = |it: Value| match rest || asked.method() == "card" {
        true => it,
        false => json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": it }),
    };
    let events = |all: Vec<Value>| all.into_iter().map(|it| format!("data: {}\n\n", wrap(it))).collect::<String>();
    let (text, hangs) = match answer(&asked, count) {
        Answer::One(it) => (http("200 OK", "application/json", &wrap(it).to_string()), false),
        Answer::Events(all) => (http("200 OK", "text/event-stream", &events(all)), false),
        Answer::Hang(all) => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            (head.to_owned() + &events(all), true)
        }
        Answer::Raw(it) => (it, false),
    };
    let mut socket = socket;
    _ = socket.write_all(text.as_bytes());
    if hangs {
        // Until the other side goes.
        _ = socket.read(&mut [0]);
    }
}

pub fn http(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|it| *it > 0)?;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(": ") {
            let name = name.to_ascii_lowercase();
            length = if name == "content-length" { value.trim().parse().ok()? } else { length };
            headers += &format!("{name}: {}\n", value.trim());
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.rsplit_once(' ').map_or(String::new(), |it| it.0.to_owned());
    Some(Asked { line, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

pub fn card(asked: &Asked, rest: bool, streams: bool) -> Value {
    let host = asked.headers.lines().find_map(|it| it.strip_prefix("host: ")).unwrap();
    card_at(&format!("http://{host}/a2a"), rest, streams)
}

pub fn card_at(url: &str, rest: bool, streams: bool) -> Value {
    let binding = if rest { "HTTP+JSON" } else { "JSONRPC" };
    let interface = json!({ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" });
    json!({ "name": "Weather", "description": "Knows the weather.", "version": "1", "skills": [],
        "capabilities": { "streaming": streams }, "supportedInterfaces": [interface] })
}

fn says(text: &str) -> Value {
    json!({ "messageId": text, "role": "ROLE_AGENT", "parts": [{ "text": text }] })
}

pub fn status(state: &str, said: Option<&str>) -> Value {
    let mut status = json!({ "state": format!("TASK_STATE_{state}") });
    said.into_iter().for_each(|it| status["message"] = says(it));
    json!({ "statusUpdate": { "taskId": "t1", "contextId": "ctx", "status": status } })
}

pub fn artifact(text: &str, append: bool) -> Value {
    let artifact = json!({ "artifactId": "a", "name": "forecast", "parts": [{ "text": text }] });
    json!({ "artifactUpdate": { "taskId": "t1", "contextId": "ctx", "artifact": artifact, "append": append } })
}

pub fn task(state: &str, artifact: Option<&str>) -> Value {
    let artifacts: Vec<Value> = artifact
        .map(|it| json!({ "artifactId": "a", "name": "forecast", "parts": [{ "text": it }] }))
        .into_iter()
        .collect();
    let status = json!({ "state": format!("TASK_STATE_{state}") });
    json!({ "id": "t1", "contextId": "ctx", "status": status, "artifacts": artifacts })
}
