//! The agent of a session in the list: from the head of its log, and for a later choice from the file beside it.

use serde_json::json;

use super::SessionStore;
use castor_base::{ids::SessionId, log::Entry, path::AbsPath};

fn entry(fact: serde_json::Value) -> Entry {
    let mut fact = fact;
    fact["at"] = 1.into();
    serde_json::from_value(fact).unwrap()
}

fn created() -> Entry {
    entry(json!({"fact": "created", "version": 2, "castor": "0", "session": "a", "cwd": "/w", "roots": ["/w"],
        "mode": "default", "model": "m"}))
}

fn chosen(agent: Option<&str>) -> Entry {
    entry(json!({"fact": "agent", "agent": agent}))
}

#[test]
fn a_choice_behind_the_head_of_the_log_counts_in_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let id = SessionId::from("a");
    let listed = || store.list(None).unwrap().remove(0).agent;
    store.create_with(&id, &[created(), chosen(Some("helper"))]).unwrap();
    store.note_agent(&id, Some("helper")).unwrap();
    assert_eq!(listed().as_deref(), Some("helper"));
    assert!(store.metadata_path(&id).as_path().metadata().is_err(), "the log says it");
    let (_, mut log) = store.open(&id).unwrap();
    let long = entry(json!({"fact": "agent_switched", "agent": "x".repeat(80_000), "enabled": true}));
    for (agent, expected) in [(None, None), (Some("other"), Some("other"))] {
        log.append(&[long.clone(), chosen(agent)]).unwrap();
        store.note_agent(&id, agent).unwrap();
        assert_eq!(listed().as_deref(), expected);
    }
}
