//! Tests of reading: all that conversations and recorded agents say is read, and what is broken costs itself alone.

use std::{fs, path::Path};

use serde_json::{Value, json, value::RawValue};

use super::{
    Aside, CallStatus, ClientEvent, MaybeUndefined, PermissionQuestion, PromptAnswer, SessionEvent, Voice, read_value,
};

/// Extensions of others that no client of castor's asks for.
const FOREIGN_META: &[&str] = &["jetbrains", "claudeCode", "_claude/model", "_claude/origin"];

/// The update as it would be told again, without its kind.
fn told_again(event: &ClientEvent) -> Value {
    match event {
        ClientEvent::Chunk(_, it) => json!(it),
        ClientEvent::Message(_, it) => match &it.content {
            MaybeUndefined::Undefined => json!({"messageId": it.id}),
            _ => json!(it),
        },
        ClientEvent::Call(it) => json!(it),
        ClientEvent::CallPart(it) => json!(it),
        ClientEvent::Terminal(it) => json!(it),
        ClientEvent::TerminalOutput(it) => json!(it),
        ClientEvent::Plan(it) => json!({"plan": it, "entries": it.entries, "planId": it.id}),
        ClientEvent::Usage(it) => json!(it),
        ClientEvent::Mode(it) => json!({"currentModeId": it}),
        ClientEvent::Options(it) => {
            let option = |it| {
                let mut res = json!(it);
                res["configId"] = res["id"].clone();
                res
            };
            json!({"configOptions": it.iter().map(option).collect::<Vec<_>>()})
        }
        ClientEvent::Commands(it) => json!({"availableCommands": it}),
        ClientEvent::Info(it) => json!(it),
        ClientEvent::Notice(it) => json!(it),
        ClientEvent::Subagent(it) => json!(it),
        ClientEvent::State(it) => json!(it),
        ClientEvent::Aside(it) => match &**it {
            Aside::Compaction(it) => json!(it),
            Aside::CompactionChunk(it) => json!(it),
            Aside::Exchange(it) => json!(it),
            Aside::ExchangeChunk(it) => json!(it),
            Aside::Task(it) => json!(it),
            Aside::Quota(it) => it.clone(),
        },
        ClientEvent::Unknown(_) => Value::Null,
    }
}

/// Whether a conversation leaves open what stands there.
fn is_open(it: &Value) -> bool {
    it.as_str().is_some_and(|it| it.contains('$'))
}

/// What `told` lacks of `said`, by its places.
fn missing(place: &str, said: &Value, told: &Value, out: &mut Vec<String>) {
    match (said, told) {
        (said, _) if is_open(said) => (),
        (Value::Null, _) => (),
        (Value::Object(members), _) => {
            for (key, it) in members.iter().filter(|it| *it.0 != "$MORE" && !FOREIGN_META.contains(&it.0.as_str())) {
                missing(&format!("{place}/{key}"), it, told.get(key).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(items), Value::Array(others))
            if items.iter().filter(|it| !is_open(it)).count() == others.len() =>
        {
            let items = items.iter().filter(|it| !is_open(it));
            items.zip(others).for_each(|(it, other)| missing(&format!("{place}/-"), it, other, out));
        }
        (said, told) if said == told || said.as_f64().is_some_and(|it| told.as_f64() == Some(it)) => (),
        _ => out.push(format!("{place}: {said} became {told}")),
    }
}

/// What is lost of an update.
fn lost(update: &Value) -> Vec<String> {
    let event = ClientEvent::read(update);
    let mut said = update.clone();
    let kind = said.as_object_mut().unwrap().remove("sessionUpdate").unwrap_or_default();
    let mut res = Vec::new();
    match event {
        ClientEvent::Unknown(_) => res.push(format!("unknown: {update}")),
        event => missing(kind.as_str().unwrap(), &said, &told_again(&event), &mut res),
    }
    res
}

/// All updates in a value, wherever they stand.
fn updates(value: &Value, out: &mut Vec<Value>) {
    if value.get("sessionUpdate").is_some() {
        out.push(value.clone());
    }
    match value {
        Value::Object(members) => members.values().for_each(|it| updates(it, out)),
        Value::Array(items) => items.iter().for_each(|it| updates(it, out)),
        _ => (),
    }
}

/// Messages of a folder's files: each line from its first brace.
#[allow(clippy::disallowed_methods)]
fn messages(folder: &Path, extension: &str) -> Vec<Value> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == extension));
    let texts: Vec<String> = files.map(|it| fs::read_to_string(it).unwrap().replace("$WS", "/w")).collect();
    let lines = texts.iter().flat_map(|it| it.lines()).filter_map(|it| Some(&it[it.find('{')?..]));
    lines.filter_map(|it| serde_json::from_str(it).ok()).collect()
}

fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/data")
}

#[test]
fn everything_that_conversations_show_is_read() {
    let mut all = Vec::new();
    messages(&data(), "txt").iter().for_each(|it| updates(it, &mut all));
    // A value that stands for any other is none that could be read.
    all.retain(|it| !it.to_string().contains("\"$ANY\"") && it.get("$MORE").is_none());
    assert!(all.len() > 4_000, "{}", all.len());
    let lost: Vec<String> = all.iter().flat_map(lost).collect();
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// Whole recordings are read where they are at hand.
#[test]
fn everything_that_other_agents_say_is_read() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("../shared/bench/transcripts");
    for folder in [Some(data().join("transcripts")), recordings.is_dir().then_some(recordings)].into_iter().flatten() {
        let mut all = Vec::new();
        messages(&folder, "jsonl").iter().for_each(|it| updates(it, &mut all));
        assert!(all.len() > 20, "{}: {}", folder.display(), all.len());
        let lost: Vec<String> = all.iter().flat_map(lost).collect();
        assert!(lost.is_empty(), "{}", lost.join("\n"));
    }
}

