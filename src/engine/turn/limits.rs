//! Limits during a turn: stops it when the turn or its session has used up requests, tokens or money.

use super::{
    agent_run,
    endings::Cause,
    flow::Flow,
    spec::{Spec, TurnContext},
    state::TurnState,
};
use crate::{
    base::limits::{LimitSpan, Limits, ReachedLimit},
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
    // An agent that answers in a model's place says by itself what it spent; a composition asks no model.
    let has_prices = is_peer(turn) || turn.composition().is_some();
    if limits.has_cost() && !has_prices && cx.spec.prices.of(&turn.model).is_none() {
        return Some(Cause::NoPrice(turn.model.to_string()));
    }
    limits
        .first_reached(&record.limit_usage(LimitSpan::Turn), &record.limit_usage(LimitSpan::Session))
        .map(Cause::Limit)
}

/// Whether another program or a server answers: for it, each result of a call is a request.
fn is_peer(turn: &TurnState) -> bool {
    turn.tools.task.as_ref().is_some_and(|it| it.is_of_peer())
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
    // A composite asks no model: its own rounds bound it.
    turn.n_samples += u32::from(turn.composition().is_none());
    turn.draft.attempt = 1;
    Flow::Next
}

/// Why nothing more is done for what the model said, and no model is asked about it. Who may ask a model no more may still
/// do what the model said.
pub(super) fn check_spent(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<Cause> {
    reached(turn.granted(limits(cx.step.record, cx.spec)), cx).map(Cause::Limit)
}

/// Whether castor asks models nothing of its own accord any more.
pub(super) fn has_spent_all(cx: &TurnContext<'_, '_>) -> bool {
    let mut limits = limits(cx.step.record, cx.spec);
    (limits.turn.seconds, limits.session.seconds) = (None, None);
    reached(limits, cx).is_some()
}

/// What is used up beside requests.
fn reached(mut limits: Limits, cx: &TurnContext<'_, '_>) -> Option<ReachedLimit> {
    (limits.turn.requests, limits.session.requests) = (None, None);
    let used = |span| cx.step.record.limit_usage(span);
    limits.first_reached(&used(LimitSpan::Turn), &used(LimitSpan::Session))
}
