//! Tool calls of the agent: from their updates to the lifecycle that AHP has for them.

use std::time::Duration;

use ahp::ahp_types::state::ToolCallState;
use serde_json::{Value, json};

use super::{
    content::SessionContents,
    hosted_session::{HostedSession, TreeAction},
    messages::file_uri,
    with_members,
};
use castor_client::call::Call;
use castor_wire::acp::client::{CallDiff, CallPart, CallStatus, CallUpdate, ClientEvent, ContentBlock};

impl HostedSession {
    /// A call begins or changes.
    pub fn take_call(&mut self, told: &CallUpdate) -> Vec<TreeAction> {
        let Some(turn) = self.listening_turn() else { return Vec::new() };
        let call = told.id.as_str();
        // What comes after it is another part.
        self.turn.part = None;
        let mut res = self.begin_call(&turn, told);
        if matches!(self.call_state(call), Some(ToolCallState::Completed(_) | ToolCallState::Cancelled(_))) {
            return res;
        }
        let is_running = matches!(self.call_state(call), Some(ToolCallState::Running(_)));
        let is_asked = matches!(self.call_state(call), Some(ToolCallState::PendingConfirmation(_)));
        let content = result_content(&mut self.contents, &self.id, told);
        match told.status {
            Some(end) if end.is_over() => {
                if !is_running && !is_asked {
                    res.push(self.ready(&turn, call));
                }
                let title = self.turn.talk.main_call(call).map(Call::title).unwrap_or_default();
                let result = json!({ "success": !end.is_failed(), "pastTenseMessage": title });
                let result = with_members(result, [("content", (!content.is_empty()).then(|| json!(content)))]);
                let action =
                    json!({ "type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call, "result": result });
                res.push(TreeAction::chat(action));
            }
            Some(CallStatus::InProgress) if !is_running => res.push(self.ready(&turn, call)),
            Some(CallStatus::InProgress) | None if is_running && !content.is_empty() => {
                res.push(content_changed(&turn, call, content));
            }
            _ => (),
        }
        res
    }

    /// A question may be the first to name a call, or know more of it.
    pub fn begin_call(&mut self, turn: &str, told: &CallUpdate) -> Vec<TreeAction> {
        let is_new = self.turn.talk.main_call(&told.id).is_none();
        self.turn.talk.update("", &ClientEvent::Call(Box::new(told.clone())), Duration::ZERO);
        // The trees keep what it brings.
        self.turn.talk.forget_contents("", &told.id);
        let Some(call) = self.turn.talk.main_call(&told.id).filter(|_| is_new) else { return Vec::new() };
        let name = told.tool_name();
        let client = name.and_then(|it| self.owner_of(it)).map(|it| json!({ "kind": "client", "clientId": it }));
        let action = json!({
            "type": "chat/toolCallStart", "turnId": turn, "toolCallId": told.id,
            "toolName": name.unwrap_or("tool"), "displayName": call.title(),
            "_meta": { "castor": { "kind": call.kind } },
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
        let known = self.turn.talk.main_call(call);
        let action = json!({
            "type": "chat/toolCallReady", "turnId": turn, "toolCallId": call,
            "invocationMessage": known.map(Call::title).unwrap_or_default(),
        });
        let input = known.and_then(|it| it.raw_input.as_ref());
        with_members(action, [("toolInput", input.map(|it| json!(it.to_string())))])
    }
}

fn content_changed(turn: &str, call: &str, content: Vec<Value>) -> TreeAction {
    let action =
        json!({ "type": "chat/toolCallContentChanged", "turnId": turn, "toolCallId": call, "content": content });
    TreeAction::chat(action)
}

/// What a call brought: texts, media, and edits of files.
fn result_content(contents: &mut SessionContents, session: &str, told: &CallUpdate) -> Vec<Value> {
    told.content.iter().flatten().filter_map(|it| one_content(contents, session, it)).collect()
}

fn one_content(contents: &mut SessionContents, session: &str, it: &CallPart) -> Option<Value> {
    let block = match it {
        CallPart::Content { content } => content,
        CallPart::Diff(it) => {
            let edit = file_edit(contents, session, it);
            return Some(with_members(edit, [("type", Some(json!("fileEdit")))]));
        }
        CallPart::Terminal { .. } | CallPart::Other(_) => return None,
    };
    let media = |data: &str, mime: &str| json!({ "type": "embeddedResource", "data": data, "contentType": mime });
    Some(match block {
        ContentBlock::Image(it) => media(&it.data, &it.mime_type),
        ContentBlock::Audio(it) => media(&it.data, &it.mime_type),
        _ => json!({ "type": "text", "text": super::messages::text_of(block) }),
    })
}

/// An edit of a file.
pub fn file_edit(contents: &mut SessionContents, session: &str, it: &CallDiff) -> Value {
    let uri = file_uri(&it.path);
    let mut side = |text: &Option<String>| {
        text.as_ref().map(|it| json!({ "uri": uri, "content": contents.keep(session, &uri, it) }))
    };
    let sides = [("before", side(&it.old_text)), ("after", side(&it.new_text))];
    with_members(json!({}), sides)
}
