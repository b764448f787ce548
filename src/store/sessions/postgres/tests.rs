//! The store on a real database.

#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant};

use serde_json::json;

use super::testing::TestStore;
use crate::sessions::{AppendError, CopyOutcome, LogExtent, NewsMark, SessionLog, SessionStore, StoreError};
use castor_base::{
    ids::SessionId,
    log::{Entry, Fact},
};

const LIMIT: Duration = Duration::from_secs(20);

fn created(id: &str) -> Entry {
    let fact = json!({"at": 1, "fact": "created", "version": 2, "castor": "0", "session": id, "cwd": "/w", "roots": ["/w"],
        "mode": "default", "model": "m"});
    serde_json::from_value(fact).unwrap()
}

fn event(at: u64, mut kind: serde_json::Value) -> Entry {
    for (key, value) in [("id", json!(format!("s-{at}"))), ("streamId", json!("s")), ("timestamp", json!(at))] {
        kind[key] = value;
    }
    serde_json::from_value(json!({"at": at, "fact": "event", "event": kind})).unwrap()
}

fn prompt(at: u64, text: &str) -> Entry {
    let content = json!([{"type": "text", "text": text}]);
    event(at, json!({"type": "message", "role": "user", "messageId": format!("m{at}"), "content": content}))
}

fn begin(store: &SessionStore, id: &str) -> SessionLog {
    let mut log = store.create(&id.into()).unwrap();
    log.append(&[created(id), prompt(2, "hé\u{0}llo\nthere")]).unwrap();
    log
}

#[test]
fn a_log_is_the_same_in_files_and_in_postgres() {
    let Some(test) = TestStore::new() else { return };
    let (shared, files) = (test.store(), SessionStore::new(test.home.clone()));
    let id = SessionId::from("one");
    for store in [&shared, &files] {
        assert!(!store.has(&id));
        assert!(matches!(store.read(&id), Err(StoreError::NotFound { .. })));
        assert!(matches!(store.open(&id), Err(StoreError::NotFound { .. })));
        let mut log = begin(store, "one");
        assert!(store.is_at_work(&id).unwrap(), "something was written since it was opened");
        log.append(&[event(3, json!({"type": "agent_start"}))]).unwrap();
        assert!(matches!(store.open(&id), Err(StoreError::Locked { .. })), "not twice in one process");
        drop(log);
        let child = id.child("c");
        store.create_with(&child, &[created("one/c")]).unwrap();
        assert_eq!(store.children(&id), [child]);
        let (entries, mut log) = store.open(&id).unwrap();
        assert!(entries.len() > 3, "what a crash cut off has an end: {entries:?}");
        assert!(!store.is_at_work(&id).unwrap());
        log.append(&[prompt(9, "more")]).unwrap();
        store.set_title(&id, "the title").unwrap();
    }
    let plain = |store: &SessionStore, id: &SessionId| store.read(id).unwrap();
    assert_eq!(plain(&shared, &id), plain(&files, &id));
    let parts = |store: &SessionStore| (store.read_part(&id, 0..100).unwrap(), store.log_len(&id));
    let (whole, len) = (shared.read_part(&id, 0..u64::MAX).unwrap(), shared.log_len(&id).unwrap());
    assert_eq!((whole.1, parts(&shared).1), (len, parts(&files).1), "the same bytes");
    assert_eq!(parts(&shared).0.0, parts(&files).0.0);
    let details = |store: &SessionStore| store.details(&id, LogExtent::Bounded).unwrap();
    assert_eq!(details(&shared), details(&files));
    let listed = |store: &SessionStore| {
        let mut all = store.list(None).unwrap();
        all.iter_mut().for_each(|it| it.updated_ms = 0);
        all
    };
    assert_eq!(listed(&shared), listed(&files));
    assert_eq!(listed(&shared)[0].title.as_deref(), Some("the title"));
    assert_eq!(shared.log_head(&id).unwrap(), files.log_head(&id).unwrap());
    let scanned = |store: &SessionStore| {
        let mut res = Vec::new();
        store.scan(&id, &[b"user"], |n, it| res.push((n, it.at))).unwrap();
        res
    };
    assert_eq!(scanned(&shared), scanned(&files));
    assert_eq!(shared.find_damage(&id).unwrap().n, 0);
    for store in [&shared, &files] {
        store.delete(&id).unwrap();
        assert!(!store.has(&id) && store.children(&id).is_empty() && store.list(None).unwrap().is_empty());
    }
}

