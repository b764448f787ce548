//! `state_update` of version 2: what a session does in the foreground, and why it stopped.

use agent_client_protocol_schema::{
    v1,
    v2::{
        IdleStateUpdate, Meta, RequiresActionStateUpdate, RunningStateUpdate, SessionUpdate, StateUpdate, StopReason,
        Usage,
    },
};

use super::{same_json, updates::push_one};
use crate::acp::{meta::PromptAnswerMeta, session::wire_usage};
use castor_base::{event::StopKind, ids::SessionId, model};

pub fn running() -> StateUpdate {
    StateUpdate::Running(RunningStateUpdate::new())
}

/// The user has a question of it.
pub fn requires_action() -> StateUpdate {
    StateUpdate::RequiresAction(RequiresActionStateUpdate::new())
}

/// Nothing is under way, and nothing was.
pub fn idle() -> StateUpdate {
    StateUpdate::Idle(IdleStateUpdate::new())
}

/// A turn is over. `usage`: what the models took for it; `meta`: the same by model.
pub fn ended(reason: StopReason, usage: Option<model::Usage>, meta: Option<&PromptAnswerMeta>) -> StateUpdate {
    let usage: Option<Usage> = usage.and_then(|it| same_json(&wire_usage(it)));
    let meta: Option<Meta> = meta.and_then(same_json);
    StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason).usage(usage).meta(meta))
}

pub fn stop_reason(stop: StopKind) -> StopReason {
    match stop {
        StopKind::EndTurn | StopKind::CallsReturned | StopKind::UnknownCommand => StopReason::EndTurn,
        StopKind::MaxTokens | StopKind::OutputLimit => StopReason::MaxTokens,
        StopKind::MaxTurnRequests => StopReason::MaxTurnRequests,
        StopKind::Refusal => StopReason::Refusal,
        StopKind::Cancelled => StopReason::Cancelled,
    }
}

/// A state that version 1 has for sub-agents only.
pub(in crate::acp) fn push_same(session: &SessionId, state: &v1::StateUpdate, lines: &mut Vec<u8>) {
    same_json(state).into_iter().for_each(|it| push(session, it, lines));
}

pub fn push(session: &SessionId, state: StateUpdate, lines: &mut Vec<u8>) {
    push_one(session, SessionUpdate::StateUpdate(state), lines);
}
