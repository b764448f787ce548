//! The table of endings: why a turn stopped, and what user, client and log are told.

use crate::scheduler::CancelReason;
use castor_base::{
    agent::TaskResult,
    event::{EndReason, PromptOutcome, Status, StopKind},
    limits::{LimitKind, LimitSpan, ReachedLimit},
    model::{Details, Failure, FailureKind},
    text::end_sentence,
};

/// The cause of a turn's end.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    Completed,
    /// A sub-agent handed in its result.
    TaskCompleted(TaskResult),
    /// A sub-agent answered without a call.
    NoCompleteTask,
    /// A member of a composite failed: the reason, with the results so far.
    MemberFailed(String),
    /// This agent goes on in the session, with the same prompt.
    Transferred(String),
    /// The host runs calls, and the next prompt brings their results.
    CallsReturned,
    /// The client shows no such questions: this is asked in a message, and the next prompt is the answer.
    AskedInText(String),
    MaxTokens,
    /// The provider's word for it.
    Safety(String),
    /// The answer has nothing for the user.
    Empty(EmptyAnswer),
    /// No further attempt; `why` says what happened and what to do.
    ModelError {
        failure: Failure,
        why: String,
    },
    /// The model does not answer, and the user wants to come back.
    Deferred {
        why: String,
        /// The wait that the server asks for.
        when: Option<String>,
    },
    /// There is more to be said to the model than it reads at once, in tokens.
    TooLong {
        model: String,
        size: u64,
        window: u64,
    },
    /// The same, in bytes that its server takes.
    BodyTooLarge {
        model: String,
        size: u64,
        limit: u64,
    },
    /// The model was asked this often.
    MaxSamples(u32),
    /// Turn or session may go no further.
    Limit(ReachedLimit),
    /// Money is limited, and the model's price is unknown.
    NoPrice(String),
    /// The model was stuck in a loop, and the user did not let it continue.
    Loop(String),
    Cancelled,
    /// A tool failed so that going on makes no sense.
    ToolFatal(String),
    /// A hook ended the turn: its reason.
    HookStop(String),
    /// A hook did not let the prompt, the request or the answer pass: its reason.
    HookBlock(String),
}

/// The ways in which an answer is none.
#[derive(Clone, Debug, PartialEq)]
pub enum EmptyAnswer {
    NoFinish,
    NoText,
    ThoughtsOnly,
    MalformedCall,
    UnexpectedCall,
    /// The limit was reached before there was anything to see.
    MaxTokens,
    /// The provider's word for it.
    Recitation(String),
    Blocked(String),
}

impl EmptyAnswer {
    /// For logs and events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoFinish => "NO_FINISH_REASON",
            Self::NoText => "NO_RESPONSE_TEXT",
            Self::ThoughtsOnly => "THINKING_ONLY_RESPONSE",
            Self::MalformedCall => "MALFORMED_FUNCTION_CALL",
            Self::UnexpectedCall => "UNEXPECTED_TOOL_CALL",
            Self::MaxTokens => "MAX_TOKENS_EXCEEDED",
            Self::Recitation(_) => "RECITATION_BLOCKED",
            Self::Blocked(_) => "OTHER_BLOCKED",
        }
    }

    /// The message that the model reads before the next attempt.
    pub fn nudge(&self) -> Option<&'static str> {
        match self {
            Self::ThoughtsOnly => Some(
                "Your last attempt had thoughts but no answer for the user. Answer the user now, in text or by calling \
                 a tool.",
            ),
            Self::NoText => {
                Some("Your last attempt was an empty answer. Answer the user now, in text or by calling a tool.")
            }
            _ => None,
        }
    }

    /// The failure of the call that this makes.
    pub fn failure(&self) -> Failure {
        // Nobody said that it ended: the connection did.
        let kind = if *self == Self::NoFinish { FailureKind::Stream } else { FailureKind::Invalid };
        let failure = Failure::new(kind, self.what());
        let details = Details { words: vec![self.code().to_owned()], ..Details::default() };
        Failure { details: Box::new(details), ..failure }
    }

    /// The cause of the end when no attempt was better.
    pub fn cause(self) -> Cause {
        match self {
            Self::MaxTokens => Cause::MaxTokens,
            Self::Recitation(word) => Cause::Safety(word),
            other => Cause::Empty(other),
        }
    }

    fn what(&self) -> String {
        let what = match self {
            Self::NoFinish => "The model's answer broke off.",
            Self::NoText => "The model returned an empty answer.",
            Self::ThoughtsOnly => "The model thought about it but returned no answer.",
            Self::MalformedCall => "The model tried to call a tool but its call was malformed.",
            Self::UnexpectedCall => "The model tried to call a tool that it was not offered.",
            Self::MaxTokens => "The model reached its limit before it said anything.",
            Self::Recitation(word) | Self::Blocked(word) => {
                return format!("The model stopped without an answer ({word}).");
            }
        };
        what.to_owned()
    }
}

