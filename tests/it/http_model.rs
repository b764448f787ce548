//! The model over HTTP, from the editor's side: a server of one connection at a time says what it wants, when it wants.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, WATCHDOG};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const STOP: &str = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";

fn event(text: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\n\n")
}

/// A castor whose model is this test.
struct Setup {
    sandbox: Sandbox,
    client: Client,
    session: String,
    connections: Receiver<TcpStream>,
    n_prompts: u64,
}

impl Setup {
    fn new() -> Self {
        Self::with(&json!({}))
    }

    fn with(settings: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (sender, connections) = mpsc::channel();
        thread::spawn(move || {
            for it in listener.incoming().map_while(Result::ok) {
                if sender.send(it).is_err() {
                    break;
                }
            }
        });
        let mut sandbox = Sandbox::new();
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), base));
        // The last one of its chain: nobody takes over.
        sandbox.args.extend(["--model", "gemini-3.5-flash-lite"].map(Into::into));
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { sandbox, client, session, connections, n_prompts: 0 }
    }

    /// Sends a prompt; the request that the model gets for it.
    fn prompt(&mut self) -> Call {
        let session = self.session.clone();
        self.prompt_in(&session)
    }

    fn prompt_in(&mut self, session: &str) -> Call {
        self.n_prompts += 1;
        let text = format!("prompt {}", self.n_prompts);
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.client.request_as(json!(self.n_prompts), "session/prompt", params);
        self.call()
    }

    /// The next request to the model.
    fn call(&self) -> Call {
        Call::read(self.connections.recv_timeout(WATCHDOG).expect("the model was not asked"))
    }

    fn cancel(&mut self) {
        self.client.notify("session/cancel", json!({"sessionId": self.session}));
    }

    /// Everything up to the answer to the last prompt, its updates' texts joined by `|`, and the answer.
    fn outcome(&mut self) -> (String, Value) {
        let mut texts = Vec::new();
        loop {
            let message = self.client.next().unwrap().expect("the agent ended");
            if message["id"] == self.n_prompts {
                return (texts.join("|"), message);
            }
            texts.extend(self.text(&message));
        }
    }

    /// Reads up to a chunk of text, thoughts included, and returns it.
    fn chunk(&mut self) -> String {
        loop {
            let message = self.client.next().unwrap().expect("the agent ended");
            if let Some(text) = self.text(&message) {
                return text;
            }
        }
    }

    fn text(&self, message: &Value) -> Option<String> {
        message["params"]["update"]["content"]["text"].as_str().map(str::to_owned)
    }

    /// The session is alive: another prompt gets an answer.
    fn works(&mut self) {
        let mut call = self.prompt();
        call.say(&format!("{HEAD}{}{STOP}", event("fine")));
        let (texts, answer) = self.outcome();
        assert_eq!((texts.as_str(), &answer["result"]["stopReason"]), ("fine", &json!("end_turn")));
    }
}

/// A request to the model, to be answered.
struct Call {
    stream: TcpStream,
    body: Value,
}

