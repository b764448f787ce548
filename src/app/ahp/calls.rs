//! Tool calls of the agent: from their updates to the lifecycle that AHP has for them.

use ahp::ahp_types::state::ToolCallState;
use serde_json::{Value, json};

use super::{
    content::SessionContents,
    hosted_session::{HostedSession, TreeAction},
    messages::file_uri,
    with_members,
};

impl HostedSession {
    /// `tool_call` and `tool_call_update`.
    pub fn take_call(&mut self, update: &Value) -> Vec<TreeAction> {
        let (Some(turn), Some(call)) = (self.listening_turn(), update.get("toolCallId").and_then(Value::as_str)) else {
            return Vec::new();
        };
        // What comes after it is another part.
        self.turn.part = None;
        let mut res = self.begin_call(&turn, call, update);
        if matches!(self.call_state(call), Some(ToolCallState::Completed(_) | ToolCallState::Cancelled(_))) {
            return res;
        }
        let is_running = matches!(self.call_state(call), Some(ToolCallState::Running(_)));
        let is_asked = matches!(self.call_state(call), Some(ToolCallState::PendingConfirmation(_)));
        let content = result_content(&mut self.contents, &self.id, update);
        match update.get("status").and_then(Value::as_str) {
            Some(end @ ("completed" | "failed")) => {
                if !is_running && !is_asked {
                    res.push(self.ready(&turn, call));
                }
                let title = self.turn.calls.get(call).map(|it| it.title.clone()).unwrap_or_default();
                let result = json!({ "success": end == "completed", "pastTenseMessage": title });
                let result = with_members(result, [("content", (!content.is_empty()).then(|| json!(content)))]);
                let action =
                    json!({ "type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call, "result": result });
                res.push(TreeAction::chat(action));
            }
            Some("in_progress") if !is_running => res.push(self.ready(&turn, call)),
            Some("in_progress") | None if is_running && !content.is_empty() => {
                res.push(content_changed(&turn, call, content));
            }
            _ => (),
        }
        res
    }

    /// A question may be the first to name a call, or know more of it.
    pub fn begin_call(&mut self, turn: &str, call: &str, update: &Value) -> Vec<TreeAction> {
        let is_new = !self.turn.calls.contains_key(call);
        let facts = self.turn.calls.entry(call.to_owned()).or_default();
        facts.take(update);
        if !is_new {
            return Vec::new();
        }
        let facts = facts.clone();
        let name = update.get("name").or_else(|| update.pointer("/_meta/tool_name")).and_then(Value::as_str);
        let client = name.and_then(|it| self.owner_of(it)).map(|it| json!({ "kind": "client", "clientId": it }));
        let action = json!({
            "type": "chat/toolCallStart", "turnId": turn, "toolCallId": call,
            "toolName": name.unwrap_or("tool"), "displayName": facts.title,
            "_meta": { "castor": { "kind": facts.kind } },
        });
        vec![TreeAction::chat(with_members(action, [("contributor", client)]))]
    }

    /// It runs without a question.
    pub fn ready(&self, turn: &str, call: &str) -> TreeAction {
        let ready = self.ready_action(turn, call);
        TreeAction::chat(with_members(ready, [("confirmed", Some(json!("not-needed")))]))
    }

    /// What all actions have by which the parameters of a call are known.
    pub fn ready_action(&self, turn: &str, call: &str) -> Value {
        let facts = self.turn.calls.get(call).cloned().unwrap_or_default();
        let action = json!({
            "type": "chat/toolCallReady", "turnId": turn, "toolCallId": call, "invocationMessage": facts.title,
        });
        with_members(action, [("toolInput", facts.input.map(Value::from))])
    }
}

fn content_changed(turn: &str, call: &str, content: Vec<Value>) -> TreeAction {
    let action =
        json!({ "type": "chat/toolCallContentChanged", "turnId": turn, "toolCallId": call, "content": content });
    TreeAction::chat(action)
}

/// What a call brought: texts, media, and edits of files.
fn result_content(contents: &mut SessionContents, session: &str, update: &Value) -> Vec<Value> {
    let all = update.get("content").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|it| one_content(contents, session, it)).collect()
}

fn one_content(contents: &mut SessionContents, session: &str, it: &Value) -> Option<Value> {
    if let Some(edit) = file_edit(contents, session, it) {
        return Some(with_members(edit, [("type", Some(json!("fileEdit")))]));
    }
    let block = it.get("content")?;
    match block.get("type").and_then(Value::as_str)? {
        "text" => Some(json!({ "type": "text", "text": block.get("text")? })),
        "image" | "audio" => Some(
            json!({ "type": "embeddedResource", "data": block.get("data")?, "contentType": block.get("mimeType")? }),
        ),
        _ => Some(json!({ "type": "text", "text": super::messages::text_of(block) })),
    }
}

/// An edit, of ACP's `diff`.
pub fn file_edit(contents: &mut SessionContents, session: &str, it: &Value) -> Option<Value> {
    if it.get("type")? != "diff" {
        return None;
    }
    let uri = file_uri(it.get("path")?.as_str()?);
    let (old, new) = (it.get("oldText").and_then(Value::as_str), it.get("newText").and_then(Value::as_str));
    let mut side = |text: Option<&str>| Some(json!({ "uri": uri, "content": contents.keep(session, &uri, text?) }));
    Some(with_members(json!({}), [("before", side(old)), ("after", side(new))]))
}
