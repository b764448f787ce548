//! Agents of sessions: lists them for hosts, reads them anew, and keeps what clients can choose up to date.

use jsonrpsee::types::ErrorObjectOwned;

use super::{mcp, state::State, tasks::Tasks};
use crate::{
    model::chosen_model::model_of,
    session::{
        agents::{folder_agents, session_agents, tool_name},
        live_session::LiveSession,
        place::{SessionPlace, load_ground},
    },
};
use castor_base::{
    agent::{AgentRun, ClientAgent, FolderAgents},
    ids::SessionId,
    text,
};
use castor_engine::{
    session::Session,
    step::{Input, OptionValue},
    turn::agents::session_agent::{find_session_agent, session_agents as turn_agents},
};
use castor_tools::workspace::agents::parse_client;
use castor_wire::{
    acp::{options::DEFAULT_AGENT, session::WantedAgent},
    jsonrpc::error,
};

/// The agent that a new session is to be, with its model.
pub struct FirstAgent {
    pub name: String,
    pub model: Option<String>,
}

/// # Errors
/// For the client: there is no such agent, with those there are; or its definition does not count, and why.
pub fn first_agent(place: &SessionPlace, wanted: &WantedAgent) -> Result<FirstAgent, ErrorObjectOwned> {
    let name = match wanted {
        WantedAgent::Named(name) => name.clone(),
        WantedAgent::Defined(keys) => {
            check_definition(place, keys).map_err(|why| error::invalid_params(&format!("_meta.castor.agent: {why}")))?
        }
    };
    find_first_agent(place, &name)
}

/// The name of an agent that the client defines for a session.
fn check_definition(place: &SessionPlace, keys: &ClientAgent) -> Result<String, String> {
    let (definition, _) = parse_client(keys, &tool_name)?;
    let name = definition.descriptor.name;
    let AgentRun::Local(run) = definition.run else {
        return Err("only an agent of the kind local can have a session".to_owned());
    };
    if let Some(it) = run.mcp_servers.first().filter(|_| !place.ground.trust.is_trusted()) {
        let why = "this folder is not trusted, so that no server of an agent starts in it";
        return Err(format!("mcp_servers.{}: {why}; leave it out, or trust the folder first", it.name));
    }
    match folder_agents(&place.ground, &place.settings).0.find(&name) {
        Some(_) => Err(format!("there is an agent {name:?} already; choose another name")),
        None => Ok(name),
    }
}

fn find_first_agent(place: &SessionPlace, name: &str) -> Result<FirstAgent, ErrorObjectOwned> {
    let (agents, _) = session_agents(&place.ground, &place.settings, place.client_agent.as_ref());
    if let Some((it, run)) = find_session_agent(&agents, name) {
        let model = run.model.clone().filter(|it| it != "inherit");
        return Ok(FirstAgent { name: it.descriptor.name.clone(), model });
    }
    let names: Vec<&str> = turn_agents(&agents).map(|(it, _)| it.descriptor.name.as_str()).collect();
    let there =
        if names.is_empty() { "there are none".to_owned() } else { format!("choose one of {}", names.join(", ")) };
    let untrusted = match place.ground.trust.is_trusted() {
        true => "",
        false => "; this folder is not trusted, so its own agents are not used",
    };
    let name = text::head(name, 200);
    Err(error::invalid_params(&format!("_meta.castor.agent: there is no agent {name:?}; {there}{untrusted}")))
}

/// The session is this agent's from its next prompt on, with the model of the agent; back to castor's own, the model
/// that came with the agent goes with it.
pub fn choose(state: &mut State, id: &SessionId, agent: Option<String>) {
    let Some(live) = state.sessions.get(id) else { return };
    let (record, agents) = (live.session.record(), live.session.agents());
    let model_of_agent =
        |it: &str| find_session_agent(&agents, it).and_then(|(_, run)| run.model.clone()).filter(|it| it != "inherit");
    let left = record.chosen_agent().and_then(model_of_agent);
    let model = match agent.as_deref().and_then(model_of_agent) {
        Some(it) => Some(it),
        None if left.as_ref() == Some(&record.model) => {
            let (_, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
            Some(model_of(&state.options, &settings))
        }
        None => None,
    };
    state.step(id, Input::SetOption(OptionValue::Agent(agent)));
    if let Some(live) = state.sessions.get_mut(id) {
        renew_offer(live);
    }
    if let Some(it) = model {
        state.step(id, Input::SetOption(OptionValue::Model(it)));
    }
    mcp::connect_session_agent(state, id);
    mcp::refresh_session(state, id);
}

/// The list of sessions names the agent of this one.
pub fn note_in_list(live: &LiveSession, tasks: &mut Tasks) {
    if let Some(choice) = live.session.record().agent_choice() {
        tasks.note_agent(&live.resources.session, choice);
    }
}

/// Names and titles of those that a client can choose.
pub fn offered(session: &Session) -> Vec<(String, String)> {
    names_of(&session.agents())
}

/// The same of a folder, before there is a session.
pub fn names_of(agents: &FolderAgents) -> Vec<(String, String)> {
    let named = turn_agents(agents).map(|(it, _)| &it.descriptor).filter(|it| it.name != DEFAULT_AGENT);
    named.map(|it| (it.name.clone(), it.display_name.clone().unwrap_or_else(|| it.name.clone()))).collect()
}

/// Tells the client if it can choose among others than before.
pub fn update_offer(live: &mut LiveSession, lines: &mut Vec<u8>) {
    if renew_offer(live) {
        live.view.show_options(lines);
    }
}

/// Tells whether there is another offer.
fn renew_offer(live: &mut LiveSession) -> bool {
    let offer = &mut live.profile.offer;
    let (agents, limits) = (offered(&live.session), live.session.configured_limits());
    if (&offer.agents, &offer.limits) == (&agents, &limits) {
        return false;
    }
    (offer.agents, offer.limits) = (agents, limits);
    live.view.set_offer(offer.clone());
    true
}
