//! A client that stops reading: what waits for it is bounded, it is still listened to, and nothing is lost or doubled.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, WATCHDOG, is_worked_in};

const MIB: u64 = 1024 * 1024;
/// What a model or a tool has to say that never ends; the bound is far below it, and far above any buffer on the way.
const FLOOD: u64 = 256 * MIB;
/// Most that castor may need more of memory than before.
const MAX_GROWTH: u64 = 64 * MIB;
/// Requests that are taken without any progress of a model: then it stands still.
const N_STILL: u64 = 20;

#[test]
fn a_model_waits_for_the_client() {
    let taken = Arc::new(AtomicU64::new(0));
    let (mut it, flood) = Setup::with_model(taken.clone());
    it.prompt(1, &it.first.clone());
    it.read_until("flood");
    it.client.hold();
    let before = it.memory();
    // Until no more is taken of the stream, however often the other session is heard.
    let mut last = (0, 0);
    while last.1 < N_STILL {
        it.is_heard();
        let now = taken.load(Ordering::SeqCst);
        assert!(now < FLOOD, "the model is read on and on");
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
    }
    it.prompt(2, &it.second.clone());
    it.client.notify("session/cancel", json!({"sessionId": it.first}));
    flood.recv_timeout(WATCHDOG).expect("the connection is still open");
    it.memory_has_a_bound(before);
    it.client.read_on();
    assert_eq!(it.answers(), [("1", "cancelled"), ("2", "end_turn")].map(|(id, it)| (id.to_owned(), it.to_owned())));
}

/// castor ends although its output is never read.
#[test]
fn end_of_input_ends_a_client_that_never_reads() {
    let taken = Arc::new(AtomicU64::new(0));
    let (mut it, flood) = Setup::with_model(taken);
    it.prompt(1, &it.first.clone());
    it.read_until("flood");
    it.client.hold();
    it.fill(3);
    it.is_heard();
    it.client.close_stdin();
    assert_eq!(it.client.ends_unread().unwrap().code(), Some(0));
    flood.recv_timeout(WATCHDOG).expect("the connection is still open");
}

/// Beyond a bound nothing is taken from the client; that it leaves is seen all the same.
#[test]
fn client_beyond_the_input_bound_can_still_leave() {
    let mut it = Setup::scripted("");
    it.client.hold();
    let before = it.memory();
    // The last one may be in the reader's hands already.
    it.fill(65);
    it.is_quiet();
    it.memory_has_a_bound_of(before, 6 * 64 * MIB);
    it.client.close_stdin();
    assert_eq!(it.client.ends_unread().unwrap().code(), Some(0));
}

#[test]
fn a_command_does_not_wait_and_what_it_says_is_bounded() {
    let flood = format!("yes tide | head -c {}", FLOOD / 4);
    let command = format!("mkfifo go; echo star''ted; read < go; {flood}; echo > done; sleep 3333");
    let call = json!({"functionCall": {"name": "run_shell_command", "args": {"command": command}}});
    let chunk = |part: Value| json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]});
    let line = |part| format!("{}\n", json!({"method": "generateContentStream", "response": [chunk(part)]}));
    let mut it = Setup::scripted(&format!("{}{}", line(call), line(json!({"text": "fine"}))));
    it.prompt(1, &it.first.clone());
    it.read_until("started");
    it.client.hold();
    let before = it.memory();
    it.fill(4);
    it.is_heard();
    let workspace = it.sandbox.workspace();
    fs::write(workspace.join("go"), "\n").unwrap();
    wait_for("the command's end", || workspace.join("done").exists());
    it.is_heard();
    it.prompt(2, &it.second.clone());
    it.client.notify("session/cancel", json!({"sessionId": it.first}));
    wait_for("the command's death", || !is_worked_in(&workspace));
    it.memory_has_a_bound(before);
    it.client.read_on();
    assert_eq!(it.answers(), [("1", "cancelled"), ("2", "end_turn")].map(|(id, it)| (id.to_owned(), it.to_owned())));
    let said = it.client.transcript();
    assert!(!said.contains("tide\\ntide"), "the command was heard while the client did not read");
}

/// A castor with two sessions.
struct Setup {
    sandbox: Sandbox,
    client: Client,
    first: String,
    second: String,
    n_heard: usize,
    n_filled: usize,
}

