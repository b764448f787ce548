//! A small ACP agent. This binary starts itself as one, and does what the lines of its prompt say.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, Lines, StdinLock, Write, stdin},
    net::TcpStream,
    process::exit,
};

use serde_json::{Value, json};

use crate::schema;

/// Not a test: does nothing unless it is asked to be an agent.
///
/// Kinds: `mute` answers nothing, `newer` speaks version 2, `login` wants the user to sign in, `crash` ends at once,
/// `garbage` prints what is no message.
///
/// Lines of a prompt: `say TEXT`, `think TEXT`; by itself `write PATH TEXT`, `connect`, `env NAME`, `ls PATH`; through
/// castor `fs-write PATH TEXT`, `fs-read PATH`, `run LINE`, `may LINE`, `may-edit PATH TEXT`, `odd METHOD`; several of
/// those in one line, with ` & ` between them, are asked at once; `tool TITLE`, `plan TEXT`, `cost DOLLARS`, `die`,
/// `child` (leaves one), `hang` (until it is cancelled), `refuse`.
#[test]
fn serve_acp() {
    let Ok(kind) = std::env::var("ACP_AGENT") else { return };
    // The harness may have begun a line.
    println!();
    if kind == "crash" {
        eprintln!("error: no configuration");
        exit(3);
    }
    Agent { kind, n_asked: 0, asked: BTreeMap::new(), n_tools: 0, lines: stdin().lock().lines() }.run();
    exit(0);
}

struct Agent {
    kind: String,
    n_asked: u64,
    /// Its requests, by method.
    asked: BTreeMap<u64, String>,
    n_tools: u64,
    lines: Lines<StdinLock<'static>>,
}

fn send(message: &Value) {
    send_all(std::slice::from_ref(message));
}

/// In one write.
fn send_all(messages: &[Value]) {
    let lines: String = messages.iter().map(|it| format!("{it}\n")).collect();
    let mut out = std::io::stdout().lock();
    out.write_all(lines.as_bytes()).unwrap();
    out.flush().unwrap();
}

fn update(it: &Value) {
    send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "a1", "update": it}}));
}

fn say(text: &str) {
    update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": format!("{text}\n")}}));
}

