//! Orders of the user about MCP servers: logins as jobs, switches at once.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{
    mcp,
    reply::{Reply, reply_now},
    state::State,
    tasks::jobs::ServerLogin,
};
use crate::{
    app::session::{
        live_session::LiveSession,
        mcp_servers::{ServerOwner, Servers},
    },
    base::{
        ids::{EffectId, SessionId},
        mcp::McpLink,
        server_order::{ServerOrder, ServerVerb},
    },
    engine::step::{Input, Server, ServerStatus},
    wire::{
        acp::{
            elicitation,
            mcp_servers::{McpServerReport, McpServerState, McpServers, read_servers},
            updates,
        },
        jsonrpc::error,
    },
    world::mcp::auth::LoginTarget,
};

/// `Effect::ManageServer`.
pub fn begin(state: &mut State, id: &SessionId, effect: EffectId, order: ServerOrder) {
    let result = match order.verb {
        ServerVerb::Login | ServerVerb::Logout => match login_target(state, id, &order.server) {
            Ok(target) => {
                let page = page_of(id, effect);
                return state.tasks.start_login(id, effect, ServerLogin { order, target, page });
            }
            Err(why) => Err(why),
        },
        ServerVerb::Enable => switch(state, id, &order.server, true),
        ServerVerb::Disable => switch(state, id, &order.server, false),
    };
    state.step(id, Input::ServerManaged { effect, order: Box::new(order), result });
}

/// A client knows the page by this.
fn page_of(id: &SessionId, effect: EffectId) -> String {
    format!("{id}/login-{}", effect.0)
}

fn owner_of(
    (sessions, servers): (&BTreeMap<SessionId, LiveSession>, &Servers),
    id: &SessionId,
    server: &str,
) -> Option<ServerOwner> {
    let live: &LiveSession = sessions.get(id)?;
    // A sub-agent has the servers of the session above it, too.
    let own = mcp::owners(id, live).into_iter().chain([ServerOwner::session(&id.root())]);
    own.into_iter().find(|it| servers.knows(it, server))
}

fn login_target(state: &State, id: &SessionId, server: &str) -> Result<LoginTarget, String> {
    let owner =
        owner_of((&state.sessions, &state.tasks.mcp), id, server).ok_or("it is not connected in this session")?;
    let link = state.tasks.mcp.link_of(&owner, server).ok_or("it is off")?;
    match link {
        McpLink::Web { .. } => (),
        McpLink::Stdio { .. } => return Err("it is a program, which has logins of its own".to_owned()),
        McpLink::Client { .. } => return Err("the client runs it, and logs in for it".to_owned()),
    }
    let (url, oauth) = link.login().ok_or("its settings have a token in `headers`, or `oauth.enabled` is false")?;
    let (home, http, env) = (state.tasks.store.home().clone(), state.models.http(), state.env.clone());
    Ok(LoginTarget { url: url.to_owned(), oauth, home, http, env })
}

fn switch(state: &mut State, id: &SessionId, server: &str, is_on: bool) -> Result<String, String> {
    let owner = owner_of((&state.sessions, &state.tasks.mcp), id, server)
        .ok_or("it is off for all sessions; `castor mcp enable` turns it on")?;
    let fresh = state.tasks.mcp.switch(&owner, server, is_on, state.now.unix_ms);
    let Some(fresh) = fresh else {
        return Ok(format!("It is {} already", if is_on { "on" } else { "off" }));
    };
    mcp::start_fresh(state, fresh);
    mcp::withdraw_of_stopped(state);
    mcp::refresh_session(state, id);
    Ok(format!("It is {} in this session", if is_on { "on" } else { "off" }))
}

/// `_castor/mcp/servers`: how the servers of a session are.
pub fn list(sessions: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_servers(params).map_err(|it| error::invalid_params(&it))?;
    let Some(live) = sessions.get(&id) else { return Err(error::session_not_found(id.as_str())) };
    let toolbox = &live.session.spec().toolbox;
    let one = |it: &Server| {
        let (status, why) = match &it.status {
            ServerStatus::Starting { .. } => (McpServerState::Starting, None),
            ServerStatus::Ready => (McpServerState::Ready, None),
            ServerStatus::Down(it) => (McpServerState::Down, Some(it.why.clone())),
            ServerStatus::Lost(why) => (McpServerState::Failed, Some(why.clone())),
            ServerStatus::Unauthorized { why, can_log_in: true, .. } => (McpServerState::NeedsLogin, Some(why.clone())),
            ServerStatus::Unauthorized { why, .. } => (McpServerState::Unauthorized, Some(why.clone())),
            ServerStatus::Off(why) => (McpServerState::Off, Some(why.clone())),
            ServerStatus::Untrusted => (McpServerState::Untrusted, None),
        };
        McpServerReport { name: it.name.clone(), status, why, tools: toolbox.tools_of_server(&it.name).count() }
    };
    reply_now(&McpServers { servers: toolbox.servers.iter().map(one).collect() })
}

/// Something came of a login: whoever has the server reaches it with what is there now.
pub fn note_end(state: &mut State, id: &SessionId, input: &Input) {
    let Input::ServerManaged { effect, order, result } = input else { return };
    if result.is_err() || !state.tasks.is_running(id, *effect) {
        return;
    }
    let Some(owner) = owner_of((&state.sessions, &state.tasks.mcp), id, &order.server) else { return };
    let Some(link) = state.tasks.mcp.link_of(&owner, &order.server).cloned() else { return };
    if order.verb == ServerVerb::Login {
        let params = elicitation::complete(&page_of(id, *effect));
        state.outbox.queue_lines(None, |lines| updates::notification(elicitation::COMPLETE, &params, lines));
    }
    let fresh = state.tasks.mcp.reconnect(&link, state.now.unix_ms);
    mcp::start_fresh(state, fresh);
    let all: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for it in &all {
        mcp::refresh_session(state, it);
    }
}
