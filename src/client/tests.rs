//! Tests of the fold: what is told comes to entries, calls, counts and sub-agents.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json, value::RawValue};

use super::{
    CallCounts, Conversation,
    agents::{AgentChange, AgentState},
    entries::Entry,
};
use castor_base::{
    ids::SessionId,
    log::{Entry as LogEntry, Mode, Tuning},
    tool::ToolKind,
};
use castor_wire::acp::{
    client::{CallUpdate, ClientEvent, SessionEvent, read_value},
    initialize::{AcpVersion, ClientFeatures},
    options::ChosenOptions,
    updates::{ClientProfile, SessionView},
};

/// A conversation, told update by update.
#[derive(Default)]
struct Story {
    talk: Conversation,
    now: Duration,
}

impl Story {
    fn tell(&mut self, update: Value) -> super::Change {
        self.tell_in("s1", update)
    }

    fn tell_in(&mut self, session: &str, update: Value) -> super::Change {
        self.now += Duration::from_secs(1);
        self.talk.update(session, &ClientEvent::read(&update), self.now)
    }

    fn call(&mut self, kind: &str, id: &str, fields: Value) -> super::Change {
        let mut update = json!({"sessionUpdate": kind, "toolCallId": id});
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.tell(update)
    }

    fn say(&mut self, kind: &str, message: Option<&str>, text: &str) {
        self.tell(json!({"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": text}}));
    }

    /// The entries in a few words.
    fn shown(&self) -> Vec<String> {
        let entry = |it: &Entry| match it {
            Entry::User(it) => format!("user {}", it.text),
            Entry::Answer(it) if it.is_discarded => format!("gone {}", it.text),
            Entry::Answer(it) => format!("answer {}", it.text),
            Entry::Thought(it) => format!("thought {}", it.text),
            Entry::Call(it) => format!("call {} {:?}", it.title(), it.status.unwrap()),
            Entry::Agent(it) => format!("agent {it}"),
            Entry::Plan(it) => format!("plan {}", it.entries.len()),
            Entry::Question(it) => format!("question {it}"),
            Entry::Notice(it) => format!("notice {}", it.title),
            Entry::End(it) => format!("end {}", it.stop_reason()),
        };
        self.talk.entries().iter().map(entry).collect()
    }
}

const ANSWER: &str = "agent_message_chunk";

#[test]
fn entries_stand_in_the_order_of_their_beginnings() {
    let mut it = Story::default();
    it.say("user_message_chunk", Some("m1"), "go");
    it.say("agent_thought_chunk", None, "**Look**");
    it.say("agent_thought_chunk", None, " first");
    it.call("tool_call", "c1", json!({"title": "ls", "status": "pending"}));
    it.say(ANSWER, Some("m2"), "It ");
    // More of a call is no new entry, and parts nothing.
    it.call("tool_call_update", "c1", json!({"status": "completed"}));
    it.say(ANSWER, Some("m2"), "is");
    it.tell(json!({"sessionUpdate": "plan", "entries": [{"content": "a"}]}));
    it.say(ANSWER, Some("m2"), "there");
    it.tell(json!({"sessionUpdate": "plan", "entries": [{"content": "a"}, {"content": "b"}]}));
    it.say(ANSWER, Some("m3"), "other");
    it.tell(json!({"sessionUpdate": "notice", "title": "careful"}));
    it.tell(json!({"sessionUpdate": "subagent_update", "sessionId": "s2", "title": "helper"}));
    it.talk.note_question("c1", it.now);
    it.talk.note_answer(read_value(json!({"stopReason": "end_turn"})).unwrap());
    let expected = [
        "user go",
        "thought **Look** first",
        "call ls Completed",
        "answer It is",
        "plan 2",
        "answer there",
        "answer other",
        "notice careful",
        "agent s2",
        "question c1",
        "end end_turn",
    ];
    assert_eq!(it.shown(), expected);
    assert_eq!(it.talk.last_thought().unwrap().heading(), "Look first");
}

#[test]
fn a_message_that_broke_off_does_not_count() {
    let mut it = Story::default();
    it.say(ANSWER, Some("m1"), "half");
    it.tell(json!({"sessionUpdate": "notice", "title": "again", "_meta": {"castor": {"discards": ["m1"]}}}));
    it.say(ANSWER, Some("m2"), "whole");
    assert_eq!(it.shown(), ["gone half", "notice again", "answer whole"]);
}

