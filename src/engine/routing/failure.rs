//! What to do when a model call failed: wait and try again, or say why not.

use crate::{
    base::{model::Failure, now::Now, text::sentence},
    engine::routing::class::{Class, Finding, MAX_SERVER_DELAY_MS, classify},
};

/// How long to go on, by the user's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Attempts in all, the first included.
    pub max_attempts: u32,
    /// Whether to try again when the network is the trouble.
    pub retry_broken: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self { max_attempts: 10, retry_broken: true }
    }
}

/// Where nobody answers, people should be told soon.
const MAX_CONNECT_ATTEMPTS: u32 = 4;
const FIRST_DELAY_MS: u64 = 5_000;
const FIRST_CONNECT_DELAY_MS: u64 = 1_000;
const MAX_DELAY_MS: u64 = 30_000;
/// In percent, to both sides: many clients must not come back at the same instant.
const JITTER: u64 = 30;

/// A decision, with the reason that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// `at_ms` is in milliseconds since the Unix epoch.
    RetryAt {
        at_ms: u64,
        why: String,
    },
    GiveUp {
        why: String,
    },
}

/// `attempt` is the number of the failed attempt, from 1. `shown`: some of its answer was shown already.
pub fn on_failure(failure: &Failure, attempt: u32, shown: bool, now: Now, patience: Patience) -> OnFailure {
    let Finding { class, delay_ms } = classify(failure);
    if let Some(why) = hopeless(failure, class, delay_ms) {
        return OnFailure::GiveUp { why };
    }
    if shown {
        let message = sentence(&failure.message);
        return OnFailure::GiveUp { why: format!("{message} Part of the answer had arrived; prompt again to go on.") };
    }
    let connect = class == Class::Connect;
    let broken = connect || class == Class::Stream;
    let most = match (broken && !patience.retry_broken, connect) {
        (true, _) => 1,
        (false, true) => patience.max_attempts.min(MAX_CONNECT_ATTEMPTS),
        (false, false) => patience.max_attempts,
    };
    if attempt >= most {
        let message = sentence(&failure.message);
        return OnFailure::GiveUp { why: format!("{message} Gave up after {attempt} attempts; try again later.") };
    }
    let wait_ms = match delay_ms {
        Some(it) => it,
        None => jittered(back_off(connect, attempt), now),
    };
    let (what, wait) = (what(failure, class), seconds(wait_ms));
    let why = format!("{what} Trying again in {wait} (attempt {} of {most}).", attempt.saturating_add(1));
    OnFailure::RetryAt { at_ms: now.unix_ms.saturating_add(wait_ms), why }
}

/// Why no number of attempts can help, and what can; `None` where one may.
fn hopeless(failure: &Failure, class: Class, delay_ms: Option<u64>) -> Option<String> {
    let todo = match class {
        Class::Connect | Class::Stream | Class::Throttled | Class::Server | Class::Invalid => {
            let wait = delay_ms.filter(|it| *it > MAX_SERVER_DELAY_MS)?;
            format!("The server asks to wait {}; try again then, or choose another model.", seconds(wait))
        }
        Class::Spent | Class::Capacity => match delay_ms.filter(|it| *it > MAX_SERVER_DELAY_MS) {
            Some(wait) => {
                format!("The server asks to wait {}; try again then, or choose another model.", seconds(wait))
            }
            None => "The quota of this model is used up. Choose another model, or raise the quota.".to_owned(),
        },
        Class::Validation => match &failure.details.link {
            Some(link) => format!("Confirm your account at {link}, then prompt again."),
            None => "Confirm your account with the provider, then prompt again.".to_owned(),
        },
        Class::NotFound => "Check the model's name, or choose another model.".to_owned(),
        Class::TooLong => "Shorten the conversation (`/clear` lets the model forget it), or choose a model that reads \
                           more."
            .to_owned(),
        Class::Refused => "Shorten or change the prompt, or choose another model.".to_owned(),
        Class::Auth => "Check the API key and the model's settings.".to_owned(),
        Class::Garbage => "Check the base URL: this may not be the model's API.".to_owned(),
        Class::Script => "Add what is missing to the file of --fake-responses.".to_owned(),
        Class::Panicked => "Prompt again; if it stays so, report it with what stderr says.".to_owned(),
    };
    Some(format!("{} {todo}", sentence(&failure.message)))
}

fn back_off(connect: bool, attempt: u32) -> u64 {
    let first = if connect { FIRST_CONNECT_DELAY_MS } else { FIRST_DELAY_MS };
    let doubled = first.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled.min(MAX_DELAY_MS)
}

fn jittered(delay_ms: u64, now: Now) -> u64 {
    let spread = delay_ms * JITTER / 100;
    delay_ms - spread + now.dice(0) % (2 * spread + 1)
}

fn what(failure: &Failure, class: Class) -> String {
    let message = sentence(&failure.message);
    match (class, failure.status) {
        (Class::Throttled, _) => format!("The model's rate limit is reached: {message}"),
        (Class::Server, Some(status)) => format!("The model's server has a problem ({status}): {message}"),
        _ => message,
    }
}

