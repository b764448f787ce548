//! Session logs on a real disk: what survives, what is refused, what is left out.
#![allow(clippy::disallowed_methods)]

use std::{fs, os::unix::fs::PermissionsExt};

use super::{ListCache, SessionRetention, SessionStore, StoreError};
use castor_base::{
    content::Part,
    event::*,
    ids::{AgentId, CallId, MessageId, SessionId, StreamId, ThreadId},
    log::*,
    model::{Failure, FailureKind, Usage},
    path::AbsPath,
    tool::{Display, FileKnowledge, ToolError, ToolKind},
};

struct Bed {
    _dir: tempfile::TempDir,
    store: SessionStore,
    home: AbsPath,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let home = AbsPath::new(dir.path().join("home")).unwrap();
    Bed { _dir: dir, store: SessionStore::new(home.clone()), home }
}

impl Bed {
    fn file(&self, id: &SessionId) -> std::path::PathBuf {
        self.home.join("sessions").join(format!("{id}.jsonl")).as_path().to_owned()
    }
}

fn created(id: &SessionId, cwd: &str) -> Entry {
    let cwd = AbsPath::new(cwd).unwrap();
    let (castor, session, roots) = ("0".to_owned(), id.clone(), vec![cwd.clone()]);
    let fact = Fact::Created {
        version: VERSION,
        castor,
        session,
        cwd,
        roots,
        mode: Mode::Default,
        model: "m".to_owned(),
        principal: Principal::Root,
        parent: None,
        child_of: None,
        thread: None,
        user: None,
    };
    Entry { at: 1, fact }
}

fn event(n: usize, kind: EventKind) -> Entry {
    let mut event = AgentEvent::of_main(format!("s-{n}"), StreamId::from("s"), 5, kind);
    if n.is_multiple_of(2) {
        event.meta.insert("code".to_owned(), "X".into());
        (event.agent_id, event.thread_id) = (AgentId::from("b"), Some(ThreadId::from("a.b")));
        event.source = "hooks/a".into();
    }
    Entry { at: 5, fact: Fact::Event { event } }
}

