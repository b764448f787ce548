//! Tools of hosts beyond what a conversation says: answers that are too large, a kill during a call, and the example.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

/// One answer of the model, as a line of a script.
fn line(parts: &Value, wants: &[&str]) -> String {
    let response = json!([{"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}]);
    json!({"method": "generateContentStream", "response": response, "wants": wants}).to_string() + "\n"
}

fn calls(calls: &[(&str, Value)]) -> Value {
    calls.iter().map(|(name, args)| json!({"functionCall": {"name": name, "args": args}})).collect()
}

/// A session whose host has the tool `look`, which a rule allows.
struct Host {
    sandbox: Sandbox,
    client: Client,
    session: String,
}

fn tools() -> Value {
    json!({"castor": {"tools": [{"name": "look", "description": "Looks."}]}})
}

impl Host {
    fn start(script: &str) -> Self {
        let mut sandbox = Sandbox::new();
        let rule = "[[rule]]\ntoolName = 'look'\ndecision = 'allow'\npriority = 400\n";
        sandbox.write("home/.castor/policies/mine.toml", rule);
        let mut client = start(&mut sandbox, script);
        let params = json!({"cwd": sandbox.workspace(), "mcpServers": [], "_meta": tools()});
        let session = client.result("session/new", params).unwrap()["sessionId"].as_str().unwrap().to_owned();
        Self { sandbox, client, session }
    }

    fn send_prompt(&mut self) {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": "go"}]});
        self.client.request_as(json!("prompt"), "session/prompt", params);
    }

    /// Up to the message that it is about.
    fn next(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.client.next().unwrap().expect("castor ended");
            if is_it(&message) {
                return message;
            }
        }
    }
}

fn start(sandbox: &mut Sandbox, script: &str) -> Client {
    let script = sandbox.write("script.jsonl", script);
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    let mut client = Client::start(sandbox);
    client.initialize(&json!({"_meta": {"castor": {"hostTools": true}}})).unwrap();
    client
}

fn is_call(message: &Value) -> bool {
    message["method"] == "_castor/tool/call"
}

#[test]
fn an_answer_that_is_too_large_ends_the_call_and_no_more() {
    let script = [
        line(&calls(&[("look", json!({"n": 1})), ("look", json!({"n": 2}))]), &[]),
        line(&json!([{"text": "Done."}]), &["is not usable: it has 2097169 bytes, and 1048576 is the most", "Here."]),
    ];
    let mut host = Host::start(&script.concat());
    host.send_prompt();
    let ids = [1, 2].map(|n| {
        let call = host.next(is_call);
        assert_eq!(call["params"]["args"]["n"], n, "calls come in order");
        call["id"].clone()
    });
    let answers = ["x".repeat(2 * 1024 * 1024), "Here.".to_owned()];
    for (id, text) in ids.iter().zip(answers) {
        host.client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"llmContent": text}}));
    }
    let end = host.next(|it| it["id"] == "prompt");
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    host.client.end().unwrap();
}

#[test]
fn a_call_that_a_kill_cut_off_is_interrupted_and_the_session_goes_on() {
    let mut host = Host::start(&line(&calls(&[("look", json!({}))]), &[]));
    host.send_prompt();
    host.next(is_call);
    host.client.kill().unwrap();
    let (mut sandbox, session) = (host.sandbox, host.session);
    let script = [
        line(&calls(&[("look", json!({}))]), &["The call was interrupted before it ended"]),
        line(&json!([{"text": "Done."}]), &["Here."]),
    ];
    let mut client = start(&mut sandbox, &script.concat());
    let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [], "_meta": tools()});
    let (_, updates) = client.call("session/load", params).unwrap();
    let failed = |it: &&Value| it["params"]["update"]["status"] == "failed";
    let end = updates.iter().find(failed).expect("the call has no end").to_string();
    assert!(end.contains("Interrupted: castor ended before this call did."), "{end}");
    let mut host = Host { sandbox, client, session };
    host.send_prompt();
    let id = host.next(is_call)["id"].clone();
    host.client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"llmContent": "Here."}}));
    let end = host.next(|it| it["id"] == "prompt");
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    host.client.end().unwrap();
}

/// Without Python there is nothing to run.
#[test]
fn the_example_runs() {
    if !Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok_and(|it| it.success()) {
        return;
    }
    let mut sandbox = Sandbox::new();
    let note = json!({"title": "dinner", "text": "Fish."});
    let script = [
        line(&calls(&[("read_note", json!({"title": "lunch"})), ("write_note", note)]), &["read_note"]),
        line(&calls(&[("read_note", json!({"title": "dinner"}))]), &["Soup at noon.", "Written."]),
        line(&json!([{"text": "Noted."}]), &["Fish."]),
    ];
    let script = sandbox.write("script.jsonl", &script.concat());
    sandbox.args = vec!["acp".into()];
    let castor = sandbox.command();
    let mut python = Command::new("python3");
    python.env_clear().envs(castor.get_envs().filter_map(|(key, value)| Some((key, value?))));
    python.env("CASTOR", sandbox.watched().agent()).current_dir(sandbox.workspace());
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/host_tools.py"));
    let output = python.args(["Note the dinner.", "--fake-responses"]).arg(script).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    assert_eq!(said, "Noted.\n");
    assert_eq!(errors.matches("castor calls").count(), 3, "{errors}");
}
