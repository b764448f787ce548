//! Orders of the user about MCP servers: logins, tests and changes of settings as jobs, switches at once.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{
    mcp,
    reply::{Reply, reply_now},
    state::State,
    tasks::jobs::{ServerErrand, ServerWork, TestedServer},
};
use crate::{
    session::{
        live_session::LiveSession,
        mcp_servers::{ServerOwner, Servers},
    },
    settings::server_edit::{ServerEdit, ServerScope, read_line},
};
use castor_base::{
    ids::{EffectId, SessionId},
    mcp::McpLink,
    server_order::{ServerOrder, ServerVerb},
};
use castor_engine::{
    commands::mcp_report::server_in_words,
    step::{Input, Server, ServerStatus},
};
use castor_hands::secrets::Env;
use castor_tools::mcp::auth::LoginTarget;
use castor_wire::{
    acp::{
        elicitation,
        mcp_servers::{McpServerReport, McpServerState, McpServers, McpSwitch, read_servers, read_switch},
        updates,
    },
    jsonrpc::error,
};

/// `Effect::ManageServer`.
pub fn begin(state: &mut State, id: &SessionId, effect: EffectId, order: ServerOrder) {
    let work = match order.verb {
        ServerVerb::Login | ServerVerb::Logout => {
            login_target(state, id, &order.server).map(|target| ServerWork::Login { target, page: page_of(id, effect) })
        }
        ServerVerb::Test => Ok(ServerWork::Test {
            servers: tested(state, id, &order.server),
            handles: Box::new(mcp::host_handles(state)),
        }),
        ServerVerb::Add => read_line("/mcp add", &order.server)
            .and_then(|it| edit((&state.sessions, &state.env), id, ServerEdit::Add(it))),
        ServerVerb::Remove => read_line("/mcp remove", &order.server)
            .and_then(|it| edit((&state.sessions, &state.env), id, ServerEdit::Remove(it))),
        ServerVerb::Enable | ServerVerb::Disable => {
            let result = switch(state, id, &order.server, order.verb == ServerVerb::Enable);
            return state.step(id, Input::ServerManaged { effect, order: Box::new(order), result });
        }
    };
    match work {
        Ok(work) => state.tasks.start_server_errand(id, effect, ServerErrand { order, work }),
        Err(why) => state.step(id, Input::ServerManaged { effect, order: Box::new(order), result: Err(why) }),
    }
}

/// The servers of the session, or the one of that name. What is off stays off.
fn tested(state: &State, id: &SessionId, name: &str) -> Vec<TestedServer> {
    let Some(live) = state.sessions.get(id) else { return Vec::new() };
    let toolbox = &live.session.spec().toolbox;
    let owners = mcp::owners(id, live).into_iter().chain([ServerOwner::session(&id.root())]);
    let mut launches: Vec<_> = owners.flat_map(|it| state.tasks.mcp.launches_of(&it)).collect();
    // A server in the client is the client's to start.
    launches.retain(|it| !matches!(it.1.link, McpLink::Client { .. }));
    let wanted = toolbox.servers.iter().filter(|it| name.is_empty() || it.name == name);
    let one = |it: &Server| match launches.iter().find(|(config, _)| config.name == it.name) {
        Some((config, launch)) => {
            TestedServer::Start { config: Box::new(config.clone()), launch: Box::new(launch.clone()) }
        }
        None => TestedServer::Told(server_in_words(it, toolbox, 0, state.now.unix_ms)),
    };
    wanted.map(one).collect()
}

/// A change of a settings file that counts for the session.
fn edit(
    (sessions, env): (&BTreeMap<SessionId, LiveSession>, &Env),
    id: &SessionId,
    edit: ServerEdit,
) -> Result<ServerWork, String> {
    let live = sessions.get(id).ok_or("the session is gone")?;
    let is_trusted = live.session.spec().toolbox.sandbox.facts.trusted;
    let note = match (&edit, edit.scope()) {
        (_, ServerScope::Project) if !is_trusted => {
            return Err("this folder is not trusted, so its settings count for nothing: run `castor trust` in it, or \
                        write `--scope user` for your own settings"
                .to_owned());
        }
        _ if live.definitions.is_fixed => {
            "This session stays with the settings that you trusted; it holds in the next one."
        }
        (ServerEdit::Remove(_), _) => "This holds from your next prompt on.",
        (ServerEdit::Add(_), ServerScope::User) if !is_trusted => {
            "It starts in folders that you trust; this one is none."
        }
        (ServerEdit::Add(_), ServerScope::User) => "It starts with your next prompt.",
        (ServerEdit::Add(_), ServerScope::Project) => {
            "It starts with your next prompt, once this folder is trusted with it."
        }
    };
    Ok(ServerWork::Edit { edit, env: env.clone(), cwd: live.resources.cwd.clone(), note })
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
    report(sessions, &id)
}

/// `_castor/mcp/switch`: the same as `/mcp enable` and `/mcp disable`.
pub fn switch_by_client(state: &mut State, params: Option<&RawValue>) -> Reply {
    let McpSwitch { session_id: id, server, on, .. } = read_switch(params).map_err(|it| error::invalid_params(&it))?;
    if !state.sessions.contains_key(&id) {
        return Err(error::session_not_found(id.as_str()));
    }
    switch(state, &id, &server, on).map_err(|why| error::invalid_params(&format!("{server}: {why}")))?;
    report(&state.sessions, &id)
}

fn report(sessions: &BTreeMap<SessionId, LiveSession>, id: &SessionId) -> Reply {
    let Some(live) = sessions.get(id) else { return Err(error::session_not_found(id.as_str())) };
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
    let is_login = matches!(order.verb, ServerVerb::Login | ServerVerb::Logout);
    if result.is_err() || !is_login || !state.tasks.is_running(id, *effect) {
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