impl Cause {
    /// For calls that end with the turn.
    pub fn cancel_reason(&self) -> CancelReason {
        let for_person = match self {
            Self::AskedInText(_) => "Cancelled, because the turn waits for your answer.",
            Self::Completed
            | Self::CallsReturned
            | Self::TaskCompleted(_)
            | Self::NoCompleteTask
            | Self::MemberFailed(_)
            | Self::Transferred(_)
            | Self::MaxTokens
            | Self::Safety(_)
            | Self::Empty(_) => "Cancelled, because the turn is over.",
            Self::ModelError { .. } => "Cancelled, because the model failed.",
            Self::Deferred { .. } => "Cancelled, because you try again later.",
            Self::TooLong { .. } | Self::BodyTooLarge { .. } => {
                "Cancelled, because the conversation is too long for the model."
            }
            Self::Limit(_) | Self::NoPrice(_) => "Cancelled, because the turn reached a limit of yours.",
            Self::MaxSamples(_) => "Cancelled, because the turn reached its limit of model calls.",
            Self::Loop(_) => "Cancelled, because the model repeats itself.",
            Self::Cancelled => return CancelReason::USER,
            Self::ToolFatal(_) => "Cancelled, because another call failed for good.",
            Self::HookStop(_) | Self::HookBlock(_) => "Cancelled, because a hook ended the turn.",
        };
        CancelReason::new(self.why(), for_person)
    }

    /// The reason in a few words.
    pub fn why(&self) -> &'static str {
        match self {
            Self::AskedInText(_) => "the user was asked, and the turn waits for the answer",
            Self::Completed
            | Self::CallsReturned
            | Self::TaskCompleted(_)
            | Self::MaxTokens
            | Self::Safety(_)
            | Self::Empty(_) => "the turn is over",
            Self::NoCompleteTask => "the agent stopped calling tools",
            Self::MemberFailed(_) => "another agent failed",
            Self::Transferred(_) => "another agent took over",
            Self::ModelError { .. } => "the model failed",
            Self::Deferred { .. } => "the user tries again later",
            Self::TooLong { .. } | Self::BodyTooLarge { .. } => "the conversation is too long for the model",
            Self::Limit(_) | Self::NoPrice(_) => "a limit of the user's was reached",
            Self::MaxSamples(_) => "the turn reached its limit of model calls",
            Self::Loop(_) => "the model repeated itself",
            Self::Cancelled => "the user cancelled the turn",
            Self::ToolFatal(_) => "another tool failed for good",
            Self::HookStop(_) | Self::HookBlock(_) => "a hook ended the turn",
        }
    }
}

/// The message for user, client and log.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnding {
    pub reason: EndReason,
    pub outcome: PromptOutcome,
    /// A last message of the agent, where silence would puzzle the user.
    pub text: Option<String>,
    /// The text is between the user and castor: the model does not see it.
    pub aside: bool,
    /// The error event, with `_meta.code`.
    pub error: Option<(Status, &'static str)>,
}

