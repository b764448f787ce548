//! Reaction to a failed model call: retry, fall back to another model, ask the user, or give up.

use crate::routing::{
    context_overflow::read_overflow,
    failure_class::{FailureClass, FailureFinding, MAX_SERVER_DELAY_MS, PolicyKind, classify},
    fallback_policies::{FallbackAction, FallbackPolicy, OutageTransition},
    health::CAPACITY_MS,
};
use castor_base::{
    clock::Now,
    fallback::{Outage, OutageCause},
    model::Failure,
    text::end_sentence,
};

/// Retry limits from the user's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPatience {
    /// Attempts in all, the first included; `None`: the user did not say.
    pub max_attempts: Option<u32>,
    /// Try again when the network is broken.
    pub retry_broken: bool,
}

impl Default for RetryPatience {
    fn default() -> Self {
        Self { max_attempts: None, retry_broken: true }
    }
}

/// Attempts in all where the user did not say, and where nobody sits: a job that waits for minutes only costs.
const MAX_ATTEMPTS: u32 = 10;
const MAX_UNATTENDED: u32 = 4;
/// If the server does not answer, or answers break off or are empty, the user should know soon.
const MAX_BROKEN: u32 = 4;
/// If another model may take over, waiting minutes for this one is too long.
const MAX_WITH_ANOTHER: u32 = 3;
/// A lack of room is looked past so often without a word.
const MAX_WITHOUT_ROOM: u32 = 3;
const FIRST_DELAY_MS: u64 = 5_000;
const FIRST_BROKEN_DELAY_MS: u64 = 1_000;
const FIRST_UNATTENDED_DELAY_MS: u64 = 2_000;
const NO_ROOM_DELAYS_MS: [u64; 2] = [1_000, 3_000];
const MAX_DELAY_MS: u64 = 30_000;
/// The jitter in percent, to both sides: many clients must not come back at the same instant.
const JITTER: u64 = 30;

/// A decision, with the reason that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureAction {
    /// `at_ms` is in milliseconds since the Unix epoch.
    RetryAt {
        at_ms: u64,
        why: String,
    },
    /// The same model is asked without the part that it refused.
    LeaveOut {
        why: String,
    },
    /// The same model is asked for less.
    Shorten {
        why: String,
    },
    /// Another model answers instead, by the user's settings.
    FallBack {
        model: String,
        why: String,
    },
    /// The user decides. `until`: when the server's limit is whole again, and in words how long that takes.
    Ask {
        why: String,
        model: Option<String>,
        until: Option<(u64, String)>,
    },
    /// A credential is read again, then the user is asked for another one.
    Renew {
        why: String,
    },
    GiveUp {
        why: String,
    },
}

impl FailureAction {
    /// For the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::RetryAt { .. } => "retry",
            Self::LeaveOut { .. } => "leave out",
            Self::Shorten { .. } => "shorten",
            Self::FallBack { .. } => "fall back",
            Self::Ask { .. } => "ask",
            Self::Renew { .. } => "renew",
            Self::GiveUp { .. } => "give up",
        }
    }
}

/// Attempts at one model for one answer, by kind; including the one that just failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    pub all: u32,
    /// The server did not answer, or the answer broke off or was empty.
    broken: u32,
    no_room: u32,
    too_long: u32,
}

impl AttemptCounts {
    pub fn count(&mut self, failure: &Failure) {
        let class = classify(failure).class;
        self.all = self.all.saturating_add(1);
        self.broken = self.broken.saturating_add(u32::from(is_broken(class)));
        self.no_room = self.no_room.saturating_add(u32::from(class == FailureClass::NoCapacity));
        self.too_long = self.too_long.saturating_add(u32::from(is_too_long(class)));
    }
}

/// All that the decision depends on, beside the failure.
#[derive(Clone, Copy, Debug)]
pub struct FailureCase<'a> {
    pub model: &'a str,
    pub tries: AttemptCounts,
    /// The model has one attempt in each turn.
    pub single_attempt: bool,
    /// Some of the answer was shown already.
    pub answer_shown: bool,
    /// Models that could take over.
    pub fallback: Option<&'a str>,
    /// The policy of the model that failed.
    pub policy: FallbackPolicy,
    /// The user can be asked.
    pub interactive: bool,
    /// The user can be asked for another credential, and was not asked yet.
    pub can_renew: bool,
    /// The conversation is long enough for a shorter one to be worth an attempt.
    pub is_long: bool,
    pub patience: RetryPatience,
    pub now: Now,
}

