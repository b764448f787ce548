//! Renewal of refused credentials: reads them again, and reaches their servers with what is there now.

use std::{collections::BTreeMap, sync::Arc};

use crate::server::{live::reconnect, mcp, state::State};
use crate::{
    model::model_factory::ModelContext,
    session::{
        agents::{folder_agents, session_agents},
        live_session::LiveSession,
        peers::{PeerHands, peer_generator},
        place::load_ground,
        session_resources::SessionResources,
    },
    settings::options::Options,
};
use castor_base::{
    agent::{AgentDefinition, AgentRun},
    credential::{CredentialOwner, RenewalOrder},
    ids::{EffectId, SessionId},
    mcp::{McpLink, McpServerConfig},
    peer_agent::{PeerAgent, RemoteAgent},
};
use castor_engine::step::Input;
use castor_hands::secrets::Env;

/// `Effect::RenewCredential`.
pub fn renew(state: &mut State, id: &SessionId, effect: EffectId, order: &RenewalOrder) {
    let changed = match order.credential.owner {
        CredentialOwner::Model => renew_model(state, id, order),
        CredentialOwner::Agent => renew_agent(state, id, order).unwrap_or_default(),
        CredentialOwner::Server => renew_server(state, id, order).unwrap_or_default(),
    };
    state.step(id, Input::CredentialRenewed { effect, changed });
}

/// What it is reached with now. Where that cannot be known, it counts as new: the server will say.
fn hash(sessions: &BTreeMap<SessionId, LiveSession>, id: &SessionId, model: &str) -> Option<String> {
    sessions.get(id)?.resources.generator.credential_hash(model)
}

fn renew_model(state: &mut State, id: &SessionId, order: &RenewalOrder) -> bool {
    // Since it was refused, `authenticate` may have brought another one.
    let refused = state.sessions.get(id).and_then(|it| it.extras.refused_credential.clone()).filter(|_| order.is_asked);
    let before = refused.or_else(|| hash(&state.sessions, id, &order.asker));
    let read_again = |state: &mut State| {
        state.models.forget_connection();
        reconnect::reconnect_model(state, id);
        before.is_none() || before != hash(&state.sessions, id, &order.asker)
    };
    let may_log_in = order.is_asked && order.credential.can_log_in;
    let changed = read_again(state) || (may_log_in && read_stored(state, id, &read_again));
    if let Some(live) = state.sessions.get_mut(id) {
        live.extras.refused_credential = before.filter(|_| !changed);
    }
    changed
}

/// The user was sent to `castor auth login`: what it stored goes before a variable that was refused.
fn read_stored(state: &mut State, id: &SessionId, read_again: &impl Fn(&mut State) -> bool) -> bool {
    let Some(live) = state.sessions.get(id) else { return false };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.children.hooks.project);
    let context = ModelContext { options: &state.options, env: &ground.env, settings: &settings };
    if !state.models.prefer_stored_key(context) {
        return false;
    }
    let changed = read_again(state);
    state.models.credentials.prefers_stored = changed;
    changed
}

/// The definition may name another secret by now; that it names another server does not count in the middle of a run.
/// `None`: there is no such agent any more.
fn renew_agent(state: &mut State, id: &SessionId, order: &RenewalOrder) -> Option<bool> {
    let before = hash(&state.sessions, id, &order.asker);
    let live = state.sessions.get(id)?;
    let parent = state.sessions.get(&live.parent.as_ref()?.session)?;
    let name = live.session.record().principal.agent()?;
    let old = parent.session.spec().toolbox.agents.iter().find(|it| it.descriptor.name == name)?;
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.children.hooks.project);
    let (agents, _) = folder_agents(&ground, &settings);
    let (old, new) = (remote(old)?, remote(agents.find(name)?)?);
    let peer = PeerAgent::Remote(RemoteAgent { auth: new.auth.clone(), ..old.clone() });
    let memory = parent.session.record().peer_memory(name);
    let hands = PeerHands { http: state.models.http(), env: ground.env.clone() };
    let generator = peer_generator(&peer, memory, &live.resources, hands).ok()?;
    // Where nothing is new, what is known of the conversation stays.
    if before.is_some() && before == generator.credential_hash(&order.asker) {
        return Some(false);
    }
    let live = state.sessions.get_mut(id)?;
    live.resources = Arc::new(SessionResources { generator, ..SessionResources::clone(&live.resources) });
    Some(true)
}

/// The settings or the agents of the folder may name other headers by now. What a client brought stays as it is.
/// `None`: there is no such server any more.
fn renew_server(state: &mut State, id: &SessionId, order: &RenewalOrder) -> Option<bool> {
    let live = state.sessions.get(id)?;
    let tool = live.resources.mcp.find_tool(&order.asker).map(|it| it.server);
    let name = &order.credential.name;
    let old = match tool {
        Some(server) => state.tasks.mcp.link(server)?.clone(),
        None => mcp::owners(id, live).iter().find_map(|it| state.tasks.mcp.lost_link(it, name))?.clone(),
    };
    let new = configured_link((&state.options, &state.env), live, name, &old);
    let changed = new.as_ref().is_some_and(|it| *it != old);
    match tool {
        Some(server) => Some(state.tasks.mcp.renew(server, new?)),
        // It is connected anew in any case: what it refused may be in order there by now.
        None => {
            mcp::restart(state, id, name, new.unwrap_or(old));
            Some(changed)
        }
    }
}

/// How a server of that name and address is reached by now.
fn configured_link((options, env): (&Options, &Env), live: &LiveSession, name: &str, old: &McpLink) -> Option<McpLink> {
    let McpLink::Web { url: address, .. } = old else { return None };
    let (ground, settings) = load_ground(options, env, &live.resources.children.hooks.project);
    let (agents, _) = session_agents(&ground, &settings, live.session.record().client_agent());
    let of_agents = agents.definitions.iter().filter_map(|it| match &it.run {
        AgentRun::Local(it) => Some(it.mcp_servers.iter()),
        AgentRun::Composite(_) | AgentRun::Peer(_) => None,
    });
    // As a session begins with them: those of the settings only where the folder is trusted.
    let of_settings = settings.mcp.servers.iter().filter(|_| ground.trust.is_trusted());
    let is_it =
        |it: &&McpServerConfig| it.name == name && matches!(&it.link, McpLink::Web { url, .. } if url == address);
    of_settings.chain(of_agents.flatten()).find(is_it).map(|it| it.link.clone())
}

fn remote(agent: &AgentDefinition) -> Option<&RemoteAgent> {
    match &agent.run {
        AgentRun::Peer(it) => match &**it {
            PeerAgent::Remote(it) => Some(it),
            PeerAgent::Program(_) => None,
        },
        AgentRun::Local(_) | AgentRun::Composite(_) => None,
    }
}
