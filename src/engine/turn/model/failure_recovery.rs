//! Recovery from a failed model call: retry, another model, a question to the user, or the end of the turn.

use serde_json::{Map, Value, json};

use crate::{
    context::RetryAdvice,
    record::Step,
    routing::{
        failure::{FailureAction, FailureCase, changes_request, duration_in_words, on_failure, outage_by_policy},
        failure_class::classify,
        health::Availability,
    },
    scheduler::CancelReason,
    step::{Effect, Input},
    turn::{
        endings::{self, Cause},
        flow::{Flow, Phase, Station},
        model::{credential_renewal, omissions, windows},
        pseudo_call::{PseudoCall, PseudoCallKind},
        spec::TurnContext,
        state::{Renewal, TurnState},
    },
};
use castor_base::{
    event::{DISCARDS, EventKind, Status},
    fallback::{self, Intent},
    ids::{EffectId, MessageId},
    log::{Answer, Fact},
    model::Failure,
};

const FALLBACK: PseudoCallKind = PseudoCallKind { name: "model_fallback", error: "model_unavailable" };

/// Why calls of such an answer end.
pub(in crate::turn) const BROKE_OFF: CancelReason =
    CancelReason::new("the model's answer broke off", "Cancelled, because the model's answer broke off.");

/// An attempt that is over.
#[derive(Debug)]
pub(in crate::turn) struct FailedAttempt {
    pub failure: Failure,
    /// The user saw some of the answer.
    pub shown: bool,
    /// The messages of it.
    pub said: Vec<MessageId>,
    /// What the turn ends with where the answer ended well but is none.
    pub cause: Option<Cause>,
    /// What the model is told of that.
    pub nudge: Option<&'static str>,
}

/// Until the next attempt.
#[derive(Debug)]
struct WaitingToRetry {
    timer: EffectId,
}

/// The user is asked how to go on without the model.
#[derive(Debug)]
struct RecoveryQuestion {
    asked: PseudoCall,
    doubt: FallbackDoubt,
}

/// What the user is asked about.
#[derive(Debug)]
struct FallbackDoubt {
    failure: Failure,
    why: String,
    from: String,
    to: Option<String>,
    /// When the model can be asked again, also in words.
    until: Option<(u64, String)>,
}

pub(in crate::turn) fn recover(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, failed: FailedAttempt) -> Flow {
    let FailedAttempt { mut failure, shown, said, cause, nudge } = failed;
    let model = turn.model.to_string();
    windows::note_growth(cx.step.record, &model, &mut failure);
    let omission = omissions::find_omission(turn, cx, &failure);
    let action = match &omission {
        Some(it) => FailureAction::LeaveOut { why: it.why(&model, &failure) },
        None => choose_action(turn, cx, &failure, shown),
    };
    turn.drop_calls(cx.step, BROKE_OFF);
    cx.step.log(Fact::AttemptFailed {
        failure: failure.clone(),
        abandoned: true,
        class: classify(&failure).class.as_str().to_owned(),
        decision: action.as_str().to_owned(),
    });
    let tokens = cx.step.record.token_scale().pending_size(&model).unwrap_or_default();
    windows::learn_window(cx.step, &model, tokens, &failure);
    let status = endings::status_of(&failure);
    turn.draft.attempt = turn.draft.attempt.saturating_add(1);
    match action {
        FailureAction::RetryAt { at_ms, why } => {
            if changes_request(&failure) {
                turn.attempts.retry_advice = Some(RetryAdvice { nudge });
            }
            // The wait is told at once: a silent one looks like a hang.
            discard(cx.step, said, status, why);
            wait_until(cx.step, at_ms)
        }
        FailureAction::LeaveOut { why } => {
            discard(cx.step, said, status, why);
            omission.into_iter().for_each(|it| it.apply(cx.step, &model));
            Flow::Go(Station::Model)
        }
        FailureAction::Shorten { why } => {
            discard(cx.step, said, status, why);
            Flow::Go(Station::Model)
        }
        FailureAction::FallBack { model: to, why } => {
            let message = format!("{why} Going on with {to} in this turn; the session's model stays {model}.");
            discard(cx.step, said, status, message);
            leave(cx, &model, &failure);
            cx.step.log(Fact::Fallback { from: model, to: Some(to.clone()), intent: None, answer: None, why });
            switch_model(turn, cx.step, to)
        }
        FailureAction::Renew { why } => {
            discard_all(cx.step, said, status);
            credential_renewal::renew(turn, cx, failure, why)
        }
        FailureAction::Ask { why, model: to, until } => {
            discard_all(cx.step, said, status);
            ask(cx.step, FallbackDoubt { failure, why, from: model, to, until })
        }
        FailureAction::GiveUp { why } => {
            discard_all(cx.step, said, status);
            Flow::End(cause.unwrap_or(Cause::ModelError { failure, why }))
        }
    }
}

