//! Recovery from a failed model call: retry, another model, a question to the user, or the end of the turn.

use serde_json::{Map, Value, json};

use crate::{
    base::{
        event::{DISCARDS, EventKind, Status},
        fallback::{self, Intent, Outage},
        ids::{CallId, MessageId, QuestionId},
        log::{Answer, Fact},
        model::Failure,
    },
    engine::{
        context::RetryAdvice,
        hooks::plugins::{PluginMoment, PluginPoint},
        record::Step,
        routing::{
            aliases::Aliases,
            failure::{FailureAction, FailureCase, changes_request, duration_in_words, on_failure, outage_by_policy},
            failure_class::classify,
            health::Availability,
        },
        step::{Effect, QuestionTopic, UserQuestion},
        turn::{
            Phase, SessionScratch, Spec, Turn,
            endings::{self, Cause},
            pseudo_call::PseudoCallKind,
            windows,
        },
    },
};

const ASIDE: PseudoCallKind = PseudoCallKind { name: "model_fallback", error: "model_unavailable" };

/// An attempt that is over.
pub(super) struct FailedAttempt {
    pub failure: Failure,
    pub attempt: u32,
    /// The user saw some of the answer.
    pub shown: bool,
    /// The messages of it.
    pub said: Vec<MessageId>,
    /// What the turn ends with where the answer ended well but is none.
    pub cause: Option<Cause>,
    /// What the model is told of that.
    pub nudge: Option<&'static str>,
}

/// The user has it before them.
#[derive(Debug)]
pub(super) struct RecoveryQuestion {
    pub question: QuestionId,
    call: CallId,
    failure: Failure,
    why: String,
    from: String,
    to: Option<String>,
    until_ms: Option<u64>,
    attempt: u32,
}

impl Turn {
    /// Which model is asked next, and why: another one that took over in this turn, as long as the user chose none.
    pub(super) fn select_model(&mut self, step: &Step<'_>, aliases: &Aliases) -> String {
        let configured = &step.record.model;
        let named = aliases.model_of(configured);
        let found = self.router.found(step.record);
        let (model, why) = match self.router.instead.as_ref().filter(|(of, _)| of == configured) {
            Some((of, model)) if named != *model => (model.as_str(), format!("in place of {of}, in this turn")),
            _ if found.is_some() => found.map_or((named.as_str(), String::new()), |it| (&*it.model, it.why.clone())),
            _ if named != *configured => (named.as_str(), format!("configured as {configured}")),
            _ => (named.as_str(), "configured".to_owned()),
        };
        if *model != *self.model {
            self.model = model.into();
            (self.tries, self.single_attempt, self.retry_advice) = Default::default();
        }
        why
    }

    pub(super) fn on_attempt_failed(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        failed: FailedAttempt,
    ) {
        let FailedAttempt { failure, attempt, shown, said, cause, nudge } = failed;
        // What it says may be none either: then it is not asked again.
        if cause.is_none() && self.answered_by_plugin(step, spec, kept, &failure) {
            return;
        }
        let model = self.model.to_string();
        self.tries.count(&failure);
        let decision = self.decide(step, spec, kept, &failure, shown);
        self.scheduler.cancel(step, "the model's answer broke off");
        self.scheduler.clear();
        step.log(Fact::AttemptFailed {
            failure: failure.clone(),
            abandoned: true,
            class: classify(&failure).class.as_str().to_owned(),
            decision: decision.as_str().to_owned(),
        });
        let tokens = step.record.token_scale().pending_size(&model).unwrap_or_default();
        windows::learn_window(step, &model, tokens, &failure);
        let status = endings::status_of(&failure);
        match decision {
            FailureAction::RetryAt { at_ms, why } => {
                if changes_request(&failure) {
                    self.retry_advice = Some(RetryAdvice { nudge });
                }
                // The wait is told at once: a silent one looks like a hang.
                discard(step, said, status, why);
                self.wait(step, at_ms, attempt.saturating_add(1));
            }
            FailureAction::Shorten { why } => {
                discard(step, said, status, why);
                self.ask_model(step, spec, kept, attempt.saturating_add(1), true);
            }
            FailureAction::FallBack { model: to, why } => {
                let message = format!("{why} Going on with {to} in this turn; the session's model stays {model}.");
                discard(step, said, status, message);
                leave(step, spec, kept, &model, &failure);
                step.log(Fact::Fallback { from: model, to: Some(to.clone()), intent: None, answer: None, why });
                self.switch_model(step, spec, kept, &to, attempt);
            }
            FailureAction::Ask { why, model: to, until } => {
                discard_all(step, said, status);
                let asked = ask(step, failure, FallbackDoubt { why, from: model, to, until, attempt });
                self.phase = Phase::AskingFallback(Box::new(asked));
            }
            FailureAction::GiveUp { why } => {
                discard_all(step, said, status);
                self.finish(step, &cause.unwrap_or(Cause::ModelError { failure, why }));
            }
        }
    }

