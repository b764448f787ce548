//! The trust question about the session's folder: asked before anything else of a turn, as a pseudo call.

use serde_json::Value;

use super::{
    flow::{Flow, Phase},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Effect, Input, QuestionTopic, TrustForm},
};
use castor_base::{
    ids::EffectId,
    log::{Answer, Fact},
    text,
    trust::TrustChoice,
};

const TRUST: PseudoCallKind = PseudoCallKind { name: "trust_folder", error: "not_trusted" };
/// Longest title, in characters.
const TITLE: usize = 500;

/// The user has it before them.
#[derive(Debug)]
struct TrustQuestion {
    asked: PseudoCall,
}

/// What the user said is carried out: it is being written down.
#[derive(Debug)]
struct TrustDecision {
    effect: EffectId,
    asked: PseudoCall,
    choice: TrustChoice,
}

pub(super) fn ask_trust(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let Some(TrustForm { form, diffs }) = cx.scratch.preamble.trust_form() else { return Flow::Next };
    let title = text::first_line(form.message.split_inclusive('?').next().unwrap_or_default(), TITLE);
    Flow::wait(TrustQuestion { asked: TRUST.ask(cx.step, title, |call| QuestionTopic::Trust { call, form, diffs }) })
}

impl Phase for TrustQuestion {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => self.take_answer(cx, answer),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The question was withdrawn; the next prompt asks again.");
    }
}

impl TrustQuestion {
    /// The user's word on the folder; what is no word is "not now".
    fn take_answer(self, cx: &mut TurnContext<'_, '_>, answer: Answer) -> Flow {
        // A client that withdraws may not have shown it: the next prompt asks again, this one goes on.
        if answer != Answer::Cancelled {
            cx.scratch.preamble.clear_trust_form();
        }
        let chosen = match &answer {
            Answer::Accepted { content } => content.get(TrustChoice::FIELD).and_then(Value::as_str),
            _ => None,
        };
        let choice = chosen.and_then(TrustChoice::parse).unwrap_or(TrustChoice::NotNow);
        cx.step.log(Fact::Trust { choice, answer });
        if choice == TrustChoice::NotNow {
            self.asked.end(cx.step, "Not now: this session does not use these files.", true);
            return Flow::Next;
        }
        let effect = cx.step.start_effect(Effect::ApplyTrust(choice));
        Flow::wait(TrustDecision { effect, asked: self.asked, choice })
    }
}

impl Phase for TrustDecision {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::TrustApplied { effect, result } if effect == self.effect => {
                self.end(cx.step, result);
                Flow::Next
            }
            other => Flow::Unrelated(self, other),
        }
    }

    /// The turn is over before anybody knows: what was said is carried out all the same.
    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.end(step, "The turn was cancelled; `castor trust why` tells what holds.", true);
    }
}

impl TrustDecision {
    fn end(&self, step: &mut Step<'_>, result: Result<(), String>) {
        match (result, self.choice) {
            (Err(why), _) => {
                self.asked.end(step, &format!("Not trusted: the decision could not be written down: {why}"), true);
            }
            (Ok(()), TrustChoice::Never) => {
                self.asked.end(step, "Never trusted; `castor trust` changes that.", true);
            }
            (Ok(()), TrustChoice::FolderAuto) => {
                let said = "Trusted, and in the mode auto from now on; `castor trust --revoke` and `castor permissions` change that.";
                self.asked.end(step, said, false);
            }
            (Ok(()), _) => self.asked.end(step, "Trusted; `castor trust --revoke` changes that.", false),
        }
    }
}
