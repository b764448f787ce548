//! The index of the session list: another process takes from it what did not change, and nothing else.
#![allow(clippy::disallowed_methods)]

use std::fs;

use serde_json::json;

use super::SessionStore;
use castor_base::{ids::SessionId, log::Entry, path::AbsPath};

fn created(id: &SessionId) -> Entry {
    let fact = json!({"at": 1, "fact": "created", "version": 2, "castor": "0", "session": id.as_str(), "cwd": "/w",
        "roots": ["/w"], "mode": "default", "model": "m"});
    serde_json::from_value(fact).unwrap()
}

#[test]
fn a_listing_leaves_an_index_for_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let file = |id: &SessionId| dir.path().join(format!("sessions/{id}.jsonl"));
    let listed = || store.list(None).unwrap();
    let ids: Vec<SessionId> = (0..40).map(|it| SessionId::from(format!("s{it}"))).collect();
    for id in &ids {
        store.create_with(id, &[created(id)]).unwrap();
    }
    let before = listed();
    assert_eq!(before.len(), 40);
    // With the length and the time that it had, only the index knows what was in it.
    let log = fs::File::options().write(true).open(file(&ids[0])).unwrap();
    let meta = log.metadata().unwrap();
    fs::write(file(&ids[0]), " ".repeat(meta.len() as usize)).unwrap();
    log.set_modified(meta.modified().unwrap()).unwrap();
    assert_eq!(listed(), before);
    let title = json!({"at": 2, "fact": "event", "event": {"id": "s-0", "streamId": "s", "timestamp": 2,
        "type": "session_update", "title": "New"}});
    store.open(&ids[1]).unwrap().1.append(&[serde_json::from_value(title).unwrap()]).unwrap();
    store.delete(&ids[2]).unwrap();
    let after = listed();
    assert_eq!(after.len(), 39);
    assert_eq!(after.iter().find(|it| it.id == ids[1]).unwrap().title.as_deref(), Some("New"));
    let index = dir.path().join("session-list");
    fs::write(&index, &fs::read(&index).unwrap()[..100]).unwrap();
    assert_eq!(listed().len(), 38, "a torn index is none, and one log is none by now");
}