impl FailureCase<'_> {
    fn max_attempts(&self) -> u32 {
        let usual = if self.interactive { MAX_ATTEMPTS } else { MAX_UNATTENDED };
        self.patience.max_attempts.unwrap_or(usual)
    }
}

/// The action after a failure, by its meaning.
pub fn on_failure(failure: &Failure, case: FailureCase<'_>) -> FailureAction {
    let FailureFinding { class, delay_ms } = classify(failure);
    let too_long = delay_ms.is_some_and(|it| it > MAX_SERVER_DELAY_MS);
    let (n, most) = attempts(class, &case);
    if n < most && !too_long {
        let wait_ms = delay_ms.unwrap_or_else(|| jittered(back_off(class, n, case.interactive), case.now));
        let (what, wait) = (describe_failure(failure, class, case.model), duration_in_words(wait_ms));
        let again =
            if case.answer_shown { " What was shown of the answer does not count; it begins anew." } else { "" };
        let next = n.saturating_add(1);
        let why = format!("{what}{again} Trying again in {wait} (attempt {next} of {most}).");
        return FailureAction::RetryAt { at_ms: case.now.unix_ms.saturating_add(wait_ms), why };
    }
    // Once: whoever refuses the shorter one, too, counts in a way that nobody here knows.
    let helps = case.is_long || read_overflow(failure).is_some_and(|it| it.window.is_some());
    if case.tries.too_long == 1 && case.tries.all < case.max_attempts() && is_too_long(class) && helps {
        let what = describe_failure(failure, class, case.model);
        return FailureAction::Shorten { why: format!("{what} The conversation is shortened, and it is asked again.") };
    }
    stop_retrying(failure, FailureFinding { class, delay_ms }, most, case)
}

/// The outage to note of the model when another one takes over: not for its place in the chain, but for what happened
/// to it. `None`: it gets one attempt in each later turn.
pub fn outage(failure: &Failure, now_ms: u64) -> Option<Outage> {
    let FailureFinding { class, delay_ms } = classify(failure);
    let at = |ms: u64| now_ms.saturating_add(ms);
    match class {
        FailureClass::QuotaExhausted => Some(Outage { cause: OutageCause::Quota, until_ms: delay_ms.map(at) }),
        FailureClass::RateLimited => Some(Outage { cause: OutageCause::Limit, until_ms: delay_ms.map(at) }),
        FailureClass::NoCapacity => Some(Outage { cause: OutageCause::Capacity, until_ms: Some(at(CAPACITY_MS)) }),
        FailureClass::NotFound => Some(Outage { cause: OutageCause::Missing, until_ms: None }),
        _ => None,
    }
}

/// The same where a policy may say otherwise.
pub fn outage_by_policy(failure: &Failure, now_ms: u64, policy: FallbackPolicy) -> Option<Outage> {
    let found = outage(failure, now_ms);
    let FailureFinding { class, delay_ms } = classify(failure);
    match policy.transition(class.kind()) {
        None => found,
        Some(OutageTransition::StickyRetry) => None,
        // Nobody knows for how long: it is looked at again as one without capacity is.
        Some(OutageTransition::Terminal) => Some(found.unwrap_or_else(|| {
            let until_ms = Some(now_ms.saturating_add(delay_ms.unwrap_or(CAPACITY_MS)));
            Outage { cause: OutageCause::Capacity, until_ms }
        })),
    }
}

/// Tells whether a further attempt asks in another way: a new temperature, a word about what was wrong.
pub fn changes_request(failure: &Failure) -> bool {
    matches!(classify(failure).class, FailureClass::Stream | FailureClass::InvalidAnswer)
}

fn is_broken(class: FailureClass) -> bool {
    matches!(class, FailureClass::Connect | FailureClass::Stream | FailureClass::InvalidAnswer)
}

fn is_too_long(class: FailureClass) -> bool {
    matches!(class, FailureClass::ContextTooLong | FailureClass::BodyTooLarge)
}

