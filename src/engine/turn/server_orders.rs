//! `/mcp login`, `logout`, `enable` and `disable`: an order about one server, and what came of it.

use super::{
    endings::Cause,
    flow::{Flow, Phase},
    messages::send_command_message,
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    base::{
        content::Part,
        event::Speaker,
        ids::EffectId,
        server_order::{ServerOrder, ServerVerb},
        text,
    },
    engine::{
        record::Step,
        scheduler::server_login::{LoginNews, ServerLogin},
        step::{Effect, Input},
    },
};

#[derive(Debug)]
struct LoggingIn(ServerLogin);

#[derive(Debug)]
struct Managing {
    effect: EffectId,
}

pub(super) fn begin(cx: &mut TurnContext<'_, '_>, order: ServerOrder) -> Flow {
    let is_known = cx.spec.toolbox.servers.iter().any(|it| it.name == order.server);
    if !is_known {
        let name = text::first_line(&order.server, 100);
        return Flow::report(format!("There is no MCP server `{name}`; `/mcp` lists them."));
    }
    match order.verb {
        ServerVerb::Login => Flow::wait(LoggingIn(ServerLogin::begin(cx.step, &order.server))),
        ServerVerb::Logout | ServerVerb::Enable | ServerVerb::Disable => {
            Flow::wait(Managing { effect: cx.step.start_effect(Effect::ManageServer(Box::new(order))) })
        }
    }
}

fn report(result: Result<String, String>) -> Flow {
    Flow::report(match result {
        Ok(done) => text::end_sentence(&done),
        Err(why) => text::end_sentence(&format!("Nothing came of it: {why}")),
    })
}

impl Phase for LoggingIn {
    fn step(mut self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match self.0.take(cx.step, input) {
            LoginNews::Unrelated(other) => Flow::Unrelated(self, other),
            LoginNews::Open => Flow::Wait(self),
            LoginNews::Unshown(url) => {
                let said = format!("To log in, open this page on the machine where castor runs:\n\n{url}\n\n");
                send_command_message(cx.step, Speaker::Agent, vec![Part::text(said)]);
                Flow::Wait(self)
            }
            LoginNews::Ended(result) => report(result),
            LoginNews::Cancelled => Flow::End(Cause::Cancelled),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.0.abort(step);
    }
}

impl Phase for Managing {
    fn step(self: Box<Self>, _: &mut TurnState, _: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::ServerManaged { effect, result, .. } if effect == self.effect => report(result),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}
