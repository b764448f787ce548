//! Actions on a session's trees, by the protocol's own types.

use ahp::ahp_types::{
    actions::{self, ActionOrigin, StateAction},
    common::JsonObject,
    state::{self, ErrorInfo, ErrorResponsePart, Message, PendingMessageKind, ResponsePart},
};
use serde::Serialize;
use serde_json::Value;

use crate::ahp::Channel;

/// An action on one of a session's trees.
pub struct TreeAction {
    pub tree: Tree,
    pub action: StateAction,
    /// The client that dispatched it.
    pub origin: Option<ActionOrigin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    Session,
    Chat,
    Changes,
    Annotations,
}

impl Tree {
    pub fn channel(self, session: &str) -> Channel {
        let session = session.to_owned();
        match self {
            Self::Session => Channel::Session(session),
            Self::Chat => Channel::Chat(session),
            Self::Changes => Channel::Changes(session),
            Self::Annotations => Channel::Annotations(session),
        }
    }
}

impl TreeAction {
    pub fn new(tree: Tree, action: StateAction) -> Self {
        Self { tree, action, origin: None }
    }

    pub fn chat(action: StateAction) -> Self {
        Self::new(Tree::Chat, action)
    }

    pub fn session(action: StateAction) -> Self {
        Self::new(Tree::Session, action)
    }

    pub fn by(self, origin: ActionOrigin) -> Self {
        Self { origin: Some(origin), ..self }
    }
}

/// A count or a time as the protocol has numbers.
pub fn number(it: impl TryInto<i64>) -> i64 {
    it.try_into().unwrap_or(i64::MAX)
}

/// A time as the protocol writes it.
pub fn time(ms: u64) -> String {
    castor_wire::acp::session::iso_time(ms)
}

/// castor's own part of a `meta` member.
pub fn castor_meta(of_castor: impl Serialize) -> Option<JsonObject> {
    Some(JsonObject::from_iter([("castor".to_owned(), serde_json::to_value(of_castor).unwrap_or(Value::Null))]))
}

pub fn turn_complete(turn: &str, duration: u64) -> TreeAction {
    let (turn_id, duration) = (turn.to_owned(), number(duration));
    TreeAction::chat(StateAction::ChatTurnComplete(actions::ChatTurnCompleteAction { turn_id, duration, meta: None }))
}

pub fn turn_cancelled(turn: &str, duration: u64) -> TreeAction {
    let (turn_id, duration) = (turn.to_owned(), number(duration));
    TreeAction::chat(StateAction::ChatTurnCancelled(actions::ChatTurnCancelledAction { turn_id, duration, meta: None }))
}

pub fn turn_failed(turn: &str, duration: u64, why: &str, resumable: bool) -> TreeAction {
    let error = ErrorInfo { error_type: "agent".to_owned(), message: why.to_owned(), stack: None, meta: None };
    let part = ErrorResponsePart { error, resumable: Some(resumable) };
    let (turn_id, duration) = (turn.to_owned(), number(duration));
    TreeAction::chat(StateAction::ChatError(actions::ChatErrorAction { turn_id, duration, part, meta: None }))
}

/// A part of an answer begins.
pub fn response_part(turn: &str, part: ResponsePart) -> TreeAction {
    let action = actions::ChatResponsePartAction { turn_id: turn.to_owned(), part, meta: None };
    TreeAction::chat(StateAction::ChatResponsePart(action))
}

/// A message of castor itself in an answer.
pub fn notification_part(turn: &str, text: &str) -> TreeAction {
    let part = state::SystemNotificationResponsePart { content: text.into(), meta: None };
    response_part(turn, ResponsePart::SystemNotification(part))
}

/// A message waits for its turn.
pub fn message_queued(id: String, message: Message) -> TreeAction {
    let action = actions::ChatPendingMessageSetAction { kind: PendingMessageKind::Queued, id, message };
    TreeAction::chat(StateAction::ChatPendingMessageSet(action))
}

/// A message waits no more.
pub fn message_gone(kind: PendingMessageKind, id: &str) -> TreeAction {
    let action = actions::ChatPendingMessageRemovedAction { kind, id: id.to_owned() };
    TreeAction::chat(StateAction::ChatPendingMessageRemoved(action))
}

pub fn activity_changed(activity: Option<&str>) -> TreeAction {
    let action = actions::SessionActivityChangedAction { activity: activity.map(str::to_owned) };
    TreeAction::session(StateAction::SessionActivityChanged(action))
}

pub fn chat_updated(chat: String, changes: actions::PartialChatSummary) -> TreeAction {
    TreeAction::session(StateAction::SessionChatUpdated(actions::SessionChatUpdatedAction { chat, changes }))
}

pub fn chat_read(is_read: bool) -> TreeAction {
    TreeAction::chat(StateAction::ChatIsReadChanged(actions::ChatIsReadChangedAction { is_read }))
}

pub fn chat_archived(is_archived: bool) -> TreeAction {
    TreeAction::chat(StateAction::ChatIsArchivedChanged(actions::ChatIsArchivedChangedAction { is_archived }))
}

pub fn call_complete(turn: &str, call: &str, result: state::ToolCallResult) -> TreeAction {
    let (turn_id, tool_call_id) = (turn.to_owned(), call.to_owned());
    TreeAction::chat(StateAction::ChatToolCallComplete(actions::ChatToolCallCompleteAction {
        turn_id,
        tool_call_id,
        meta: None,
        result,
        requires_result_confirmation: None,
    }))
}

pub fn call_result(success: bool, words: &str, content: Vec<state::ToolResultContent>) -> state::ToolCallResult {
    let content = Some(content).filter(|it| !it.is_empty());
    state::ToolCallResult { success, past_tense_message: words.into(), content, structured_content: None, error: None }
}

/// A question with fields or options of its own.
pub fn input_requested(id: String, message: Option<String>, questions: Vec<state::ChatInputQuestion>) -> TreeAction {
    let request = state::ChatInputRequest { id, message, url: None, questions: Some(questions), answers: None };
    TreeAction::chat(StateAction::ChatInputRequested(actions::ChatInputRequestedAction { request }))
}

/// The session's own list has one more entry that waits for the user.
pub fn input_needed(request: state::SessionInputRequest) -> TreeAction {
    let action = actions::SessionInputNeededSetAction { request };
    TreeAction::session(StateAction::SessionInputNeededSet(Box::new(action)))
}

pub fn input_settled(id: String) -> TreeAction {
    TreeAction::session(StateAction::SessionInputNeededRemoved(actions::SessionInputNeededRemovedAction { id }))
}