    fn decide(
        &self,
        step: &Step<'_>,
        spec: &Spec,
        kept: &SessionScratch,
        failure: &Failure,
        shown: bool,
    ) -> FailureAction {
        let case = FailureCase {
            model: &self.model,
            tries: self.tries,
            single_attempt: self.single_attempt,
            answer_shown: shown,
            fallback: spec.chain.next(&self.model, &kept.health, step.now.unix_ms),
            policy: spec.chain.policies.of(&self.model),
            interactive: spec.toolbox.interactive,
            patience: spec.bounds.patience,
            now: step.now,
        };
        on_failure(failure, case)
    }

    /// Whether a plugin answers in the model's place.
    fn answered_by_plugin(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        failure: &Failure,
    ) -> bool {
        let Some(chunks) = spec.toolbox.hooks.plugins.chunks(PluginPoint::OnModelError, PluginMoment::Failure(failure))
        else {
            return false;
        };
        self.scheduler.cancel(step, "the model's answer broke off");
        self.scheduler.clear();
        let (class, decision) = (classify(failure).class.as_str().to_owned(), "answered".to_owned());
        step.log(Fact::AttemptFailed { failure: failure.clone(), abandoned: true, class, decision });
        self.substitute_answer(step, spec, kept, chunks);
        true
    }

    /// The user's word; what is none stops.
    pub(super) fn on_fallback_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        answer: Answer,
    ) {
        let Phase::AskingFallback(asked) = std::mem::replace(&mut self.phase, Phase::Finished) else { return };
        let intent = asked.intent(&answer);
        let RecoveryQuestion { call, failure, why, from, to, until_ms, attempt, .. } = *asked;
        let withdrawn = answer == Answer::Cancelled;
        let to = to.filter(|_| matches!(intent, Intent::RetryOnce | Intent::RetryAlways));
        let (answer, why_now) = (Some(answer), why.clone());
        step.log(Fact::Fallback { from: from.clone(), to: to.clone(), intent: Some(intent), answer, why: why_now });
        if to.is_some() {
            leave(step, spec, kept, &from, &failure);
        }
        if withdrawn {
            ASIDE.end(step, &call, "The question was withdrawn.", true);
            return self.finish(step, &Cause::Cancelled);
        }
        match (intent, to, until_ms) {
            (Intent::RetryAlways, Some(to), _) => {
                let text = format!("Going on with {to} in this session. `/model {from}` goes back.");
                ASIDE.end(step, &call, &text, false);
                step.log(windows::model_fact(spec, &to));
                self.switch_model(step, spec, kept, &to, attempt);
            }
            (Intent::RetryOnce, to, _) => {
                let text = match &to {
                    Some(to) => format!("Going on with {to} in this turn; the session's model stays {from}."),
                    None => format!("Trying {from} again."),
                };
                ASIDE.end(step, &call, &text, false);
                self.switch_model(step, spec, kept, &to.unwrap_or(from), attempt);
            }
            (Intent::Wait, _, Some(at_ms)) => {
                let wait = duration_in_words(at_ms.saturating_sub(step.now.unix_ms));
                let text = format!("Waiting {wait}, then going on with {from}. Cancel ends the wait.");
                ASIDE.end(step, &call, &text, false);
                self.tries = Default::default();
                self.wait(step, at_ms, attempt.saturating_add(1));
            }
            (Intent::RetryLater, ..) => {
                ASIDE.end(step, &call, "The turn ends; nothing of it is lost.", false);
                let when = until_ms.map(|it| duration_in_words(it.saturating_sub(step.now.unix_ms)));
                self.finish(step, &Cause::Deferred { why, when });
            }
            _ => {
                ASIDE.end(step, &call, "Stopped.", true);
                let why = format!("{why} Prompt again to go on, or choose another model.");
                self.finish(step, &Cause::ModelError { failure, why });
            }
        }
    }

    /// The same sample, from the model that is named. It starts with a clean slate.
    fn switch_model(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, model: &str, attempt: u32) {
        self.router.instead = Some((step.record.model.clone(), model.to_owned()));
        (self.tries, self.single_attempt, self.retry_advice) = Default::default();
        self.sample(step, spec, kept, attempt.saturating_add(1));
    }

    fn wait(&mut self, step: &mut Step<'_>, at_ms: u64, attempt: u32) {
        let effect = step.start_effect(Effect::SetTimer { at_ms });
        self.phase = Phase::WaitingToRetry { effect, attempt };
    }

    /// The answer came: whatever was known against the model is over.
    pub(super) fn answered_well(&mut self, step: &mut Step<'_>, kept: &mut SessionScratch) {
        (self.tries, self.retry_advice) = Default::default();
        if kept.health.mark_available(&self.model) {
            step.start_effect(Effect::UpdateHealth { model: self.model.to_string(), outage: None });
        }
        self.single_attempt = false;
    }

    /// What is known of the model as the turn begins.
    pub(super) fn note_standing(&mut self, step: &Step<'_>, kept: &SessionScratch) {
        self.single_attempt = kept.health.availability(&self.model, step.now.unix_ms) == Availability::OneAttempt;
    }
}

