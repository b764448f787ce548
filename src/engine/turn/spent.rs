//! The limits of a session, and whether it has used them up.

use super::spec::{Spec, TurnContext};
use crate::record::Record;
use castor_base::limits::{LimitSpan, Limits, ReachedLimit};

/// How far this session may go now.
pub fn limits(record: &Record, spec: &Spec) -> Limits {
    record.limits().unwrap_or(spec.bounds.limits)
}

/// Tells whether castor asks models nothing of its own accord any more.
pub(super) fn has_spent_all(cx: &TurnContext<'_, '_>) -> bool {
    let mut limits = limits(cx.step.record, cx.spec);
    (limits.turn.seconds, limits.session.seconds) = (None, None);
    reached(limits, cx).is_some()
}

/// What is used up beside requests.
pub(super) fn reached(mut limits: Limits, cx: &TurnContext<'_, '_>) -> Option<ReachedLimit> {
    (limits.turn.requests, limits.session.requests) = (None, None);
    let used = |span| cx.step.record.limit_usage(span);
    limits.first_reached(&used(LimitSpan::Turn), &used(LimitSpan::Session))
}