impl Agent {
    fn run(mut self) {
        while let Some(message) = self.next() {
            if self.kind == "mute" {
                continue;
            }
            if self.kind == "garbage" {
                (0..500).for_each(|_| println!("DEBUG not JSON"));
            }
            let id = &message["id"];
            let answer = match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    let version = if self.kind == "newer" { 2 } else { 1 };
                    json!({"result": {"protocolVersion": version, "agentCapabilities": {}, "agentInfo": {"name": "it", "version": "1"},
                        "authMethods": [{"id": "x", "name": "Log in with X"}]}})
                }
                "session/new" if self.kind == "login" => {
                    json!({"error": {"code": -32000, "message": "Authentication required"}})
                }
                "session/new" => {
                    json!({"result": {"sessionId": "a1", "modes": {"currentModeId": "ask", "availableModes": []}}})
                }
                "session/prompt" => {
                    let text = message["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
                    let reason = text.lines().find_map(|it| self.act(it)).unwrap_or("end_turn");
                    json!({"result": {"stopReason": reason, "usage": {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}}})
                }
                _ => continue,
            };
            let mut answer = answer;
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = id.clone();
            send(&answer);
        }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        let message: Value = serde_json::from_str(&line).unwrap();
        let asked = message["id"].as_u64().and_then(|it| self.asked.get(&it)).map(String::as_str);
        // castor is the client here, and held to the protocol: no test expects this end.
        if let Err(why) = schema::check_as_client(&message, asked) {
            eprintln!("{why} in {message}");
            exit(9);
        }
        Some(message)
    }

    /// Does what one line says; the reason with which the turn ends, if it does.
    fn act(&mut self, line: &str) -> Option<&'static str> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "say" => say(rest),
            "think" => {
                update(&json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": rest}}))
            }
            "write" => {
                say(&fs::write(path, text)
                    .map_or_else(|it| format!("{path}: {}", it.kind()), |()| format!("wrote {path}")))
            }
            "connect" => {
                let is_open = TcpStream::connect(rest).is_ok();
                say(if is_open { "connected" } else { "no network" });
            }
            "env" => say(&format!("{rest}={}", std::env::var(rest).unwrap_or_default())),
            "ls" => say(&format!("{path} {}", if fs::read(path).is_ok() { "can be read" } else { "cannot be read" })),
            "tool" => {
                self.n_tools += 1;
                let id = format!("own{}", self.n_tools);
                update(
                    &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": rest, "kind": "edit", "status": "in_progress"}),
                );
                update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
                    "content": [{"type": "content", "content": {"type": "text", "text": "done"}}]}));
            }
            "plan" => update(
                &json!({"sessionUpdate": "plan", "entries": [{"content": rest, "priority": "high", "status": "pending"}]}),
            ),
            "cost" => update(&json!({"sessionUpdate": "usage_update", "used": 5, "size": 1000,
                "cost": {"amount": rest.parse::<f64>().unwrap(), "currency": "USD"}})),
            "die" => {
                eprintln!("panicked: out of luck");
                exit(7);
            }
            "child" => _ = std::process::Command::new("sh").args(["-c", "sleep 3333 &"]).status().unwrap(),
            "refuse" => return Some("refusal"),
            "hang" => {
                while let Some(it) = self.next() {
                    if it["method"] == "session/cancel" {
                        _ = fs::write(rest, "cancelled");
                        return Some("cancelled");
                    }
                }
            }
            _ => self.ask(line),
        }
        None
    }

    /// All requests of a line go out before an answer is read.
    fn ask(&mut self, line: &str) {
        let messages: Vec<Value> = line.split(" & ").map(|it| self.request(it)).collect();
        let asked: Vec<u64> = messages.iter().map(|it| it["id"].as_u64().unwrap()).collect();
        send_all(&messages);
        let mut answers: Vec<Option<Value>> = vec![None; asked.len()];
        while answers.iter().any(Option::is_none) {
            let Some(message) = self.next() else { exit(0) };
            let Some(at) = asked.iter().position(|it| message["id"] == *it) else { continue };
            answers[at] = Some(message);
        }
        for (line, answer) in line.split(" & ").zip(answers.into_iter().flatten()) {
            let word = line.split(' ').next().unwrap_or_default();
            if let Some(it) = answer.get("error") {
                say(&format!("{word}: refused {}: {}", it["code"], it["message"].as_str().unwrap_or_default()));
                continue;
            }
            let result = &answer["result"];
            match word {
                "fs-read" => say(&format!("read {:?}", result["content"].as_str().unwrap())),
                "run" => self.terminal(result["terminalId"].as_str().unwrap()),
                _ => say(&format!("{word}: {result}")),
            }
        }
    }

    fn terminal(&mut self, id: &str) {
        let mut call = |method: &str| {
            let asked = self.message(method, &json!({"sessionId": "a1", "terminalId": id}));
            send(&asked);
            loop {
                let message = self.next().unwrap();
                if message["id"] == asked["id"] {
                    return message["result"].clone();
                }
            }
        };
        let (exit, output) = (call("terminal/wait_for_exit"), call("terminal/output"));
        say(&format!("ran: {} {}", exit["exitCode"], output["output"]));
        call("terminal/release");
    }

    fn request(&mut self, line: &str) -> Value {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        match word {
            "fs-write" => {
                self.message("fs/write_text_file", &json!({"sessionId": "a1", "path": path, "content": text}))
            }
            "fs-read" => self.message("fs/read_text_file", &json!({"sessionId": "a1", "path": path})),
            "run" => self.message("terminal/create", &json!({"sessionId": "a1", "command": rest})),
            "may" => {
                let call = json!({"toolCallId": format!("own-{rest}"), "title": "Run it", "kind": "execute", "rawInput": {"command": rest}});
                self.message(
                    "session/request_permission",
                    &json!({"sessionId": "a1", "toolCall": call, "options": options}),
                )
            }
            "may-edit" => {
                let content = json!([{"type": "diff", "path": path, "newText": text}]);
                let call = json!({"toolCallId": format!("own-{path}"), "title": "Edit it", "kind": "edit", "content": content});
                self.message(
                    "session/request_permission",
                    &json!({"sessionId": "a1", "toolCall": call, "options": options}),
                )
            }
            "may-fetch" => {
                let call = json!({"toolCallId": "own-f", "title": "Fetch a page", "kind": "fetch"});
                self.message(
                    "session/request_permission",
                    &json!({"sessionId": "a1", "toolCall": call, "options": options}),
                )
            }
            _ => self.message(rest, &json!({"sessionId": "a1"})),
        }
    }

    /// The next request.
    fn message(&mut self, method: &str, params: &Value) -> Value {
        self.n_asked += 1;
        self.asked.insert(self.n_asked, method.to_owned());
        json!({"jsonrpc": "2.0", "id": self.n_asked, "method": method, "params": params})
    }
}