impl Setup {
    /// The first answer of its model never ends, the others say "fine". What of the first one is taken is counted, and
    /// it is told when nobody wants more of it.
    fn with_model(taken: Arc<AtomicU64>) -> (Self, Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sandbox = Sandbox::new();
        let url = format!("http://{}", listener.local_addr().unwrap());
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), url));
        let (closed, flood) = channel();
        thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            read_request(&mut stream);
            thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                read_request(&mut stream);
                _ = stream.write_all(format!("{HEAD}{}", event("fine", true)).as_bytes());
            });
            _ = stream.write_all(HEAD.as_bytes());
            let chunk = event(&"flood ".repeat(1000), false);
            while stream.write_all(chunk.as_bytes()).is_ok() {
                taken.fetch_add(chunk.len() as u64, Ordering::SeqCst);
            }
            closed.send(())
        });
        (Self::start(sandbox), flood)
    }

    fn scripted(script: &str) -> Self {
        let mut sandbox = Sandbox::new();
        let script = sandbox.write("script.jsonl", script);
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        Self::start(sandbox)
    }

    fn start(sandbox: Sandbox) -> Self {
        // Its words repeat themselves.
        sandbox.write(sandbox.home().join(".castor/settings.json"), r#"{"model":{"disableLoopDetection":true}}"#);
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let [first, second] = [(); 2].map(|()| client.new_session(&sandbox.workspace()).unwrap());
        Self { sandbox, client, first, second, n_heard: 0, n_filled: 0 }
    }

    fn prompt(&mut self, id: u64, session: &str) {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        self.client.request_as(json!(id), "session/prompt", params);
    }

    fn read_until(&mut self, word: &str) {
        while !self.client.next().unwrap().expect("the agent ended").to_string().contains(word) {}
    }

    /// A request about the second session is taken: its log tells, nothing has to be read for it.
    fn is_heard(&mut self) {
        let mode = ["autoEdit", "default"][self.n_heard % 2];
        let log = self.sandbox.home().join(format!(".castor/sessions/{}.jsonl", self.second));
        let set = || fs::read_to_string(&log).unwrap_or_default().matches("\"fact\":\"mode\"").count();
        let before = set();
        self.n_heard += 1;
        let params = json!({"sessionId": self.second, "modeId": mode});
        self.client.request_as(json!(format!("heard {}", self.n_heard)), "session/set_mode", params);
        wait_for("the other session's request", || set() > before);
    }

    /// Everything that was sent is taken, or not listened to: the loop sleeps whenever it is looked at.
    fn is_quiet(&self) {
        let stat = format!("/proc/{}/stat", self.client.pid());
        let sleeps = || fs::read_to_string(&stat).ok().is_none_or(|it| it.contains(") S "));
        wait_for("the loop's sleep", || (0..1000).all(|_| sleeps()));
    }

    /// Makes castor owe so many answers of a MiB each.
    fn fill(&mut self, n: usize) {
        for _ in 0..n {
            self.n_filled += 1;
            let id = format!("{:07}{}", self.n_filled, "x".repeat(MIB as usize - 7));
            self.client.request_as(json!(id), "_it/no_such_method", json!({}));
        }
    }

    /// Reads until every request is answered: the endings of the prompts, by id.
    fn answers(&mut self) -> Vec<(String, String)> {
        let mut res = Vec::new();
        while !self.client.ledger.is_idle() {
            let message = self.client.next().unwrap().expect("the agent ended");
            if let Some(stop) = message["result"]["stopReason"].as_str() {
                res.push((message["id"].to_string(), stop.to_owned()));
            }
        }
        res.sort();
        res
    }

    fn memory_has_a_bound(&self, before: u64) {
        self.memory_has_a_bound_of(before, MAX_GROWTH);
    }

    fn memory_has_a_bound_of(&self, before: u64, max: u64) {
        let grown = self.memory().saturating_sub(before);
        assert!(grown < max, "{} MiB more", grown / MIB);
    }

    /// The most that castor ever had in memory, in bytes; nothing where nobody tells.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.client.pid())).unwrap_or_default();
        let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak.map_or(0, |it| it.parse::<u64>().unwrap() * 1024)
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn event(text: &str, last: bool) -> String {
    let mut candidate = json!({"content": {"parts": [{"text": text}]}});
    if last {
        candidate["finishReason"] = json!("STOP");
    }
    format!("data: {}\n\n", json!({"candidates": [candidate]}))
}

/// Up to the end of the body, which is one JSON object.
fn read_request(stream: &mut TcpStream) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).unwrap();
        assert_ne!(n, 0, "half a request");
        bytes.extend(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes);
        let body = text.split_once("\r\n\r\n").map(|it| it.1);
        if body.is_some_and(|it| serde_json::from_str::<Value>(it).is_ok()) {
            return;
        }
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WATCHDOG, "waited in vain: {what}");
        thread::yield_now();
    }
}
