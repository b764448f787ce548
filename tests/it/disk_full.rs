//! A log that cannot be written. A limit on the size of files stands for the full disk: it needs no rights, and can be
//! taken away again.

use std::{fs, path::PathBuf, thread, time::Instant};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, WATCHDOG, is_worked_in};

const TEXT: &str = r#"text "fine""#;

/// Each way in which a turn can meet it: its first fact, what a command prints, what comes beside a question.
#[test]
fn the_turn_ends_and_everything_else_goes_on() {
    let mut it = Setup::new(&["--approval-mode", "yolo"], &[TEXT, WAITS, TEXT, TEXT]);
    let (first, second) = (it.long_session(), it.new_session());
    it.limit_to_now(&first);
    let (answer, before) = it.prompt(&first, "no room for this");
    assert_eq!(cause(&answer), COULD_NOT, "{answer}");
    assert!(before.is_empty(), "{before:?}");
    it.no_limit();

    // The command goes on for ever, unless somebody stops it.
    let id = it.begin(&first, "run");
    it.read_until(|it| it.to_string().contains("started"));
    it.limit_to_now(&first);
    fs::write(it.sandbox.workspace().join("go"), "\n").unwrap();
    let rest = it.read_until(|it| is_answer(it, &id));
    let (answer, updates) = rest.split_last().unwrap();
    assert_eq!(cause(answer), COULD_NOT, "{answer}");
    let ends: Vec<&Value> = updates.iter().map(|it| &it["params"]["update"]["status"]).collect();
    assert_eq!(ends, ["failed"], "{updates:?}");
    assert!(!updates[0].to_string().contains("never shown"), "{updates:?}");
    it.command_is_gone();

    // The other session's log has room: it is much shorter.
    let (answer, _) = it.prompt(&second, "you?");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    it.no_limit();
    let (answer, _) = it.prompt(&first, "and you?");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");

    it.client.end().unwrap();
    let log = fs::read_to_string(it.log(&first)).unwrap();
    let lines: Vec<Value> = log.lines().map(|it| serde_json::from_str(it).expect("half a line")).collect();
    let users = lines.iter().filter(|it| it["event"]["role"] == "user").count();
    // The long one, the one with the command, the last one.
    assert_eq!(users, 3, "{log}");
    assert!(log.ends_with('\n') && !log.contains("no room for this") && !log.contains("never shown"), "{log}");
}

#[test]
fn a_question_is_withdrawn_and_a_setter_says_that_nothing_was_set() {
    let mut it = Setup::new(&[], &[TEXT, r#"call run_shell_command {"command":"touch made"}"#, TEXT]);
    let session = it.long_session();
    let id = it.begin(&session, "ask");
    let asked = it.read_until(|it| it["method"] == "session/request_permission").pop().unwrap();
    it.limit_to_now(&session);
    it.client.request_as(json!("mode"), "session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    let told = it.read_until(|it| is_answer(it, &id));
    let withdrawn = |it: &&Value| it["method"] == "$/cancel_request" && it["params"]["requestId"] == asked["id"];
    assert_eq!(told.iter().filter(withdrawn).count(), 1, "{told:?}");
    assert_eq!(cause(told.last().unwrap()), COULD_NOT, "{told:?}");
    let set = told.iter().find(|it| is_answer(it, "mode")).expect("the setter was not answered");
    assert_eq!(cause(set), COULD_NOT, "{told:?}");
    it.no_limit();
    // A late yes means nothing.
    let option = &asked["params"]["options"][0]["optionId"];
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
    it.client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}));
    let (answer, _) = it.prompt(&session, "and now?");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!it.sandbox.workspace().join("made").exists());
    let params = json!({"sessionId": session, "cwd": it.sandbox.workspace(), "mcpServers": []});
    let loaded = it.client.result("session/load", params).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "default");
}

