//! Several clients of one session, and connections that break: each sees all of it, once.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Server, Socket, answer, call, is_question, prompt, say, script};
use crate::schema;

#[test]
fn two_clients_share_a_session() {
    let touch = call("run_shell_command", json!({"command": "echo x > made"}));
    let server = Server::start(&script(&[vec![say("I will. "), touch], vec![say("Done.")]]), &[]);
    let mut one = server.client();
    let session = one.new_session(&server);
    let mut two = server.client();
    assert!(two.load(&server, &session)["result"].is_object());
    one.request("p", "session/prompt", prompt(&session, "go"));
    let seen = two.until(|it| it["params"]["update"]["sessionUpdate"] == "user_message_chunk");
    assert_eq!(seen["params"]["update"]["content"]["text"], "go");
    assert_eq!(seen["params"]["_meta"]["castor"]["by"]["client"], "it");
    let question = two.until(is_question);
    assert_eq!(one.until(is_question)["id"], question["id"]);
    two.send(&answer(&question, "allow_once"));
    let withdrawn = one.until(|it| it["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let told = one.until(|it| it["method"] == "_castor/session/question_answered");
    assert_eq!(told["params"]["optionId"], "allow_once");
    // Too late, and of no use.
    one.send(&answer(&question, "reject_once"));
    assert_eq!(one.answer_to("p")["result"]["stopReason"], "end_turn");
    let end = two.until(|it| it["method"] == "_castor/session/prompt_ended");
    assert_eq!(end["params"]["stopReason"], "end_turn");
    assert_eq!((one.said().as_str(), two.said().as_str()), ("I will. Done.", "I will. Done."));
    assert!(server.sandbox.workspace().join("made").exists());

    // A third one that comes later sees the same.
    let mut three = server.client();
    three.load(&server, &session);
    assert_eq!(three.said(), "I will. Done.");
}

/// What clients say of their own files and terminals is of other machines.
#[test]
fn files_and_terminals_are_those_of_the_server_however_many_clients_have_some() {
    let calls = vec![
        call("read_file", json!({"file_path": "a.txt"})),
        call("write_file", json!({"file_path": "b.txt", "content": "new"})),
        call("run_shell_command", json!({"command": "cat a.txt > c.txt"})),
    ];
    let server = Server::start(&script(&[calls, vec![say("Done.")]]), &["--approval-mode=yolo"]);
    server.sandbox.write("ws/a.txt", "of the server");
    let editor = || {
        let mut res = Socket::open(&server, &server.token, None).unwrap();
        let caps = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        res.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": caps}));
        res
    };
    let mut one = editor();
    let session = one.new_session(&server);
    let mut two = editor();
    two.load(&server, &session);
    one.request("p", "session/prompt", prompt(&session, "go"));
    // Its own answer is the last of the turn for the one, the notice for the other: whatever it was asked came before.
    assert_eq!(one.answer_to("p")["result"]["stopReason"], "end_turn");
    two.until(|it| it["method"] == "_castor/session/prompt_ended");
    for it in one.before.iter().chain(&two.before) {
        let method = it["method"].as_str().unwrap_or_default();
        assert!(!method.starts_with("fs/") && !method.starts_with("terminal/"), "{it}");
    }
    let on_disk = |name: &str| std::fs::read_to_string(server.sandbox.workspace().join(name)).unwrap();
    assert_eq!((on_disk("b.txt").as_str(), on_disk("c.txt").as_str()), ("new", "of the server"));
}

#[test]
fn a_turn_goes_on_when_its_client_is_killed_and_asks_the_next() {
    let touch = call("run_shell_command", json!({"command": "echo x > made"}));
    let server = Server::start(&script(&[vec![touch], vec![say("Done.")]]), &[]);
    let mut one = server.client();
    let session = one.new_session(&server);
    one.request("p", "session/prompt", prompt(&session, "go"));
    one.until(is_question);
    drop(one);
    let mut two = server.client();
    let loaded = two.load(&server, &session);
    assert!(loaded["result"]["configOptions"].is_array(), "{loaded}");
    let question = two.until(is_question);
    two.send(&answer(&question, "allow_once"));
    two.until(|it| it["method"] == "_castor/session/prompt_ended");
    assert_eq!(two.said(), "Done.");
}

#[test]
fn a_connection_that_breaks_in_a_turn_goes_on_without_loss_or_repetition() {
    let words: Vec<Value> = (0..50).map(|it| say(&format!("{it} "))).collect();
    let whole: String = (0..50).map(|it| format!("{it} ")).collect();
    let touch = call("run_shell_command", json!({"command": "echo x > made"}));
    let first = [words.clone(), vec![touch]].concat();
    let server = Server::start(&script(&[first, words]), &[]);
    let mut one = server.client();
    let session = one.new_session(&server);
    one.request("p", "session/prompt", prompt(&session, "go"));
    for _ in 0..20 {
        let it = one.try_next().unwrap();
        one.before.push(it);
    }
    let (connection, after) = (one.connection.clone(), one.n_received);
    let said = one.said();
    drop(one);
    let mut again = Socket::open(&server, &server.token, Some((&connection, after))).unwrap();
    let question = again.until(is_question);
    assert_eq!(format!("{said}{}", again.said()), whole);
    again.send(&answer(&question, "allow_once"));
    assert_eq!(again.answer_to("p")["result"]["stopReason"], "end_turn");
    assert_eq!(format!("{said}{}", again.said()), format!("{whole}{whole}"));
    // A message that never was.
    let end = again.n_received;
    drop(again);
    assert_eq!(Socket::open(&server, &server.token, Some((&connection, end + 5))).err(), Some(409));
}

/// By their ids.
const ASKED: [&str; 4] = ["", "initialize", "session/new", "session/prompt"];

#[test]
fn http_alone_carries_a_turn() {
    let server = Server::start(&script(&[vec![say("Hello.")]]), &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": ASKED[1], "params": {"protocolVersion": 1}});
    let (status, head, body) = server.post(None, None, &hello);
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    schema::check_message(1, &body, Some("initialize")).unwrap();
    assert_eq!((&body["id"], &body["result"]["protocolVersion"]), (&json!(1), &json!(1)));
    let id = head.split("acp-connection-id: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
    let new = json!({"jsonrpc": "2.0", "id": 2, "method": ASKED[2],
        "params": {"cwd": server.sandbox.workspace(), "mcpServers": []}});
    assert_eq!(server.post(Some(&id), None, &new).0, 202);
    let mut events = Events::open(&server, &id, None);
    let session = events.until(|it| it["id"] == 2)["result"]["sessionId"].as_str().unwrap().to_owned();
    let go = json!({"jsonrpc": "2.0", "id": 3, "method": ASKED[3], "params": prompt(&session, "go")});
    assert_eq!(server.post(Some(&id), None, &go).0, 400, "the session's header is missing");
    assert_eq!(server.post(Some(&id), Some("other"), &go).0, 400);
    assert_eq!(server.post(Some(&id), Some(&session), &go).0, 202);
    let last = events.last;
    drop(events);
    // Again from there, by the id of the last event.
    let mut events = Events::open(&server, &id, Some(last));
    assert_eq!(events.until(|it| it["id"] == 3)["result"]["stopReason"], "end_turn");
    assert!(events.seen.contains("Hello."), "{}", events.seen);
    let bearer = server.bearer();
    let who = [("Authorization", bearer.as_str()), ("Acp-Connection-Id", id.as_str())];
    assert_eq!(server.http("DELETE /acp", &who, "").0, 202);
    assert_eq!(server.http("DELETE /acp", &who, "").0, 404);
}

/// A stream of server-sent events.
struct Events {
    lines: BufReader<TcpStream>,
    last: u64,
    seen: String,
}

impl Events {
    fn open(server: &Server, connection: &str, after: Option<u64>) -> Self {
        let mut stream = server.connect();
        let after = after.map(|it| format!("Last-Event-ID: {it}\r\n")).unwrap_or_default();
        write!(
            stream,
            "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nAccept: text/event-stream\r\n\
             Acp-Connection-Id: {connection}\r\n{after}\r\n",
            server.bearer()
        )
        .unwrap();
        Self { lines: BufReader::new(stream), last: 0, seen: String::new() }
    }

    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream ended: {}", self.seen);
            if let Some(it) = line.strip_prefix("id: ") {
                self.last = it.trim().parse().unwrap();
            }
            if let Some(it) = line.strip_prefix("data: ") {
                self.seen += it;
                let it: Value = serde_json::from_str(it).unwrap();
                let asked = it["id"].as_u64().and_then(|it| ASKED.get(it as usize)).copied();
                schema::check_message(1, &it, asked).unwrap_or_else(|why| panic!("{why} in {it}"));
                if fits(&it) {
                    return it;
                }
            }
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_closed_with_a_reason_and_others_do_not_suffer() {
    // Nothing in it is repeated: that would be a loop of the model's. And a session each: their windows hold no two.
    let mut long: String = (0..).map(|it: u32| it.to_string() + " ").take(1 << 18).collect();
    long.truncate(1 << 20);
    let server = Server::start(&script(&vec![vec![say(&long)]; 12]), &[]);
    let mut slow = server.client();
    slow.take_little();
    let sessions: Vec<_> = (0..12).map(|_| slow.new_session(&server)).collect();
    let mut quick = server.client();
    sessions.iter().for_each(|it| _ = quick.load(&server, it));
    for (turn, session) in sessions.iter().enumerate() {
        let id = format!("p{turn}");
        quick.request(&id, "session/prompt", prompt(session, "go"));
        assert_eq!(quick.answer_to(&id)["result"]["stopReason"], "end_turn");
        quick.before.clear();
    }
    // Until the server has seen it stand still for long enough.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        quick.call("session/list", json!({}));
    }
    let length = |it: &Value| {
        let update = &it["params"]["update"];
        let is_answer = update["sessionUpdate"] == "agent_message_chunk";
        update["content"]["text"].as_str().filter(|_| is_answer).map_or(0, str::len)
    };
    let mut n_heard = 0;
    let why = loop {
        match slow.try_next() {
            Ok(it) => n_heard += length(&it),
            Err(why) => break why,
        }
    };
    // Who reads nothing for ten seconds more misses the reason, too.
    assert!(why.starts_with("1013 you do not keep up") || why.contains("reset"), "{why}");
    let mut again = Socket::open(&server, &server.token, Some((&slow.connection, slow.n_received))).unwrap();
    while n_heard < 12 << 20 {
        n_heard += length(&again.try_next().unwrap());
    }
    assert_eq!(n_heard, 12 << 20);
}
