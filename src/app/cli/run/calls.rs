//! Tool calls of `castor run`: their titles and results.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{change_summary::ChangeSummary, report::CallCounts};
use crate::app::cli::terminal_text::clean_line;

const MAX_TITLE: usize = 200;
const MAX_REASON: usize = 200;
/// How castor says that a call was denied only because there is no user at hand.
const NOBODY_ASKED: &str = "nobody can be asked";

/// Something about a call that is worth a line.
#[derive(Debug, PartialEq, Eq)]
pub enum CallNote {
    Started(String),
    Completed(String),
    /// It did what it was to do, and something is to be said about that.
    Noted(String),
    /// With the reason, where there is one.
    Failed(String),
}

#[derive(Debug, Default)]
pub struct CallTracker {
    known: HashMap<String, Map<String, Value>>,
    completed: u64,
    failed: u64,
    unasked: u64,
    /// In files, all of them together.
    pub changed: ChangeSummary,
}

impl CallTracker {
    /// Takes a `tool_call` or a `tool_call_update`: a field that is absent or null stays as it was.
    pub fn update(&mut self, update: &Value) -> Option<CallNote> {
        let id = update.get("toolCallId")?.as_str()?;
        let is_new = !self.known.contains_key(id);
        let call = self.known.entry(id.to_owned()).or_default();
        let was_over = is_over(call);
        let fields = update.as_object()?.iter().filter(|(key, it)| *key != "sessionUpdate" && !it.is_null());
        call.extend(fields.map(|(key, it)| (key.clone(), it.clone())));
        let title = clean_line(call.get("title").and_then(Value::as_str).unwrap_or(id), MAX_TITLE);
        if is_over(call) && !was_over {
            let failed = call.get("status").and_then(Value::as_str) == Some("failed");
            let noted = !failed && exit_code(call).is_empty();
            let note = if failed { reason(call) } else { [exit_code(call), sandbox_note(call)].join("") };
            let why = if note.is_empty() { note.clone() } else { format!(": {}", clean_line(&note, MAX_REASON)) };
            // Contents may be large, and are of no use any more.
            call.retain(|key, _| matches!(key.as_str(), "title" | "status"));
            *(if failed { &mut self.failed } else { &mut self.completed }) += 1;
            self.unasked += u64::from(failed && note.contains(NOBODY_ASKED));
            return Some(match (noted, why.is_empty()) {
                (true, true) => CallNote::Completed(title),
                (true, false) => CallNote::Noted(title + &why),
                (false, _) => CallNote::Failed(title + &why),
            });
        }
        is_new.then_some(CallNote::Started(title))
    }

    /// What is known of the call that a permission is asked for, with what the question itself tells.
    pub fn merge_fields(&self, tool_call: &Value) -> Value {
        let id = tool_call.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let mut call = self.known.get(id).cloned().unwrap_or_default();
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

/// Why a call failed, as far as its contents tell, all of it.
fn reason(call: &Map<String, Value>) -> String {
    let contents = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let text = contents.filter_map(|it| it.pointer("/content/text")?.as_str()).find(|it| !it.trim().is_empty());
    text.unwrap_or_default().to_owned()
}

/// How a command ended that ran, and did not do what it was to do: the call itself is well.
fn exit_code(call: &Map<String, Value>) -> String {
    let output = call.get("rawOutput");
    let code = output.and_then(|it| it.get("exitCode").or_else(|| it.get("exit_code"))).and_then(Value::as_i64);
    code.filter(|it| *it != 0).map(|it| format!("exit code {it}")).unwrap_or_default()
}

/// What a sandbox denied a command, or quarantined after it.
fn sandbox_note(call: &Map<String, Value>) -> String {
    let note = call.get("rawOutput").and_then(|it| it.get("sandbox")?.as_str()).unwrap_or_default();
    let between = if note.is_empty() || exit_code(call).is_empty() { "" } else { "; " };
    format!("{between}{note}")
}

fn is_over(call: &Map<String, Value>) -> bool {
    matches!(call.get("status").and_then(Value::as_str), Some("completed" | "failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CallCounts, CallNote, CallTracker};

    #[test]
    fn a_call_starts_once_and_ends_once() {
        let mut calls = CallTracker::default();
        let mut update = |it| calls.update(&it);
        assert_eq!(update(json!({"toolCallId": "a", "title": "ls\n-l"})), Some(CallNote::Started("ls -l".into())));
        assert_eq!(update(json!({"toolCallId": "a", "title": null, "status": "in_progress"})), None);
        assert_eq!(update(json!({"toolCallId": "a", "status": "failed"})), Some(CallNote::Failed("ls -l".into())));
        assert_eq!(update(json!({"toolCallId": "a", "status": "failed"})), None);
        let why = json!([{"type": "diff"}, {"type": "content", "content": {"type": "text", "text": "not\nallowed"}}]);
        let refused = json!({"toolCallId": "c", "title": "rm", "status": "failed", "content": why});
        assert_eq!(update(refused), Some(CallNote::Failed("rm: not allowed".into())));
        let at_once = json!({"toolCallId": "b", "title": "x", "status": "completed"});
        assert_eq!(update(at_once), Some(CallNote::Completed("x".into())));
        let long = format!("{}, and nobody can be asked", "x".repeat(300));
        let content = json!([{"type": "content", "content": {"type": "text", "text": long}}]);
        update(json!({"toolCallId": "l", "title": "long", "status": "failed", "content": content}));
        let command = json!({"toolCallId": "d", "title": "make", "status": "completed", "rawOutput": {"exitCode": 2}});
        assert_eq!(update(command), Some(CallNote::Failed("make: exit code 2".into())));
        let output = json!({"exitCode": 1, "sandbox": "It was\nkept from it."});
        let held = json!({"toolCallId": "e", "title": "npm i", "status": "completed", "rawOutput": output});
        assert_eq!(update(held), Some(CallNote::Failed("npm i: exit code 1; It was kept from it.".into())));
        let output = json!({"exitCode": 0, "sandbox": "x was put aside."});
        let noted = json!({"toolCallId": "f", "title": "make", "status": "completed", "rawOutput": output});
        assert_eq!(update(noted), Some(CallNote::Noted("make: x was put aside.".into())));
        assert_eq!(update(json!({"title": "no id"})), None);
        assert_eq!(calls.counts(), CallCounts { total: 7, completed: 4, failed: 3, unasked: 1 });
        let hint = calls.approval_hint().unwrap();
        assert!(hint.starts_with("1 call needed an approval") && hint.contains("`castor policy check --headless`"));
    }

    #[test]
    fn a_question_adds_to_what_is_known() {
        let mut calls = CallTracker::default();
        calls.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "old", "kind": "edit"}));
        let described = calls.merge_fields(&json!({"toolCallId": "a", "title": "new", "content": null}));
        assert_eq!(described, json!({"toolCallId": "a", "title": "new", "kind": "edit"}));
    }
}