#[test]
fn the_second_castor_learns_who_has_the_session() {
    let Some(test) = TestStore::new() else { return };
    let (mut first, second) = (test.store(), test.store());
    first.set_client("Zed");
    let log = begin(&first, "one");
    let why = second.open(&"one".into()).unwrap_err().to_string();
    assert!(why.contains(" for Zed)") && why.contains(" on "), "{why}");
    assert!(matches!(second.delete(&"one".into()), Err(StoreError::Locked { .. })));
    assert!(matches!(second.set_archived(&"one".into(), true), Err(StoreError::Locked { .. })));
    assert_eq!(second.read(&"one".into()).unwrap().len(), 2, "it may read");
    drop(log);
    let deadline = Instant::now() + LIMIT;
    while let Err(it) = second.set_archived(&"one".into(), true) {
        assert!(Instant::now() < deadline, "{it}");
    }
    assert!(second.list(None).unwrap()[0].archived);
}

#[test]
fn whoever_lost_a_session_writes_nothing() {
    let Some(test) = TestStore::new() else { return };
    let (first, second) = (test.store(), test.store());
    let mut log = begin(&first, "one");
    let mut child = first.create(&SessionId::from("one").child("c")).unwrap();
    child.append(&[created("one/c")]).unwrap();
    // As if it had been silent for long.
    test.sql("update castor_sessions set owner = 'dead'");
    let (entries, mut new) = second.open(&"one".into()).unwrap();
    assert_eq!(entries.len(), 2);
    let mut orders = Vec::new();
    log.begin_append(&[prompt(3, "lost")], &mut orders).unwrap();
    let [(id, why)] = &first.start_appends(orders).unwrap().wait()[..] else { panic!("it was taken") };
    assert!(matches!(why, AppendError::Lost(_)) && id.as_str() == "one", "{why}");
    assert!(why.to_string().starts_with("the session was taken over by another castor (process "), "{why}");
    let why = child.append(&[created("one/c")]).unwrap_err().to_string();
    assert!(why.contains("taken over"), "its sub-agents write nothing either: {why}");
    let why = first.create(&SessionId::from("one").child("d")).unwrap_err();
    assert!(matches!(why, StoreError::Locked { .. }), "and there are no new ones: {why}");
    new.append(&[prompt(4, "mine")]).unwrap();
    // The end of the old holder takes nothing from the new one.
    drop((log, child, first));
    new.append(&[prompt(5, "mine")]).unwrap();
    // With the line of a newer castor.
    assert_eq!(second.read(&"one".into()).unwrap().len(), 5);
    assert_eq!(second.read(&"one/c".into()).unwrap().len(), 1);
}

