//! Session import: accepted and refused transcripts, and repeated imports.

use serde_json::{Value, json};

use super::{ImportDefaults, ImportOutcome, ImportedConversation, parse};
use crate::sessions::SessionStore;
use castor_base::{
    event::{EventKind, Speaker},
    log::{Entry, Fact},
    path::AbsPath,
};

fn read(text: &str) -> Result<ImportedConversation, String> {
    let cwd = AbsPath::new("/w").unwrap();
    parse(text.as_bytes(), ImportDefaults { cwd: &cwd, model: "m" }).map_err(|it| it.to_string())
}

fn jsonl(records: &[Value]) -> String {
    records.iter().map(|it| format!("{it}\n")).collect()
}

fn about() -> Value {
    json!({"sessionId": "0b7c4b4e-1111-4222-8333-444455556666", "projectHash": "abc", "kind": "main",
        "startTime": "2025-11-02T10:00:00.000Z", "lastUpdated": "2025-11-02T10:00:00.000Z"})
}

fn said(id: &str, who: &str, content: &str) -> Value {
    json!({"id": id, "timestamp": "2025-11-02T10:00:01.000Z", "type": who, "content": content})
}

/// One line for each event that people see.
fn outline(it: &ImportedConversation) -> String {
    let line = |entry: &Entry| match &entry.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::Message { role, content, .. } => {
                let who = if *role == Speaker::User { "user" } else { "agent" };
                let texts: Vec<String> = content
                    .iter()
                    .map(|it| serde_json::to_value(it).unwrap())
                    .map(|it| it.get("text").or(it.get("thought")).map_or("…".to_owned(), |it| it.to_string()))
                    .collect();
                Some(format!("{who} {}", texts.join(" ")))
            }
            EventKind::ToolRequest { request_id, name, args, display, .. } => {
                Some(format!("call {request_id} {name} {args} {:?}", display.title))
            }
            EventKind::ToolResponse { request_id, content, error, display, .. } => {
                let text = castor_base::content::joined_text(content);
                let error = error.as_ref().map(|it| it.kind.clone()).unwrap_or_default();
                let display = if display.is_some() { " shown" } else { "" };
                Some(format!("end {request_id} {text:?}{display} {error}").trim_end().to_owned())
            }
            EventKind::Usage { usage, .. } => Some(format!("usage {}", usage.total)),
            EventKind::SessionUpdate { title, .. } => Some(format!("title {}", title.as_deref().unwrap_or("-"))),
            EventKind::Error { message, .. } => Some(format!("error {message}")),
            EventKind::Custom { data, .. } => Some(format!("note {data}")),
            _ => None,
        },
        _ => None,
    };
    it.entries.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn check(records: &[Value], expected: &str) {
    let actual = outline(&read(&jsonl(records)).unwrap());
    assert_eq!(actual, expected.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n"));
}

#[test]
fn records_are_applied_in_order() {
    let again = json!({"id": "m2", "timestamp": "2025-11-02T10:00:02.000Z", "type": "gemini", "content": "better",
        "tokens": {"input": 5, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 7}, "model": "g"});
    check(
        &[
            about(),
            said("m1", "user", "one"),
            said("m2", "gemini", "worse"),
            json!({"$set": {"lastUpdated": "2025-11-02T11:00:00.000Z", "summary": "All of it"}}),
            again,
            said("m3", "user", "taken back"),
            said("m4", "gemini", "gone"),
            json!({"$rewindTo": "m3"}),
            said("m5", "user", "two"),
        ],
        "user \"one\"\nagent \"better\"\nusage 7\nuser \"two\"\ntitle All of it",
    );
    let all = json!({"$set": {"messages": [said("x", "user", "only this")]}});
    check(&[about(), said("m1", "user", "one"), all], "user \"only this\"\ntitle only this");
    check(
        &[about(), said("m1", "user", "one"), json!({"$rewindTo": "nobody"}), said("m2", "user", "new")],
        "user \"new\"\ntitle new",
    );
}

#[test]
fn calls_thoughts_and_notes_stay() {
    let gemini = json!({"id": "m2", "timestamp": "2025-11-02T10:00:02.000Z", "type": "gemini", "model": "g",
    "content": [{"text": "Let me "}, "look."],
    "thoughts": [{"subject": "Plan", "description": "read", "timestamp": "x"}],
    "toolCalls": [
        {"id": "c", "name": "read_file", "args": {"file_path": "a"}, "status": "success", "displayName": "ReadFile",
         "description": "a", "result": [{"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "text"}}}]},
        {"id": "c", "name": "replace", "args": {}, "status": "cancelled", "result": "User said no",
         "resultDisplay": {"filePath": "/w/a", "originalContent": "x", "newContent": "y"}},
        {"id": "d", "name": "run_shell_command", "args": {"command": "ls"}, "status": "executing", "result": null},
    ]});
    check(
        &[
            about(),
            said("m0", "user", "/help"),
            said("m1", "user", "look"),
            gemini,
            said("m3", "error", "[API Error]"),
            said("m4", "info", "Request cancelled."),
        ],
        r#"
        note {"type":"user","text":"/help"}
        user "look"
        agent "**Plan**\nread" "Let me " "look."
        call c read_file {"file_path":"a"} "ReadFile a"
        end c "text"
        call c-2 replace {} "replace"
        end c-2 "User said no" shown cancelled
        call d run_shell_command {"command":"ls"} "run_shell_command"
        error [API Error]
        note {"type":"info","text":"Request cancelled."}
        end d "The transcript does not have the end of this call." interrupted
        title look"#,
    );
    let call =
        json!({"id": "m2", "type": "gemini", "content": [{"functionCall": {"id": "q", "name": "glob", "args": {}}}]});
    let answer = json!({"id": "m3", "type": "user", "content":
        [{"functionResponse": {"id": "q", "name": "glob", "response": {"error": "no"}}}]});
    check(
        &[about(), said("m1", "user", "go"), call, answer],
        "user \"go\"\ncall q glob {} \"glob\"\nend q \"no\" failed\ntitle go",
    );
}

#[test]
fn one_object_of_older_days() {
    let mut old = about();
    old["messages"] = json!([said("a", "user", "hi"), said("b", "gemini", "ho")]);
    let it = read(&serde_json::to_string_pretty(&old).unwrap()).unwrap();
    assert_eq!(outline(&it), "user \"hi\"\nagent \"ho\"\ntitle hi");
    assert_eq!(it.id.as_str(), "0b7c4b4e-1111-4222-8333-444455556666");
}

#[test]
fn folder_is_found_by_name_or_hash() {
    let cwd = |about: Value| {
        let it = read(&jsonl(&[about, said("a", "user", "hi")])).unwrap();
        match &it.entries[0].fact {
            Fact::Created { cwd, .. } => (cwd.to_string(), it.is_folder_guessed),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(cwd(about()), ("/w".to_owned(), true));
    let mut named = about();
    named["directories"] = json!(["/p/q", "/r"]);
    assert_eq!(cwd(named), ("/p/q".to_owned(), false));
    let mut hashed = about();
    // Of "/".
    hashed["projectHash"] = json!("8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1");
    assert_eq!(cwd(hashed), ("/".to_owned(), false));
}

#[test]
fn refuses_what_is_neither_and_says_why() {
    let no = |text: &str, why: &str| assert!(read(text).unwrap_err().contains(why), "{:?}", read(text));
    no("", "no line of it is a JSON object");
    no("# A diary\n\nhello", "no line of it is a JSON object");
    no("{\"a\": 1}", "`sessionId`");
    no("{\"type\":\"user\",\"uuid\":\"x\",\"sessionId\":\"y\",\"message\":{}}\n", "`projectHash`");
    no("{\"messages\": 3}", "`messages` is no list");
    no(&jsonl(&[about()]), "without messages");
    let mut sub = about();
    sub["kind"] = json!("subagent");
    no(&jsonl(&[sub, said("a", "user", "x")]), "sub-agent");
    no("{\"format\": \"castor-session\", \"entries\": []}", "does not say what session it is");
    let torn = jsonl(&[about(), said("a", "user", "x")]) + "{\"id\": \"b\", \"ty";
    assert_eq!(read(&torn).unwrap().n_bad, 1);
}

#[test]
fn ids_from_outside_name_no_other_file() {
    let mut about = about();
    about["sessionId"] = json!("../../etc/passwd");
    let it = read(&jsonl(&[about, said("a/\"b", "user", "x")])).unwrap();
    assert!(it.id.is_safe() && it.id.as_str().starts_with("gemini-"));
    let ids = it.entries.iter().find_map(|it| match &it.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::Message { message_id, .. } => Some(message_id.to_string()),
            _ => None,
        },
        _ => None,
    });
    assert!(ids.unwrap().bytes().all(|it| it.is_ascii_alphanumeric()));
}

#[test]
fn twice_is_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let text = jsonl(&[about(), said("a", "user", "x"), said("b", "gemini", "y")]);
    let first = read(&text).unwrap();
    assert_eq!(store.import(&first).unwrap(), ImportOutcome::New);
    assert_eq!(store.import(&read(&text).unwrap()).unwrap(), ImportOutcome::Exists);
    assert_eq!(store.read(&first.id).unwrap(), first.entries);
    let grown = text + &jsonl(&[said("c", "user", "z")]);
    assert_eq!(store.import(&read(&grown).unwrap()).unwrap(), ImportOutcome::Conflict);
    let (entries, log) = store.open(&first.id).unwrap();
    drop(log);
    let export = json!({"format": super::EXPORT_FORMAT, "version": 1, "entries": entries}).to_string();
    assert_eq!(store.import(&read(&export).unwrap()).unwrap(), ImportOutcome::Exists);
    let lines: String = entries.iter().map(|it| serde_json::to_string(it).unwrap() + "\n").collect();
    assert_eq!(read(&lines).unwrap().entries, entries);
}
