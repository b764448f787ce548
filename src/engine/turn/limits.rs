//! Limits during a turn: stops it when the turn or its session has used up requests, tokens or money.

use super::{Spec, Turn, endings::Cause};
use crate::{
    base::limits::{LimitKind, LimitSpan, Limits},
    engine::record::Record,
};

/// How far this session may go now.
pub fn limits(record: &Record, spec: &Spec) -> Limits {
    record.limits().unwrap_or(spec.bounds.limits)
}

impl Turn {
    /// Why no model may be asked now.
    pub(super) fn exhausted_limit(&self, record: &Record, spec: &Spec) -> Option<Cause> {
        let limits = limits(record, spec);
        if limits.has_cost() && spec.prices.of(&self.model).is_none() {
            return Some(Cause::NoPrice(self.model.to_string()));
        }
        limits
            .first_reached(&record.limit_usage(LimitSpan::Turn), &record.limit_usage(LimitSpan::Session))
            .map(Cause::Limit)
    }

    /// Why the calls of an answer are not made any more. Who may ask a model no more may still do what the model said.
    pub(super) fn broke(&self, record: &Record, spec: &Spec) -> Option<Cause> {
        let is_broke = |it: &Cause| matches!(it, Cause::Limit(it) if it.what != LimitKind::Requests);
        self.exhausted_limit(record, spec).filter(is_broke)
    }
}