/// One of everything that a log can hold.
fn everything(id: &SessionId) -> Vec<Entry> {
    let path = AbsPath::new("/w/a").unwrap();
    let call = CallId::from("c1");
    let message_id = MessageId::from("m1");
    let locations = vec![Location { path: path.clone(), line: Some(3) }];
    let display = ToolDisplay { title: "t".to_owned(), kind: ToolKind::Edit, locations };
    let diff = Display::Diff { path: path.clone(), before: None, after: "x".into() };
    let content = vec![
        Part::Text { text: "hé".to_owned(), signature: Some("sig".into()) },
        Part::Thought { thought: "t".to_owned(), signature: None },
        Part::Media { mime: "image/png".to_owned(), data: "AA==".into(), uri: None },
        Part::Reference { uri: "file:///a".to_owned(), name: None, mime: None, text: Some("x".to_owned()), data: None },
    ];
    let update = |update| EventKind::ToolUpdate { request_id: call.clone(), update };
    let kinds = vec![
        EventKind::Initialize { session_id: id.clone(), workspace: path.clone() },
        EventKind::SessionUpdate { title: Some("title".to_owned()), model: None, state: Default::default() },
        EventKind::AgentStart {},
        EventKind::Message { role: Speaker::User, message_id: message_id.clone(), content, cuts: Vec::new() },
        EventKind::ToolRequest {
            request_id: call.clone(),
            name: "n".to_owned(),
            args: serde_json::json!({"a": [1, null]}),
            display: display.clone(),
            signature: Some("sig".to_owned()),
        },
        update(ToolProgress::Described { display: display.clone() }),
        update(ToolProgress::Proposed { display: diff.clone() }),
        update(ToolProgress::Started { display: None }),
        update(ToolProgress::Printed { text: "out".to_owned() }),
        update(ToolProgress::Waiting),
        update(ToolProgress::Resumed),
        EventKind::ToolResponse {
            request_id: call.clone(),
            name: "n".to_owned(),
            content: vec![Part::text("r")],
            display: Some(Display::Terminal { text: "x".to_owned(), exit: Some(1) }),
            summary: Some("s".to_owned()),
            error: Some(ToolError::new("k", "m")),
            data: serde_json::json!({"exitCode": 1}),
            seen: Some(Box::new(FileKnowledge {
                path: AbsPath::new("/w/a").unwrap(),
                hash: "00".to_owned(),
                before: None,
                others: Vec::new(),
            })),
        },
        EventKind::Usage {
            model: "m".to_owned(),
            usage: Usage { input: 1, total: 2, ..Usage::default() },
            size: 9,
            purpose: Default::default(),
            cost: None,
            session_cost: None,
        },
        EventKind::Error { status: Status::Internal, message: "m".to_owned(), fatal: true },
        EventKind::Custom { kind: "plan".to_owned(), data: serde_json::json!({}) },
        EventKind::AgentEnd { reason: EndReason::Completed, data: Some(serde_json::json!({"code": "X"})) },
    ];
    let failure = Failure { status: Some(503), ..Failure::new(FailureKind::Status, "busy") };
    let facts = vec![
        Fact::Attempt { model: "m".to_owned(), attempt: 1, tokens: 9, why: "configured".to_owned() },
        Fact::AttemptFailed { failure, abandoned: true, class: "server".to_owned(), decision: "retry".to_owned() },
        Fact::Decision { call: call.clone(), decision: Decision::Ask, rule: "r".to_owned() },
        Fact::Answered { call, answer: Answer::AllowSession },
        Fact::Granted { grant: Grant::Commands { prefixes: vec!["git status".to_owned()] }, lasting: true },
        Fact::Granted { grant: Grant::Edits, lasting: false },
        Fact::Mode { mode: Mode::AutoEdit },
        Fact::Model { model: "n".to_owned(), window: 9 },
    ];
    let mut res = vec![created(id, "/w")];
    res.extend(kinds.into_iter().enumerate().map(|(n, kind)| event(n, kind)));
    res.extend(facts.into_iter().map(|fact| Entry { at: 9, fact }));
    res
}

#[test]
fn everything_comes_back_as_it_was() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let entries = everything(&id);
    let mut log = bed.store.create(&id).unwrap();
    log.append(&entries[..3]).unwrap();
    log.append(&entries[3..]).unwrap();
    drop(log);
    let before = fs::read(bed.file(&id)).unwrap();
    let (actual, _log) = bed.store.open(&id).unwrap();
    assert_eq!(actual, entries);
    assert_eq!(fs::read(bed.file(&id)).unwrap(), before, "loading wrote something");
}

#[test]
fn only_the_owner_may_read() {
    let (bed, id) = (bed(), SessionId::from("a"));
    bed.store.create(&id).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bed.file(&id)), 0o600);
    assert_eq!(mode(bed.file(&id).parent().unwrap()), 0o700);
    assert_eq!(mode(bed.home.as_path()), 0o700);
}

#[test]
fn a_torn_line_is_left_out_and_cut_off_at_the_next_write() {
    let (bed, id) = (bed(), SessionId::from("a"));
    bed.store.create(&id).unwrap().append(&[created(&id, "/w")]).unwrap();
    let whole = fs::read(bed.file(&id)).unwrap();
    fs::write(bed.file(&id), [&whole[..], b"{\"at\":2,\"fa"].concat()).unwrap();
    let (entries, mut log) = bed.store.open(&id).unwrap();
    assert_eq!(entries.len(), 1);
    let kind = EventKind::SessionUpdate { title: None, model: None, state: Default::default() };
    log.append(&[event(1, kind)]).unwrap();
    drop(log);
    assert_eq!(bed.store.open(&id).unwrap().0.len(), 2);
    assert!(fs::read(bed.file(&id)).unwrap().starts_with(&whole));
}

