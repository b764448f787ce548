//! Context windows of models in a turn: from settings, or learned from a refusal.

use super::Spec;
use crate::{
    base::{log::Fact, model::Failure},
    engine::{
        record::{Record, Step},
        routing::context_overflow::{ContextOverflow, read_overflow},
    },
};

/// In tokens, as the model counts them.
pub(super) fn window(record: &Record, spec: &Spec, model: &str) -> u64 {
    spec.windows.with_learned(model, record.token_scale().window(model))
}

/// From now on it is this model: what its requests said of its window is forgotten.
pub fn model_fact(spec: &Spec, model: &str) -> Fact {
    Fact::Model { model: model.to_owned(), window: spec.windows.of(&spec.aliases.model_of(model)) }
}

/// Takes in what the failure of a request of `tokens` by the rule of thumb says.
pub(super) fn learn_window(step: &mut Step<'_>, model: &str, tokens: u64, failure: &Failure) {
    let Some(ContextOverflow { window, size }) = read_overflow(failure) else { return };
    let real = step.record.token_scale().model_tokens(model, tokens);
    // Who only says that it was too long has room for a part of it.
    let window = window.unwrap_or(size.unwrap_or(real) / 4 * 3);
    // An estimate that would have fit was too small.
    let size = size.unwrap_or_else(|| real.max(window / 10 * 11));
    step.log(Fact::Outgrown { model: model.to_owned(), window, size, tokens });
}
