//! Classes of model failures: from the provider's words, limits and HTTP status to one class.

use crate::routing::overflow_words::{TooLong, read_words};
use castor_base::model::{Failure, FailureKind};

/// Classes of failed model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// Too much for the moment; another attempt will do.
    Throttled,
    /// A quota is used up, for longer than a user waits.
    QuotaExhausted,
    /// A rate limit for longer than a user waits; the provider did not name a quota.
    RateLimited,
    /// The provider has no room for this model just now.
    NoCapacity,
    /// The server has a problem.
    ServerError,
    /// The provider wants the user to confirm the account first.
    Validation,
    /// No such model, or not for this key.
    NotFound,
    /// The conversation is longer than the model reads.
    ContextTooLong,
    /// The request has more bytes than the server takes.
    BodyTooLarge,
    /// The request is not accepted as it is.
    BadRequest,
    /// Key missing or refused.
    Auth,
    Connect,
    Stream,
    /// The answer ended well, but is none.
    InvalidAnswer,
    Garbage,
    Script,
    Panicked,
}

/// Kinds of failures for policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Waiting does not help soon.
    Terminal,
    Transient,
    NotFound,
    /// Another model would not help, or this is unknown.
    Unknown,
}

/// A class, and how long the server asks to wait, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureFinding {
    pub class: FailureClass,
    pub delay_ms: Option<u64>,
}

/// A prompt does not wait for longer.
pub const MAX_SERVER_DELAY_MS: u64 = 300_000;
/// A limit by the minute is whole again after one.
const MINUTE_MS: u64 = 60_000;

impl PolicyKind {
    pub const ALL: [Self; 4] = [Self::Terminal, Self::Transient, Self::NotFound, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Transient => "transient",
            Self::NotFound => "not_found",
            Self::Unknown => "unknown",
        }
    }
}

impl FailureClass {
    /// For logs and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::QuotaExhausted => "spent",
            Self::RateLimited => "limited",
            Self::NoCapacity => "capacity",
            Self::ServerError => "server",
            Self::Validation => "validation",
            Self::NotFound => "not_found",
            Self::ContextTooLong => "too_long",
            Self::BodyTooLarge => "too_large",
            Self::BadRequest => "refused",
            Self::Auth => "auth",
            Self::Connect => "connect",
            Self::Stream => "stream",
            Self::InvalidAnswer => "invalid",
            Self::Garbage => "garbage",
            Self::Script => "script",
            Self::Panicked => "panicked",
        }
    }

    pub fn kind(self) -> PolicyKind {
        match self {
            Self::QuotaExhausted | Self::RateLimited | Self::NoCapacity => PolicyKind::Terminal,
            Self::Throttled | Self::ServerError | Self::Connect | Self::Stream => PolicyKind::Transient,
            Self::NotFound => PolicyKind::NotFound,
            Self::Validation
            | Self::ContextTooLong
            | Self::BodyTooLarge
            | Self::BadRequest
            | Self::Auth
            | Self::InvalidAnswer
            | Self::Garbage
            | Self::Script
            | Self::Panicked => PolicyKind::Unknown,
        }
    }
}

/// Words of providers for each class, before their status says anything; the first that is there.
const WORDS: &[(&str, FailureClass)] = &[
    // OpenAI and who speaks like it.
    ("insufficient_quota", FailureClass::QuotaExhausted),
    ("billing_hard_limit_reached", FailureClass::QuotaExhausted),
    ("billing_not_active", FailureClass::QuotaExhausted),
    ("model_not_found", FailureClass::NotFound),
    // Anthropic.
    ("billing_error", FailureClass::QuotaExhausted),
    ("not_found_error", FailureClass::NotFound),
    ("overloaded_error", FailureClass::ServerError),
    // Google.
    ("MODEL_CAPACITY_EXHAUSTED", FailureClass::NoCapacity),
    ("MODEL_CAPACITY_EXCEEDED", FailureClass::NoCapacity),
    ("INSUFFICIENT_G1_CREDITS_BALANCE", FailureClass::QuotaExhausted),
];

const SPENT: &[&str] = &["credit balance is too low", "insufficient balance"];
/// Words of providers for a limit that is not of the moment.
const QUOTA: &[&str] = &["quota", "daily", "per day", "per month", "exhausted", "credit", "billing"];
const NO_ROOM: &[&str] = &["exhausted your capacity", "capacity exceeded", "model_capacity_exhausted"];

/// The class of a failure. A short delay does not bring back what is used up.
pub fn classify(failure: &Failure) -> FailureFinding {
    let FailureFinding { class, delay_ms } = by_kind(failure);
    let delay_ms = delay_ms.filter(|it| class != FailureClass::QuotaExhausted || *it > MAX_SERVER_DELAY_MS);
    FailureFinding { class, delay_ms }
}