#[test]
fn strange_lines_cost_only_themselves() {
    let (bed, id) = (bed(), SessionId::from("a"));
    bed.store.create(&id).unwrap();
    let newer = r#"{"at":1,"fact":"created","version":99,"castor":"9","session":"a","cwd":"/w","roots":["/w"],"mode":"default","model":"m","more":1}"#;
    let lines = [
        newer,
        "not json",
        "",
        r#"{"at":2,"fact":"from_the_future","x":1}"#,
        r#"{"at":3,"fact":"event","event":{"id":"s-0","streamId":"s","timestamp":1,"type":"hologram","y":2}}"#,
        r#"{"at":4,"fact":"mode","mode":"yolo"}"#,
    ];
    fs::write(bed.file(&id), lines.join("\n") + "\n").unwrap();
    let facts: Vec<Fact> = bed.store.read(&id).unwrap().into_iter().map(|it| it.fact).collect();
    assert_eq!(facts.len(), 4);
    assert_eq!(facts[1], Fact::Unknown);
    assert!(matches!(&facts[2], Fact::Event { event } if event.kind == EventKind::Unknown));
    assert_eq!(facts[3], Fact::Mode { mode: Mode::Yolo });
}

#[test]
fn one_process_holds_a_log() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let mut log = bed.store.create(&id).unwrap();
    log.append(&[created(&id, "/w")]).unwrap();
    let Err(it @ StoreError::Locked { .. }) = bed.store.open(&id) else { panic!("not locked") };
    let who = format!("session a is open in another castor process (process {})", std::process::id());
    assert!(it.to_string().starts_with(&who), "{it}");
    assert_eq!(bed.store.read(&id).unwrap().len(), 1);
    // A handle that is being synced shares the lock, but does not keep it.
    let syncing = log.sync_handle().unwrap();
    drop(log);
    assert!(bed.store.open(&id).is_ok());
    drop(syncing);
    assert_eq!(fs::read_dir(bed.file(&id).parent().unwrap()).unwrap().count(), 1, "the note is left behind");
}

#[test]
fn the_holder_is_named_with_its_client_and_a_stale_note_holds_nothing() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let note = bed.file(&id).with_extension("lock");
    let mut serving = SessionStore::new(bed.home.clone());
    serving.set_client("zed");
    let mut log = serving.create(&id).unwrap();
    log.append(&[created(&id, "/w")]).unwrap();
    let why = bed.store.open(&id).unwrap_err().to_string();
    assert!(why.contains(&format!("(process {} for zed)", std::process::id())), "{why}");
    fs::write(&note, "{\"pid\":").unwrap();
    assert!(bed.store.open(&id).unwrap_err().to_string().contains("another castor process; close"));
    drop(log);
    fs::write(&note, "{\"pid\": 1}").unwrap();
    assert!(bed.store.open(&id).is_ok());
}

#[test]
fn a_log_that_was_removed_underneath_comes_back_whole() {
    let bed = bed();
    let id = SessionId::from("a");
    let mut log = bed.store.create(&id).unwrap();
    let entries = everything(&id);
    let (first, rest) = entries.split_at(3);
    log.append(first).unwrap();
    fs::remove_dir_all(bed.home.join("sessions")).unwrap();
    log.append(rest).unwrap();
    assert_eq!(bed.store.read(&id).unwrap(), entries);
    assert!(matches!(bed.store.open(&id), Err(StoreError::Locked { .. })), "it is held as before");
    assert_eq!(fs::metadata(bed.file(&id)).unwrap().permissions().mode() & 0o777, 0o600);

    fs::remove_file(bed.file(&id)).unwrap();
    fs::write(bed.file(&id), "somebody else's").unwrap();
    let error = log.append(first).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "what took its place is not written over");
    assert_eq!(fs::read_to_string(bed.file(&id)).unwrap(), "somebody else's");
}

