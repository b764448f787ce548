//! The end of a turn: its outcome and what it took, and then what waits for it.

use serde_json::{Value, json};

use super::{
    AhpHost,
    hosted_session::{HostedSession, SessionStage, TreeAction},
    with_members,
};
use castor_wire::{
    acp::client::{PromptAnswer, read_value},
    jsonrpc::message::RpcError,
};

/// How a prompt ended.
pub enum TurnOutcome<'a> {
    /// The answer to it.
    Answer(&'a Value),
    Failed(&'a RpcError),
    /// Of another client's: the stop reason.
    Reported(Option<&'a str>, Option<&'a str>),
}

/// Kinds of errors with which the agent did not take a prompt.
const REFUSALS: &[&str] = &["params", "untrusted", "busy", "not_found", "request", "method", "pending_calls"];

impl TurnOutcome<'_> {
    /// Whether the model has the message, and owes the answer.
    fn is_resumable(&self) -> bool {
        let kind = match self {
            Self::Failed(it) => it.data.as_ref().and_then(|it| it.get("kind")).and_then(Value::as_str),
            _ => None,
        };
        kind.is_none_or(|it| !REFUSALS.contains(&it))
    }
}

/// Stop reasons that a user would not expect, and what is said of them.
const STOPS: &[(&str, &str)] = &[
    ("max_tokens", "The turn ended at a limit of tokens."),
    ("max_turn_requests", "The turn ended at a limit of requests, time or money."),
    ("refusal", "The provider stopped the answer."),
];

impl AhpHost {
    /// A prompt of the host's own is answered.
    pub(super) fn end_prompt(&mut self, session: &str, turn: &str, outcome: &TurnOutcome<'_>) {
        match self.sessions.get(session).is_some_and(|it| it.active_turn() == Some(turn)) {
            true => self.end_turn(session, outcome),
            false => self.end_cancelled(session),
        }
    }

    /// The prompt of another client ended, which is the first of those.
    pub(super) fn end_other_prompt(&mut self, session: &str, outcome: &TurnOutcome<'_>) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        match hosted.turn.other_prompts.pop_front() {
            Some(turn) if hosted.active_turn() == Some(turn.as_str()) => self.end_turn(session, outcome),
            // It was cancelled here before it ran, or while it did.
            Some(turn) => {
                let gone = json!({ "type": "chat/pendingMessageRemoved", "kind": "queued", "id": turn });
                self.emit(session, vec![TreeAction::chat(gone)]);
                self.end_cancelled(session);
            }
            None => self.end_cancelled(session),
        }
    }

    /// What was cancelled is over: what comes now is of the turn that runs.
    pub(super) fn end_cancelled(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        hosted.turn.n_cancelled = hosted.turn.n_cancelled.saturating_sub(1);
        self.follow_end(session);
    }

    pub(super) fn end_turn(&mut self, session: &str, outcome: &TurnOutcome<'_>) {
        let now = self.now_ms;
        if let TurnOutcome::Answer(it) = outcome {
            self.export_metrics(session, it);
        }
        self.withdraw_questions(session);
        self.end_tool_calls(session, None);
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        let acts = hosted.end_acts(outcome, now);
        self.emit(session, acts);
        self.follow_end(session);
    }

    /// What waits for the end of a turn.
    fn follow_end(&mut self, session: &str) {
        let Some(hosted) = self.sessions.get(session) else { return };
        if !hosted.is_busy() && hosted.stage == SessionStage::Open {
            if hosted.turn.is_stale {
                self.read_history_anew(session);
            }
            self.read_changes(session);
            self.read_tools(session);
        }
        self.start_waiting(session);
    }

    /// The agent ended. What ran in it ended with an error; sessions are opened again when they are needed.
    pub(super) fn mark_dormant(&mut self, why: &str) {
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        for session in ids {
            let Some(hosted) = self.sessions.get_mut(&session) else { continue };
            if hosted.is_opening() {
                // The answer to its request says so.
                continue;
            }
            hosted.stage = SessionStage::Dormant;
            hosted.turn.n_cancelled = 0;
            let others = std::mem::take(&mut hosted.turn.other_prompts);
            let error = RpcError { code: 0, message: why.to_owned(), data: None };
            if hosted.active_turn().is_some_and(|it| others.iter().any(|other| other == it)) {
                self.end_turn(&session, &TurnOutcome::Failed(&error));
            }
            let gone = |id: &String| {
                TreeAction::chat(json!({ "type": "chat/pendingMessageRemoved", "kind": "queued", "id": id }))
            };
            self.emit(&session, others.iter().map(gone).collect());
        }
    }
}

impl HostedSession {
    fn end_acts(&mut self, outcome: &TurnOutcome<'_>, now_ms: u64) -> Vec<TreeAction> {
        let Some(turn) = self.active_turn().map(str::to_owned) else { return Vec::new() };
        let duration = now_ms.saturating_sub(self.turn.started_ms);
        let mut res = Vec::new();
        if self.trees.session.activity.is_some() {
            res.push(TreeAction::session(json!({ "type": "session/activityChanged" })));
        }
        if let Some(usage) = self.usage_of(outcome) {
            res.push(TreeAction::chat(json!({ "type": "chat/usage", "turnId": turn, "usage": usage })));
        }
        let (reason, error) = match outcome {
            TurnOutcome::Answer(it) => (it.get("stopReason").and_then(Value::as_str), None),
            TurnOutcome::Failed(it) => (None, Some(it.message.as_str())),
            TurnOutcome::Reported(reason, error) => (*reason, *error),
        };
        let words = STOPS.iter().find(|it| Some(it.0) == reason).map(|it| it.1);
        res.extend(words.map(|it| notification_part(&turn, it)));
        res.push(TreeAction::chat(match (reason, error) {
            (_, Some(why)) => json!({
                "type": "chat/error", "turnId": turn, "duration": duration,
                "part": {
                    "kind": "error", "error": { "errorType": "agent", "message": why },
                    "resumable": outcome.is_resumable(),
                },
            }),
            (Some("cancelled"), None) => json!({ "type": "chat/turnCancelled", "turnId": turn, "duration": duration }),
            _ => json!({ "type": "chat/turnComplete", "turnId": turn, "duration": duration }),
        }));
        self.turn.part = None;
        res
    }

    fn usage_of(&self, outcome: &TurnOutcome<'_>) -> Option<Value> {
        let TurnOutcome::Answer(answer) = outcome else { return None };
        let is_something = |it: &Value| it.as_object().is_some_and(|it| !it.is_empty());
        let answer: PromptAnswer = read_value((*answer).clone()).unwrap_or_default();
        let context = self.turn.context.as_ref().map(|it| json!(it));
        let of_castor = with_members(json!({}), [("context", context), ("cost", answer.cost().map(|it| json!(it)))]);
        let told = answer.usage;
        let usage = [
            ("inputTokens", told.map(|it| json!(it.input_tokens))),
            ("outputTokens", told.map(|it| json!(it.output_tokens))),
            ("cacheReadTokens", told.map(|it| it.cached_read_tokens).filter(|it| *it > 0).map(Value::from)),
            ("_meta", Some(of_castor).filter(is_something).map(|it| json!({ "castor": it }))),
        ];
        Some(with_members(json!({}), usage)).filter(is_something)
    }
}

/// A message of castor itself in an answer.
pub fn notification_part(turn: &str, text: &str) -> TreeAction {
    let part = json!({ "kind": "systemNotification", "content": text });
    TreeAction::chat(json!({ "type": "chat/responsePart", "turnId": turn, "part": part }))
}
