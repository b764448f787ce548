//! Rewinds of conversations told in words: what the model sees afterwards, and what stays.

use serde_json::{Value, json};

use super::Record;
use castor_base::{
    content::{Part, joined_text},
    history::{Role, TurnPart},
    ids::{CallId, MessageId},
    log::{Entry, Mode},
    path::AbsPath,
    rewind,
};

fn event(kind: &Value) -> Value {
    let mut event = json!({"id": "s-0", "streamId": "s", "timestamp": 0});
    event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
    json!({"fact": "event", "event": event})
}

fn message(role: &str, id: &str) -> Value {
    event(&json!({"type": "message", "role": role, "messageId": id, "content": [{"type": "text", "text": id}]}))
}

/// Facts by a word: `u1` the user's message of that id, `a1` an answer, `c1` a call and `r1` its result, `<1` a rewind to
/// `u1`.
fn facts(word: &str) -> Vec<Value> {
    let (kind, name) = word.split_at(1);
    let display = json!({"title": "t", "kind": "read"});
    let seen = json!({"path": format!("/w/{name}"), "hash": format!("h{name}")});
    match (kind, word) {
        (_, "start") => vec![event(&json!({"type": "agent_start"}))],
        (_, "clear") => vec![json!({"fact": "cleared"})],
        (_, "yolo") => vec![json!({"fact": "mode", "mode": "yolo"})],
        (_, "grant") => vec![json!({"fact": "granted", "grant": {"grant": "edits"}})],
        (_, "abandon") => vec![json!({"fact": "attempt_failed", "abandoned": true,
            "failure": {"kind": "stream", "message": "m"}})],
        (_, "retract") => vec![json!({"fact": "retracted"})],
        ("u", _) => vec![message("user", word)],
        ("a", _) => vec![
            json!({"fact": "attempt", "model": "m", "attempt": 1}),
            message("agent", word),
            event(&json!({"type": "usage", "model": "m", "size": 100, "input": 1, "output": 1,
                "total": name.parse::<u64>().unwrap()})),
        ],
        ("c", _) => vec![event(&json!({"type": "tool_request", "requestId": word, "name": "x", "args": {},
            "display": display}))],
        ("r", _) => vec![event(&json!({"type": "tool_response", "requestId": format!("c{name}"), "name": "x",
            "content": [{"type": "text", "text": word}], "seen": seen}))],
        ("m", _) => vec![json!({"fact": "masked", "masks":
            [{"call": format!("c{name}"), "path": "/s", "text": format!("less of r{name}")}]})],
        ("z", _) => vec![json!({"fact": "compressed", "turns": name.parse::<u64>().unwrap(), "summary": word,
            "tokens": 9})],
        ("t", _) => vec![event(&json!({"type": "session_update", "title": word}))],
        ("s", _) => {
            let mut it = message("user", word);
            it["event"]["_meta"] = json!({"steering": true});
            vec![it]
        }
        ("<", _) => vec![json!({"fact": "rewound", "to": format!("u{name}")})],
        _ => panic!("{word}"),
    }
}

fn log(words: &str) -> Vec<Entry> {
    let created = json!({"fact": "created", "version": 1, "castor": "0", "session": "s", "cwd": "/w", "roots": ["/w"],
        "mode": "default", "model": "m"});
    let all = std::iter::once(created).chain(words.split(' ').flat_map(facts));
    let at = |mut it: Value| {
        it["at"] = json!(1);
        serde_json::from_value(it).unwrap()
    };
    all.map(at).collect()
}

/// What the model sees, a word for each turn's parts.
fn seen_by_model(record: &Record) -> String {
    let word = |it: &TurnPart| match it {
        TurnPart::Content(Part::Text { text, .. }) if text.starts_with("User steering") => "steering".to_owned(),
        TurnPart::Content(it) => it.as_text().unwrap_or("?").to_owned(),
        TurnPart::Call { call, .. } => call.id.to_string(),
        TurnPart::Result(it) if it.is_error => format!("broken {}", it.id),
        TurnPart::Result(it) => joined_text(&it.content),
    };
    let turn = |role: Role, parts: &[TurnPart]| {
        let words: Vec<String> = parts.iter().map(word).collect();
        format!("{role:?}[{}]", words.join(" "))
    };
    record.turns().iter().map(|it| turn(it.role(), it.parts())).collect::<Vec<_>>().join(" ")
}

/// The same by replay as by a session that lives and has its log.
fn check(words: &str, expected: &str) -> Record {
    let log = log(words);
    let replayed = Record::replay(&log).unwrap();
    let mut live = Record::begin(&log[0]).unwrap();
    for (at, entry) in log.iter().enumerate().skip(1) {
        let back = rewind::rewinds(&log[..=at]).last().filter(|it| it.at == at).map(|it| it.from);
        let to = back.and_then(|it| rewind::user_message(&log[it]));
        let before = to.map(|it| Record::rewind_point(&log[..at], it).unwrap());
        live.apply(entry);
        before.into_iter().for_each(|it| live.apply_rewind(it));
    }
    assert_eq!(seen_by_model(&replayed), expected, "{words}");
    assert_eq!(replayed, live, "{words}");
    replayed
}

