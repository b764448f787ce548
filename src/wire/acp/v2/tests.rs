//! Tests of the second projection: the shapes of updates, and a replay that folds to what was shown live.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use super::updates::push;
use crate::acp::{
    initialize::{AcpVersion, ClientFeatures},
    options::{ChosenOptions, OfferedOptions},
    updates::{ClientProfile, SessionView},
};
use castor_base::{
    content::Part,
    event::{
        AgentEvent, COMPACTION, Compaction, CompactionStatus, DISCARDS, EventKind, Location, Speaker, Status,
        ToolDisplay, ToolProgress,
    },
    ids::{CallId, MessageId, SessionId, StreamId},
    log::{Entry, Fact, Mode, Tuning},
    path::AbsPath,
    terminal::Screen,
    tool::{Display, ToolError, ToolKind},
};

/// What version 2 says in place of an update of version 1.
fn check(update: Value, expected: &[Value]) {
    let update: v1::SessionUpdate = serde_json::from_value(update).unwrap();
    let mut lines = Vec::new();
    push(&SessionId::from("s"), update, &mut lines);
    assert_eq!(updates(&lines), expected);
}

fn updates(lines: &[u8]) -> Vec<Value> {
    let lines = lines.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines.map(|it| serde_json::from_slice::<Value>(it).unwrap()["params"]["update"].take()).collect()
}

#[test]
fn calls_are_one_kind_of_update() {
    check(
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "name": "n", "kind": "read",
            "locations": [{ "path": "/w/a", "line": 3 }], "_meta": { "tool_name": "n" } }),
        &[json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "name": "n", "title": "T", "kind": "read",
            "status": "pending", "locations": [{ "path": "/w/a", "line": 3 }] })],
    );
    check(
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" }),
        &[json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" })],
    );
}

#[test]
fn a_change_is_a_patch_of_absolute_paths() {
    let call = |content: Value| json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [content] });
    check(
        call(json!({ "type": "diff", "path": "/w/a.txt", "oldText": "one\n", "newText": "two\n" })),
        &[call(json!({ "type": "diff",
            "changes": [{ "fileType": "text", "operation": "modify", "path": "/w/a.txt" }],
            "patch": { "format": "git_patch", "text": "diff --git /w/a.txt /w/a.txt\n--- /w/a.txt\n+++ /w/a.txt\n\
                @@ -1 +1 @@\n-one\n+two\n" } }))],
    );
    check(
        call(json!({ "type": "diff", "path": "/w/b", "newText": "\u{0}" })),
        &[call(json!({ "type": "diff", "changes": [{ "operation": "add", "path": "/w/b" }] }))],
    );
}

#[test]
fn terminals_are_updates_of_their_own() {
    let update = |fields: Value| {
        let mut res = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" });
        res.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        res
    };
    let exit = json!({ "terminal_exit": { "terminal_id": "c", "exit_code": 3, "signal": null } });
    check(
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "kind": "execute",
            "content": [{ "type": "terminal", "terminalId": "c" }],
            "_meta": { "terminal_info": { "terminal_id": "c", "cwd": "/w" } } }),
        &[
            json!({ "sessionUpdate": "terminal_update", "terminalId": "c", "command": "ls", "cwd": "/w", "output": null,
                "exitStatus": null }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "ls", "kind": "execute",
                "status": "pending", "content": [{ "type": "terminal", "terminalId": "c" }] }),
        ],
    );
    check(
        update(json!({ "_meta": { "terminal_output": { "terminal_id": "c", "data": "hi" } } })),
        &[json!({ "sessionUpdate": "terminal_output_chunk", "terminalId": "c", "data": "aGk=" })],
    );
    check(
        update(json!({ "_meta": exit })),
        &[
            json!({ "sessionUpdate": "terminal_update", "terminalId": "c", "exitStatus": { "exitCode": 3 } }),
            update(json!({})),
        ],
    );
    // It goes on in the background.
    let data = json!({ "exitCode": null, "background": true });
    check(update(json!({ "rawOutput": data, "_meta": exit })), &[update(json!({ "rawOutput": data }))]);
}

