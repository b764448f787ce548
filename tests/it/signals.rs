//! SIGTERM and SIGHUP are the end, in order: the prompt is answered, the exit status is 0, and nothing that castor started stays.

use std::{thread, time::Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::json;

use crate::client::{Client, Sandbox, WATCHDOG, is_worked_in};

#[test]
fn terminated_while_idle() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    kill(client.pid(), Signal::SIGTERM).unwrap();
    let (status, rest) = client.end().unwrap();
    assert_eq!((status.code(), rest.len()), (Some(0), 0));
}

#[test]
fn terminated_while_a_command_runs() {
    ended_while_a_command_runs(Signal::SIGTERM);
}

/// As when the terminal of a script that uses castor is closed.
#[test]
fn hung_up_while_a_command_runs() {
    ended_while_a_command_runs(Signal::SIGHUP);
}

fn ended_while_a_command_runs(by: Signal) {
    let mut sandbox = Sandbox::new();
    let command = "(trap '' TERM; echo > child; sleep 3333) & until [ -s child ]; do :; done; echo started; wait";
    let call = json!({"functionCall": {"name": "run_shell_command", "args": {"command": command}}});
    let chunk = json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]});
    let script = sandbox
        .write("script.jsonl", &format!("{}\n", json!({"method": "generateContentStream", "response": [chunk]})));
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", prompt);
    while !client.next().unwrap().expect("the agent ended").to_string().contains("started\\n") {}
    kill(client.pid(), by).unwrap();
    client.ledger.close();
    let (status, rest) = client.end().unwrap();
    assert_eq!(status.code(), Some(0));
    let answer = rest.iter().find(|it| it["id"] == 1 && it.get("method").is_none());
    assert_eq!(answer.map(|it| &it["result"]["stopReason"]), Some(&json!("cancelled")), "{rest:?}");
    // What was killed may take a moment to be reaped by whoever inherits it.
    let start = Instant::now();
    while is_worked_in(&sandbox.workspace()) {
        assert!(start.elapsed() < WATCHDOG, "somebody is still there");
        thread::yield_now();
    }
    let left: Vec<_> = std::fs::read_dir(sandbox.workspace()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["child"], "what stood in for configuration went with the command");
}
