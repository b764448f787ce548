//! Tool calls of `castor run`: their fields for questions, and their numbers.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{change_summary::ChangeSummary, changed_files::EditChanges};

/// Calls as they were shown, those of sub-agents included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallCounts {
    pub total: usize,
    pub completed: u64,
    pub failed: u64,
    /// Of the failed ones: nobody could be asked for an approval.
    pub unasked: u64,
}

#[derive(Debug, Default)]
pub struct CallTracker {
    /// By the session of a sub-agent, if it is one's, and id.
    known: HashMap<(Option<String>, String), Map<String, Value>>,
    completed: u64,
    failed: u64,
    unasked: u64,
    /// In files, all of them together.
    pub changed: ChangeSummary,
    /// The same as edits show it, where the agent keeps no checkpoints.
    pub edits: EditChanges,
}

impl CallTracker {
    /// Takes a `tool_call` or a `tool_call_update`: a field that is absent or null stays as it was. `child`: the session
    /// of a sub-agent that it is of.
    pub fn update(&mut self, child: Option<&str>, update: &Value) {
        let Some(key) = key(child, update) else { return };
        let call = self.known.entry(key).or_default();
        let was_over = is_over(call);
        let fields = update.as_object().into_iter().flatten();
        let fields = fields.filter(|(key, it)| *key != "sessionUpdate" && !it.is_null());
        call.extend(fields.map(|(key, it)| (key.clone(), it.clone())));
        if is_over(call) && !was_over {
            let is_failed = call.get("status").and_then(Value::as_str) == Some("failed");
            let is_unasked = update.pointer("/_meta/castor/unasked") == Some(&Value::Bool(true));
            self.unasked += u64::from(is_failed && is_unasked);
            *(if is_failed { &mut self.failed } else { &mut self.completed }) += 1;
            if let Some(Value::Array(contents)) = call.get("content").filter(|_| !is_failed) {
                self.edits.add(contents);
            }
            // Contents may be large, and are of no use any more.
            call.retain(|key, _| matches!(key.as_str(), "title" | "status"));
        }
    }

    /// What is known of the call that a permission is asked for, with what the question itself tells.
    pub fn merge_fields(&self, child: Option<&str>, tool_call: &Value) -> Value {
        let mut call = key(child, tool_call).and_then(|it| self.known.get(&it)).cloned().unwrap_or_default();
        let fields = tool_call.as_object().into_iter().flatten().filter(|(_, it)| !it.is_null());
        call.extend(fields.map(|(key, it)| (key.clone(), it.clone())));
        Value::Object(call)
    }

    /// The hint how to allow calls that no user could approve; `None`: there were none.
    pub fn approval_hint(&self) -> Option<String> {
        let calls = match self.unasked {
            0 => return None,
            1 => "1 call".to_owned(),
            n => format!("{n} calls"),
        };
        Some(format!(
            "{calls} needed an approval, and nobody could be asked. Run castor on a terminal, or allow more with \
             --approval-mode or a rule (`castor policy check --headless` shows what is missing)"
        ))
    }

    pub fn counts(&self) -> CallCounts {
        let Self { completed, failed, unasked, .. } = *self;
        CallCounts { total: self.known.len(), completed, failed, unasked }
    }
}

fn key(child: Option<&str>, call: &Value) -> Option<(Option<String>, String)> {
    let id = call.get("toolCallId").and_then(Value::as_str)?;
    Some((child.map(str::to_owned), id.to_owned()))
}

fn is_over(call: &Map<String, Value>) -> bool {
    matches!(call.get("status").and_then(Value::as_str), Some("completed" | "failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CallCounts, CallTracker};

    #[test]
    fn each_call_counts_once() {
        let mut calls = CallTracker::default();
        calls.update(None, &json!({"toolCallId": "a", "title": "ls", "status": "in_progress"}));
        for _ in 0..2 {
            calls.update(None, &json!({"toolCallId": "a", "status": "completed"}));
        }
        let meta = json!({"castor": {"unasked": true}});
        calls.update(None, &json!({"toolCallId": "l", "title": "denied", "status": "failed", "_meta": meta}));
        let words = json!([{"type": "content", "content": {"type": "text", "text": "nobody can be asked"}}]);
        calls.update(None, &json!({"toolCallId": "w", "title": "words", "status": "failed", "content": words}));
        calls.update(None, &json!({"title": "no id"}));
        assert_eq!(calls.counts(), CallCounts { total: 3, completed: 1, failed: 2, unasked: 1 });
        let hint = calls.approval_hint().unwrap();
        assert!(hint.starts_with("1 call needed an approval") && hint.contains("`castor policy check --headless`"));
    }

    #[test]
    fn a_question_adds_to_what_is_known() {
        let mut calls = CallTracker::default();
        calls.update(None, &json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "old", "kind": "edit"}));
        let described = calls.merge_fields(None, &json!({"toolCallId": "a", "title": "new", "content": null}));
        assert_eq!(described, json!({"toolCallId": "a", "title": "new", "kind": "edit"}));
    }
}