#[test]
fn both_versions_come_to_the_same() {
    let text = |it: &str| json!([{"type": "text", "text": it}]);
    let output = json!([{"type": "terminal", "terminalId": "c1"}]);
    let mut old = Story::default();
    old.say("user_message_chunk", Some("m1"), "go");
    old.say(ANSWER, Some("m2"), "do");
    old.say(ANSWER, Some("m2"), "ne");
    old.call("tool_call", "c1", json!({"title": "ls", "kind": "execute", "content": output, "status": "in_progress"}));
    let piece = json!({"terminal_output": {"terminal_id": "c1", "data": "one\n"}});
    old.call("tool_call_update", "c1", json!({"_meta": piece}));
    old.call("tool_call_update", "c1", json!({"status": "completed"}));
    let mut new = Story::default();
    new.tell(json!({"sessionUpdate": "user_message", "messageId": "m1", "content": text("go")}));
    new.tell(json!({"sessionUpdate": "agent_message", "messageId": "m2", "content": text("lost")}));
    new.tell(json!({"sessionUpdate": "agent_message", "messageId": "m2", "content": text("done")}));
    new.call(
        "tool_call_update",
        "c1",
        json!({"title": "ls", "kind": "execute", "content": output, "status": "in_progress"}),
    );
    new.tell(json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "c1", "data": "b25lCg=="}));
    new.call("tool_call_update", "c1", json!({"status": "completed"}));
    assert_eq!(new.shown(), old.shown());
    assert_eq!(old.talk.main_call("c1").unwrap().pieces, "one\n");
    assert_eq!(new.talk.main_call("c1").unwrap().pieces, "one\n");
    new.tell(json!({"sessionUpdate": "agent_message", "messageId": "m2", "content": null}));
    assert_eq!(new.shown()[1], "gone done");
}

#[test]
fn each_call_counts_once() {
    let mut it = Story::default();
    it.call("tool_call", "a", json!({"title": "ls", "status": "in_progress"}));
    assert!(it.call("tool_call_update", "a", json!({"status": "completed"})).call.unwrap().has_ended);
    assert!(!it.call("tool_call_update", "a", json!({"status": "failed"})).call.unwrap().has_ended);
    let meta = json!({"castor": {"unasked": true}});
    it.call("tool_call", "l", json!({"title": "denied", "status": "failed", "_meta": meta}));
    let words = json!([{"type": "content", "content": {"type": "text", "text": "nobody can be asked"}}]);
    it.call("tool_call", "w", json!({"title": "words", "status": "failed", "content": words}));
    it.tell(json!({"sessionUpdate": "tool_call", "title": "no id"}));
    it.tell(json!({"sessionUpdate": "subagent_update", "sessionId": "s2"}));
    it.tell_in("s2", json!({"sessionUpdate": "tool_call", "toolCallId": "a", "status": "completed"}));
    assert_eq!(it.talk.counts(), CallCounts { total: 4, completed: 2, failed: 2, unasked: 1 });
}

#[test]
fn an_agent_may_count_its_calls_anew() {
    let mut it = Story::default();
    for title in ["one", "two"] {
        assert!(it.call("tool_call", "0", json!({"title": title, "status": "pending"})).call.unwrap().is_new);
        it.call("tool_call_update", "0", json!({"status": "completed"}));
    }
    assert_eq!(it.shown(), ["call one Completed", "call two Completed"]);
    assert_eq!(it.talk.main_call("0").unwrap().title(), "two");
}

#[test]
fn a_question_adds_to_what_is_known() {
    let mut it = Story::default();
    it.call("tool_call", "a", json!({"title": "old", "kind": "edit", "status": "pending"}));
    let told: CallUpdate = read_value(json!({"toolCallId": "a", "title": "new", "content": null})).unwrap();
    let asked = it.talk.asked_call("s1", &told);
    assert_eq!((asked.title(), asked.kind), ("new", Some(ToolKind::Edit)));
    assert_eq!(it.talk.main_call("a").unwrap().title(), "old", "a question changes nothing");
}

#[test]
fn time_in_which_the_user_was_asked_is_not_the_calls() {
    let mut it = Story::default();
    it.call("tool_call", "a", json!({"title": "old", "status": "in_progress"}));
    it.talk.note_question("a", it.now);
    assert!(it.talk.main_call("a").unwrap().is_asked());
    it.now += Duration::from_secs(60);
    it.talk.release_questions(it.now);
    it.call("tool_call_update", "a", json!({"status": "completed"}));
    assert_eq!(it.talk.main_call("a").unwrap().took(), Some(Duration::from_secs(1)));
}

#[test]
fn what_was_shown_can_be_forgotten() {
    let mut it = Story::default();
    let content = json!([{"type": "content", "content": {"type": "text", "text": "long"}}]);
    let input = json!({"command": "x".repeat(9_000), "list": [1]});
    it.call(
        "tool_call",
        "a",
        json!({"title": "t", "rawInput": input, "rawOutput": {"exitCode": 0}, "content": content}),
    );
    it.talk.forget_contents("s1", "a");
    let call = it.talk.main_call("a").unwrap();
    assert_eq!((call.texts().count(), call.raw_output.is_none(), call.title()), (0, true, "t"));
    assert_eq!(call.input("command").unwrap().len(), 4_096);
}

