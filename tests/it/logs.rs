//! Logs of every version, for ever: what a castor once wrote replays the same in all that follow.
//!
//! `tests/data/logs/<name>.jsonl` is a log as it was written, and is never changed; `<name>.updates` is what a client
//! is shown of it. `UPDATE_EXPECT=1` rewrites the latter: a difference there is one that users see.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

/// What a replay consists of. Others (modes, commands, options, usage) tell of the present.
const TOLD: &[&str] = &[
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "session_info_update",
];

#[test]
fn logs_of_all_versions_replay_as_ever() {
    let all = logs();
    assert!(all.len() >= 2, "the logs are gone");
    let changed: Vec<String> = all.iter().filter_map(|it| check(it).err()).collect();
    assert!(changed.is_empty(), "{}", changed.join("\n\n"));
}

fn check(log: &Path) -> Result<(), String> {
    let name = log.file_stem().unwrap().to_str().unwrap();
    let mut sandbox = Sandbox::new();
    let text = fs::read_to_string(log).unwrap();
    let copy = sandbox.write(format!("home/.castor/sessions/{name}.jsonl"), &text);
    let chunk =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "on"}]}, "finishReason": "STOP"}]});
    let script = format!("{}\n", json!({"method": "generateContentStream", "response": [chunk]}));
    let script = sandbox.write("script.jsonl", &script);
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({}))?;
    let params = json!({"sessionId": name, "cwd": sandbox.workspace(), "mcpServers": []});
    let (response, replayed) = client.call("session/load", params)?;
    if response.get("result").is_none() {
        return Err(format!("{name}: {response}"));
    }
    let updates = replayed.iter().map(|it| &it["params"]["update"]);
    let told = updates.filter(|it| TOLD.iter().any(|kind| it["sessionUpdate"] == **kind));
    let actual: String = told.map(|it| format!("{it}\n")).collect();
    assert_eq!(fs::read_to_string(&copy).unwrap(), text, "{name}: loading changed the log");
    // The conversation goes on.
    let prompt = json!({"sessionId": name, "prompt": [{"type": "text", "text": "go on"}]});
    let (ended, _) = client.call("session/prompt", prompt)?;
    if ended["result"]["stopReason"] != Value::from("end_turn") {
        return Err(format!("{name}: {ended}"));
    }
    client.end()?;
    let grown = fs::read_to_string(&copy).unwrap();
    assert!(grown.starts_with(&text), "{name}: the past was rewritten");
    compare(name, &log.with_extension("updates"), &actual)
}

fn compare(name: &str, file: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file, actual).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    let mut pairs = expected.lines().zip(actual.lines()).enumerate();
    match pairs.find(|(_, (a, b))| a != b) {
        Some((at, (a, b))) => Err(format!("{name}.updates:{}: expected\n{a}\nbut got\n{b}", at + 1)),
        None if expected != actual => Err(format!("{name}.updates: another number of lines")),
        None => Ok(()),
    }
}

fn logs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs");
    let paths = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut res: Vec<PathBuf> = paths.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).collect();
    res.sort();
    res
}
