//! A Gemini API on this machine: answers in order, and keeps what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Asked {
    /// Request line and headers, as they came.
    pub head: String,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let is_it = |line: &&str| line.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(name));
        self.head.lines().find(is_it)?.split_once(':').map(|(_, it)| it.trim())
    }
}

pub struct ModelServer {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ModelServer {
    /// Gives each request the next of `answers`; ends with the process.
    pub fn start(answers: Vec<String>) -> Self {
        let mut answers = answers.into_iter();
        Self::answering(move |_| answers.next())
    }

    /// The same, a byte at a time.
    pub fn dripping(answers: Vec<String>) -> Self {
        let mut answers = answers.into_iter();
        Self::serve(move |_| answers.next(), 1)
    }

    /// Gives each request what it should be answered with; `None` is the end.
    pub fn answering(answer: impl FnMut(&Asked) -> Option<String> + Send + 'static) -> Self {
        Self::serve(answer, usize::MAX)
    }

    /// At most so many bytes at once.
    fn serve(mut answer: impl FnMut(&Asked) -> Option<String> + Send + 'static, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let asked = read(&stream);
                let Some(answer) = answer(&asked) else { return };
                seen.lock().unwrap().push(asked);
                stream.set_nodelay(true).unwrap();
                answer.as_bytes().chunks(most).for_each(|it| stream.write_all(it).unwrap());
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// One request.
pub fn read(from: impl Read) -> Asked {
    let mut reader = BufReader::new(from);
    let mut asked = Asked { head: String::new(), body: String::new() };
    while !asked.head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut asked.head).unwrap() > 0, "half a request");
    }
    let length = asked.header("content-length").map_or(0, |it| it.parse().unwrap());
    reader.take(length).read_to_string(&mut asked.body).unwrap();
    asked
}

/// An answer of the model, complete.
pub fn says(text: &str) -> String {
    parts(&json!([{ "text": text }]))
}

pub fn calls(name: &str, args: &Value) -> String {
    parts(&json!([{ "functionCall": { "name": name, "args": args } }]))
}

fn parts(parts: &Value) -> String {
    let chunk = json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": "STOP" }] });
    http("200 OK", "text/event-stream", &format!("data: {chunk}\r\n\r\n"))
}

/// A complete answer of any provider, as its events.
pub fn stream(events: &str) -> String {
    http("200 OK", "text/event-stream", events)
}

/// An error, or whatever else has no events.
pub fn answers(status: &str, body: &str) -> String {
    http(status, "application/json", body)
}

/// A page for people, in the place of an API.
pub fn page(html: &str) -> String {
    http("200 OK", "text/html; charset=utf-8", html)
}

/// What a collector of spans answers.
pub fn accepts() -> String {
    gives(&json!({}))
}

/// An answer that is no stream.
pub fn gives(body: &Value) -> String {
    http("200 OK", "application/json", &body.to_string())
}

/// The key is refused; servers like to repeat it.
pub fn refuses(key: &str) -> String {
    let error =
        json!({ "error": { "code": 401, "message": format!("no such key: {key}"), "status": "UNAUTHENTICATED" } });
    http("401 Unauthorized", "application/json", &error.to_string())
}

fn http(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}