#[test]
fn reading_takes_no_right_to_write() {
    let (bed, id) = (bed(), SessionId::from("a"));
    bed.store.create(&id).unwrap().append(&[created(&id, "/w")]).unwrap();
    fs::set_permissions(bed.file(&id), fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(bed.store.read(&id).unwrap().len(), 1);
}

#[test]
fn deleting_takes_everything_of_one_session() {
    let bed = bed();
    let (id, other) = (SessionId::from("a"), SessionId::from("a-b"));
    for id in [&id, &other] {
        bed.store.create(id).unwrap().append(&[created(id, "/w")]).unwrap();
        let scratch = bed.store.scratch_dir(id);
        fs::create_dir_all(scratch.join("deep")).unwrap();
        fs::write(scratch.join("deep/out.txt"), "x").unwrap();
        fs::write(bed.file(id).with_extension("jsonl.bak-1"), "x").unwrap();
    }
    let log = bed.store.open(&id).unwrap().1;
    assert!(matches!(bed.store.delete(&id), Err(StoreError::Locked { .. })));
    drop(log);
    bed.store.delete(&id).unwrap();
    assert!(matches!(bed.store.delete(&id), Err(StoreError::NotFound { .. })));
    assert!(matches!(bed.store.delete(&SessionId::from("../a-b")), Err(StoreError::NotFound { .. })));
    let names = |path: std::path::PathBuf| {
        let mut res: Vec<_> = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name()).collect();
        res.sort();
        res
    };
    assert_eq!(names(bed.file(&other).parent().unwrap().to_owned()), ["a-b.jsonl", "a-b.jsonl.bak-1"]);
    assert_eq!(names(bed.home.join("tmp").as_path().to_owned()), ["a-b"]);
}

/// Seconds since the epoch, for files and folders.
fn set_time(path: &std::path::Path, s: u64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(s);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_sweep_keeps_what_is_young_few_or_open() {
    let bed = bed();
    let make = |id: &str, s: u64| {
        let id = SessionId::from(id);
        bed.store.create(&id).unwrap().append(&[created(&id, "/w")]).unwrap();
        fs::create_dir_all(bed.store.scratch_dir(&id)).unwrap();
        set_time(&bed.file(&id), s);
    };
    for (n, id) in ["a", "b", "c", "d", "open"].into_iter().enumerate() {
        make(id, 100 - 10 * n as u64);
    }
    for (name, s) in [("orphan", 0), ("young-orphan", 95)] {
        let path = bed.home.join("tmp").join(name);
        fs::create_dir_all(&path).unwrap();
        set_time(path.as_path(), s);
    }
    let _log = bed.store.open(&SessionId::from("open")).unwrap().1;
    let keep = |max_age_ms, max_count| SessionRetention { max_age_ms, max_count, min_age_ms: 10_000 };
    let sweep = |it: &SessionRetention| {
        let swept = bed.store.sweep(it, 100_000);
        (swept.sessions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), swept.n_leftovers)
    };
    assert_eq!(sweep(&keep(None, None)), (String::new(), 1));
    assert_eq!(sweep(&keep(Some(25_000), None)), ("d".to_owned(), 0));
    assert_eq!(sweep(&keep(Some(25_000), Some(2))), ("c".to_owned(), 0));
    assert_eq!(sweep(&keep(None, Some(0))), ("a b".to_owned(), 0));
    let left: Vec<String> = bed.store.list(None).unwrap().iter().map(|it| it.id.to_string()).collect();
    assert_eq!(left, ["open"]);
    assert!(bed.home.join("tmp/young-orphan").as_path().is_dir() && bed.home.join("tmp/open").as_path().is_dir());
}