impl RecoveryQuestion {
    fn intent(&self, answer: &Answer) -> Intent {
        let chosen = match answer {
            Answer::Accepted { content } => content.get(Intent::FIELD).and_then(Value::as_str).and_then(Intent::parse),
            _ => None,
        };
        let was_on_offer = |it: &Intent| match it {
            Intent::RetryAlways => self.to.is_some(),
            Intent::Wait => self.until_ms.is_some(),
            Intent::RetryOnce | Intent::RetryLater | Intent::Stop => true,
        };
        chosen.filter(was_on_offer).unwrap_or(Intent::Stop)
    }

    pub fn withdraw(&self, step: &mut Step<'_>) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        ASIDE.end(step, &self.call, "The question was withdrawn with its turn.", true);
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
fn leave(step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, model: &str, failure: &Failure) {
    match outage_by_policy(failure, step.now.unix_ms, spec.chain.policies.of(model)) {
        Some(outage) => mark_out(step, kept, model, outage),
        None => kept.health.mark_sticky(model),
    }
}

pub(super) fn mark_out(step: &mut Step<'_>, kept: &mut SessionScratch, model: &str, outage: Outage) {
    kept.health.mark_out(model, outage);
    step.start_effect(Effect::UpdateHealth { model: model.to_owned(), outage: Some(outage) });
}

/// What the user is asked about.
struct FallbackDoubt {
    why: String,
    from: String,
    to: Option<String>,
    until: Option<(u64, String)>,
    attempt: u32,
}

fn ask(step: &mut Step<'_>, failure: Failure, doubt: FallbackDoubt) -> RecoveryQuestion {
    let FallbackDoubt { why, from, to, until, attempt } = doubt;
    let wait = until.as_ref().map(|(_, it)| it.as_str());
    let form = fallback::question(format!("{why} How to go on?"), &from, to.as_deref(), wait);
    let call = ASIDE.announce(step, format!("{from} does not answer"));
    let question = step.new_question_id();
    let about = QuestionTopic::Fallback { call: call.clone(), form: form.into() };
    step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
    let until_ms = until.map(|(at_ms, _)| at_ms);
    RecoveryQuestion { question, call, failure, why, from, to, until_ms, attempt }
}