/// Nobody asks again: a hook has decided what comes of it.
pub(in crate::turn) fn give_up(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    failed: FailedAttempt,
    decision: &str,
) {
    let FailedAttempt { failure, said, .. } = failed;
    turn.drop_calls(cx.step, BROKE_OFF);
    let (class, status) = (classify(&failure).class.as_str().to_owned(), endings::status_of(&failure));
    cx.step.log(Fact::AttemptFailed { failure, abandoned: true, class, decision: decision.to_owned() });
    discard_all(cx.step, said, status);
}

/// The attempt counts: one whose refusal names a part has cost nothing.
fn choose_action(turn: &mut TurnState, cx: &TurnContext<'_, '_>, failure: &Failure, shown: bool) -> FailureAction {
    turn.attempts.counts.count(failure);
    let chain = &cx.spec.chain;
    let case = FailureCase {
        model: &turn.model,
        tries: turn.attempts.counts,
        single_attempt: turn.attempts.is_single,
        answer_shown: shown,
        fallback: chain.next(&turn.model, &cx.scratch.health, cx.step.now.unix_ms),
        policy: chain.policies.of(&turn.model),
        interactive: cx.spec.toolbox.interactive,
        can_renew: cx.spec.toolbox.renews_credentials() && turn.attempts.renewal != Renewal::Asked,
        is_long: windows::is_long(cx.step.record),
        patience: cx.spec.bounds.patience,
        now: cx.step.now,
    };
    on_failure(failure, case)
}

/// The same sample, from the model that is named. It starts with a clean slate.
fn switch_model(turn: &mut TurnState, step: &Step<'_>, model: String) -> Flow {
    turn.router.instead = Some((step.record.model.clone(), model));
    turn.attempts = Default::default();
    Flow::Go(Station::Inbox)
}

fn wait_until(step: &mut Step<'_>, at_ms: u64) -> Flow {
    Flow::wait(WaitingToRetry { timer: step.start_effect(Effect::SetTimer { at_ms }) })
}

impl Phase for WaitingToRetry {
    fn step(self: Box<Self>, _: &mut TurnState, _: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::TimerFired { effect } if effect == self.timer => Flow::Go(Station::Inbox),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.timer });
    }
}

/// The answer came: whatever was known against the model is over.
pub(in crate::turn) fn note_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) {
    turn.attempts = Default::default();
    if cx.scratch.health.mark_available(&turn.model) {
        cx.step.start_effect(Effect::UpdateHealth { model: turn.model.to_string(), outage: None });
    }
}

/// What is known of the model as the turn begins.
pub(in crate::turn) fn note_standing(turn: &mut TurnState, cx: &TurnContext<'_, '_>) {
    let availability = cx.scratch.health.availability(&turn.model, cx.step.now.unix_ms);
    turn.attempts.is_single = availability == Availability::OneAttempt;
}

fn ask(step: &mut Step<'_>, doubt: FallbackDoubt) -> Flow {
    let FallbackDoubt { why, from, to, until, .. } = &doubt;
    let wait = until.as_ref().map(|(_, it)| it.as_str());
    let form = fallback::question(format!("{why} How should castor continue?"), from, to.as_deref(), wait);
    let asked = FALLBACK.ask_how(step, format!("{from} does not answer"), form);
    Flow::wait(RecoveryQuestion { asked, doubt })
}

