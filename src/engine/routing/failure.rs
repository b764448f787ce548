//! What to do when a model call failed: wait and try again, or say why not.

use crate::base::{
    model::{Failure, FailureKind},
    now::Now,
    text::sentence,
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
/// Nobody wants to watch a prompt wait for longer.
const MAX_SERVER_DELAY_MS: u64 = 300_000;
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
    if let Some(why) = hopeless(failure) {
        return OnFailure::GiveUp { why };
    }
    if shown {
        let message = sentence(&failure.message);
        return OnFailure::GiveUp { why: format!("{message} Part of the answer had arrived; prompt again to go on.") };
    }
    let connect = failure.kind == FailureKind::Connect;
    let broken = connect || failure.kind == FailureKind::Stream;
    let most = match (broken && !patience.retry_broken, connect) {
        (true, _) => 1,
        (false, true) => patience.max_attempts.min(MAX_CONNECT_ATTEMPTS),
        (false, false) => patience.max_attempts,
    };
    if attempt >= most {
        let message = sentence(&failure.message);
        return OnFailure::GiveUp { why: format!("{message} Gave up after {attempt} attempts; try again later.") };
    }
    let wait_ms = match failure.retry_after_ms {
        Some(it) => it,
        None => jittered(back_off(connect, attempt), now),
    };
    let (what, wait) = (what(failure), seconds(wait_ms));
    let why = format!("{what} Trying again in {wait} (attempt {} of {most}).", attempt.saturating_add(1));
    OnFailure::RetryAt { at_ms: now.unix_ms.saturating_add(wait_ms), why }
}

/// Why no number of attempts can help; `None` where one may.
fn hopeless(failure: &Failure) -> Option<String> {
    let message = sentence(&failure.message);
    match failure.kind {
        FailureKind::Auth => Some(format!("{message} Check the API key and the model's settings.")),
        FailureKind::Script => Some(format!("{message} Add what is missing to the file of --fake-responses.")),
        FailureKind::Panicked => {
            Some(format!("{message} Prompt again; if it stays so, report it with what stderr says."))
        }
        FailureKind::Garbage => Some(format!("{message} Check the base URL: this may not be the model's API.")),
        FailureKind::Connect | FailureKind::Stream => None,
        FailureKind::Status => hopeless_status(failure, message),
    }
}

fn hopeless_status(failure: &Failure, message: String) -> Option<String> {
    let status = failure.status.unwrap_or(500);
    let retryable = matches!(status, 408 | 429 | 499 | 500..=599);
    if status == 404 {
        return Some(format!("{message} Check the model's name, or choose another model."));
    }
    if !retryable {
        return Some(format!("{message} Shorten or change the prompt, or choose another model."));
    }
    if failure.message.contains("daily quota") || has_zero_limit(&failure.message) {
        return Some(format!("{message} Choose another model, or raise the quota."));
    }
    let wait = failure.retry_after_ms.filter(|it| *it > MAX_SERVER_DELAY_MS)?;
    Some(format!("{message} The server asks to wait {}; try again then, or choose another model.", seconds(wait)))
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

fn back_off(connect: bool, attempt: u32) -> u64 {
    let first = if connect { FIRST_CONNECT_DELAY_MS } else { FIRST_DELAY_MS };
    let doubled = first.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled.min(MAX_DELAY_MS)
}

fn jittered(delay_ms: u64, now: Now) -> u64 {
    let spread = delay_ms * JITTER / 100;
    delay_ms - spread + now.dice(0) % (2 * spread + 1)
}

fn what(failure: &Failure) -> String {
    let message = sentence(&failure.message);
    match failure.status {
        Some(429) => format!("The model's rate limit is reached: {message}"),
        Some(status) if status >= 500 => format!("The model's server has a problem ({status}): {message}"),
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
        Failure { kind: FailureKind::Status, status: Some(status), message: message.to_owned(), retry_after_ms }
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
            (status(429, "You have exhausted your daily quota on this model.", Some(5)), false),
            (status(429, "Quota exceeded, limit: 0", None), false),
            (status(429, "Quota exceeded, limit: 0.", None), false),
            (status(429, "Quota exceeded, limit: 0.5", None), true),
            (status(429, "Quota exceeded, limit: 10", None), true),
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
