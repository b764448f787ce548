//! The trust question about the session's folder: asked before anything else of a turn, as a pseudo call.

use std::sync::Arc;

use serde_json::Value;

use super::{Phase, SessionScratch, Spec, Turn, pseudo_call::PseudoCallKind};
use crate::{
    base::{
        ids::{CallId, EffectId, QuestionId},
        log::{Answer, Fact},
        question::Form,
        text,
        trust::TrustChoice,
    },
    engine::{
        record::Step,
        step::{Effect, QuestionTopic, UserQuestion},
    },
};

const ASIDE: PseudoCallKind = PseudoCallKind { name: "trust_folder", error: "not_trusted" };
/// Longest title, in characters.
const TITLE: usize = 500;

/// The user has it before them.
#[derive(Debug)]
pub(super) struct TrustQuestion {
    pub question: QuestionId,
    call: CallId,
}

/// A decision that is being written down.
#[derive(Debug)]
pub(super) struct TrustDecision {
    call: CallId,
    choice: TrustChoice,
}

pub(super) fn ask(step: &mut Step<'_>, form: Arc<Form>) -> TrustQuestion {
    let title = text::first_line(form.message.split_inclusive('?').next().unwrap_or_default(), TITLE);
    let call = ASIDE.announce(step, title);
    let question = step.new_question_id();
    let about = QuestionTopic::Trust { call: call.clone(), form };
    step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
    TrustQuestion { question, call }
}

impl Turn {
    /// The user's word on the folder; what is no word is "not now".
    pub(super) fn on_trust_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        answer: Answer,
    ) {
        let Phase::AskingTrust(asked) = std::mem::replace(&mut self.phase, Phase::Finished) else { return };
        // A client that withdraws may not have shown it: the next prompt asks again, this one goes on.
        if answer != Answer::Cancelled {
            kept.preamble.clear_trust_form();
        }
        match asked.answered(step, answer) {
            Some((effect, joining)) => self.phase = Phase::ApplyingTrust { effect, joining },
            None => self.prepare(step, spec, kept),
        }
    }

    pub(super) fn on_trust_applied(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        effect: EffectId,
        result: Result<(), String>,
    ) {
        if let Phase::ApplyingTrust { effect: own, joining } = &self.phase
            && *own == effect
        {
            joining.end(step, result);
            self.prepare(step, spec, kept);
        }
    }
}

impl TrustQuestion {
    pub fn withdraw(&self, step: &mut Step<'_>) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        ASIDE.end(step, &self.call, "The question was withdrawn; the next prompt asks again.", true);
    }

    /// `None`: nothing changes.
    pub fn answered(self, step: &mut Step<'_>, answer: Answer) -> Option<(EffectId, TrustDecision)> {
        let chosen = match &answer {
            Answer::Accepted { content } => content.get(TrustChoice::FIELD).and_then(Value::as_str),
            _ => None,
        };
        let choice = chosen.and_then(TrustChoice::parse).unwrap_or(TrustChoice::NotNow);
        step.log(Fact::Trust { choice, answer });
        if choice == TrustChoice::NotNow {
            ASIDE.end(step, &self.call, "Not now: what was asked about is not used in this session.", true);
            return None;
        }
        Some((step.start_effect(Effect::ApplyTrust(choice)), TrustDecision { call: self.call, choice }))
    }
}

impl TrustDecision {
    /// The turn is over before anybody knows: what was said is carried out all the same.
    pub fn leave(&self, step: &mut Step<'_>) {
        ASIDE.end(step, &self.call, "The turn was cancelled; `castor trust why` tells what holds.", true);
    }

    pub fn end(&self, step: &mut Step<'_>, result: Result<(), String>) {
        match (result, self.choice) {
            (Err(why), _) => {
                ASIDE.end(
                    step,
                    &self.call,
                    &format!("Not trusted: the decision could not be written down: {why}"),
                    true,
                );
            }
            (Ok(()), TrustChoice::Never) => {
                ASIDE.end(step, &self.call, "Never trusted; `castor trust` takes that back.", true);
            }
            (Ok(()), _) => ASIDE.end(step, &self.call, "Trusted; `castor trust --revoke` takes that back.", false),
        }
    }
}
