//! Renewal of a refused credential: it is read again, then the user is asked, and the request is made once more.

use crate::turn::{
    endings::Cause,
    flow::{Flow, Phase, Station},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::{Renewal, TurnState},
};
use crate::{
    record::Step,
    step::{Effect, Input, QuestionTopic},
};
use castor_base::{
    credential::{Credential, RenewalOrder},
    ids::EffectId,
    log::Answer,
    model::Failure,
};

pub(in crate::turn) const AUTH_REQUIRED: PseudoCallKind =
    PseudoCallKind { name: "auth_required", error: "auth_required" };

/// The request that a server did not take.
#[derive(Debug)]
struct RefusedRequest {
    credential: Credential,
    failure: Failure,
    /// What the turn ends with if nothing is renewed.
    why: String,
}

/// It is looked at first whether there is another credential by now: nobody is asked for what is there.
#[derive(Debug)]
struct ReadingAgain {
    effect: EffectId,
    refused: RefusedRequest,
}

/// The user has the question before them.
#[derive(Debug)]
struct CredentialQuestion {
    asked: PseudoCall,
    refused: RefusedRequest,
    /// It was accepted once, and nothing had changed.
    is_repeated: bool,
}

/// The user says that it is renewed: it is read.
#[derive(Debug)]
struct ReadingRenewed {
    effect: EffectId,
    question: CredentialQuestion,
}

pub(in crate::turn) fn renew(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    failure: Failure,
    why: String,
) -> Flow {
    let Some(credential) = failure.details.credential.clone() else {
        return Flow::End(Cause::ModelError { failure, why });
    };
    let refused = RefusedRequest { credential, failure, why };
    if turn.attempts.renewal == Renewal::Nothing && !refused.credential.is_outside {
        let effect = refused.read_again(turn, cx.step, false);
        return Flow::wait(ReadingAgain { effect, refused });
    }
    ask(cx.step, refused, false)
}

fn ask(step: &mut Step<'_>, refused: RefusedRequest, is_repeated: bool) -> Flow {
    let RefusedRequest { credential, why, .. } = &refused;
    let (message, about) = (credential.question(why, is_repeated), Box::new(credential.clone()));
    let topic = |call| QuestionTopic::Credential { call, credential: about, message };
    let asked = AUTH_REQUIRED.ask_and_wait(step, credential.title(), topic);
    Flow::wait(CredentialQuestion { asked, refused, is_repeated })
}

/// The same request, with what castor has now.
fn try_again(turn: &mut TurnState, renewal: Renewal) -> Flow {
    turn.attempts.counts = Default::default();
    turn.attempts.renewal = renewal;
    Flow::Go(Station::Inbox)
}

impl RefusedRequest {
    fn read_again(&self, turn: &TurnState, step: &mut Step<'_>, is_asked: bool) -> EffectId {
        let order = RenewalOrder { credential: self.credential.clone(), asker: turn.model.to_string(), is_asked };
        step.start_effect(Effect::RenewCredential(Box::new(order)))
    }
}

impl Phase for ReadingAgain {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::CredentialRenewed { effect, changed: true } if effect == self.effect => {
                try_again(turn, Renewal::Reread)
            }
            Input::CredentialRenewed { effect, .. } if effect == self.effect => ask(cx.step, self.refused, false),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, _: &mut Step<'_>) {}
}

impl Phase for CredentialQuestion {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => {
                self.take_answer(turn, cx.step, &answer)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The question was withdrawn with its turn.");
    }
}

impl CredentialQuestion {
    /// The user's word; what is none ends the turn as it would end without a question.
    fn take_answer(self, turn: &mut TurnState, step: &mut Step<'_>, answer: &Answer) -> Flow {
        self.asked.resume(step);
        match answer {
            Answer::Accepted { .. } if self.refused.credential.is_outside => {
                self.asked.end(step, "Trying again.", false);
                try_again(turn, Renewal::Asked)
            }
            Answer::Accepted { .. } => {
                let effect = self.refused.read_again(turn, step, true);
                Flow::wait(ReadingRenewed { effect, question: self })
            }
            Answer::Cancelled => {
                self.asked.end(step, "The question was withdrawn.", true);
                Flow::End(Cause::Cancelled)
            }
            _ => {
                self.asked.end(step, "Not renewed.", true);
                let RefusedRequest { failure, why, .. } = self.refused;
                Flow::End(Cause::ModelError { failure, why })
            }
        }
    }
}

impl Phase for ReadingRenewed {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::CredentialRenewed { effect, changed } if effect == self.effect => {
                self.question.go_on(turn, cx.step, changed)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.question.asked.end(step, "The turn was cancelled.", true);
    }
}

impl CredentialQuestion {
    /// A client may accept as soon as the page is open. Where nothing is new, the user is asked once more; after that the
    /// server is asked, as what it refused may be in order there by now.
    fn go_on(self, turn: &mut TurnState, step: &mut Step<'_>, changed: bool) -> Flow {
        let Self { asked, refused, is_repeated } = self;
        match (changed, is_repeated) {
            (true, _) => asked.end(step, "Renewed: trying again.", false),
            (false, true) => asked.end(step, "Nothing has changed: trying once more with what was refused.", false),
            (false, false) => {
                asked.end(step, "Nothing has changed yet.", true);
                return ask(step, refused, true);
            }
        }
        try_again(turn, Renewal::Asked)
    }
}