fn by_kind(failure: &Failure) -> FailureFinding {
    let found = |class| FailureFinding { class, delay_ms: failure.retry_after_ms };
    match failure.kind {
        FailureKind::Connect => found(FailureClass::Connect),
        FailureKind::Stream => found(FailureClass::Stream),
        FailureKind::Invalid => found(FailureClass::InvalidAnswer),
        FailureKind::Garbage => found(FailureClass::Garbage),
        FailureKind::Auth => found(FailureClass::Auth),
        FailureKind::Script => found(FailureClass::Script),
        FailureKind::Panicked => found(FailureClass::Panicked),
        FailureKind::Status => by_answer(failure),
    }
}

fn by_answer(failure: &Failure) -> FailureFinding {
    let status = failure.status.unwrap_or(500);
    let (message, details) = (failure.message.to_lowercase(), &failure.details);
    let says = |word: &str| details.words.iter().any(|it| it == word);
    let mentions = |parts: &[&str]| parts.iter().any(|it| message.contains(it));
    let found = |class| FailureFinding { class, delay_ms: failure.retry_after_ms };
    if status == 403 && says("VALIDATION_REQUIRED") {
        return found(FailureClass::Validation);
    }
    if let Some((_, class)) = WORDS.iter().find(|(word, _)| says(word)) {
        return found(*class);
    }
    let too_long = read_words(&failure.message, &details.words);
    match status {
        404 => found(FailureClass::NotFound),
        402 => found(FailureClass::QuotaExhausted),
        _ if too_long == Some(TooLong::Tokens) => found(FailureClass::ContextTooLong),
        413 => found(FailureClass::BodyTooLarge),
        400 | 422 if too_long == Some(TooLong::Bytes) => found(FailureClass::BodyTooLarge),
        429 | 499 | 503 => by_quota(failure, status, mentions(NO_ROOM)),
        400 | 403 if mentions(SPENT) => found(FailureClass::QuotaExhausted),
        408 | 500..=599 => found(FailureClass::ServerError),
        _ => found(FailureClass::BadRequest),
    }
}

/// The finding by limits, the strictest first. A limit of nought has precedence over any delay; so has one by the day.
fn by_quota(failure: &Failure, status: u16, no_room: bool) -> FailureFinding {
    let details = &failure.details;
    let says = |word: &str| details.words.iter().any(|it| it == word);
    let limits = |part: &str| details.limits.iter().any(|it| it.contains(part));
    let delay = failure.retry_after_ms;
    let found = |class| FailureFinding { class, delay_ms: delay };
    // Code Assist means its own quotas: without a delay they do not come back soon.
    let assist =
        details.domain.as_deref().is_some_and(|it| it.contains("cloudcode-pa.") && it.ends_with(".googleapis.com"));
    if has_zero_limit(&failure.message) || limits("PerDay") || limits("Daily") {
        return found(FailureClass::QuotaExhausted);
    }
    if assist && (says("QUOTA_EXHAUSTED") || (says("RATE_LIMIT_EXCEEDED") && delay.is_none())) {
        return found(FailureClass::QuotaExhausted);
    }
    match (delay, status) {
        (Some(ms), _) if ms > MAX_SERVER_DELAY_MS => {
            let message = failure.message.to_lowercase();
            let is_quota = QUOTA.iter().any(|it| message.contains(it));
            found(if is_quota { FailureClass::QuotaExhausted } else { FailureClass::RateLimited })
        }
        (Some(_), 429) => found(FailureClass::Throttled),
        (Some(_), _) => found(FailureClass::ServerError),
        (None, _) if limits("PerMinute") => {
            FailureFinding { class: FailureClass::Throttled, delay_ms: Some(MINUTE_MS) }
        }
        (None, _) if no_room => found(FailureClass::NoCapacity),
        (None, 429) => found(FailureClass::Throttled),
        (None, _) => found(FailureClass::ServerError),
    }
}

/// Tells whether the provider speaks of a limit of nought (not of 0.5): this model is not in the plan.
fn has_zero_limit(message: &str) -> bool {
    message.match_indices("limit: 0").any(|(at, found)| {
        let rest = message.get(at + found.len()..).unwrap_or_default();
        let mut chars = rest.chars();
        match chars.next() {
            Some('.') => !chars.next().is_some_and(|it| it.is_ascii_digit()),
            Some(it) => !it.is_ascii_digit(),
            None => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::has_zero_limit;

    #[test]
    fn a_limit_of_nought() {
        for (message, is) in [
            ("Quota exceeded, limit: 0", true),
            ("Quota exceeded, limit: 0.", true),
            ("limit: 0, model: x", true),
            ("Quota exceeded, limit: 0.5", false),
            ("Quota exceeded, limit: 10 limit: 01", false),
        ] {
            assert_eq!(has_zero_limit(message), is, "{message}");
        }
    }
}