impl Call {
    fn read(mut stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let n = stream.read(&mut buffer).unwrap();
            assert_ne!(n, 0, "half a request");
            bytes.extend(&buffer[..n]);
            let text = String::from_utf8_lossy(&bytes);
            let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
            if let Ok(body) = serde_json::from_str(body) {
                return Self { stream, body };
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
        self.stream.flush().unwrap();
    }

    fn status(mut self, status: u16, body: &str) {
        self.say(&format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Whether the other side lets go of the connection.
    fn closes(mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(n) => n == 0,
            Err(it) => it.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Role and texts of the contents, the system instruction aside.
    fn contents(&self) -> Vec<String> {
        let content = |it: &Value| {
            let parts = it["parts"].as_array().unwrap().iter();
            let parts: Vec<&str> = parts.map(|it| it["text"].as_str().unwrap_or("(call or result)")).collect();
            format!("{}: {}", it["role"].as_str().unwrap(), parts.join(" + "))
        };
        self.body["contents"].as_array().unwrap().iter().map(content).collect()
    }
}

#[test]
fn chunks_stream_as_they_arrive() {
    let mut it = Setup::new();
    let mut call = it.prompt();
    call.say(HEAD);
    for text in ["one", "two", "three"] {
        call.say(&event(text));
        assert_eq!(it.chunk(), text);
    }
    call.say(STOP);
    assert_eq!(it.outcome().1["result"]["stopReason"], "end_turn");
}

/// Before the first chunk, and at any place in the answer.
#[test]
fn cancel_closes_the_connection_whatever_had_come() {
    let mut it = Setup::new();
    for said in ["", HEAD, &format!("{HEAD}{}", event("a")), &format!("{HEAD}data: {{\"candi")] {
        let mut call = it.prompt();
        call.say(said);
        if said.ends_with("\n\n") && said.contains("data") {
            assert_eq!(it.chunk(), "a");
        }
        it.cancel();
        let (_, answer) = it.outcome();
        assert_eq!(answer["result"]["stopReason"], "cancelled", "after {said:?}");
        assert!(call.closes(), "after {said:?}");
    }
    it.works();
}

/// A compressor that hangs or fails costs no turn; a cancel ends both.
#[test]
fn a_compression_ends_with_its_turn_and_fails_for_itself() {
    let mut it = Setup::with(&json!({"model": {"compressionThreshold": 0.001}}));
    let long: String = (0..200).map(|n| format!("{n} is a number. ")).collect();
    it.prompt().say(&format!("{HEAD}{}{STOP}", event(&long)));
    it.outcome();
    let mut call = it.prompt();
    assert!(call.body["systemInstruction"].to_string().contains("state_snapshot"), "{}", call.body);
    assert!(call.body.get("tools").is_none() && call.contents()[0].contains("199 is a number"), "{}", call.body);
    call.say(&format!("{HEAD}{}", event("<state_snapshot>")));
    it.cancel();
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
    assert!(call.closes());

    // Nothing is known against it: it is tried again, and fails. The turn goes on.
    it.prompt().status(503, "{}");
    let mut call = it.call();
    assert!(call.contents().concat().contains("199 is a number"), "{:?}", call.contents());
    call.say(&format!("{HEAD}{}{STOP}", event("fine")));
    let (texts, answer) = it.outcome();
    assert!(texts.contains("could not be compressed") && texts.ends_with("|fine"), "{texts}");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    it.works();
}

#[test]
fn cancel_request_before_the_first_chunk() {
    let mut it = Setup::new();
    let call = it.prompt();
    it.client.notify("$/cancel_request", json!({"requestId": it.n_prompts}));
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
    assert!(call.closes());
    it.works();
}

#[test]
fn the_end_of_the_input_closes_the_connection() {
    let mut it = Setup::new();
    let call = it.prompt();
    it.client.close_stdin();
    let (status, rest) = it.client.end().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(rest.last().map(|it| &it["result"]["stopReason"]), Some(&json!("cancelled")));
    assert!(call.closes());
}

#[test]
fn two_sessions_wait_side_by_side() {
    let mut it = Setup::new();
    let _mute = it.prompt();
    let second = it.client.new_session(&it.sandbox.workspace()).unwrap();
    let mut call = it.prompt_in(&second);
    call.say(&format!("{HEAD}{}{STOP}", event("second")));
    assert_eq!(it.outcome().0, "second");
    it.cancel();
    it.n_prompts = 1;
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
}

/// Model, cause and retry time are shown before the next attempt.
#[test]
fn rate_limit_is_reported_and_waited_out() {
    let mut it = Setup::new();
    let limit = r#"{"error":{"message":"Slow down.","details":[{"retryDelay":"0.01s"}]}}"#;
    it.prompt().status(429, limit);
    it.call().status(503, limit);
    it.call().say(&format!("{HEAD}{}{STOP}", event("here")));
    let (texts, answer) = it.outcome();
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    // Said before it is tried again: model, cause, and when that is.
    let first = texts.split('|').next().unwrap();
    let parts = ["rate limit", "gemini-3.5-flash-lite", "Slow down.", "Trying again in 0.1 s"];
    assert!(parts.iter().all(|it| first.contains(it)) && texts.ends_with("|here"), "{texts}");
}

#[test]
fn cancel_while_waiting_to_try_again() {
    let mut it = Setup::new();
    it.prompt().status(429, r#"{"error":{"message":"Slow down.","details":[{"retryDelay":"200s"}]}}"#);
    assert!(it.chunk().contains("Slow down."));
    it.cancel();
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
    it.works();
}

#[test]
fn statuses_that_no_attempt_can_help() {
    let mut it = Setup::new();
    for (status, code) in [(400, -32603), (401, -32000), (403, -32000), (404, -32603), (413, -32603)] {
        it.prompt().status(status, r#"{"error":{"message":"It was so."}}"#);
        let (texts, answer) = it.outcome();
        let error = &answer["error"];
        assert_eq!((texts.as_str(), &error["code"]), ("", &json!(code)), "{status}: {answer}");
        assert!(error["message"].as_str().unwrap().starts_with("It was so."), "{answer}");
        if code == -32603 {
            assert_eq!((&error["data"]["details"], &error["data"]["kind"]), (&error["message"], &json!("model")));
        }
    }
    it.works();
}

#[test]
fn cancelled_call_has_a_result_for_the_model() {
    let mut it = Setup::new();
    let mut call = it.prompt();
    let parts = json!([{"functionCall": {"name": "run_shell_command", "args": {"command": "touch a"}}}]);
    let chunk = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    call.say(&format!("{HEAD}data: {chunk}\n\n"));
    while it.client.next().unwrap().unwrap()["method"] != "session/request_permission" {}
    it.cancel();
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
    let mut call = it.prompt();
    let contents = [
        "user: prompt 1",
        "model: (call or result)",
        "user: (call or result)",
        "model: [The previous response was interrupted before it completed.]",
        "user: prompt 2",
    ];
    assert_eq!(call.contents(), contents);
    call.say(&format!("{HEAD}{}{STOP}", event("fine")));
    it.outcome();
}

/// Thoughts are not sent back, so what is left of such an answer is a turn without content, which providers refuse.
#[test]
fn cancelled_thought_leaves_no_empty_turn() {
    let mut it = Setup::new();
    let mut call = it.prompt();
    let thought = json!({"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}}]});
    call.say(&format!("{HEAD}data: {thought}\n\n"));
    assert_eq!(it.chunk(), "Hm.");
    it.cancel();
    assert_eq!(it.outcome().1["result"]["stopReason"], "cancelled");
    let mut call = it.prompt();
    assert_eq!(call.contents(), ["user: prompt 1 + prompt 2"]);
    call.say(&format!("{HEAD}{}{STOP}", event("fine")));
    it.outcome();
}
