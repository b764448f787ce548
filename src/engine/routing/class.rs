//! What a failed model call means: from the provider's words, limits and status to one class.

use crate::base::model::{Failure, FailureKind};

/// What a model call can end with, where it does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Too much for the moment; another attempt will do.
    Throttled,
    /// A quota is used up, for longer than anybody waits in front of a screen.
    Spent,
    /// Too much for the moment, and for longer than anybody waits; nobody spoke of a quota.
    Limited,
    /// The provider has no room for this model just now.
    Capacity,
    /// The server has a problem.
    Server,
    /// The provider wants the user to confirm the account first.
    Validation,
    /// No such model, or not for this key.
    NotFound,
    /// The conversation is longer than the model reads.
    TooLong,
    /// The request is not accepted as it is.
    Refused,
    /// Key missing or refused.
    Auth,
    Connect,
    Stream,
    /// The answer ended well, but is none.
    Invalid,
    Garbage,
    Script,
    Panicked,
}

/// What a policy can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Waiting does not help soon.
    Terminal,
    Transient,
    NotFound,
    /// Another model would not help, or nobody knows.
    Unknown,
}

/// A class, and how long the server asks to wait, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub class: Class,
    pub delay_ms: Option<u64>,
}

/// Nobody wants to watch a prompt wait for longer.
pub const MAX_SERVER_DELAY_MS: u64 = 300_000;
/// A limit by the minute is whole again after one.
const MINUTE_MS: u64 = 60_000;

impl Kind {
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

impl Class {
    /// For logs and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Spent => "spent",
            Self::Limited => "limited",
            Self::Capacity => "capacity",
            Self::Server => "server",
            Self::Validation => "validation",
            Self::NotFound => "not_found",
            Self::TooLong => "too_long",
            Self::Refused => "refused",
            Self::Auth => "auth",
            Self::Connect => "connect",
            Self::Stream => "stream",
            Self::Invalid => "invalid",
            Self::Garbage => "garbage",
            Self::Script => "script",
            Self::Panicked => "panicked",
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Spent | Self::Limited | Self::Capacity => Kind::Terminal,
            Self::Throttled | Self::Server | Self::Connect | Self::Stream => Kind::Transient,
            Self::NotFound => Kind::NotFound,
            Self::Validation
            | Self::TooLong
            | Self::Refused
            | Self::Auth
            | Self::Invalid
            | Self::Garbage
            | Self::Script
            | Self::Panicked => Kind::Unknown,
        }
    }
}

/// What the providers call what, before their status says anything; the first that is there.
const WORDS: &[(&str, Class)] = &[
    // OpenAI and who speaks like it.
    ("insufficient_quota", Class::Spent),
    ("billing_hard_limit_reached", Class::Spent),
    ("billing_not_active", Class::Spent),
    ("context_length_exceeded", Class::TooLong),
    // llama.cpp.
    ("exceed_context_size_error", Class::TooLong),
    ("model_not_found", Class::NotFound),
    // Anthropic.
    ("billing_error", Class::Spent),
    ("request_too_large", Class::TooLong),
    ("not_found_error", Class::NotFound),
    ("overloaded_error", Class::Server),
    // Google.
    ("MODEL_CAPACITY_EXHAUSTED", Class::Capacity),
    ("MODEL_CAPACITY_EXCEEDED", Class::Capacity),
    ("INSUFFICIENT_G1_CREDITS_BALANCE", Class::Spent),
];

/// Parts of messages, in lower case, that tell more than their status.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "exceeds the context window",
    "exceeds the context length",
    "exceed context limit",
    "exceeded max context length",
    "exceeds the available context size",
    "exceed the configured limit",
    "context length is only",
    "context length of only",
    "longer than the model's context length",
    "too large for model with",
    // More than a minute's limit allows at once: no attempt can work.
    "request too large for",
];
const SPENT: &[&str] = &["credit balance is too low", "insufficient balance"];
/// What providers call a limit that is not of the moment.
const QUOTA: &[&str] = &["quota", "daily", "per day", "per month", "exhausted", "credit", "billing"];
const NO_ROOM: &[&str] = &["exhausted your capacity", "capacity exceeded", "model_capacity_exhausted"];

