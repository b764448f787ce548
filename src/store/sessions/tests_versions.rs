//! Logs of other versions: older ones go on in this one, newer ones are read and not written.
#![allow(clippy::disallowed_methods)]

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{LogExtent, SessionStore, import};
use castor_base::{
    event::{AgentEvent, EventKind, Speaker},
    ids::SessionId,
    log::{Entry, Fact, VERSION, newest_version},
    path::AbsPath,
};

const OLD: &str = include_str!("../../../tests/data/logs/v1-rich.jsonl");

/// A store with a log of this text.
fn with_log(text: &str) -> (tempfile::TempDir, SessionStore, SessionId, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let id = SessionId::from("old");
    let path = store.log_file(&id).unwrap().as_path().to_owned();
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    (dir, store, id, path)
}

fn newer(text: &str) -> String {
    text.to_owned() + &json!({"at": 9, "fact": "version", "version": VERSION + 1, "castor": "9"}).to_string() + "\n"
}

#[test]
fn an_older_log_says_once_that_it_goes_on_in_this_version() {
    let (_dir, store, id, path) = with_log(OLD);
    for _ in 0..2 {
        let (_, mut log) = store.open(&id).unwrap();
        assert!(log.append(&[]).is_ok());
        for _ in 0..2 {
            log.append(&[Entry { at: 7, fact: Fact::Cleared }]).unwrap();
        }
    }
    let text = fs::read_to_string(&path).unwrap();
    let fact = |line: &str| {
        let mut it: Value = serde_json::from_str(line).unwrap();
        assert_eq!(it["sum"].take().as_str().unwrap().len(), 22);
        it.as_object_mut().unwrap().remove("sum");
        it
    };
    let added: Vec<Value> = text.strip_prefix(OLD).unwrap().lines().map(fact).collect();
    let version = json!({"at": 7, "fact": "version", "version": VERSION, "castor": env!("CARGO_PKG_VERSION")});
    let cleared = json!({"at": 7, "fact": "cleared"});
    assert_eq!(added, [version, cleared.clone(), cleared.clone(), cleared.clone(), cleared]);
}

#[test]
fn events_of_an_older_log_are_of_the_main_agent() {
    let (_dir, store, id, _) = with_log(OLD);
    let entries = store.read(&id).unwrap();
    assert_eq!(newest_version(&entries), 1);
    let mut n_events = 0;
    for entry in &entries {
        let Fact::Event { event: it } = &entry.fact else { continue };
        n_events += 1;
        let is_user = matches!(it.kind, EventKind::Message { role: Speaker::User, .. });
        assert_eq!((it.agent_id.as_str(), &it.thread_id), ("castor", &None));
        assert_eq!(it.source, if is_user { "user" } else { "agent" });
        let written = serde_json::to_value(it).unwrap();
        assert_eq!(serde_json::from_value::<AgentEvent>(written.clone()).unwrap(), *it);
        assert!(written["timestamp"].as_str().unwrap().ends_with('Z') && written["agentId"].is_string(), "{written}");
    }
    assert!(n_events > 20);
}

#[test]
fn a_newer_log_is_read_and_not_written() {
    let (_dir, store, id, path) = with_log(&newer(OLD));
    let before = fs::read(&path).unwrap();
    let why = "the log of session old was written by a newer castor (version 4); this one knows 3";
    assert_eq!(store.open(&id).unwrap_err().to_string(), why);
    assert_eq!(store.read(&id).unwrap().len(), OLD.lines().count() + 1);
    assert_eq!(store.list(None).unwrap().len(), 1);
    assert!(!store.details(&id, LogExtent::Whole).unwrap().prompts.is_empty());
    assert_eq!(store.find_damage(&id).unwrap().n, 0);
    assert_eq!(fs::read(&path).unwrap(), before);

    let damaged = newer(OLD) + "torn\n";
    fs::write(&path, &damaged).unwrap();
    assert_eq!(store.repair(&id).unwrap_err().to_string(), why);
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a copy stays");
    store.delete(&id).unwrap();
}

#[test]
fn imports_are_logs_of_this_version() {
    let cwd = AbsPath::new("/w").unwrap();
    let read = |text: &str| import::parse(text.as_bytes(), import::ImportDefaults { cwd: &cwd, model: "m" });
    let why = read(&newer(OLD)).unwrap_err().to_string();
    assert_eq!(why, "a session of a newer castor (version 4); this one knows 3");
    let (_dir, store, _, _) = with_log("");
    let it = read(OLD).unwrap();
    store.import(&it).unwrap();
    let path = store.log_file(&it.id).unwrap();
    let text = fs::read_to_string(path.as_path()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap()["version"], VERSION);
    assert!(!rest.contains("\"fact\":\"version\"") && rest.contains("\"timestamp\":\"2026-"), "{first}");
    assert!(store.open(&it.id).is_ok());
}