#[test]
fn modes_plans_options_and_commands() {
    check(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }), &[]);
    let entry = json!({ "content": "Look", "priority": "medium", "status": "pending" });
    check(
        json!({ "sessionUpdate": "plan", "entries": [entry] }),
        &[json!({ "sessionUpdate": "plan_update",
            "plan": { "type": "items", "planId": "todos", "entries": [entry] } })],
    );
    let option = |id: &str| {
        json!({ "sessionUpdate": "config_option_update", "configOptions": [{ id: "mode", "name": "Mode",
            "category": "mode", "type": "select", "currentValue": "a", "options": [{ "value": "a", "name": "A" }] }] })
    };
    check(option("id"), &[option("configId")]);
    check(
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [
            { "name": "a", "description": "A", "input": { "hint": "h" } }, { "name": "b", "description": "B" }] }),
        &[json!({ "sessionUpdate": "available_commands_update", "availableCommands": [
            { "type": "command", "name": "a", "description": "A", "input": { "type": "text", "hint": "h" } },
            { "type": "command", "name": "b", "description": "B" }] })],
    );
}

/// A client's state: entities by kind and id, as the rules for omitted, null and concrete fields make it.
#[derive(Debug, Default, PartialEq)]
struct Folded {
    entities: BTreeMap<(String, String), BTreeMap<String, Value>>,
    /// Bytes of terminals.
    output: BTreeMap<String, Vec<u8>>,
}

impl Folded {
    fn take(&mut self, lines: &[u8]) {
        updates(lines).into_iter().for_each(|it| self.update(&it));
    }

    fn update(&mut self, update: &Value) {
        let kind = update["sessionUpdate"].as_str().unwrap();
        let id = |name: &str| update[name].as_str().unwrap_or_default().to_owned();
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let key = (kind.trim_end_matches("_chunk").to_owned(), id("messageId"));
                let content = self.entities.entry(key).or_default().entry("content".to_owned());
                append(content.or_insert(json!([])), &update["content"]);
            }
            "terminal_output_chunk" => {
                let data = BASE64_STANDARD.decode(id("data")).unwrap();
                self.output.entry(id("terminalId")).or_default().extend(data);
            }
            "plan_update" => self.patch(kind, id("plan"), &update["plan"]),
            // Of its moment.
            "notice" | "usage_update" => (),
            _ => {
                let names = ["messageId", "toolCallId", "terminalId", "compactionId"];
                let name = names.iter().find(|it| update.get(**it).is_some()).unwrap();
                if kind == "terminal_update" && update.get("output").is_some() {
                    self.output.remove(&id(name));
                }
                self.patch(kind, id(name), update);
            }
        }
    }

    fn patch(&mut self, kind: &str, id: String, fields: &Value) {
        let entity = self.entities.entry((kind.to_owned(), id)).or_default();
        for (name, value) in fields.as_object().unwrap() {
            match value {
                // The key says both.
                _ if name == "sessionUpdate" || name == "messageId" => (),
                Value::Null => _ = entity.remove(name),
                _ if name == "content" => {
                    let mut whole = json!([]);
                    value.as_array().unwrap().iter().for_each(|it| append(&mut whole, it));
                    entity.insert(name.clone(), whole);
                }
                _ => _ = entity.insert(name.clone(), value.clone()),
            }
        }
    }
}

/// Texts that follow each other read as one.
fn append(content: &mut Value, block: &Value) {
    let all = content.as_array_mut().unwrap();
    match (all.last_mut().filter(|it| it["type"] == "text"), block["text"].as_str()) {
        (Some(last), Some(text)) => last["text"] = json!(last["text"].as_str().unwrap().to_owned() + text),
        _ => all.push(block.clone()),
    }
}