#[test]
fn a_silent_castor_is_followed_in_time() {
    let Some(test) = TestStore::new() else { return };
    let (first, second) = (test.shared(), test.store());
    let log = first.create(&"one".into()).unwrap();
    first.start(vec![log.order(0, format!("{}\n", json!(created("one"))).into_bytes()).unwrap()]).wait();
    assert!(matches!(second.open(&"one".into()), Err(StoreError::Locked { .. })));
    // As in a process that was killed: its thread says nothing more, and nobody lets go of anything.
    std::mem::forget(log);
    first.silence();
    let start = Instant::now();
    let log = loop {
        match second.open(&"one".into()) {
            Ok((_, log)) => break log,
            Err(it) => assert!(start.elapsed() < Duration::from_secs(8), "{it}"),
        }
    };
    assert!(log.moved_from().is_none(), "the same process, in this test");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn appends_survive_cut_connections_and_are_taken_once() {
    let Some(test) = TestStore::new() else { return };
    let store = test.store();
    let mut log = begin(&store, "one");
    for n in 0..20 {
        if n % 3 == 0 {
            test.sql("select pg_terminate_backend(pid)::text from pg_stat_activity where application_name = current_schema() and pid <> pg_backend_pid()");
        }
        log.append(&[prompt(10 + n, "x")]).unwrap();
    }
    let entries = store.read(&"one".into()).unwrap();
    let at: Vec<u64> = entries.iter().map(|it| it.at).collect();
    let expected: Vec<u64> = [1, 2].into_iter().chain(10..30).collect();
    assert_eq!(at, expected);
}

/// What became of an append whose answer was lost is found out.
#[test]
fn an_append_that_was_taken_is_not_written_again() {
    let Some(test) = TestStore::new() else { return };
    let store = test.shared();
    let log = store.create(&"one".into()).unwrap();
    let order = log.order(0, b"{\"a\":1}\n{\"b\":2}\n".to_vec()).unwrap();
    assert!(store.start(vec![order.clone()]).wait().is_empty());
    assert!(store.start(vec![order]).wait().is_empty(), "the same once more");
    assert_eq!(store.read(&"one".into(), 0..99).unwrap(), b"{\"a\":1}\n{\"b\":2}\n");
    let strange = log.order(5, b"{}\n".to_vec()).unwrap();
    let failed = store.start(vec![strange]).wait();
    assert!(matches!(&failed[..], [(_, AppendError::Lost(why))] if why.contains("another length")), "{failed:?}");
}

/// Whoever makes it first has it; the others learn so when they write.
#[test]
fn a_log_that_was_begun_is_made_with_its_first_append() {
    let Some(test) = TestStore::new() else { return };
    let (first, second) = (test.store(), test.store());
    let id = SessionId::from("one");
    let mut log = first.begin(&id).unwrap();
    assert!(matches!(first.begin(&id), Err(StoreError::Locked { .. })), "not twice in one process");
    assert!(!second.has(&id), "nothing was asked yet");
    log.append(&[created("one")]).unwrap();
    assert!(second.has(&id));
    let why = second.begin(&id).unwrap().append(&[created("one")]).unwrap_err().to_string();
    assert!(why.starts_with("the session is open in another castor (process "), "{why}");
    drop(log);
    let deadline = Instant::now() + LIMIT;
    loop {
        let why = second.begin(&id).unwrap().append(&[created("one")]).unwrap_err().to_string();
        if why.starts_with("the session is in the store already") {
            break;
        }
        assert!(Instant::now() < deadline, "{why}");
    }
    assert_eq!(second.read(&id).unwrap().len(), 1);
}

/// A row that another transaction has is passed over, and taken when it is free.
#[test]
fn a_locked_log_holds_up_no_other_one() {
    let Some(test) = TestStore::new() else { return };
    let store = test.store();
    let [mut slow, mut quick] = ["slow", "quick"].map(|it| begin(&store, it));
    let (mut of_slow, mut of_quick) = (Vec::new(), Vec::new());
    slow.begin_append(&[prompt(3, "slow")], &mut of_slow).unwrap();
    quick.begin_append(&[prompt(3, "quick")], &mut of_quick).unwrap();
    let mut pending = test.sql_during("select id from castor_sessions where id = 'slow' for update", || {
        let mut pending = store.start_appends(of_slow).unwrap();
        assert_eq!(store.start_appends(of_quick).unwrap().wait().len(), 0);
        assert!(pending.within(Duration::from_millis(20)).is_none(), "it is locked");
        pending
    });
    assert!(pending.wait().is_empty());
    assert_eq!(store.read(&"slow".into()).unwrap().len(), 3);
}

#[test]
fn watchers_learn_of_appends() {
    let Some(test) = TestStore::new() else { return };
    let (writer, watcher) = (test.store(), test.store());
    let mut log = begin(&writer, "one");
    let (id, mut mark) = (SessionId::from("one"), NewsMark::default());
    // The connection that listens comes about: what was before is not known.
    let deadline = Instant::now() + LIMIT;
    while !watcher.has_news(&id, &mut mark, 1) {
        assert!(Instant::now() < deadline);
    }
    assert!(!watcher.has_news(&id, &mut mark, 2), "nothing happened");
    assert!(watcher.has_news(&id, &mut mark, 2_000), "all the same after a while");
    log.append(&[prompt(3, "news")]).unwrap();
    while !watcher.has_news(&id, &mut mark, 2_000) {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn copies_go_both_ways() {
    let Some(test) = TestStore::new() else { return };
    let (shared, files) = (test.store(), SessionStore::new(test.home.clone()));
    let id = SessionId::from("one");
    drop(begin(&files, "one"));
    files.create_with(&id.child("c"), &[created("one/c")]).unwrap();
    files.set_title(&id, "titled").unwrap();
    assert_eq!(files.copy_to(&shared, &id).unwrap(), CopyOutcome::New);
    assert_eq!(files.copy_to(&shared, &id).unwrap(), CopyOutcome::Exists);
    assert_eq!(shared.read(&id).unwrap(), files.read(&id).unwrap());
    assert_eq!(shared.read(&id.child("c")).unwrap(), files.read(&id.child("c")).unwrap());
    assert_eq!(shared.list(None).unwrap()[0].title.as_deref(), Some("titled"));
    let (_, mut log) = shared.open(&id).unwrap();
    log.append(&[prompt(7, "there")]).unwrap();
    assert!(matches!(shared.copy_to(&files, &id), Err(StoreError::Locked { .. })), "it is open");
    drop(log);
    assert_eq!(shared.copy_to(&files, &id).unwrap(), CopyOutcome::Conflict, "never over what is there");
    files.delete(&id).unwrap();
    assert_eq!(shared.copy_to(&files, &id).unwrap(), CopyOutcome::New);
    assert_eq!(shared.read(&id).unwrap(), files.read(&id).unwrap());
}

#[test]
fn tables_of_a_newer_castor_are_refused() {
    let Some(test) = TestStore::new() else { return };
    drop(test.store());
    test.sql("insert into castor_versions (version) values (99)");
    let why = SessionStore::at(test.home.clone(), &crate::sessions::StoreAddress::parse(&test.url, None).unwrap());
    let why = why.unwrap_err().to_string();
    let expected =
        "the session store was set up by a newer castor (version 99 of its tables); this one knows 2: update castor";
    assert_eq!(why, expected);
}

#[test]
fn a_database_that_is_not_there_is_named_without_its_password() {
    let why = super::SharedStore::connect("postgres://u@127.0.0.1:1/d", Some("secret")).unwrap_err().to_string();
    assert!(why.starts_with("the session store cannot be reached: ") && !why.contains("secret"), "{why}");
}

#[test]
fn facts_of_no_log_are_none() {
    let Some(test) = TestStore::new() else { return };
    let store = test.store();
    let log = store.create(&"one".into()).unwrap();
    assert!(log.is_empty() && store.list(None).unwrap().is_empty());
    assert!(matches!(store.open(&"../x".into()), Err(StoreError::NotFound { .. })));
    let fact = Fact::Rewound { to: "m".into() };
    store.create_with(&"two".into(), &[Entry { at: 1, fact }]).unwrap();
    assert!(store.read(&"two".into()).unwrap().is_empty(), "its first line is none of a log's");
}
