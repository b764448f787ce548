//! Ends of what a crash cut off: shown by every read, written with the next write, and not while somebody is at work.
#![allow(clippy::disallowed_methods)]

use std::fs;

use serde_json::json;

use super::{SessionLog, SessionStore};
use castor_base::{
    endings::is_ending,
    ids::SessionId,
    log::{Entry, Fact},
    path::AbsPath,
};

struct Bed {
    _dir: tempfile::TempDir,
    store: SessionStore,
    id: SessionId,
}

/// A log whose turn has begun, still held.
fn at_work() -> (Bed, SessionLog) {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let id = SessionId::from("a");
    let mut log = store.create(&id).unwrap();
    let event = |n: u32, more: serde_json::Value| {
        let mut event = json!({"id": format!("t-{n}"), "streamId": "t", "timestamp": 5});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"at": 5, "fact": "event", "event": event})
    };
    let created = json!({"at": 5, "fact": "created", "version": 3, "castor": "1", "session": "a", "cwd": "/w", "roots": ["/w"],
        "mode": "default", "model": "m"});
    let call = json!({"type": "tool_request", "requestId": "c", "name": "read_file", "args": {},
        "display": {"title": "", "kind": "read"}});
    let entries = [created, event(0, json!({"type": "agent_start"})), event(1, call)];
    let entries: Vec<Entry> = entries.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect();
    log.append(&entries).unwrap();
    (Bed { _dir: dir, store, id }, log)
}

fn n_endings(entries: &[Entry]) -> usize {
    entries.iter().filter(|it| matches!(&it.fact, Fact::Event { event } if is_ending(event))).count()
}

#[test]
fn what_is_at_work_has_no_end_yet() {
    let (bed, log) = at_work();
    assert_eq!(n_endings(&bed.store.read(&bed.id).unwrap()), 0);
    drop(log);
    assert_eq!(n_endings(&bed.store.read(&bed.id).unwrap()), 2);
}

#[test]
fn ends_are_shown_before_they_are_written() {
    let (bed, log) = at_work();
    drop(log);
    let path = bed.store.log_file(&bed.id).unwrap();
    // Of a castor that was killed.
    fs::write(path.as_path().with_extension("lock"), "{\"pid\": 1}").unwrap();
    let before = fs::read(&path).unwrap();
    let ended = bed.store.read(&bed.id).unwrap();
    let (entries, mut log) = bed.store.open(&bed.id).unwrap();
    assert_eq!((&entries, n_endings(&entries)), (&ended, 2));
    assert_eq!(bed.store.read(&bed.id).unwrap(), ended, "also while it is held");
    assert_eq!(fs::read(&path).unwrap(), before, "opening writes nothing");
    log.append(&[]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    let next = Entry { at: 9, fact: Fact::Cleared };
    log.append(&[next.clone(), next.clone()]).unwrap();
    let expected = [ended, vec![next.clone(), next]].concat();
    assert_eq!(bed.store.read(&bed.id).unwrap(), expected);
    drop(log);
    assert_eq!(bed.store.open(&bed.id).unwrap().0, expected, "they are written once");
}

#[test]
fn a_turn_that_broke_down_ends_without_a_new_castor() {
    let (bed, mut log) = at_work();
    let endings = bed.store.end_open(&bed.id, &mut log).unwrap();
    assert_eq!(endings.len(), 2);
    assert_eq!(n_endings(&bed.store.read(&bed.id).unwrap()), 2);
    assert_eq!(bed.store.end_open(&bed.id, &mut log).unwrap(), [], "they are known");
    let next = Entry { at: 9, fact: Fact::Cleared };
    log.append(&[next]).unwrap();
    assert_eq!(n_endings(&bed.store.read(&bed.id).unwrap()), 2);
    assert_eq!(bed.store.end_open(&bed.id, &mut log).unwrap(), []);
}