#[test]
fn an_agent_ends_with_the_call_that_started_it() {
    let mut it = Story::default();
    it.call("tool_call", "c1", json!({"title": "helper", "status": "in_progress"}));
    let meta = json!({"castor": {"call": "c1"}});
    let update = json!({"sessionUpdate": "subagent_update", "sessionId": "s2", "title": "helper",
        "description": "look", "state": {"state": "running"}, "_meta": meta});
    assert_eq!(it.tell(update).agent, Some(AgentChange::Started("s2".to_owned())));
    for _ in 0..2 {
        it.tell_in("s2", json!({"sessionUpdate": "usage_update", "used": 7, "size": 9, "cost": {"amount": 0.5}}));
    }
    it.tell_in("s2", json!({"sessionUpdate": "tool_call", "toolCallId": "x", "title": "ls", "status": "pending"}));
    let agent = it.talk.agents.get("s2").unwrap();
    assert_eq!((agent.spent.requests, agent.spent.tokens, agent.spent.tool_calls), (1, 7, 1));
    assert!(matches!(agent.thread.last_activity(), Some(Entry::Call(it)) if it.title() == "ls"));
    let content = json!([{"type": "content", "content": {"type": "text", "text": "## Found\nmore"}}]);
    let output = json!({"requests": 3, "tokens": 90, "terminateReason": "GOAL"});
    let update = json!({"status": "completed", "content": content, "rawOutput": output});
    assert_eq!(it.call("tool_call_update", "c1", update).agent, Some(AgentChange::Ended("s2".to_owned())));
    let agent = it.talk.agents.get("s2").unwrap();
    assert_eq!((agent.state, agent.outcome.result.as_str(), agent.spent.tokens), (AgentState::Done, "Found", 90));
    it.tell(json!({"sessionUpdate": "subagent_update", "sessionId": "s3", "title": "other"}));
    it.talk.end_turn(it.now);
    assert_eq!(it.talk.agents.get("s3").unwrap().state, AgentState::CutOff);
}

/// What a client knows of a log: told step by step as it happened, or all at once.
fn known_of(log: &str, version: AcpVersion, is_live: bool) -> Vec<String> {
    let entries: Vec<LogEntry> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let features = ClientFeatures { version, notices: true, ..ClientFeatures::default() };
    let profile = ClientProfile { features, ..ClientProfile::default() };
    let (model, tuning) = ("m".to_owned(), Tuning::default());
    let chosen = ChosenOptions { mode: Mode::Default, model, tuning, limits: None, agent: None };
    let (mut view, mut lines) = (SessionView::new(SessionId::from("s"), profile, chosen), Vec::new());
    match is_live {
        true => entries.iter().for_each(|it| view.show(&it.fact, &mut lines)),
        false => view.replay(&entries, &[], &mut lines),
    }
    let mut talk = Conversation::default();
    for line in lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
        let message: BTreeMap<String, Box<RawValue>> = match serde_json::from_slice(line) {
            Ok(it) => it,
            Err(why) => panic!("{why}"),
        };
        let told = SessionEvent::read(&message["params"]);
        talk.update(&told.session, &told.event, Duration::ZERO);
    }
    // A live prompt is the client's own, and notices are of their moment.
    let words = |it: &Entry| match it {
        Entry::Answer(it) if !it.is_discarded => Some(format!("answer {}", it.text)),
        Entry::Thought(it) => Some(format!("thought {}", it.text)),
        Entry::Call(it) => {
            // Version 2 leaves out the kind that a call has anyhow.
            let kind = it.kind.unwrap_or(ToolKind::Other);
            Some(format!("call {} {} {kind:?} {:?}", it.title(), it.is_failed(), it.texts().collect::<Vec<_>>()))
        }
        Entry::Plan(it) => Some(format!("plan {:?}", it.entries)),
        _ => None,
    };
    talk.entries().iter().filter_map(words).collect()
}

#[test]
fn live_loaded_and_version_2_come_to_the_same() {
    let rich = include_str!("../../tests/data/logs/v1-rich.jsonl");
    // Of this one something was taken back, which was shown live.
    let rewound = include_str!("../../tests/data/logs/v2-continued.jsonl");
    for (log, is_live) in [(rich, true), (rich, false), (rewound, false)] {
        let loaded = known_of(log, AcpVersion::V1, false);
        assert!(loaded.len() > 3, "{loaded:?}");
        for version in [AcpVersion::V1, AcpVersion::V2] {
            assert_eq!(known_of(log, version, is_live), loaded, "{version:?}, live: {is_live}");
        }
    }
}
