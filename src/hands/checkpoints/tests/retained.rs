//! Retention of checkpoints: what stays, what is removed, and the size limit.

use std::{fs, time::SystemTime};

use super::{bed, call, conflicts, id, never, order, undo};
use crate::checkpoints::{Buffers, Failure, Limits, Retention, forget_session, sweep};
use castor_base::checkpoint::{OnConflict, Scope};

fn contents(bed: &super::Bed) -> usize {
    let Some(store) = fs::read_dir(bed.home.join("checkpoints")).unwrap().next() else { return 0 };
    // Of a store that is gone the record of what nobody looked at stays.
    fs::read_dir(store.unwrap().path().join("blobs")).map_or(0, Iterator::count)
}

fn keep_all() -> Retention {
    Retention { store: 1 << 30, used_since: SystemTime::UNIX_EPOCH }
}

#[test]
fn a_full_store_takes_no_checkpoint_and_loses_none() {
    let bed = bed();
    bed.write("a", vec![b'a'; 2000]);
    let checkpoints = bed.limited("s", Limits { store: 5000, ..Limits::default() });
    checkpoints.open(&never).unwrap();
    call(&checkpoints, "c", || bed.write("a", vec![b'b'; 2000]));
    bed.write("b", vec![b'c'; 3000]);
    let res = checkpoints.before(&id("d"), &Scope::Roots, &never);
    assert!(matches!(res, Err(Failure::Full { limit: 5000 })), "{res:?}");
    let swept = sweep(&bed.home, &Retention { store: 10, ..keep_all() }, &|_| true).unwrap();
    assert_eq!((swept.n_sessions, swept.bytes), (0, 0), "an open session loses nothing");
    fs::remove_file(bed.path("b")).unwrap();
    undo(&checkpoints, "r", &["c"]);
    assert_eq!(bed.read("a"), "a".repeat(2000));
}

#[test]
fn file_and_root_limits_apply() {
    let bed = bed();
    for name in ["a", "b", "c", "d"] {
        bed.write(name, vec![name.as_bytes()[0]; 1000]);
    }
    let held = |limits| {
        let checkpoints = bed.limited("s", limits);
        checkpoints.open(&never).unwrap().held.not_kept.len()
    };
    let base = Limits::default();
    let clear = || fs::remove_dir_all(&bed.home).unwrap();
    assert_eq!(held(Limits { file: 999, ..base }), 4);
    clear();
    assert_eq!(held(Limits { root_bytes: 2500, ..base }), 2);
    clear();
    assert_eq!(held(Limits { root_files: 3, ..base }), 2, "the root counts");
}

/// Beside files that are not held, in a folder that nobody looks into, and below it.
#[test]
fn what_a_file_tool_writes_is_held_however_many_files_there_are() {
    let bed = bed();
    for n in 0..4 {
        bed.write(&format!("d/{n}"), "old\n");
        bed.write(&format!("{n}"), "old\n");
    }
    let checkpoints = bed.limited("s", Limits { root_files: 3, ..Limits::default() });
    assert_eq!(checkpoints.open(&never).unwrap().full, std::slice::from_ref(&bed.root));
    for name in ["new", "d/new", "d/e/f/new", "0", "1", "2", "3", "d/2"] {
        let (before, own, back) = (bed.read(name), format!("c {name}"), format!("r {name}"));
        let scope = Scope::Files(vec![bed.root.join(name)]);
        let held = checkpoints.before(&id(&own), &scope, &never).unwrap();
        assert_eq!(held.not_kept, Vec::<std::path::PathBuf>::new(), "{name}");
        bed.write(name, "new\n");
        let changes = checkpoints.after(&id(&own)).unwrap();
        let is_told = changes.files.iter().any(|it| it.path == bed.path(name));
        assert!(is_told && changes.not_kept.is_empty(), "{name}: {changes:?}");
        // A command that does nothing: everything is looked at.
        call(&checkpoints, &format!("w {name}"), || ());
        assert_eq!(undo(&checkpoints, &back, &[&own]).restored.conflicts, [], "{name}");
        assert_eq!(bed.read(name), before, "{name}");
    }
}