/// The table. `refusal` only for safety finishes: clients drop the prompt then.
pub fn ending(cause: &Cause) -> TurnEnding {
    let stop =
        |reason, stop| TurnEnding { reason, outcome: PromptOutcome::Stop(stop), text: None, aside: false, error: None };
    let by_hook =
        |text: String| TurnEnding { text: Some(text), aside: true, ..stop(EndReason::Aborted, StopKind::EndTurn) };
    match cause {
        Cause::Completed | Cause::TaskCompleted(_) | Cause::Transferred(_) => {
            stop(EndReason::Completed, StopKind::EndTurn)
        }
        Cause::CallsReturned => stop(EndReason::Completed, StopKind::CallsReturned),
        Cause::MemberFailed(why) => failed("agent", why, Status::Aborted, "AGENT_FAILED"),
        Cause::NoCompleteTask => stop(EndReason::Failed, StopKind::EndTurn),
        Cause::AskedInText(question) => {
            TurnEnding { text: Some(question.clone()), ..stop(EndReason::Completed, StopKind::EndTurn) }
        }
        Cause::MaxTokens => stop(EndReason::MaxBudget, StopKind::OutputLimit),
        Cause::Safety(word) => TurnEnding {
            text: Some(format!("The model's provider stopped this answer ({word}). Rephrase the request.")),
            error: Some((Status::InvalidArgument, "ANSWER_REFUSED")),
            ..stop(EndReason::Refusal, StopKind::Refusal)
        },
        // No answer is a failure: who runs castor in a script must not take it for one.
        Cause::Empty(empty) => failed("model", &empty_text(empty), Status::Internal, "INVALID_STREAM"),
        Cause::ModelError { failure, why } => model_error(failure, why),
        Cause::Deferred { why, when } => {
            let when = when.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
            let text = Some(format!("{why} Send a prompt such as \"go on\"{when} to continue."));
            TurnEnding { text, ..stop(EndReason::Completed, StopKind::EndTurn) }
        }
        Cause::Loop(why) => TurnEnding {
            text: Some(format!("Stopped, because the model repeats itself: {why}. Tell it what to do in another way.")),
            error: Some((Status::Aborted, "LOOP_DETECTED")),
            ..stop(EndReason::Failed, StopKind::EndTurn)
        },
        Cause::TooLong { model, size, window } => too_long(model, *size, *window),
        Cause::BodyTooLarge { model, size, limit } => body_too_large(model, *size, *limit),
        Cause::MaxSamples(n) => TurnEnding {
            text: Some(format!(
                "Stopped after {n} model calls in one turn. Send a prompt such as \"go on\" to continue."
            )),
            error: Some((Status::ResourceExhausted, "MAX_TURNS_EXCEEDED")),
            ..stop(EndReason::MaxTurns, StopKind::MaxTurnRequests)
        },
        Cause::Limit(reached) => limit(reached),
        Cause::NoPrice(model) => no_price(model),
        Cause::Cancelled => stop(EndReason::Aborted, StopKind::Cancelled),
        Cause::HookStop(why) => by_hook(format!("A hook stopped the agent: {why}")),
        Cause::HookBlock(why) => by_hook(format!("A hook blocked this: {why}")),
        // The one such failure is a full disk.
        Cause::ToolFatal(why) => {
            let why = format!("{} Make room on the disk, then prompt again.", end_sentence(why));
            failed("tool", &why, Status::Internal, "TOOL_FATAL")
        }
    }
}

fn too_long(model: &str, size: u64, window: u64) -> TurnEnding {
    let why = format!(
        "This is too long for {model}: about {size} tokens, and its context window is {window}. Shorten the prompt, or \
         choose a model with a larger window."
    );
    failed("model", &why, Status::InvalidArgument, "CONTEXT_OVERFLOW")
}

fn body_too_large(model: &str, size: u64, limit: u64) -> TurnEnding {
    let why = format!(
        "This is too large for {model}: about {size} bytes, and its server takes {limit} at once. Leave out an \
         attachment, or make it smaller."
    );
    failed("model", &why, Status::InvalidArgument, "CONTEXT_OVERFLOW")
}

fn no_price(model: &str) -> TurnEnding {
    let why = format!(
        "Money is limited here, and what {model} costs is not known: nothing was sent to it. Name its price in \
         `model.prices` of the settings, choose another model, or take the limit away with `/limits none`."
    );
    failed("model", &why, Status::InvalidArgument, "PRICE_UNKNOWN")
}

fn limit(reached: &ReachedLimit) -> TurnEnding {
    let ReachedLimit { what, span, cap, used, more } = reached;
    let (reason, outcome, code) = match what {
        LimitKind::Requests => (EndReason::MaxTurns, StopKind::MaxTurnRequests, "MAX_TURNS_EXCEEDED"),
        LimitKind::Tokens => (EndReason::MaxBudget, StopKind::MaxTokens, "MAX_TOKENS_EXCEEDED"),
        LimitKind::Time => (EndReason::MaxTime, StopKind::MaxTurnRequests, "MAX_TIME_EXCEEDED"),
        LimitKind::Cost => (EndReason::MaxBudget, StopKind::MaxTurnRequests, "MAX_COST_EXCEEDED"),
    };
    let then = match span {
        LimitSpan::Turn => "Send a prompt such as \"go on\" to continue.",
        LimitSpan::Session => "The session answers no more prompts until you raise the limit.",
    };
    let key = format!("limits.{}.{}", span.name(), what.name());
    let flag = match span {
        LimitSpan::Turn => format!("{} N", what.flag()),
        LimitSpan::Session => format!("{} N/session", what.flag()),
    };
    let text = format!(
        "Stopped: this {} reached its limit of {cap} ({used} used). {then} To allow more, type `/limits {more}`, or set \
         `{key}` in the settings or `{flag}` on the command line.",
        span.name()
    );
    TurnEnding {
        reason,
        outcome: PromptOutcome::Stop(outcome),
        text: Some(text),
        aside: true,
        error: Some((Status::ResourceExhausted, code)),
    }
}