/// The class of a failure. A short delay does not bring back what is used up.
pub fn classify(failure: &Failure) -> Finding {
    let Finding { class, delay_ms } = by_kind(failure);
    let delay_ms = delay_ms.filter(|it| class != Class::Spent || *it > MAX_SERVER_DELAY_MS);
    Finding { class, delay_ms }
}

fn by_kind(failure: &Failure) -> Finding {
    let found = |class| Finding { class, delay_ms: failure.retry_after_ms };
    match failure.kind {
        FailureKind::Connect => found(Class::Connect),
        FailureKind::Stream => found(Class::Stream),
        FailureKind::Invalid => found(Class::Invalid),
        FailureKind::Garbage => found(Class::Garbage),
        FailureKind::Auth => found(Class::Auth),
        FailureKind::Script => found(Class::Script),
        FailureKind::Panicked => found(Class::Panicked),
        FailureKind::Status => by_answer(failure),
    }
}

fn by_answer(failure: &Failure) -> Finding {
    let status = failure.status.unwrap_or(500);
    let (message, details) = (failure.message.to_lowercase(), &failure.details);
    let says = |word: &str| details.words.iter().any(|it| it == word);
    let mentions = |parts: &[&str]| parts.iter().any(|it| message.contains(it));
    let found = |class| Finding { class, delay_ms: failure.retry_after_ms };
    if status == 403 && says("VALIDATION_REQUIRED") {
        return found(Class::Validation);
    }
    if let Some((_, class)) = WORDS.iter().find(|(word, _)| says(word)) {
        return found(*class);
    }
    match status {
        404 => found(Class::NotFound),
        402 => found(Class::Spent),
        413 => found(Class::TooLong),
        _ if mentions(TOO_LONG) => found(Class::TooLong),
        429 | 499 | 503 => by_quota(failure, status, mentions(NO_ROOM)),
        400 | 403 if mentions(SPENT) => found(Class::Spent),
        408 | 500..=599 => found(Class::Server),
        _ => found(Class::Refused),
    }
}

/// What limits say, the strictest first. A limit of nought has precedence over any delay; so has one by the day.
fn by_quota(failure: &Failure, status: u16, no_room: bool) -> Finding {
    let details = &failure.details;
    let says = |word: &str| details.words.iter().any(|it| it == word);
    let limits = |part: &str| details.limits.iter().any(|it| it.contains(part));
    let delay = failure.retry_after_ms;
    let found = |class| Finding { class, delay_ms: delay };
    // Code Assist means its own quotas: without a delay they do not come back soon.
    let assist =
        details.domain.as_deref().is_some_and(|it| it.contains("cloudcode-pa.") && it.ends_with(".googleapis.com"));
    if has_zero_limit(&failure.message) || limits("PerDay") || limits("Daily") {
        return found(Class::Spent);
    }
    if assist && (says("QUOTA_EXHAUSTED") || (says("RATE_LIMIT_EXCEEDED") && delay.is_none())) {
        return found(Class::Spent);
    }
    match (delay, status) {
        (Some(ms), _) if ms > MAX_SERVER_DELAY_MS => {
            let message = failure.message.to_lowercase();
            let is_quota = QUOTA.iter().any(|it| message.contains(it));
            found(if is_quota { Class::Spent } else { Class::Limited })
        }
        (Some(_), 429) => found(Class::Throttled),
        (Some(_), _) => found(Class::Server),
        (None, _) if limits("PerMinute") => Finding { class: Class::Throttled, delay_ms: Some(MINUTE_MS) },
        (None, _) if no_room => found(Class::Capacity),
        (None, 429) => found(Class::Throttled),
        (None, _) => found(Class::Server),
    }
}

/// Whether the provider speaks of a limit of nought (not of 0.5): this model is not in the plan.
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
