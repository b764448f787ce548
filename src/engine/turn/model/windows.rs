//! Context windows of models in a turn: from settings, or learned from a refusal.

use crate::turn::Spec;
use crate::{
    context::{body_size, tokens},
    record::{Record, Step},
    routing::{
        context_overflow::{ContextOverflow, read_overflow},
        failure_class::{FailureClass, classify},
        overflow_words,
    },
};
use castor_base::{left_out::LeftOut, log::Fact, model::Failure};

/// No server takes less: castor's own instructions and tools need it.
const LEAST_BODY: u64 = 100_000;
/// Shorter conversations leave nothing to shorten, in tokens.
const LONG: u64 = 500;

/// In tokens, as the model counts them.
pub(in crate::turn) fn window(record: &Record, spec: &Spec, model: &str) -> u64 {
    spec.windows.with_learned(model, record.token_scale().window(model), spec.aliases.models())
}

/// In bytes of a request.
pub(in crate::turn) fn body_limit(record: &Record, spec: &Spec, model: &str) -> u64 {
    let learned = record.refused_parts(model).and_then(|it| it.body_limit);
    learned.unwrap_or_else(|| spec.windows.body_limit(model))
}

/// From now on it is this model: what its requests said of its window is forgotten.
pub fn model_fact(spec: &Spec, model: &str) -> Fact {
    Fact::Model {
        model: model.to_owned(),
        window: spec.windows.of(&spec.aliases.model_of(model), spec.aliases.models()),
    }
}

/// A refusal in unseen words may be about length, if the request was far larger than any that was taken.
pub(in crate::turn) fn note_growth(record: &Record, model: &str, failure: &mut Failure) {
    let scale = record.token_scale();
    let (tokens, taken) = (scale.pending_size(model).unwrap_or_default(), scale.largest_taken(model));
    let is_larger = taken > 0 && tokens > taken / 4 * 5;
    let is_unclear = matches!(failure.status, Some(400 | 422)) && classify(failure).class == FailureClass::BadRequest;
    if is_larger && is_unclear && overflow_words::may_be_length(&failure.message) {
        failure.details.words.push(overflow_words::OUTGROWN.to_owned());
    }
}

/// Takes in that a request has too many bytes. Where they are not those of media, its text has to be shortened.
fn learn_body_limit(step: &mut Step<'_>, model: &str, failure: &Failure) -> Option<ContextOverflow> {
    if classify(failure).class != FailureClass::BodyTooLarge {
        return None;
    }
    let size = body_size::of_turns(step.record.turns());
    let limit = overflow_words::read_byte_limit(&failure.message).filter(|it| *it < size).unwrap_or(size / 4 * 3);
    let is_text = body_size::of_media(step.record.turns()) < size / 4;
    let part = LeftOut::BytesAbove(limit.max(LEAST_BODY));
    step.log(Fact::LeftOut { model: model.to_owned(), part });
    is_text.then(ContextOverflow::default)
}

/// Tells whether a shorter conversation could make a difference.
pub(in crate::turn) fn is_long(record: &Record) -> bool {
    record.turns().iter().map(|it| tokens::of_turn(it)).sum::<u64>() >= LONG
}

/// Takes in what the failure of a request of `tokens` by the rule of thumb says.
pub(in crate::turn) fn learn_window(step: &mut Step<'_>, model: &str, tokens: u64, failure: &Failure) {
    let of_text = learn_body_limit(step, model, failure);
    let Some(ContextOverflow { window, size }) = read_overflow(failure).or(of_text) else { return };
    // Whoever refuses a few words as too long, and names no size, means something else.
    if window.is_none() && size.is_none() && !is_long(step.record) {
        return;
    }
    let scale = step.record.token_scale();
    let (real, taken) = (scale.model_tokens(model, tokens), scale.model_tokens(model, scale.largest_taken(model)));
    // A model reads what it has read: a number far below that counts something else.
    let window = window.filter(|it| *it >= taken / 2);
    // Who only says that it was too long has room for a part of it.
    let window = window.unwrap_or(size.unwrap_or(real) / 4 * 3);
    // An estimate that would have fit was too small.
    let size = size.unwrap_or_else(|| real.max(window / 10 * 11));
    step.log(Fact::Outgrown { model: model.to_owned(), window, size, tokens });
}