#[test]
fn repair_keeps_a_copy_and_every_line_that_says_something() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let line = |entry: &Entry| serde_json::to_string(entry).unwrap();
    let (first, second) = (line(&created(&id, "/w")), line(&event(1, EventKind::AgentStart {})));
    let newer = r#"{"at":5,"fact":"mode","mode":"telepathy"}"#;
    bed.store.create(&id).unwrap();
    let damaged = format!("{first}\nrubbish\n\n\0\0{second}\n{newer}\n[1]\n{second}");
    fs::write(bed.file(&id), &damaged).unwrap();
    let done = bed.store.repair(&id).unwrap();
    assert_eq!(fs::read_to_string(bed.file(&id)).unwrap(), format!("{first}\n{second}\n{newer}\n{second}\n"));
    let lines: Vec<usize> = done.damage.places.iter().map(|it| it.line).collect();
    assert_eq!((done.n_kept, done.n_unknown, lines), (4, 1, vec![2, 4, 6]));
    assert_eq!(fs::read_to_string(done.backup.unwrap()).unwrap(), damaged);
    assert_eq!(fs::metadata(bed.file(&id)).unwrap().permissions().mode() & 0o777, 0o600);
    let (sound, time) = (fs::read(bed.file(&id)).unwrap(), fs::metadata(bed.file(&id)).unwrap().modified().unwrap());
    let again = bed.store.repair(&id).unwrap();
    assert_eq!((again.backup, again.damage.n), (None, 0));
    assert_eq!(fs::read(bed.file(&id)).unwrap(), sound);
    assert_eq!(fs::metadata(bed.file(&id)).unwrap().modified().unwrap(), time);
    let _log = bed.store.open(&id).unwrap();
    assert!(matches!(bed.store.repair(&id), Err(StoreError::Locked { .. })));
}

#[test]
fn a_lost_first_line_is_made_anew_where_the_rest_tells_it() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let all = everything(&id);
    bed.store.create(&id).unwrap().append(&all[1..]).unwrap();
    let lost_line = bed.store.open(&id).unwrap_err().to_string();
    assert!(lost_line.ends_with("its first line is lost or damaged; run: castor sessions repair a"), "{lost_line}");
    assert!(bed.store.repair(&id).unwrap().rebuilt);
    let (entries, _log) = bed.store.open(&id).unwrap();
    assert_eq!(entries[1..], all[1..]);
    let Fact::Created { cwd, model, .. } = &entries[0].fact else { panic!() };
    assert_eq!((cwd.to_string().as_str(), model.as_str()), ("/w/a", "m"));
    let lost = SessionId::from("lost");
    bed.store.create(&lost).unwrap().append(&all[3..4]).unwrap();
    let why = bed.store.repair(&lost).unwrap_err().to_string();
    assert!(why.contains("in which folder"), "{why}");
}

#[test]
fn unchanged_logs_are_not_read_again() {
    let (bed, id) = (bed(), SessionId::from("a"));
    let mut log = bed.store.create(&id).unwrap();
    log.append(&[created(&id, "/w")]).unwrap();
    let mut cache = ListCache::default();
    let first = bed.store.list_cached(None, &mut cache).unwrap();
    assert_eq!(bed.store.list_cached(None, &mut cache).unwrap(), first);
    let other = AbsPath::new("/v").unwrap();
    assert!(bed.store.list_cached(Some(&other), &mut cache).unwrap().is_empty());
    let said = EventKind::SessionUpdate { title: Some("New".to_owned()), model: None, state: Default::default() };
    log.append(&[event(1, said)]).unwrap();
    assert_eq!(bed.store.list_cached(None, &mut cache).unwrap()[0].title.as_deref(), Some("New"));
    drop(log);
    bed.store.delete(&id).unwrap();
    assert!(bed.store.list_cached(None, &mut cache).unwrap().is_empty());
}

#[test]
fn ids_from_outside_name_no_other_file() {
    let bed = bed();
    for id in ["../x", "a/b", "", ".", "a\0b", "nope", &"x".repeat(200)] {
        assert!(matches!(bed.store.open(&SessionId::from(id)), Err(StoreError::NotFound { .. })), "{id}");
    }
    let empty = SessionId::from("empty");
    bed.store.create(&empty).unwrap();
    assert!(matches!(bed.store.open(&empty), Err(StoreError::NotFound { .. })));
}