fn failed(kind: &'static str, why: &str, status: Status, code: &'static str) -> TurnEnding {
    let outcome = PromptOutcome::Failed { kind, why: why.to_owned() };
    TurnEnding { reason: EndReason::Failed, outcome, text: None, aside: false, error: Some((status, code)) }
}

fn model_error(failure: &Failure, why: &str) -> TurnEnding {
    let status = status_of(failure);
    match failure.kind {
        FailureKind::Auth => TurnEnding {
            outcome: PromptOutcome::AuthRequired(why.to_owned()),
            ..failed("model", why, status, "MODEL_AUTH")
        },
        _ => failed("model", why, status, "MODEL_ERROR"),
    }
}

/// A failed model call in google.rpc's words.
pub fn status_of(failure: &Failure) -> Status {
    failure.status.map_or(Status::Unavailable, Status::from_http)
}

fn empty_text(empty: &EmptyAnswer) -> String {
    match empty {
        EmptyAnswer::Blocked(_) => format!("{} Try again or rephrase.", empty.what()),
        _ => format!("{} Try again.", empty.what()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, EmptyAnswer, ending};
    use castor_base::{
        limits::{LimitUsage, Limits},
        model::{Failure, FailureKind},
        money::Money,
    };

    /// The snapshot that holds the table.
    #[test]
    fn each_cause_has_its_ending() {
        let model = |kind, status| {
            let failure = Failure { status, ..Failure::new(kind, "x") };
            Cause::ModelError { failure, why: "why".to_owned() }
        };
        let limit = |limits: &str, requests| {
            let used = LimitUsage { requests, tokens: 31, ms: 30_000, cost: Money::dollars(1.25) };
            Cause::Limit(Limits::parse(limits).unwrap().first_reached(&used, &used).unwrap())
        };
        let causes = [
            Cause::Completed,
            Cause::CallsReturned,
            Cause::AskedInText("Which?".to_owned()),
            Cause::MaxTokens,
            Cause::Safety("SAFETY".to_owned()),
            Cause::Empty(EmptyAnswer::NoFinish),
            Cause::Empty(EmptyAnswer::NoText),
            Cause::Empty(EmptyAnswer::ThoughtsOnly),
            Cause::Empty(EmptyAnswer::MalformedCall),
            Cause::Empty(EmptyAnswer::UnexpectedCall),
            Cause::Empty(EmptyAnswer::Blocked("OTHER".to_owned())),
            model(FailureKind::Auth, Some(401)),
            model(FailureKind::Status, Some(429)),
            model(FailureKind::Status, Some(503)),
            model(FailureKind::Connect, None),
            Cause::Deferred { why: "Why.".to_owned(), when: Some("2.5 h".to_owned()) },
            Cause::TooLong { model: "m".to_owned(), size: 9_000, window: 8_000 },
            Cause::BodyTooLarge { model: "m".to_owned(), size: 9_000, limit: 8_000 },
            Cause::MaxSamples(100),
            limit("requests=3 session.cost=1", 3),
            limit("tokens=30", 0),
            limit("seconds=30", 0),
            limit("session.cost=1", 0),
            Cause::NoPrice("m".to_owned()),
            Cause::Loop("why".to_owned()),
            Cause::Cancelled,
            Cause::ToolFatal("disk full".to_owned()),
            Cause::HookStop("enough".to_owned()),
            Cause::HookBlock("no".to_owned()),
        ];
        let mut table = String::new();
        for cause in causes {
            let it = ending(&cause);
            table += &format!("{cause:?} => {:?} {:?} {:?} {:?}\n", it.reason, it.outcome, it.error, it.text);
        }
        expect_test::expect_file!["endings.txt"].assert_eq(&table);
    }
}
