//! The task of an order about MCP servers: a login or its end, a test, a change of a settings file.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt, future::join_all};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::jobs::{ServerErrand, ServerWork, TestedServer};
use crate::{panics, server::event::Event};
use castor_base::{
    ids::{EffectId, SessionId},
    mcp::McpServerConfig,
    server_order::{ServerVerb, login_hint},
    text,
};
use castor_engine::{commands::mcp_report::offer_in_words, step::Input};
use castor_tools::mcp::{self, HostHandles, ServerIdentity, ServerTool, auth};

/// For the start of a server that is tested. The user waits, and can cancel.
const PATIENCE: Duration = Duration::from_secs(60);
/// More tools of one server are only counted.
const MAX_TOLD: usize = 50;
/// Longest words about a settings file, in characters.
const MAX_SAID: usize = 1_000;

/// Answers as `Effect::ManageServer` says, unless nobody wants it any more.
pub async fn run(
    (session, effect): (SessionId, EffectId),
    errand: ServerErrand,
    cancel: CancellationToken,
    events: Sender<Event>,
) {
    let ServerErrand { order, work } = errand;
    let tell = async |input: Input| _ = events.send(Event::Engine { session: session.clone(), input }).await;
    let act = async {
        match work {
            ServerWork::Login { target, .. } if order.verb == ServerVerb::Logout => {
                auth::log_out(&target).await.map(|it| it.in_words()).map_err(|it| it.to_string())
            }
            ServerWork::Login { target, page } => {
                let show = async |url: String| tell(Input::ServerPage { effect, url, page: page.clone() }).await;
                let done = auth::log_in(&target, show).await;
                done.map(|()| "You are logged in".to_owned()).map_err(|it| it.to_string())
            }
            ServerWork::Test { servers, handles } => Ok(test(servers, *handles).await),
            ServerWork::Edit { edit, env, cwd, note } => {
                let said = |it: &str| text::visible_line(it, MAX_SAID);
                match edit.apply((&env, &cwd)) {
                    Ok(done) => Ok(format!("{}. {note}", said(&done))),
                    Err(why) => Err(said(&why.to_string())),
                }
            }
        }
    };
    let ended = cancel.run_until_cancelled(AssertUnwindSafe(act).catch_unwind()).await;
    let result = match ended {
        None => return,
        Some(Ok(it)) => it,
        Some(Err(panic)) => Err(panics::panic_message(&*panic)),
    };
    tell(Input::ServerManaged { effect, order: Box::new(order), result }).await;
}

/// A line for each server, and one for each of its tools.
async fn test(servers: Vec<TestedServer>, handles: HostHandles) -> String {
    let tests = servers.into_iter().map(|it| async {
        match it {
            TestedServer::Told(it) => it,
            TestedServer::Start { config, launch } => test_one(&config, *launch, handles.clone()).await,
        }
    });
    join_all(tests).await.concat()
}

async fn test_one(config: &McpServerConfig, launch: ServerIdentity, handles: HostHandles) -> String {
    let name = text::first_line(&config.name, 100);
    let can_log_in = launch.link.login().is_some();
    let launch = ServerIdentity { timeout: launch.timeout.min(PATIENCE), ..launch };
    let lists = match mcp::try_server(launch, handles).await {
        Ok(it) => it,
        Err(it) if it.is_unauthorized && can_log_in => return format!("- `{name}`: failed: {}\n", login_hint(&name)),
        Err(it) => return format!("- `{name}`: failed: {}\n", it.why),
    };
    let tools: Vec<&ServerTool> = lists.tools.iter().filter(|it| config.allows_tool(&it.name)).collect();
    let mut res = format!("- `{name}`: ready, {}\n", offer_in_words(tools.len(), &lists.offer));
    for it in tools.iter().take(MAX_TOLD) {
        let (name, about) = (text::visible_line(&it.name, 100), text::visible_line(&it.description, 200));
        res += &format!("  - `{name}`: {about}\n");
    }
    if tools.len() > MAX_TOLD {
        res += &format!("  - and {} more\n", tools.len() - MAX_TOLD);
    }
    res
}
