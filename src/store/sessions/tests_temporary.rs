//! Temporary files of sessions: how long they stay.
#![allow(clippy::disallowed_methods)]

use std::{
    fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::json;

use super::SessionStore;
use castor_base::{ids::SessionId, path::AbsPath};

const WEEK_S: u64 = 7 * 24 * 3600;

fn set_time(path: &Path, s: u64) {
    fs::File::open(path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(s)).unwrap();
}

#[test]
fn temporary_files_go_a_week_after_their_session_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(AbsPath::new(dir.path()).unwrap());
    let file = |id: &str| dir.path().join(format!("sessions/{id}.jsonl"));
    let make = |name: &str, log_s: u64, tmp_s: u64| {
        let id = SessionId::from(name);
        let fact = json!({"at": 1, "fact": "created", "version": 2, "castor": "0", "session": name, "cwd": "/w",
            "roots": ["/w"], "mode": "default", "model": "m"});
        store.create_with(&id, &[serde_json::from_value(fact).unwrap()]).unwrap();
        let tmp = store.tmp_dir(&id);
        fs::create_dir_all(&tmp).unwrap();
        fs::write(tmp.join("x"), "x").unwrap();
        fs::write(store.scratch_dir(&id).join("out.txt"), "x").unwrap();
        set_time(tmp.as_path(), tmp_s);
        set_time(&file(name), log_s);
        tmp
    };
    let (old, worked) = (make("old", 100, 50), make("worked", 102, 50));
    let (written, open) = (make("written", 50, 102), make("open", 100, 50));
    let log = store.open(&SessionId::from("open")).unwrap().1;
    set_time(&file("open"), 100);
    let sweep = |s: u64| store.sweep_temporary(1_000 * s);
    assert_eq!(sweep(WEEK_S + 100), 0);
    assert_eq!(sweep(WEEK_S + 101), 1);
    let left = |it: &AbsPath| it.as_path().exists();
    assert!(!left(&old) && left(&worked) && left(&written) && left(&open));
    assert!(left(&store.scratch_dir(&SessionId::from("old")).join("out.txt")), "what the log names stays");
    drop(log);
    assert_eq!(sweep(WEEK_S + 103), 3);
}
