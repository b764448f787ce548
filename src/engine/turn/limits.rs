//! Limits during a turn: stops it when the turn or its session has used up requests, tokens or money.

use super::{
    endings::Cause,
    flow::Flow,
    spec::TurnContext,
    spent::{limits, reached},
    state::TurnState,
};
use crate::turn::agents::agent_run;
use castor_base::limits::LimitSpan;

/// A turn asks the model at most this often: the runtime's own bound, whatever the settings say.
pub const MAX_SAMPLES: u32 = 100;

/// Why no model may be asked now.
fn exhausted_limit(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<Cause> {
    let record = &*cx.step.record;
    let limits = turn.granted(limits(record, cx.spec));
    // An agent that answers in a model's place says by itself what it spent; a composition asks no model.
    let has_prices = is_peer(turn) || turn.composition().is_some();
    if limits.has_cost() && !has_prices && cx.spec.prices.of(&turn.model, &cx.spec.aliases).is_none() {
        return Some(Cause::NoPrice(turn.model.to_string()));
    }
    limits
        .first_reached(&record.limit_usage(LimitSpan::Turn), &record.limit_usage(LimitSpan::Session))
        .map(Cause::Limit)
}

/// Tells whether another program or a server answers: for it, each result of a call is a request.
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
    if turn.draft.n_samples >= MAX_SAMPLES && turn.recovery.is_none() && !is_peer(turn) {
        return Flow::End(Cause::MaxSamples(turn.draft.n_samples));
    }
    if let Some(cause) = exhausted_limit(turn, cx) {
        return Flow::End(cause);
    }
    // A composite asks no model: its own rounds bound it.
    turn.draft.n_samples += u32::from(turn.composition().is_none());
    turn.draft.attempt = 1;
    Flow::Next
}

/// Why nothing more is done for what the model said, and no model is asked about it. Who may ask a model no more may still
/// do what the model said.
pub(super) fn check_spent(turn: &TurnState, cx: &TurnContext<'_, '_>) -> Option<Cause> {
    reached(turn.granted(limits(cx.step.record, cx.spec)), cx).map(Cause::Limit)
}