impl Phase for RecoveryQuestion {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => self.take_answer(turn, cx, answer),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The question was withdrawn with its turn.");
    }
}

impl RecoveryQuestion {
    /// The user's word; what is none stops.
    fn take_answer(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, answer: Answer) -> Flow {
        let Self { asked, doubt } = self;
        let intent = doubt.intent(&answer);
        let FallbackDoubt { failure, why, from, to, until } = doubt;
        let withdrawn = answer == Answer::Cancelled;
        let to = to.filter(|_| matches!(intent, Intent::RetryOnce | Intent::RetryAlways));
        let (answer, why_now) = (Some(answer), why.clone());
        cx.step.log(Fact::Fallback { from: from.clone(), to: to.clone(), intent: Some(intent), answer, why: why_now });
        if to.is_some() {
            leave(cx, &from, &failure);
        }
        let wait = until.map(|(at_ms, _)| (at_ms, duration_in_words(at_ms.saturating_sub(cx.step.now.unix_ms))));
        if withdrawn {
            asked.end(cx.step, "The question was withdrawn.", true);
            return Flow::End(Cause::Cancelled);
        }
        match (intent, to, wait) {
            (Intent::RetryAlways, Some(to), _) => {
                asked.end(cx.step, &format!("Going on with {to} in this session. `/model {from}` goes back."), false);
                cx.step.log(windows::model_fact(cx.spec, &to));
                switch_model(turn, cx.step, to)
            }
            (Intent::RetryOnce, to, _) => {
                let text = match &to {
                    Some(to) => format!("Going on with {to} in this turn; the session's model stays {from}."),
                    None => format!("Trying {from} again."),
                };
                asked.end(cx.step, &text, false);
                switch_model(turn, cx.step, to.unwrap_or(from))
            }
            (Intent::Wait, _, Some((at_ms, wait))) => {
                let text = format!("Waiting {wait}, then going on with {from}. Cancel ends the wait.");
                asked.end(cx.step, &text, false);
                turn.attempts.counts = Default::default();
                wait_until(cx.step, at_ms)
            }
            (Intent::RetryLater, _, wait) => {
                asked.end(cx.step, "The turn ends; nothing of it is lost.", false);
                Flow::End(Cause::Deferred { why, when: wait.map(|it| it.1) })
            }
            _ => {
                asked.end(cx.step, "Stopped.", true);
                let why = format!("{why} Prompt again to continue, or choose another model.");
                Flow::End(Cause::ModelError { failure, why })
            }
        }
    }
}

impl FallbackDoubt {
    fn intent(&self, answer: &Answer) -> Intent {
        let chosen = match answer {
            Answer::Accepted { content } => content.get(Intent::FIELD).and_then(Value::as_str).and_then(Intent::parse),
            _ => None,
        };
        let was_on_offer = |it: &Intent| match it {
            Intent::RetryAlways => self.to.is_some(),
            Intent::Wait => self.until.is_some(),
            Intent::RetryOnce | Intent::RetryLater | Intent::Stop => true,
        };
        chosen.filter(was_on_offer).unwrap_or(Intent::Stop)
    }
}

/// What happens next, and which messages do not count any more: who shows only answers takes them back.
fn discard(step: &mut Step<'_>, said: Vec<MessageId>, status: Status, message: String) {
    let ids = (!said.is_empty()).then(|| (DISCARDS.to_owned(), json!(said)));
    step.emit_event_with(EventKind::Error { status, message, fatal: false }, Map::from_iter(ids));
}

/// The same where nothing else is said of it.
fn discard_all(step: &mut Step<'_>, said: Vec<MessageId>, status: Status) {
    if !said.is_empty() {
        discard(step, said, status, "What was shown of the answer does not count.".to_owned());
    }
}

/// Another model takes over: this one is left alone for as long as its failure says. The mark is about the model that
/// failed, and choosing another one does not wipe it.
fn leave(cx: &mut TurnContext<'_, '_>, model: &str, failure: &Failure) {
    match outage_by_policy(failure, cx.step.now.unix_ms, cx.spec.chain.policies.of(model)) {
        Some(outage) => cx.mark_out(model, outage),
        None => cx.scratch.health.mark_sticky(model),
    }
}