#[test]
fn a_broken_field_costs_that_field() {
    let call = |update: Value| match ClientEvent::read(&update) {
        ClientEvent::Call(it) => *it,
        other => panic!("{other:?}"),
    };
    let it = call(json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": 7, "kind": "weird", "status": "failed",
        "locations": [{"path": "/a"}, {"line": 1}, "x"], "_meta": {"castor": {"unasked": true, "reported": "no"}},
        "content": [
            {"type": "content", "content": {"type": "text", "text": "why"}},
            {"type": "content", "content": {"type": "hologram"}}, {"type": "diff", "path": 1, "newText": "n"}, 5,
        ],
    }));
    assert!(it.begins && it.title.is_none() && it.kind.is_none() && it.is_unasked());
    assert_eq!((it.status, it.locations.unwrap().len()), (Some(CallStatus::Failed), 1));
    let content = it.content.unwrap();
    assert_eq!(content[0].text(), Some("why"));
    assert!(content.iter().filter(|it| it.text().is_some()).count() == 1, "{content:?}");
    let it = call(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": "x", "title": "t"}));
    assert!(!it.begins && it.content.is_none() && it.title.as_deref() == Some("t"));
}

/// Every member of everything that castor says, replaced by what it cannot be: the others stay.
#[test]
fn no_broken_member_takes_another_one_with_it() {
    let mut all = Vec::new();
    messages(&data(), "txt").iter().for_each(|it| updates(it, &mut all));
    let all: Vec<Value> = all.into_iter().filter(|it| !it.to_string().contains('$')).take(1_500).collect();
    for update in &all {
        let keys = update.as_object().unwrap().keys().filter(|it| !NEEDED.contains(&it.as_str()));
        for key in keys {
            for junk in [json!(true), json!(-1), json!([[0]]), json!({"x": {}}), json!("?")] {
                let mut broken = update.clone();
                broken[key] = junk;
                let ClientEvent::Unknown(_) = ClientEvent::read(&broken) else {
                    let mut rest = update.clone();
                    rest.as_object_mut().unwrap().shift_remove(key);
                    let mut res = Vec::new();
                    rest.as_object_mut().unwrap().shift_remove("sessionUpdate");
                    missing("", &rest, &told_again(&ClientEvent::read(&broken)), &mut res);
                    assert!(res.is_empty(), "{key} broken in {update}: {res:?}");
                    continue;
                };
                panic!("{key} broken in {update}");
            }
        }
    }
}

/// Members without which an update says nothing.
const NEEDED: &[&str] = &[
    "sessionUpdate",
    "toolCallId",
    "plan",
    "planId",
    "currentModeId",
    "configOptions",
    "compactionId",
    "status",
    "terminalId",
    "data",
    "pools",
    "updatedAt",
];

#[test]
fn what_is_unknown_is_one_variant() {
    for update in [json!({"sessionUpdate": "news"}), json!({}), json!(3), json!({"sessionUpdate": "tool_call"})] {
        assert!(matches!(ClientEvent::read(&update), ClientEvent::Unknown(_)), "{update}");
    }
    let raw = |it: &str| RawValue::from_string(it.to_owned()).unwrap();
    let broken = SessionEvent::read(&raw(r#"{"sessionId":"s"}"#));
    assert_eq!(broken.event, ClientEvent::Unknown(String::new()));
    let said = SessionEvent::read(&raw(
        r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}},
            "_meta":{"castor":{"history":true,"blocks":2,"by":"x"}}}"#,
    ));
    let ClientEvent::Chunk(Voice::Answer, chunk) = &said.event else { panic!("{said:?}") };
    assert_eq!((said.session.as_str(), chunk.text()), ("s", Some("a")));
    assert_eq!((said.meta.castor.history, said.meta.castor.blocks), (true, Some(2)));
}

#[test]
fn messages_that_do_not_count_are_named() {
    let meta = json!({"castor": {"discards": ["m1", "m2"]}});
    for update in [
        json!({"sessionUpdate": "notice", "title": "t", "_meta": meta}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "t"}, "_meta": meta}),
    ] {
        assert_eq!(ClientEvent::read(&update).discarded(), ["m1", "m2"], "{update}");
    }
    let gone = json!({"sessionUpdate": "agent_message", "messageId": "m3", "content": null});
    assert_eq!(ClientEvent::read(&gone).discarded(), ["m3"]);
}

#[test]
fn answers_and_questions_are_read() {
    let answer: PromptAnswer = read_value(json!({
        "stopReason": "max_tokens", "usage": {"inputTokens": 3, "outputTokens": "many"},
        "_meta": {"castor": {"cost": {"amount": 0.00455, "currency": "USD"}, "stop": "outputLimit", "stats": 5}, "x": 1},
    }))
    .unwrap();
    assert_eq!((answer.stop_reason(), answer.cost().unwrap().amount), ("max_tokens", 0.00455));
    assert_eq!((answer.usage.unwrap().input_tokens, answer.meta.unwrap().castor.stats), (3, None));
    let asked: PermissionQuestion = read_value(json!({
        "sessionId": "s", "toolCall": {"title": "t", "kind": "edit"}, "options": [{"optionId": "y", "kind": "allow_once"}, 3],
        "_meta": {"castor": {"agent": "a"}},
    }))
    .unwrap();
    assert_eq!((asked.options.len(), asked.meta.castor.agent.as_deref()), (1, Some("a")));
    assert_eq!(asked.tool_call.unwrap().title.as_deref(), Some("t"));
}