/// `0.9 s`, `12 s`, `6 min`, `2.5 h`.
fn seconds(ms: u64) -> String {
    let tenths = |it: u64, unit: &str| match it % 10 {
        0 => format!("{} {unit}", it / 10),
        rest => format!("{}.{rest} {unit}", it / 10),
    };
    match ms {
        0..10_000 => tenths(ms.div_ceil(100), "s"),
        10_000..120_000 => format!("{} s", ms.div_ceil(1_000)),
        120_000..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        _ => tenths(ms.div_ceil(360_000), "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::{OnFailure, Patience, on_failure};
    use crate::base::{
        model::{Failure, FailureKind},
        now::Now,
    };

    const NOW: Now = Now { unix_ms: 1_000_000, seed: 7 };

    fn status(status: u16, message: &str, retry_after_ms: Option<u64>) -> Failure {
        Failure { status: Some(status), retry_after_ms, ..Failure::new(FailureKind::Status, message) }
    }

    /// The wait in milliseconds; `None`: given up.
    fn wait(failure: &Failure, attempt: u32, shown: bool, seed: u64) -> Option<u64> {
        match on_failure(failure, attempt, shown, Now { seed, ..NOW }, Patience::default()) {
            OnFailure::RetryAt { at_ms, .. } => Some(at_ms - NOW.unix_ms),
            OnFailure::GiveUp { .. } => None,
        }
    }

    #[test]
    fn waits() {
        let connect = Failure::new(FailureKind::Connect, "refused");
        let stream = Failure::new(FailureKind::Stream, "broke");
        let overloaded = status(503, "overloaded", None);
        let table: &[(&Failure, u32, Option<u64>)] = &[
            (&connect, 1, Some(1_000)),
            (&connect, 2, Some(2_000)),
            (&connect, 3, Some(4_000)),
            (&connect, 4, None),
            (&stream, 1, Some(5_000)),
            (&overloaded, 2, Some(10_000)),
            (&overloaded, 3, Some(20_000)),
            (&overloaded, 4, Some(30_000)),
            (&overloaded, 9, Some(30_000)),
            (&overloaded, 10, None),
            (&overloaded, u32::MAX, None),
        ];
        for (failure, attempt, expected) in table {
            for seed in 0..200 {
                let got = wait(failure, *attempt, false, seed);
                assert_eq!(got.is_some(), expected.is_some(), "{failure:?} {attempt}");
                let (got, middle) = (got.unwrap_or_default(), expected.unwrap_or_default());
                assert!((middle * 7 / 10..=middle * 13 / 10).contains(&got), "{failure:?} {attempt}: {got}");
            }
        }
        let waits: std::collections::BTreeSet<_> = (0..50).map(|seed| wait(&connect, 1, false, seed)).collect();
        assert!(waits.len() > 30, "{waits:?}");
    }

    #[test]
    fn a_named_delay_is_kept_exactly() {
        for ms in [0, 1, 900, 34_070, 300_000] {
            assert_eq!(wait(&status(429, "slow down", Some(ms)), 3, false, 9), Some(ms));
        }
        assert_eq!(wait(&status(429, "slow down", Some(300_001)), 1, false, 9), None);
    }

    #[test]
    fn retried_or_not() {
        let of = |kind| Failure::new(kind, "m");
        let table = [
            (status(408, "", None), true),
            (status(429, "", None), true),
            (status(499, "", None), true),
            (status(500, "", None), true),
            (status(504, "", None), true),
            (status(400, "", None), false),
            (status(404, "", None), false),
            (status(413, "", None), false),
            (status(307, "", None), false),
            (status(429, "Quota exceeded, limit: 0", None), false),
            (of(FailureKind::Connect), true),
            (of(FailureKind::Stream), true),
            (of(FailureKind::Status), true),
            (of(FailureKind::Auth), false),
            (of(FailureKind::Script), false),
            (of(FailureKind::Garbage), false),
            (of(FailureKind::Panicked), false),
        ];
        for (failure, retried) in table {
            assert_eq!(wait(&failure, 1, false, 1).is_some(), retried, "{failure:?}");
            assert_eq!(wait(&failure, 1, true, 1), None, "{failure:?} after something was shown");
        }
    }

    #[test]
    fn settings_say_how_long_to_go_on() {
        let goes_on = |failure: &Failure, attempt, max_attempts, retry_broken| {
            let patience = Patience { max_attempts, retry_broken };
            matches!(on_failure(failure, attempt, false, NOW, patience), OnFailure::RetryAt { .. })
        };
        let (connect, busy) = (Failure::new(FailureKind::Connect, "refused"), status(503, "busy", None));
        assert!(goes_on(&busy, 1, 2, true) && !goes_on(&busy, 2, 2, true) && goes_on(&busy, 1, 2, false));
        assert!(!goes_on(&busy, 1, 1, true));
        assert!(goes_on(&connect, 1, 2, true) && !goes_on(&connect, 2, 2, true) && !goes_on(&connect, 1, 9, false));
    }

    #[test]
    fn words() {
        let text =
            |failure: &Failure, attempt, shown| match on_failure(failure, attempt, shown, NOW, Patience::default()) {
                OnFailure::RetryAt { why, .. } | OnFailure::GiveUp { why } => why,
            };
        let table = [
            (
                text(&status(429, "Resource exhausted", Some(1_000)), 1, false),
                "The model's rate limit is reached: Resource exhausted. Trying again in 1 s (attempt 2 of 10).",
            ),
            (
                text(&status(503, "Overloaded.", Some(34_070)), 2, false),
                "The model's server has a problem (503): Overloaded. Trying again in 35 s (attempt 3 of 10).",
            ),
            (
                text(&status(429, "Quota", Some(9_000_000)), 1, false),
                "Quota. The server asks to wait 2.5 h; try again then, or choose another model.",
            ),
            (
                text(&Failure::new(FailureKind::Auth, "API key not valid."), 1, false),
                "API key not valid. Check the API key and the model's settings.",
            ),
            (
                text(&Failure::new(FailureKind::Connect, "refused"), 4, false),
                "refused. Gave up after 4 attempts; try again later.",
            ),
            (
                text(&Failure::new(FailureKind::Stream, "It broke."), 1, true),
                "It broke. Part of the answer had arrived; prompt again to go on.",
            ),
        ];
        for (got, expected) in table {
            assert_eq!(got, expected);
        }
    }
}