#[test]
fn sessions_that_are_deleted_leave_nothing() {
    let bed = bed();
    bed.write("a", "one\n");
    for name in ["s", "t"] {
        let checkpoints = bed.opened(name);
        call(&checkpoints, "c", || bed.write("a", format!("{name} 1\n")));
        call(&checkpoints, "d", || bed.write("a", format!("{name} 2\n")));
    }
    assert_eq!(contents(&bed), 5);
    forget_session(&bed.home, &"s".into()).unwrap();
    // What `t` found, and what it made.
    assert_eq!(contents(&bed), 3);
    let checkpoints = bed.opened("t");
    undo(&checkpoints, "r", &["c", "d"]);
    assert_eq!(bed.read("a"), "s 2\n");
    drop(checkpoints);
    let swept = sweep(&bed.home, &keep_all(), &|it| it.as_str() != "t").unwrap();
    assert_eq!(swept.n_sessions, 1);
    assert_eq!(contents(&bed), 1);
    sweep(
        &bed.home,
        &Retention { used_since: SystemTime::now() + std::time::Duration::from_secs(9), ..keep_all() },
        &|_| true,
    )
    .unwrap();
    assert_eq!(contents(&bed), 0, "nobody used it since");
}

#[test]
fn the_oldest_closed_sessions_go_first() {
    let bed = bed();
    bed.write("a", vec![b'0'; 1000]);
    for name in ["s", "t", "u"] {
        let checkpoints = bed.opened(name);
        call(&checkpoints, "c", || bed.write("a", vec![name.as_bytes()[0]; 1000]));
    }
    let swept = sweep(&bed.home, &Retention { store: 3000, ..keep_all() }, &|_| true).unwrap();
    assert_eq!((swept.n_sessions, swept.bytes), (1, 1000));
    let checkpoints = bed.opened("u");
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!((conflicts(&done, &bed.root).len(), bed.read("a")), (0, "t".repeat(1000)));
    drop(checkpoints);
    let swept = sweep(&bed.home, &Retention { store: 0, ..keep_all() }, &|_| true).unwrap();
    assert_eq!(swept.n_sessions, 2);
    assert_eq!(contents(&bed), 0);
}

/// It has no root yet when it is listed, and the lock of who makes it.
#[test]
fn a_sweep_leaves_what_is_just_being_made() {
    let bed = bed();
    let all = bed.home.join("checkpoints");
    fs::create_dir_all(all.join("made")).unwrap();
    fs::create_dir(all.join("left")).unwrap();
    fs::write(all.join("stray"), "x").unwrap();
    let lock = fs::File::create(all.join("made/lock")).unwrap();
    lock.lock().unwrap();
    sweep(&bed.home, &keep_all(), &|_| true).unwrap();
    let names: Vec<_> = fs::read_dir(&all).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["made"]);
    // A child that another test forks holds the file open until it executes: closing it here does not unlock it.
    lock.unlock().unwrap();
    forget_session(&bed.home, &"s".into()).unwrap();
    assert_eq!(fs::read_dir(&all).unwrap().count(), 0);
}

/// While it is opened, and while it is open: what is held from then on is held.
#[test]
fn a_store_that_is_removed_is_made_anew() {
    let bed = bed();
    bed.write("a", "one\n");
    let first = bed.opened("s");
    call(&first, "c", || bed.write("a", "two\n"));
    // Another castor waits for the lock, and its holder goes with the store.
    let name = fs::read_dir(bed.home.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    let lock = fs::File::open(name.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let waits = std::sync::Mutex::new(Some(lock));
    let second = bed.session("t");
    let remove = || {
        if let Some(lock) = waits.lock().unwrap().take() {
            fs::remove_dir_all(bed.home.join("checkpoints")).unwrap();
            drop(lock);
        }
        false
    };
    second.open(&remove).unwrap();
    assert!(waits.lock().unwrap().is_none(), "it did not wait");
    call(&second, "d", || bed.write("a", "three\n"));
    undo(&second, "r", &["d"]);
    assert_eq!(bed.read("a"), "two\n");
    // The first goes on in the new one. What the old one held is gone, and that is said.
    call(&first, "e", || bed.write("a", "four\n"));
    let res = first.restore(&order("q", &["c"], OnConflict::Fail), &Buffers::default());
    assert!(matches!(res, Err(Failure::Gone)), "{res:?}");
    assert!(matches!(first.diff(&[id("c")]), Err(Failure::Gone)));
    let done = undo(&first, "p", &["c", "e"]);
    assert_eq!(
        (bed.read("a"), done.notes),
        ("two\n".to_owned(), vec!["Some of the calls have no checkpoint.".to_owned()])
    );
    // What a call did while the store went is not known.
    first.before(&id("f"), &Scope::Roots, &never).unwrap();
    fs::remove_dir_all(bed.home.join("checkpoints")).unwrap();
    assert!(first.after(&id("f")).is_err());
    call(&first, "g", || bed.write("a", "five\n"));
    undo(&first, "o", &["g"]);
    assert_eq!(bed.read("a"), "two\n");
}
