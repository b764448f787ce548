//! Tool calls of the agent: from their updates to the lifecycle that AHP has for them.

use std::time::Duration;

use ahp::ahp_types::{
    actions::{ChatToolCallContentChangedAction, ChatToolCallReadyAction, ChatToolCallStartAction, StateAction},
    state,
};
use serde::Serialize;

use super::{
    HostedSession, TreeAction,
    acts::{self, castor_meta},
    content::SessionContents,
    messages::{text_of, uri_of},
};
use castor_base::tool::ToolKind;
use castor_client::call::Call;
use castor_wire::acp::client::{CallDiff, CallPart, CallStatus, CallUpdate, ClientEvent, ContentBlock};

/// castor's own words on a call.
#[derive(Serialize)]
struct CallFacts {
    kind: Option<ToolKind>,
}

impl HostedSession {
    /// A call begins or changes.
    pub fn take_call(&mut self, told: &CallUpdate) -> Vec<TreeAction> {
        let Some(turn) = self.listening_turn() else { return Vec::new() };
        let call = told.id.as_str();
        // Whatever follows is another part.
        self.turn.part = None;
        let mut res = Vec::from_iter(self.begin_call(&turn, told));
        let state = self.trees.call_state(call);
        if matches!(state, Some(state::ToolCallState::Completed(_) | state::ToolCallState::Cancelled(_))) {
            return res;
        }
        let is_running = matches!(state, Some(state::ToolCallState::Running(_)));
        let is_asked = matches!(state, Some(state::ToolCallState::PendingConfirmation(_)));
        let content = result_content(&mut self.contents, &self.id, told);
        match told.status {
            Some(end) if end.is_over() => {
                if !is_running && !is_asked {
                    res.push(self.ready(&turn, call));
                }
                let title = self.turn.talk.main_call(call).map(Call::title).unwrap_or_default();
                res.push(acts::call_complete(&turn, call, acts::call_result(!end.is_failed(), title, content)));
            }
            Some(CallStatus::InProgress) if !is_running => res.push(self.ready(&turn, call)),
            Some(CallStatus::InProgress) | None if is_running && !content.is_empty() => {
                res.push(content_changed(turn, call, content));
            }
            _ => (),
        }
        res
    }

    /// A question may be the first to name a call, or know more of it.
    pub fn begin_call(&mut self, turn: &str, told: &CallUpdate) -> Option<TreeAction> {
        let is_new = self.turn.talk.main_call(&told.id).is_none();
        self.turn.talk.update("", &ClientEvent::Call(Box::new(told.clone())), Duration::ZERO);
        // The trees keep the contents.
        self.turn.talk.forget_contents("", &told.id);
        let call = self.turn.talk.main_call(&told.id).filter(|_| is_new)?;
        let name = told.tool_name();
        let owner = name.and_then(|it| self.trees.owner_of(it)).map(str::to_owned);
        Some(TreeAction::chat(StateAction::ChatToolCallStart(ChatToolCallStartAction {
            turn_id: turn.to_owned(),
            tool_call_id: told.id.clone(),
            meta: castor_meta(CallFacts { kind: call.kind }),
            tool_name: name.unwrap_or("tool").to_owned(),
            display_name: call.title().to_owned(),
            intention: None,
            contributor: owner
                .map(|client_id| state::ToolCallContributor::Client(state::ToolCallClientContributor { client_id })),
        })))
    }

    /// A call runs without a question.
    pub fn ready(&self, turn: &str, call: &str) -> TreeAction {
        let confirmed = Some(state::ToolCallConfirmationReason::NotNeeded);
        let action = ChatToolCallReadyAction { confirmed, ..self.ready_action(turn, call) };
        TreeAction::chat(StateAction::ChatToolCallReady(action))
    }

    /// The members of all actions by which the parameters of a call are known.
    pub fn ready_action(&self, turn: &str, call: &str) -> ChatToolCallReadyAction {
        let known = self.turn.talk.main_call(call);
        let input = known.and_then(|it| it.raw_input.as_ref());
        with_none!(ChatToolCallReadyAction {
            turn_id: turn.to_owned(),
            tool_call_id: call.to_owned(),
            invocation_message: known.map(|it| it.title().to_owned()).unwrap_or_default().into(),
            tool_input: input.map(|it| state::ToolInput::Inline(it.to_string())),
        } meta contributor intention confirmation_title risk_assessment edits editable confirmed options)
    }
}

fn content_changed(turn_id: String, call: &str, content: Vec<state::ToolResultContent>) -> TreeAction {
    let tool_call_id = call.to_owned();
    let action = ChatToolCallContentChangedAction { turn_id, tool_call_id, meta: None, content };
    TreeAction::chat(StateAction::ChatToolCallContentChanged(action))
}

/// What a call brought: texts, media, and edits of files.
fn result_content(contents: &mut SessionContents, session: &str, told: &CallUpdate) -> Vec<state::ToolResultContent> {
    told.content.iter().flatten().filter_map(|it| one_content(contents, session, it)).collect()
}

fn one_content(contents: &mut SessionContents, session: &str, it: &CallPart) -> Option<state::ToolResultContent> {
    let block = match it {
        CallPart::Content { content } => content,
        CallPart::Diff(it) => {
            let state::FileEdit { before, after, diff } = file_edit(contents, session, it);
            return Some(state::ToolResultContent::FileEdit(state::ToolResultFileEditContent { before, after, diff }));
        }
        CallPart::Terminal { .. } | CallPart::Other(_) => return None,
    };
    let (data, content_type) = match block {
        ContentBlock::Image(it) => (it.data.clone(), it.mime_type.clone()),
        ContentBlock::Audio(it) => (it.data.clone(), it.mime_type.clone()),
        _ => return Some(state::ToolResultContent::Text(state::ToolResultTextContent { text: text_of(block) })),
    };
    Some(state::ToolResultContent::EmbeddedResource(state::ToolResultEmbeddedResourceContent { data, content_type }))
}

/// An edit of a file.
pub fn file_edit(contents: &mut SessionContents, session: &str, it: &CallDiff) -> state::FileEdit {
    let uri = uri_of(&it.path);
    let mut side = |text: &Option<String>| {
        text.as_ref().map(|it| state::FileEditSide { uri: uri.clone(), content: contents.keep(session, &uri, it) })
    };
    let before = side(&it.old_text);
    state::FileEdit { before, after: side(&it.new_text), diff: None }
}
