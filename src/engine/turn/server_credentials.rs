//! MCP servers that want another credential when they start: the user is asked before the first request to a model.

use super::{
    credential_renewal::AUTH_REQUIRED,
    endings::Cause,
    flow::{Flow, Phase, Station},
    pseudo_call::PseudoCall,
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    base::{
        credential::{Credential, RenewalOrder},
        ids::EffectId,
        log::Answer,
        text,
    },
    engine::{
        record::Step,
        step::{Effect, Input, QuestionTopic},
    },
};

/// The user has it before them.
#[derive(Debug)]
struct ServerQuestion {
    asked: PseudoCall,
    credential: Credential,
}

/// The user says that it is renewed: it is read, and the server is connected anew.
#[derive(Debug)]
struct Reconnecting {
    asked: PseudoCall,
    effect: EffectId,
    server: String,
}

pub(super) fn ask_for_credentials(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    if !cx.spec.toolbox.renews_credentials() {
        return Flow::Next;
    }
    let Some((credential, why, is_repeated)) = cx.scratch.preamble.next_unauthorized() else { return Flow::Next };
    let why = format!("MCP server {:?}: {}", credential.name, text::end_sentence(&why));
    let (message, about) = (credential.question(&why, is_repeated), Box::new(credential.clone()));
    let topic = |call| QuestionTopic::Credential { call, credential: about, message };
    let asked = AUTH_REQUIRED.ask_and_wait(cx.step, credential.title(), topic);
    Flow::wait(ServerQuestion { asked, credential })
}

impl Phase for ServerQuestion {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => self.take_answer(cx, &answer),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The question was withdrawn with its turn.");
    }
}

impl ServerQuestion {
    /// The user's word; without one the turn goes on without the server.
    fn take_answer(self, cx: &mut TurnContext<'_, '_>, answer: &Answer) -> Flow {
        let Self { asked, credential } = self;
        asked.resume(cx.step);
        let server = credential.name.clone();
        match answer {
            Answer::Accepted { .. } => {
                let order = RenewalOrder { credential, asker: server.clone(), is_asked: true };
                let effect = cx.step.start_effect(Effect::RenewCredential(Box::new(order)));
                return Flow::wait(Reconnecting { asked, effect, server });
            }
            Answer::Cancelled => {
                asked.end(cx.step, "The question was withdrawn.", true);
                return Flow::End(Cause::Cancelled);
            }
            _ => asked.end(cx.step, "Not renewed: the turn continues without this server.", true),
        }
        cx.scratch.preamble.give_up_on(&server);
        Flow::Go(Station::Credentials)
    }
}

impl Phase for Reconnecting {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::CredentialRenewed { effect, changed } if effect == self.effect => {
                let text =
                    if changed { "Renewed: connecting again." } else { "Nothing has changed: connecting again." };
                self.asked.end(cx.step, text, false);
                cx.scratch.preamble.forget_loss(&self.server);
                Flow::Go(Station::Servers)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.end(step, "The turn was cancelled.", true);
    }
}