#[test]
fn session_without_a_log_is_not_created() {
    let mut it = Setup::new(&[], &[TEXT]);
    it.limit(0);
    let params = json!({"cwd": it.sandbox.workspace(), "mcpServers": []});
    let (answer, told) = it.client.call("session/new", params).unwrap();
    assert_eq!(cause(&answer), COULD_NOT, "{answer}");
    assert!(told.is_empty(), "{told:?}");
    let left: Vec<_> = fs::read_dir(it.log("any").parent().unwrap()).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    it.no_limit();
    let session = it.new_session();
    assert_eq!(it.prompt(&session, "now").0["result"]["stopReason"], "end_turn");
}

/// The command waits for the pipe `go`.
const WAITS: &str =
    r#"call run_shell_command {"command":"mkfifo go; echo star''ted; read < go; echo nev''er shown; sleep 3333"}"#;
const COULD_NOT: (i64, &str, bool) = (-32603, "log", true);

/// Code, kind, and whether the system's own words are told.
fn cause(answer: &Value) -> (i64, &str, bool) {
    let error = &answer["error"];
    let message = error["message"].as_str().unwrap_or_default();
    let told = message.contains("log could not be written") && message.contains("File too large");
    (error["code"].as_i64().unwrap_or_default(), error["data"]["kind"].as_str().unwrap_or_default(), told)
}

fn is_answer(message: &Value, id: &str) -> bool {
    message["id"] == id && message.get("method").is_none()
}

struct Setup {
    sandbox: Sandbox,
    client: Client,
    n_prompts: u64,
}

impl Setup {
    fn new(args: &[&str], answers: &[&str]) -> Self {
        let mut sandbox = Sandbox::new();
        let response = |it: &&str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
        let script: String = answers.iter().map(response).collect();
        let script = sandbox.write("script.jsonl", &script);
        sandbox.args = ["acp".into(), "--fake-responses".into(), script.into()].into();
        sandbox.args.extend(args.iter().map(Into::into));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        Self { sandbox, client, n_prompts: 0 }
    }

    fn new_session(&mut self) -> String {
        self.client.new_session(&self.sandbox.workspace()).unwrap()
    }

    /// One that has been told more than the others ever are.
    fn long_session(&mut self) -> String {
        let session = self.new_session();
        let (answer, _) = self.prompt(&session, &"long ".repeat(5000));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        session
    }

    fn log(&self, session: &str) -> PathBuf {
        self.sandbox.home().join(format!(".castor/sessions/{session}.jsonl"))
    }

    /// From now on this session has room for half a line.
    fn limit_to_now(&mut self, session: &str) {
        self.limit(fs::metadata(self.log(session)).unwrap().len() + 10);
    }

    fn no_limit(&self) {
        self.limit(libc::RLIM_INFINITY);
    }

    /// Most bytes of a file of castor's. Only the soft limit, so that it can be raised again.
    fn limit(&self, max: u64) {
        let limit = libc::rlimit { rlim_cur: max, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the pointer is valid during the call, and nothing is asked to be written.
        let set = unsafe {
            libc::prlimit(self.client.pid().as_raw(), libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut())
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }

    fn begin(&mut self, session: &str, text: &str) -> String {
        self.n_prompts += 1;
        let id = format!("prompt {}", self.n_prompts);
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.client.request_as(json!(id), "session/prompt", params);
        id
    }

    /// The answer, and what came before.
    fn prompt(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        let id = self.begin(session, text);
        let mut told = self.read_until(|it| is_answer(it, &id));
        (told.pop().unwrap(), told)
    }

    fn read_until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut res = Vec::new();
        loop {
            let message = self.client.next().unwrap().expect("the agent ended");
            // Told beside every session.
            if message["params"]["update"]["sessionUpdate"] == "available_commands_update" {
                continue;
            }
            res.push(message);
            if res.last().is_some_and(&is_it) {
                return res;
            }
        }
    }

    fn command_is_gone(&self) {
        let start = Instant::now();
        while is_worked_in(&self.sandbox.workspace()) {
            assert!(start.elapsed() < WATCHDOG, "the command is still there");
            thread::yield_now();
        }
    }
}
