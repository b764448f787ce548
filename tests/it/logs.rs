//! Logs of every version, for ever: what a castor once wrote replays the same in all that follow.
//!
//! `tests/data/logs/<name>.jsonl` is a log as it was written, and is never changed; `<name>.updates` is what a client
//! is shown of it. `UPDATE_EXPECT=1` rewrites the latter: a difference there is one that users see.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
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

/// A transcript of Gemini CLI is a session like any other once it is imported; the second time changes nothing.
#[test]
fn an_imported_transcript_loads_and_goes_on() {
    let mut sandbox = Sandbox::new();
    let records = [
        json!({"sessionId": "imported", "projectHash": "x", "startTime": "2025-11-02T10:00:00.000Z", "kind": "main"}),
        json!({"id": "a", "timestamp": "2025-11-02T10:00:01.000Z", "type": "user", "content": [{"text": "look"}]}),
        json!({"id": "b", "timestamp": "2025-11-02T10:00:02.000Z", "type": "gemini", "content": "I see.", "model": "g",
            "toolCalls": [{"id": "c", "name": "glob", "args": {"pattern": "*"}, "status": "success", "result":
                [{"functionResponse": {"id": "c", "name": "glob", "response": {"output": "none"}}}]}]}),
    ];
    let text: String = records.iter().map(|it| format!("{it}\n")).collect();
    let file = sandbox.write("transcript.jsonl", &text);
    let import = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castor"));
        command.args(["sessions", "import"]).arg(&file).current_dir(sandbox.workspace());
        let output = command.env("CASTOR_HOME", sandbox.home().join(".castor")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(import().starts_with("Imported session imported\n"));
    assert!(import().starts_with("Session imported was imported before"));
    let log = fs::read_to_string(sandbox.home().join(".castor/sessions/imported.jsonl")).unwrap();
    let told = replay(&mut sandbox, "imported", &log).unwrap();
    let kinds: Vec<String> =
        told.lines().map(|it| serde_json::from_str::<Value>(it).unwrap()["sessionUpdate"].to_string()).collect();
    let expected =
        ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "session_info_update"];
    assert_eq!(kinds, expected.map(|it| format!("{it:?}")), "{told}");
}

/// A log that a newer castor went on with.
#[test]
fn a_log_of_a_newer_version_is_read_and_not_written() {
    let sandbox = Sandbox::new();
    let old = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs/v1-rewound.jsonl"));
    let text = old.unwrap() + "{\"at\":1,\"fact\":\"version\",\"version\":4,\"castor\":\"9.0.0\"}\n";
    let log = sandbox.write("home/.castor/sessions/v1-rewound.jsonl", &text);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let place = json!({"sessionId": "v1-rewound", "cwd": sandbox.workspace(), "mcpServers": []});
    let why = "the log of session v1-rewound was written by a newer castor (version 4); this one knows 3";
    for method in ["session/load", "session/resume"] {
        let (answer, _) = client.call(method, place.clone()).unwrap();
        assert!(answer["error"]["message"].as_str().is_some_and(|it| it.contains(why)), "{answer}");
    }
    let (events, _) = client.call("_castor/session/events", json!({"sessionId": "v1-rewound"})).unwrap();
    let events = events["result"]["events"].as_array().unwrap();
    for it in events {
        crate::schemas::check("events", it).unwrap();
    }
    assert!(events.len() > 20);
    client.end().unwrap();
    let mut command = Command::new(sandbox.watched().client());
    command.args(["run", "-m", "demo", "--resume", "v1-rewound", "go on"]).current_dir(sandbox.workspace());
    let output = command.env("CASTOR_HOME", sandbox.home().join(".castor")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains(why), "{told}");
    assert_eq!(fs::read_to_string(&log).unwrap(), text);
}

/// What is wrong, where the bytes are, and what can be done; the session goes on.
#[test]
fn a_damaged_log_says_so_in_the_session() {
    let mut sandbox = Sandbox::new();
    let lines: String = (0..3)
        .map(|n| crate::conversation::model::response(&format!("text \"answer {n}\"")).unwrap().to_string() + "\n")
        .collect();
    let script = sandbox.write("script.jsonl", &lines);
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = |client: &mut Client, text: &str| {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        assert_eq!(client.call("session/prompt", params).unwrap().0["result"]["stopReason"], "end_turn");
    };
    prompt(&mut client, "the first prompt");
    prompt(&mut client, "the second prompt");
    client.end().unwrap();
    let path = sandbox.home().join(format!(".castor/sessions/{session}.jsonl"));
    let mut bytes = fs::read(&path).unwrap();
    // A letter in a text, and the end.
    let at = bytes.windows(16).position(|it| it == b"the first prompt").unwrap();
    bytes[at] = b'T';
    let len = bytes.len();
    bytes[len - 40..].fill(0);
    fs::write(&path, &bytes).unwrap();
    let check = |updates: &[Value]| {
        let told = updates.iter().map(ToString::to_string).collect::<String>();
        for it in
            ["checksum is that of another line", "bytes are no whole line", ".jsonl.damaged", "castor sessions repair"]
        {
            assert!(told.contains(it), "{it}: {told}");
        }
        assert!(!told.contains("The first prompt"), "{told}");
    };
    let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    check(&client.call("session/load", params.clone()).unwrap().1);
    client.end().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes, "loading changed the log");
    let said = crate::undo::castor(&mut sandbox, "doctor");
    assert!(said.contains("The log of session $ID is damaged"), "{said}");
    // One that shows nothing is told with the next turn.
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    client.call("session/resume", params).unwrap();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "the third prompt"}]});
    check(&client.call("session/prompt", prompt).unwrap().1);
    client.end().unwrap();
    let kept = fs::read(path.with_extension("jsonl.damaged")).unwrap();
    assert!(bytes.ends_with(&kept) && kept.ends_with(&[0; 40]));
    let repaired = crate::undo::castor(&mut sandbox, &format!("sessions repair {session}"));
    assert!(repaired.contains("damaged places: 1"), "{repaired}");
    let again = crate::undo::castor(&mut sandbox, &format!("sessions repair {session}"));
    assert!(again.contains("is sound"), "{again}");
}

fn check(log: &Path) -> Result<(), String> {
    let name = log.file_stem().unwrap().to_str().unwrap();
    let text = fs::read_to_string(log).unwrap();
    let actual = replay(&mut Sandbox::new(), name, &text)?;
    compare(name, &log.with_extension("updates"), &actual)
}

/// What a client is shown of a log; the log must not change, and the conversation go on.
fn replay(sandbox: &mut Sandbox, name: &str, text: &str) -> Result<String, String> {
    let copy = sandbox.write(format!("home/.castor/sessions/{name}.jsonl"), text);
    let chunk =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "on"}]}, "finishReason": "STOP"}]});
    let script = format!("{}\n", json!({"method": "generateContentStream", "response": [chunk]}));
    let script = sandbox.write("script.jsonl", &script);
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    let mut client = Client::start(sandbox);
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
    if ended["result"]["stopReason"] != "end_turn" {
        return Err(format!("{name}: {ended}"));
    }
    client.end()?;
    let grown = fs::read_to_string(&copy).unwrap();
    let added = grown.strip_prefix(text).unwrap_or_else(|| panic!("{name}: the past was rewritten"));
    let is_old = !text.contains("\"version\":3,");
    let n_versions = added.lines().filter(|it| it.contains("\"fact\":\"version\"")).count();
    assert_eq!(n_versions, usize::from(is_old), "{name}: {added}");
    Ok(actual)
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
