//! MCP servers that want another credential when they start: the user is asked before the first request to a model.

use crate::turn::{
    endings::Cause,
    flow::{Flow, Phase, Station},
    model::credential_renewal::AUTH_REQUIRED,
    pseudo_call::PseudoCall,
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    scheduler::server_login::{LoginNews, ServerLogin},
    step::{Effect, Input, QuestionTopic},
};
use castor_base::{
    credential::{Credential, RenewalOrder},
    ids::EffectId,
    log::Answer,
    text,
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

/// castor logs in there by itself; the user has the page before them.
#[derive(Debug)]
struct LoggingIn {
    login: ServerLogin,
    server: String,
}

pub(in crate::turn) fn ask_for_credentials(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    if !cx.spec.toolbox.renews_credentials() {
        return Flow::Next;
    }
    let Some((credential, why, is_repeated)) = cx.scratch.preamble.next_unauthorized() else { return Flow::Next };
    if credential.can_log_in {
        // Once: where that fails, a command is the way.
        cx.scratch.preamble.give_up_on(&credential.name);
        if !cx.spec.toolbox.opens_pages() {
            return Flow::Go(Station::Credentials);
        }
        let login = ServerLogin::begin(cx.step, &credential.name);
        return Flow::wait(LoggingIn { login, server: credential.name });
    }
    let why = format!("MCP server {:?}: {}", credential.name, text::end_sentence(&why));
    let (message, about) = (credential.question(&why, is_repeated), Box::new(credential.clone()));
    let topic = |call| QuestionTopic::Credential { call, credential: about, message };
    let asked = AUTH_REQUIRED.ask_and_wait(cx.step, credential.title(), topic);
    Flow::wait(ServerQuestion { asked, credential })
}

impl Phase for LoggingIn {
    fn step(mut self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let result = match self.login.take(cx.step, input) {
            LoginNews::Unrelated(other) => return Flow::Unrelated(self, other),
            LoginNews::Open => return Flow::Wait(self),
            LoginNews::Cancelled => return Flow::End(Cause::Cancelled),
            LoginNews::Unshown(_) => {
                self.login.abort(cx.step);
                return Flow::Go(Station::Credentials);
            }
            LoginNews::Ended(it) => it,
        };
        match result {
            Ok(_) => {
                cx.scratch.preamble.forget_loss(&self.server);
                Flow::Go(Station::Servers)
            }
            Err(why) => {
                let name = text::first_line(&self.server, 100);
                cx.scratch
                    .preamble
                    .notice(text::end_sentence(&format!("The login at MCP server {name:?} failed: {why}")));
                Flow::Go(Station::Credentials)
            }
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.login.abort(step);
    }
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
