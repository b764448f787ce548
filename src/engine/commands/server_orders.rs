//! `/mcp login`, `logout`, `enable`, `disable`, `test`, `add` and `remove`: an order about servers, and what came of it.

use crate::{
    record::Step,
    scheduler::server_login::{LoginNews, ServerLogin},
    step::{Effect, Input},
    turn::{
        endings::Cause,
        flow::{Flow, Phase},
        messages::send_command_message,
        spec::TurnContext,
        state::TurnState,
    },
};
use castor_base::{
    content::Part,
    event::Speaker,
    ids::EffectId,
    server_order::{ServerOrder, ServerVerb},
    text,
};

/// What is said of servers where there are none.
pub const NO_SERVERS: &str = "No MCP servers are configured. `/mcp add` adds one to your settings or the workspace's; your editor may bring some.";

#[derive(Debug)]
struct LoggingIn(ServerLogin);

#[derive(Debug)]
struct Managing {
    effect: EffectId,
    verb: ServerVerb,
}

pub(super) fn begin(cx: &mut TurnContext<'_, '_>, order: ServerOrder) -> Flow {
    let servers = &cx.spec.toolbox.servers;
    let is_all = order.verb == ServerVerb::Test && order.server.is_empty();
    let is_known = is_all || servers.iter().any(|it| it.name == order.server);
    match order.verb {
        ServerVerb::Test if is_all && servers.is_empty() => Flow::report(NO_SERVERS),
        // Files may have servers that this session does not know.
        ServerVerb::Add | ServerVerb::Remove => manage(cx, order),
        _ if !is_known => {
            let name = text::first_line(&order.server, 100);
            Flow::report(format!("There is no MCP server `{name}`; `/mcp` lists them."))
        }
        ServerVerb::Login => Flow::wait(LoggingIn(ServerLogin::begin(cx.step, &order.server))),
        ServerVerb::Logout | ServerVerb::Enable | ServerVerb::Disable | ServerVerb::Test => manage(cx, order),
    }
}

fn manage(cx: &mut TurnContext<'_, '_>, order: ServerOrder) -> Flow {
    let verb = order.verb;
    Flow::wait(Managing { effect: cx.step.start_effect(Effect::ManageServer(Box::new(order))), verb })
}

fn report(verb: ServerVerb, result: Result<String, String>) -> Flow {
    Flow::report(match result {
        // A list, and no sentence.
        Ok(done) if verb == ServerVerb::Test => done,
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
            LoginNews::Ended(result) => report(ServerVerb::Login, result),
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
            Input::ServerManaged { effect, result, .. } if effect == self.effect => report(self.verb, result),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}