/// The attempts so far, and the most there can be.
fn attempts(class: FailureClass, case: &FailureCase<'_>) -> (u32, u32) {
    let FailureCase { tries, patience, .. } = *case;
    let max_attempts = case.max_attempts();
    // Somebody else takes over, at once or after a question.
    let action = case.policy.action(class.kind());
    let another =
        case.fallback.is_some() && (action == Some(FallbackAction::Silent) || (action.is_some() && case.interactive));
    let (n, most) = match class {
        FailureClass::Connect | FailureClass::Stream if !patience.retry_broken => (tries.broken, 1),
        FailureClass::Connect | FailureClass::Stream | FailureClass::InvalidAnswer => (tries.broken, MAX_BROKEN),
        FailureClass::NoCapacity if another => (tries.no_room, MAX_WITHOUT_ROOM),
        FailureClass::Throttled | FailureClass::ServerError if another => {
            (tries.all, case.policy.max_attempts.unwrap_or(MAX_WITH_ANOTHER))
        }
        FailureClass::Throttled | FailureClass::ServerError | FailureClass::NoCapacity => (tries.all, max_attempts),
        FailureClass::QuotaExhausted
        | FailureClass::RateLimited
        | FailureClass::Validation
        | FailureClass::NotFound
        | FailureClass::ContextTooLong
        | FailureClass::BodyTooLarge
        | FailureClass::BadRequest
        | FailureClass::Auth
        | FailureClass::Garbage
        | FailureClass::Script
        | FailureClass::Panicked => (tries.all, 1),
    };
    match case.single_attempt && another && class != FailureClass::InvalidAnswer {
        true => (n, 1),
        // All attempts together stay within what the user wants.
        false if tries.all >= max_attempts => (n, n),
        false => (n, most.min(max_attempts)),
    }
}

/// No further attempt now: another model, a question, or the end.
fn stop_retrying(failure: &Failure, found: FailureFinding, most: u32, case: FailureCase<'_>) -> FailureAction {
    let FailureFinding { class, delay_ms } = found;
    let what = describe_failure(failure, class, case.model);
    let action = case.policy.action(class.kind());
    let stands_in = action.is_some();
    if let Some(next) = case.fallback.filter(|_| action == Some(FallbackAction::Silent)) {
        return FailureAction::FallBack { model: next.to_owned(), why: what };
    }
    if case.can_renew && class == FailureClass::Auth && failure.details.credential.is_some() {
        return FailureAction::Renew { why: end_sentence(&failure.message) };
    }
    let next = case.fallback.filter(|_| stands_in).map(str::to_owned);
    // Short waits were waited for already.
    let wait = delay_ms.filter(|it| stands_in && (*it > MAX_SERVER_DELAY_MS || class.kind() == PolicyKind::Terminal));
    let until = wait.map(|it| (case.now.unix_ms.saturating_add(it), duration_in_words(it)));
    if case.interactive && (next.is_some() || until.is_some() || class == FailureClass::Validation) {
        let tried = if most > 1 { format!(" It was tried {} times.", case.tries.all) } else { String::new() };
        // A rate limit has said it already.
        let named = until
            .as_ref()
            .filter(|_| class != FailureClass::RateLimited)
            .map(|(_, it)| format!(" The server asks to wait {it}."))
            .unwrap_or_default();
        let link = failure.details.link.as_ref().filter(|_| class == FailureClass::Validation);
        let link = link.map(|it| format!(" Confirm your account at {it}.")).unwrap_or_default();
        return FailureAction::Ask { why: format!("{what}{tried}{named}{link}"), model: next, until };
    }
    let message = end_sentence(&failure.message);
    let could = case.fallback.filter(|_| stands_in && !case.interactive);
    let could = could.map(|it| format!("To fall back to {it} automatically, set model.fallback.action to \"silent\"."));
    let advice = advice(failure, class, delay_ms, case);
    let texts = [message, advice, could.unwrap_or_default()];
    let texts: Vec<String> = texts.into_iter().filter(|it| !it.is_empty()).collect();
    FailureAction::GiveUp { why: texts.join(" ") }
}

