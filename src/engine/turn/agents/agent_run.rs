//! The run of a sub-agent: its one recovery turn, and what it comes to for the agent that started it.

use crate::turn::{
    endings::{self, Cause, TurnEnding},
    flow::{Flow, Station},
    messages::tell_model,
    spec::{Spec, TurnContext},
    state::{Recovery, TurnState},
};
use crate::{
    record::Record,
    scheduler::CancelReason,
    session_tools::{complete_task::NO_RESULT, delegate::AgentTask},
};
use castor_base::{
    agent::{AgentResult, RECOVERY_TURN, TerminateMode},
    event::{EndReason, EventKind, PromptOutcome, Status},
    limits::{LimitKind, LimitSpan, ReachedLimit},
    state::StateDelta,
};

/// How long an agent that ran out of its limits may still answer, in milliseconds.
const GRACE_PERIOD_MS: u64 = 60_000;

/// `code` of the error event of an answer without calls.
pub(in crate::turn) const PROTOCOL_VIOLATION: &str = "protocol_violation";

const FINAL_CHANCE: &str = "You have one final chance to complete the task with a short grace period. You MUST call \
                            `complete_task` immediately with your best answer and explain that your investigation was \
                            interrupted. Do not call any other tools.";

const OUT_OF_TIME: CancelReason =
    CancelReason::new("the agent reached a limit of its own", "Cancelled, because the agent reached its limit.");

/// What a run leaves to the state of the session that started it: its own changes, and its result where its definition has
/// a key for that.
pub fn run_state(spec: &Spec, record: &Record, result: &AgentResult) -> StateDelta {
    let mut res = StateDelta(record.own_state().clone());
    let key = spec.role.as_ref().and_then(|it| it.output_key.as_deref());
    if let Some(key) = key.filter(|_| result.terminate_reason == TerminateMode::Goal) {
        let is_json = spec.toolbox.task.as_ref().is_some_and(|it| it.has_output());
        res.extend(StateDelta::of_result(key, &result.result, is_json));
    }
    res
}

/// Whether the recovery has had its one request.
pub(in crate::turn) fn is_recovery_over(turn: &mut TurnState) -> Option<Cause> {
    let recovery = turn.recovery.as_mut()?;
    std::mem::replace(&mut recovery.is_asked, true).then(|| recovery.cause.clone())
}

/// A run that ended too early goes on for one request. `None`: it is over.
pub(in crate::turn) fn recover(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, cause: &Cause) -> Option<Flow> {
    let task = turn.tools.task.clone().filter(|it| it.submits())?;
    if *cause == Cause::NoCompleteTask {
        let message = result_text(&task, cause);
        tell_error(cx, message, PROTOCOL_VIOLATION);
    }
    if turn.recovery.is_some() {
        match cause {
            Cause::TaskCompleted(_) => cx.step.emit_coded_notice("Graceful recovery succeeded.", RECOVERY_TURN),
            Cause::Cancelled => (),
            _ => tell_error(cx, format!("Graceful recovery attempt failed. Reason: {}", cause.why()), RECOVERY_TURN),
        }
        return None;
    }
    let (mode, why) = match mode_of(cause) {
        it @ TerminateMode::Timeout => (it, "You have exceeded the time limit."),
        it @ TerminateMode::MaxTurns => (it, "You have exceeded the maximum number of turns."),
        it @ TerminateMode::ErrorNoCompleteTaskCall => (it, "You have stopped calling tools without finishing."),
        TerminateMode::Goal | TerminateMode::Aborted | TerminateMode::Error => return None,
    };
    turn.drop_calls(cx.step, OUT_OF_TIME);
    let note = "Attempting one final recovery turn with a grace period.";
    cx.step.emit_notice(&format!("Execution limit reached ({}). {note}", mode.as_str()));
    tell_model(cx.step, format!("{why} {FINAL_CHANCE}"));
    let used = cx.step.record.limit_usage(LimitSpan::Turn).ms;
    let until = used.saturating_add(GRACE_PERIOD_MS).div_ceil(1_000);
    turn.recovery = Some(Recovery { cause: cause.clone(), until, is_asked: false });
    Some(Flow::Go(Station::Limits))
}