#[test]
fn rewind_drops_the_message_and_all_after_it() {
    check("start u1 a1 start u2 a2 <2", "User[u1] Model[a1]");
    check("start u1 a1 start u2 a2 start u3 a3 <2 start u4", "User[u1] Model[a1] User[u4]");
    check("start u1 a1 start u2 a2 <1", "");
    check("start u1 a1 start u2 a2 <2 <1 start u3", "User[u3]");
    check("start u1 a1 start u2 a2 <2 start u3 a3 <3 start u4 a4 <4", "User[u1] Model[a1]");
    check("start u1 a1 <9", "User[u1] Model[a1]");
    check("start u1 a1 start u2 <2 <2", "User[u1] Model[a1]");
}

#[test]
fn rewind_restores_summarized_turns() {
    let turns = "start u1 a1 start u2 a2 start u3";
    check(&format!("{turns} z4 a3"), "User[z4] Model[Got it. Thanks for the additional context!] User[u3] Model[a3]");
    check(&format!("{turns} z4 a3 <3"), "User[u1] Model[a1] User[u2] Model[a2]");
    check(&format!("{turns} z4 a3 <2"), "User[u1] Model[a1]");
    check(&format!("{turns} z4 a3 z3 start u4 <2 start u5"), "User[u1] Model[a1] User[u5]");
    // A summary from before stays.
    let again = check(
        &format!("{turns} z4 a3 start u4 a4 z4 <4"),
        "User[z4] Model[Got it. Thanks for the additional context!] User[u3] Model[a3]",
    );
    assert_eq!(again.compressed_at(), Some(9));
    assert_eq!(check(&format!("{turns} z4 a3 <2"), "User[u1] Model[a1]").compressed_at(), None);
}

#[test]
fn masked_results_come_back_if_they_were_masked_later() {
    let call = "start u1 c1 r1 a1";
    check(&format!("{call} start u2 m1 a2"), "User[u1] Model[c1] Tool[less of r1] Model[a1] User[u2] Model[a2]");
    check(&format!("{call} start u2 m1 a2 <2"), "User[u1] Model[c1] Tool[r1] Model[a1]");
    check(&format!("{call} m1 start u2 a2 <2"), "User[u1] Model[c1] Tool[less of r1] Model[a1]");
}

#[test]
fn a_cleared_conversation_comes_back() {
    check("start u1 a1 start u2 clear start u3 a3 <3", "");
    check("start u1 a1 start u2 clear start u3 a3 <2", "User[u1] Model[a1]");
    check("start u1 a1 clear start u2 a2 <2 start u3", "User[u3]");
}

#[test]
fn broken_answers_and_calls_stay_as_they_were() {
    check("start u1 a1 start u2 a2 abandon a3 <2 start u3", "User[u1] Model[a1] User[u3]");
    check("start u1 a2 abandon a1 start u2 <2", "User[u1] Model[a1]");
    check("start u1 a1 start u2 retract <2", "User[u1] Model[a1]");
    let open = "User[u1] Model[a1 c1] Tool[broken c1]";
    check("start u1 a1 c1 start u2 a2 <2", open);
    check("start u1 a1 start u2 a2 c1 <2 start u3", "User[u1] Model[a1] User[u3]");
    let said = "start u1 c1 r1 s1 a1 start u2 a2 <2";
    check(said, "User[u1] Model[c1] Tool[r1] User[steering] Model[a1]");
}

#[test]
fn rewind_keeps_mode_and_grants() {
    let record = check("start u1 a5 start u2 t2 yolo grant c2 r2 a7 <2", "User[u1] Model[a5]");
    let path = |it: &str| AbsPath::new("/w").unwrap().join(it);
    assert_eq!((record.mode, record.grants.len(), record.title.as_deref()), (Mode::Yolo, 1, None));
    assert!(record.knows_call(&CallId::from("c2")), "ids of calls stay unique");
    assert_eq!(record.seen_hash(&path("2")), None, "what it read later it does not know any more");
    assert_eq!((record.spent.total().n_calls, record.spent.last.map(|it| it.0.total)), (2, Some(5)));
    let record = check("start u1 t1 c1 r1 a1 start u2 c1 r1 <2", "User[u1] Model[c1] Tool[r1] Model[a1]");
    assert_eq!((record.seen_hash(&path("1")), record.title.as_deref()), (Some("h1"), Some("t1")));
    assert_eq!(check("start u1 a1 <1", "").spent.last.map(|it| it.0.total), Some(0), "of a window that is known");
}

#[test]
fn rewind_accepts_only_existing_prompts() {
    let log = log("start u1 a1 start u2 <2");
    let knows = |it: &str| Record::rewind_point(&log, &MessageId::from(it)).is_some();
    assert_eq!(["u1", "u2", "a1", "u3"].map(knows), [true, false, false, false]);
}
