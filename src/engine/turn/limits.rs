//! Limits during a turn: stops it when the turn or its session has used up requests, tokens or money.

use super::{
    agent_run,
    endings::Cause,
    flow::Flow,
    spec::{Spec, TurnContext},
    state::TurnState,
};
use crate::{
    base::limits::{LimitKind, LimitSpan, Limits},
    engine::record::Record,
};

/// A turn asks the model at most this often: the runtime's own bound, whatever the settings say.
pub const MAX_SAMPLES: u32 = 100;

/// How far this session may go now.
pub fn limits(record: &Record, spec: &Spec) -> Limits {
    record.limits().unwrap_or(spec.bounds.limits)
}

/// Why no model may be asked now.
fn exhausted_limit(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<Cause> {
    let record = &*cx.step.record;
    let limits = turn.granted(limits(record, cx.spec));
    // An agent that answers in a model's place says by itself what it spent.
    if limits.has_cost() && !is_peer(turn) && cx.spec.prices.of(&turn.model).is_none() {
        return Some(Cause::NoPrice(turn.model.to_string()));
    }
    limits
        .first_reached(&record.limit_usage(LimitSpan::Turn), &record.limit_usage(LimitSpan::Session))
        .map(Cause::Limit)
}

/// Whether something else than a model answers: for it, each result of a call is a request.
fn is_peer(turn: &TurnState) -> bool {
    turn.tools.task.as_ref().is_some_and(|it| !it.submits())
}

/// Before anything else is done for a prompt.
pub(super) fn check_budget(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    exhausted_limit(turn, cx).map_or(Flow::Next, Flow::End)
}

/// The model is asked once more, if it may be.
pub(super) fn begin_sample(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    if let Some(cause) = agent_run::is_recovery_over(turn) {
        return Flow::End(cause);
    }
    if turn.n_samples >= MAX_SAMPLES && turn.recovery.is_none() && !is_peer(turn) {
        return Flow::End(Cause::MaxSamples(turn.n_samples));
    }
    if let Some(cause) = exhausted_limit(turn, cx) {
        return Flow::End(cause);
    }
    turn.n_samples += 1;
    turn.draft.attempt = 1;
    Flow::Next
}

/// Why the calls of an answer are not made any more. Who may ask a model no more may still do what the model said.
pub(super) fn check_calls(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<Cause> {
    let is_broke = |it: &Cause| matches!(it, Cause::Limit(it) if it.what != LimitKind::Requests);
    exhausted_limit(turn, cx).filter(is_broke)
}