/// Advice to the user.
fn advice(failure: &Failure, class: FailureClass, delay_ms: Option<u64>, case: FailureCase<'_>) -> String {
    let named = delay_ms.filter(|it| *it > MAX_SERVER_DELAY_MS).map(duration_in_words);
    match class {
        FailureClass::Connect
        | FailureClass::Stream
        | FailureClass::Throttled
        | FailureClass::ServerError
        | FailureClass::InvalidAnswer
        | FailureClass::NoCapacity => match named {
            Some(wait) => format!("The server asks to wait {wait}; try again then, or choose another model."),
            None => format!("Gave up after {} attempts; try again later.", case.tries.all),
        },
        FailureClass::RateLimited => match named {
            Some(wait) => format!("The rate limit lifts in {wait}; try again then, or choose another model."),
            None => "Try again later, or choose another model.".to_owned(),
        },
        FailureClass::QuotaExhausted => match named {
            Some(wait) => format!("The server asks to wait {wait}; try again then, or choose another model."),
            None => "The quota of this model is used up. Choose another model, or raise the quota.".to_owned(),
        },
        FailureClass::Validation => match &failure.details.link {
            Some(link) => format!("Confirm your account at {link}, then prompt again."),
            None => "Confirm your account with the provider, then prompt again.".to_owned(),
        },
        FailureClass::NotFound => "Check the model's name, or choose another model.".to_owned(),
        FailureClass::ContextTooLong => {
            "Shorten the conversation (`/clear` makes the model forget it), or choose a model with a larger context window."
                .to_owned()
        }
        FailureClass::BodyTooLarge => {
            "Leave out attachments, shorten the conversation (`/compress`), or choose another provider.".to_owned()
        }
        FailureClass::BadRequest => "Change what the message names, or choose another model.".to_owned(),
        // Their messages say what to check.
        FailureClass::Auth | FailureClass::Garbage => String::new(),
        FailureClass::Script => "Add what is missing to the file of --fake-responses.".to_owned(),
        FailureClass::Panicked => "Prompt again; if it stays so, report it with what stderr says.".to_owned(),
    }
}

/// Only where the server names no delay: a named one is kept as it is.
fn back_off(class: FailureClass, n: u32, interactive: bool) -> u64 {
    let at = n.saturating_sub(1);
    if class == FailureClass::NoCapacity
        && let Some(ms) = NO_ROOM_DELAYS_MS.get(at as usize)
    {
        return *ms;
    }
    let first = match is_broken(class) {
        true => FIRST_BROKEN_DELAY_MS,
        false if interactive => FIRST_DELAY_MS,
        false => FIRST_UNATTENDED_DELAY_MS,
    };
    first.saturating_mul(1 << at.min(16)).min(MAX_DELAY_MS)
}

fn jittered(delay_ms: u64, now: Now) -> u64 {
    let spread = delay_ms * JITTER / 100;
    delay_ms - spread + now.random(0) % (2 * spread + 1)
}

/// Model and cause, with the provider's own words.
fn describe_failure(failure: &Failure, class: FailureClass, model: &str) -> String {
    let message = end_sentence(&failure.message);
    match (class, failure.status) {
        (FailureClass::Throttled, _) => format!("The rate limit of {model} is reached: {message}"),
        (FailureClass::RateLimited, status) => {
            let wait = duration_in_words(failure.retry_after_ms.unwrap_or_default());
            match status {
                Some(429) | None => format!("The rate limit of {model} is reached and lifts in {wait}: {message}"),
                Some(status) => {
                    format!("The server of {model} has a problem ({status}) and asks to wait {wait}: {message}")
                }
            }
        }
        (FailureClass::QuotaExhausted, _) => format!("The quota of {model} is used up: {message}"),
        (FailureClass::NoCapacity, _) => format!("The provider has no capacity for {model} now: {message}"),
        (FailureClass::ServerError, Some(status)) => {
            format!("The server of {model} has a problem ({status}): {message}")
        }
        (FailureClass::NotFound, _) => format!("There is no model {model} for this key: {message}"),
        _ => format!("{model}: {message}"),
    }
}

/// `0.9 s`, `12 s`, `6 min`, `2.5 h`.
pub fn duration_in_words(ms: u64) -> String {
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
mod tests;
