//! Logs on a real disk: what survives, what is refused, what is left out.
#![allow(clippy::disallowed_methods)]

use std::{fs, os::unix::fs::PermissionsExt};

use super::{Store, StoreError};
use crate::base::{
    content::Part,
    event::*,
    ids::{CallId, MessageId, SessionId, StreamId},
    log::*,
    model::{Failure, FailureKind, Usage},
    path::AbsPath,
    tool::{Display, ToolError, ToolKind},
};

struct Bed {
    _dir: tempfile::TempDir,
    store: Store,
    home: AbsPath,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let home = AbsPath::new(dir.path().join("home")).unwrap();
    Bed { _dir: dir, store: Store::new(home.clone()), home }
}

impl Bed {
    fn file(&self, id: &SessionId) -> std::path::PathBuf {
        self.home.join("sessions").join(format!("{id}.jsonl")).as_path().to_owned()
    }
}

fn created(id: &SessionId, cwd: &str) -> Entry {
    let cwd = AbsPath::new(cwd).unwrap();
    let (castor, session, roots) = ("0".to_owned(), id.clone(), vec![cwd.clone()]);
    let fact =
        Fact::Created { version: VERSION, castor, session, cwd, roots, mode: Mode::Default, model: "m".to_owned() };
    Entry { at: 1, fact }
}

fn event(n: usize, kind: EventKind) -> Entry {
    let mut meta = serde_json::Map::new();
    if n.is_multiple_of(2) {
        meta.insert("code".to_owned(), "X".into());
    }
    let event = AgentEvent { id: format!("s-{n}"), stream_id: StreamId::from("s"), timestamp: 5, kind, meta };
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
        EventKind::Initialize { session_id: id.clone(), workspace: path.clone(), agent_id: "castor".to_owned() },
        EventKind::SessionUpdate { title: Some("title".to_owned()), model: None },
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
        EventKind::ToolResponse {
            request_id: call.clone(),
            name: "n".to_owned(),
            content: vec![Part::text("r")],
            display: Some(Display::Terminal { text: "x".to_owned(), exit: Some(1) }),
            summary: Some("s".to_owned()),
            error: Some(ToolError::new("k", "m")),
            data: serde_json::json!({"exitCode": 1}),
        },
        EventKind::Usage { model: "m".to_owned(), usage: Usage { input: 1, total: 2, ..Usage::default() }, size: 9 },
        EventKind::Error { status: Status::Internal, message: "m".to_owned(), fatal: true },
        EventKind::Custom { kind: "plan".to_owned(), data: serde_json::json!({}) },
        EventKind::AgentEnd { reason: EndReason::Completed },
    ];
    let failure = Failure { status: Some(503), ..Failure::new(FailureKind::Status, "busy") };
    let facts = vec![
        Fact::Attempt { model: "m".to_owned(), attempt: 1 },
        Fact::AttemptFailed { failure, abandoned: true },
        Fact::Decision { call: call.clone(), decision: Decision::Ask, rule: "r".to_owned() },
        Fact::Answered { call, answer: Answer::AllowSession },
        Fact::Granted { grant: Grant::Commands { prefixes: vec!["git status".to_owned()] } },
        Fact::Granted { grant: Grant::Edits },
        Fact::Mode { mode: Mode::AutoEdit },
        Fact::Model { model: "n".to_owned() },
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
    log.append(&[event(1, EventKind::AgentStart {})]).unwrap();
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
    assert!(matches!(bed.store.open(&id), Err(StoreError::Locked { .. })));
    assert_eq!(bed.store.read(&id).unwrap().len(), 1);
    drop(log);
    assert!(bed.store.open(&id).is_ok());
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
        bed.store.list(cwd.as_ref()).into_iter().map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), ["a", "b", "c"]);
    assert_eq!(ids(Some("/w")), ["a", "c"]);
    assert_eq!(ids(Some("/nowhere")), [""; 0]);
}

#[test]
fn the_list_says_the_last_title_and_whether_anything_was_asked() {
    let bed = bed();
    let title = |text: &str| EventKind::SessionUpdate { title: Some(text.to_owned()), model: None };
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
    ];
    for (id, kinds) in logs {
        let id = SessionId::from(id);
        let events: Vec<Entry> = kinds.into_iter().enumerate().map(|(n, kind)| event(n, kind)).collect();
        let mut log = bed.store.create(&id).unwrap();
        log.append(&[created(&id, "/w")]).unwrap();
        log.append(&events).unwrap();
    }
    let torn = serde_json::to_string(&created(&SessionId::from("d"), "/w")).unwrap();
    fs::write(bed.file(&SessionId::from("d")), torn).unwrap();
    let mut shown: Vec<String> =
        bed.store.list(None).iter().map(|it| format!("{} {:?} {}", it.id, it.title, it.has_prompts)).collect();
    shown.sort();
    assert_eq!(shown, ["a Some(\"Two\") true", "b None false", "c None true"]);
}