#[test]
fn lists_newest_first_and_by_folder() {
    let bed = bed();
    for (n, (id, cwd)) in [("a", "/w"), ("b", "/v"), ("c", "/w")].into_iter().enumerate() {
        let id = SessionId::from(id);
        bed.store.create(&id).unwrap().append(&[created(&id, cwd)]).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(100 - n as u64);
        fs::File::options().append(true).open(bed.file(&id)).unwrap().set_modified(time).unwrap();
    }
    fs::write(bed.file(&SessionId::from("junk")), "junk").unwrap();
    let ids = |cwd: Option<&str>| {
        let cwd = cwd.map(|it| AbsPath::new(it).unwrap());
        bed.store.list(cwd.as_ref()).unwrap().into_iter().map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), ["a", "b", "c"]);
    assert_eq!(ids(Some("/w")), ["a", "c"]);
    assert_eq!(ids(Some("/nowhere")), [""; 0]);
}

#[test]
fn list_shows_the_last_title_and_prompt_flag() {
    let bed = bed();
    let title =
        |text: &str| EventKind::SessionUpdate { title: Some(text.to_owned()), model: None, state: Default::default() };
    let said = |role, text: &str| EventKind::Message {
        role,
        message_id: MessageId::from("m"),
        content: vec![Part::text(text)],
        cuts: Vec::new(),
    };
    let logs = [
        ("a", vec![said(Speaker::User, "x"), title("One"), title("Two")]),
        ("b", vec![said(Speaker::Agent, "\"user\" \"session_update\"")]),
        ("c", vec![said(Speaker::User, &"x".repeat(70_000)), title("Too far")]),
        ("e", vec![said(Speaker::User, "x"), title("One"), said(Speaker::User, "y"), title("Two")]),
        ("f", vec![said(Speaker::User, "x"), title("One")]),
    ];
    for (id, kinds) in logs {
        let id = SessionId::from(id);
        let events: Vec<Entry> = kinds.into_iter().enumerate().map(|(n, kind)| event(n, kind)).collect();
        let mut log = bed.store.create(&id).unwrap();
        log.append(&[created(&id, "/w")]).unwrap();
        log.append(&events).unwrap();
        if ["e", "f"].contains(&id.as_str()) {
            log.append(&[Entry { at: 9, fact: Fact::Rewound { to: MessageId::from("m") } }]).unwrap();
        }
    }
    let torn = serde_json::to_string(&created(&SessionId::from("d"), "/w")).unwrap();
    fs::write(bed.file(&SessionId::from("d")), torn).unwrap();
    let mut shown: Vec<String> =
        bed.store.list(None).unwrap().iter().map(|it| format!("{} {:?} {}", it.id, it.title, it.has_prompts)).collect();
    shown.sort();
    assert_eq!(shown, ["a Some(\"Two\") true", "b None false", "c None true", "e Some(\"One\") true", "f None false"]);
}

#[test]
fn pipe_is_not_listed_as_a_log() {
    let bed = bed();
    let id = SessionId::from("a");
    bed.store.create(&id).unwrap();
    let fifo = bed.file(&SessionId::from("pipe"));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(bed.store.list(None).unwrap().is_empty());
    assert!(matches!(bed.store.read(&SessionId::from("pipe")), Err(StoreError::Io { .. })));
}

#[test]
fn a_home_that_cannot_be_made_is_no_missing_session() {
    let store = SessionStore::new(AbsPath::new("/proc/nowhere").unwrap());
    assert!(matches!(store.create(&SessionId::from("a")), Err(StoreError::Io { .. })));
}

/// A folder that is not there has no sessions; one that cannot be read has nobody knows how many.
#[test]
fn folder_of_sessions_that_cannot_be_read_is_an_error() {
    let bed = bed();
    assert!(bed.store.list(None).unwrap().is_empty());
    let folder = bed.file(&SessionId::from("a")).parent().unwrap().to_owned();
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "").unwrap();
    let why = bed.store.list(None).unwrap_err().to_string();
    assert!(why.starts_with("the sessions in /") && why.contains("Not a directory"), "{why}");
}
