//! The end of a turn: its outcome and what it took, and then what waits for it.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ChatUsageAction, StateAction},
    state::{PendingMessageKind, UsageInfo},
};
use serde_json::json;

use super::{
    HostedSession, SessionDesk, SessionStage, TreeAction,
    acts::{self, castor_meta, number},
    changes::read_changes,
    truncation::read_history_anew,
};
use crate::ahp::HubOutcome;
use castor_wire::acp::client::{PromptAnswer, read_value};

/// How a prompt ended.
#[derive(Default)]
pub struct TurnOutcome {
    /// The answer to a prompt of the host's own.
    pub answer: Option<PromptAnswer>,
    pub stop_reason: Option<String>,
    /// The reason of a failure.
    pub error: Option<String>,
    /// The agent did not take the prompt.
    pub is_refused: bool,
}

/// Kinds of errors with which the agent did not take a prompt.
const REFUSALS: &[&str] = &["params", "untrusted", "busy", "not_found", "request", "method", "pending_calls"];

/// Stop reasons that a user would not expect, and what is said of them.
const STOPS: &[(&str, &str)] = &[
    ("max_tokens", "The turn ended at a limit of tokens."),
    ("max_turn_requests", "The turn ended at a limit of requests, time or money."),
    ("refusal", "The provider stopped the answer."),
];

impl From<HubOutcome> for TurnOutcome {
    fn from(it: HubOutcome) -> Self {
        match it {
            Ok(it) => {
                let answer: PromptAnswer = read_value(it).unwrap_or_default();
                Self { stop_reason: answer.stop_reason.clone(), answer: Some(answer), ..Self::default() }
            }
            Err(it) => {
                let is_refused = it.kind().is_some_and(|it| REFUSALS.contains(&it));
                Self { error: Some(it.message), is_refused, ..Self::default() }
            }
        }
    }
}

impl SessionDesk<'_> {
    /// A prompt of the host's own is answered.
    pub fn end_prompt(&mut self, turn: &str, outcome: &TurnOutcome) {
        match self.hosted.trees.active_turn() == Some(turn) {
            true => self.end_turn(outcome),
            false => self.end_cancelled(),
        }
    }

    /// The prompt of another client ended, which is the first of those.
    pub fn end_other_prompt(&mut self, outcome: &TurnOutcome) {
        match self.hosted.turn.other_prompts.pop_front() {
            Some(turn) if self.hosted.trees.active_turn() == Some(turn.as_str()) => self.end_turn(outcome),
            // The prompt was cancelled here, before its turn or within.
            Some(turn) => {
                self.emit([acts::message_gone(PendingMessageKind::Queued, &turn)]);
                self.end_cancelled();
            }
            None => self.end_cancelled(),
        }
    }

    /// What was cancelled is over: what comes now is of the turn that runs.
    pub fn end_cancelled(&mut self) {
        self.hosted.turn.n_cancelled = self.hosted.turn.n_cancelled.saturating_sub(1);
        self.follow_end();
    }

    fn end_turn(&mut self, outcome: &TurnOutcome) {
        if let Some(it) = &outcome.answer {
            self.clients.export_metrics(&self.hosted.id, it);
        }
        self.withdraw_questions();
        self.end_tool_calls(None);
        let acts = self.hosted.end_acts(outcome, self.clients.now_ms);
        self.emit(acts);
        self.follow_end();
    }

    /// Does what waits for the end of a turn.
    fn follow_end(&mut self) {
        if !self.hosted.is_busy() && self.hosted.stage == SessionStage::Open {
            if self.hosted.turn.is_stale {
                read_history_anew(self);
            }
            read_changes(self);
            self.read_tools();
        }
        self.start_waiting();
    }

    /// The agent ended. Running turns end with an error; sessions are opened again when they are needed.
    pub fn mark_dormant(&mut self, why: &str) {
        if self.hosted.is_opening() {
            // The answer to its request says so.
            return;
        }
        self.hosted.stage = SessionStage::Dormant;
        self.hosted.turn.n_cancelled = 0;
        let others = std::mem::take(&mut self.hosted.turn.other_prompts);
        if self.hosted.trees.active_turn().is_some_and(|it| others.iter().any(|other| other == it)) {
            self.end_turn(&TurnOutcome { error: Some(why.to_owned()), ..TurnOutcome::default() });
        }
        self.emit(others.iter().map(|it| acts::message_gone(PendingMessageKind::Queued, it)));
    }
}

impl HostedSession {
    fn end_acts(&mut self, outcome: &TurnOutcome, now_ms: u64) -> Vec<TreeAction> {
        let Some(turn) = self.trees.active_turn().map(str::to_owned) else { return Vec::new() };
        let duration = now_ms.saturating_sub(self.turn.started_ms);
        let mut res = Vec::new();
        if self.trees.session.activity.is_some() {
            res.push(acts::activity_changed(None));
        }
        if let Some(usage) = outcome.answer.as_ref().and_then(|it| self.usage_of(it)) {
            let action = ChatUsageAction { turn_id: turn.clone(), usage, meta: None };
            res.push(TreeAction::chat(StateAction::ChatUsage(action)));
        }
        let reason = outcome.stop_reason.as_deref();
        let words = STOPS.iter().find(|it| Some(it.0) == reason).map(|it| it.1);
        res.extend(words.map(|it| acts::notification_part(&turn, it)));
        res.push(match (reason, &outcome.error) {
            (_, Some(why)) => acts::turn_failed(&turn, duration, why, !outcome.is_refused),
            (Some("cancelled"), None) => acts::turn_cancelled(&turn, duration),
            _ => acts::turn_complete(&turn, duration),
        });
        self.turn.part = None;
        res
    }

    fn usage_of(&self, answer: &PromptAnswer) -> Option<UsageInfo> {
        let context = self.turn.context.as_ref().map(|it| ("context", json!(it)));
        let cost = answer.cost().map(|it| ("cost", json!(it)));
        let of_castor: Vec<_> = context.into_iter().chain(cost).collect();
        let told = answer.usage;
        let usage = UsageInfo {
            input_tokens: told.map(|it| number(it.input_tokens)),
            output_tokens: told.map(|it| number(it.output_tokens)),
            cache_read_tokens: told.map(|it| number(it.cached_read_tokens)).filter(|it| *it > 0),
            meta: (!of_castor.is_empty()).then(|| castor_meta(BTreeMap::from_iter(of_castor))).flatten(),
            model: None,
        };
        Some(usage).filter(|it| *it != UsageInfo::default())
    }
}