fn conversation() -> Vec<Entry> {
    let message = |role, id: &str, part: Part| EventKind::Message {
        role,
        message_id: MessageId::from(id),
        content: vec![part],
        cuts: Vec::new(),
    };
    let call = |name: &str, title: &str, kind| {
        let place = Location { path: AbsPath::new("/w/a").unwrap(), line: Some(1) };
        let display = ToolDisplay { title: title.to_owned(), kind, locations: vec![place] };
        EventKind::ToolRequest {
            request_id: CallId::from(name),
            name: "tool".to_owned(),
            args: json!({ "command": title }),
            display,
            signature: None,
        }
    };
    let progress = |id: &str, update| EventKind::ToolUpdate { request_id: CallId::from(id), update };
    let response = |id: &str, display, error, data| EventKind::ToolResponse {
        request_id: CallId::from(id),
        name: "tool".to_owned(),
        content: vec![Part::text("R")],
        display,
        summary: None,
        error,
        data,
        seen: None,
    };
    let diff = |it: &str| Display::Diff {
        path: AbsPath::new("/w/a").unwrap(),
        before: Some("old\n".into()),
        after: it.to_owned().into(),
    };
    let custom = |kind: &str, data| EventKind::Custom { kind: kind.to_owned(), data };
    let screen = Screen::Drawn { cwd: AbsPath::new("/w").unwrap() };
    let compaction = |status| {
        let summary = (status == CompactionStatus::Completed).then(|| "Short.".to_owned());
        json!(Compaction { id: "k".to_owned(), status, text: String::new(), summary, error: None })
    };
    let kinds = vec![
        EventKind::AgentStart {},
        message(Speaker::User, "m1", Part::text("hi")),
        message(Speaker::Agent, "m2", Part::Thought { thought: "Hm.".to_owned(), signature: None }),
        message(Speaker::Agent, "m3", Part::text("Let me ")),
        message(Speaker::Agent, "m3", Part::text("look.")),
        call("c1", "ls", ToolKind::Execute),
        progress("c1", ToolProgress::Started { display: None }),
        progress("c1", ToolProgress::Attached { screen }),
        progress("c1", ToolProgress::Printed { text: "one\r\n".to_owned() }),
        progress("c1", ToolProgress::Printed { text: "two\r\n".to_owned() }),
        response("c1", None, None, json!({ "exitCode": 0 })),
        call("c2", "Edit", ToolKind::Edit),
        progress("c2", ToolProgress::Proposed { display: diff("new\n") }),
        progress("c2", ToolProgress::Started { display: None }),
        response("c2", Some(diff("newer\n")), None, Value::Null),
        call("c3", "Stop", ToolKind::Other),
        progress("c3", ToolProgress::Waiting),
        response("c3", None, Some(ToolError::new("cancelled", "Cancelled by you.")), Value::Null),
        custom("plan", json!({ "entries": [{ "content": "Look", "priority": "low", "status": "pending" }] })),
        custom(COMPACTION, compaction(CompactionStatus::InProgress)),
        custom(COMPACTION, compaction(CompactionStatus::Completed)),
        message(Speaker::Agent, "m4", Part::text("Broken o")),
        EventKind::Error { status: Status::Unavailable, message: "It broke off.".to_owned(), fatal: false },
        message(Speaker::Agent, "m5", Part::text("Done.")),
        message(Speaker::Developer, "m6", Part::text("Of its moment.")),
    ];
    let entry = |(n, kind): (usize, EventKind)| {
        let is_error = matches!(kind, EventKind::Error { .. });
        let mut event = AgentEvent::of_main(format!("s-{n}"), StreamId::from("s"), n as u64, kind);
        if is_error {
            event.meta.insert(DISCARDS.to_owned(), json!(["m4"]));
        }
        Entry { at: n as u64, fact: Fact::Event { event } }
    };
    kinds.into_iter().enumerate().map(entry).collect()
}

fn view() -> SessionView {
    let features = ClientFeatures { version: AcpVersion::V2, notices: true, compactions: true, ..Default::default() };
    let profile = ClientProfile { offer: OfferedOptions::default(), features };
    let (model, tuning) = (String::new(), Tuning::default());
    let chosen = ChosenOptions { mode: Mode::Default, model, tuning, limits: None, agent: None };
    SessionView::new(SessionId::from("s"), profile, chosen)
}

#[test]
fn a_replay_folds_to_what_was_shown_live() {
    let entries = conversation();
    let (mut live, mut view_live) = (Folded::default(), view());
    for entry in &entries {
        let mut lines = Vec::new();
        view_live.show(&entry.fact, &mut lines);
        live.take(&lines);
    }
    let mut lines = Vec::new();
    view().replay(&entries, &[], &mut lines);
    let mut again = Folded::default();
    again.take(&lines);
    assert_eq!(live, again);
    // A client that has it already has each thing once.
    again.take(&lines);
    assert_eq!(live, again);
    let of = |kind: &str, id: &str| &again.entities[&(kind.to_owned(), id.to_owned())];
    assert_eq!(of("agent_message", "m3")["content"], json!([{ "type": "text", "text": "Let me look." }]));
    assert!(!of("agent_message", "m4").contains_key("content"));
    assert_eq!(of("tool_call_update", "c3")["status"], "cancelled");
    assert_eq!(of("terminal_update", "c1")["exitStatus"], json!({ "exitCode": 0 }));
    assert_eq!(again.output["c1"], b"one\r\ntwo\r\n");
}