fn tell_error(cx: &mut TurnContext<'_, '_>, message: String, code: &str) {
    let meta = serde_json::Map::from_iter([("code".to_owned(), code.into())]);
    cx.step.emit_event_with(EventKind::Error { status: Status::Internal, message, fatal: false }, meta);
}

/// What ended the run: a recovery that came to nothing does not count.
pub(in crate::turn) fn final_cause(recovery: Option<&Recovery>, cause: &Cause) -> Cause {
    match (recovery, cause) {
        (None, _) | (_, Cause::TaskCompleted(_) | Cause::Cancelled) => cause.clone(),
        (Some(it), _) => it.cause.clone(),
    }
}

fn mode_of(cause: &Cause) -> TerminateMode {
    match cause {
        Cause::TaskCompleted(_) => TerminateMode::Goal,
        Cause::Limit(ReachedLimit { what: LimitKind::Time, span: LimitSpan::Turn, .. }) => TerminateMode::Timeout,
        Cause::Limit(ReachedLimit { what: LimitKind::Requests, span: LimitSpan::Turn, .. }) | Cause::MaxSamples(_) => {
            TerminateMode::MaxTurns
        }
        Cause::Cancelled => TerminateMode::Aborted,
        Cause::NoCompleteTask => TerminateMode::ErrorNoCompleteTaskCall,
        _ => TerminateMode::Error,
    }
}

/// The end of a run, for the agent above it and for its own log.
pub(in crate::turn) fn ending(task: &AgentTask, cause: &Cause) -> TurnEnding {
    let terminate_reason = mode_of(cause);
    let reason = match terminate_reason {
        TerminateMode::Goal => EndReason::Completed,
        TerminateMode::Timeout => EndReason::MaxTime,
        TerminateMode::MaxTurns => EndReason::MaxTurns,
        TerminateMode::Aborted => EndReason::Aborted,
        TerminateMode::Error | TerminateMode::ErrorNoCompleteTaskCall => EndReason::Failed,
    };
    let error = match terminate_reason {
        TerminateMode::Error => endings::ending(cause).error,
        _ => None,
    };
    let escalate_reason = match cause {
        Cause::TaskCompleted(it) => it.escalate_reason.clone(),
        _ => None,
    };
    let outcome =
        PromptOutcome::Agent(AgentResult { result: result_text(task, cause), terminate_reason, escalate_reason });
    TurnEnding { reason, outcome, text: None, aside: false, error }
}

fn result_text(task: &AgentTask, cause: &Cause) -> String {
    match (mode_of(cause), cause) {
        (_, Cause::TaskCompleted(it)) if it.text.is_empty() && it.escalate_reason.is_none() => NO_RESULT.to_owned(),
        (_, Cause::TaskCompleted(it)) => it.text.clone(),
        (TerminateMode::Timeout, _) => format!("Agent timed out after {} minutes.", task.minutes),
        (TerminateMode::MaxTurns, _) => format!("Agent reached max turns limit ({}).", task.turns),
        (TerminateMode::ErrorNoCompleteTaskCall, _) => {
            "Agent stopped calling tools but did not call 'complete_task'.".to_owned()
        }
        (TerminateMode::Aborted, _) => "The agent was cancelled.".to_owned(),
        (_, Cause::Limit(ReachedLimit { span, cap, used, .. })) => {
            format!("Stopped: the {} reached its limit of {cap} ({used} used).", span.name())
        }
        _ => match endings::ending(cause) {
            TurnEnding { outcome: PromptOutcome::Failed { why, .. } | PromptOutcome::AuthRequired(why), .. } => why,
            TurnEnding { text: Some(text), .. } => text,
            _ => cause.why().to_owned(),
        },
    }
}
