//! MCP servers of sessions: connects them and handles their events.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{
    outbox::Outbox,
    pending_requests::{self, ClientRequest},
    state::State,
};
use crate::server::live::offered_commands;
use crate::session::{
    build_session::agent_server_request,
    live_session::LiveSession,
    mcp_access::McpAccess,
    mcp_servers::{FreshServer, ServerOwner, ServerRequest, Servers, Stage},
    place::load_ground,
};
use castor_base::{
    elicitation::ElicitationSupport,
    held_program::{HeldProgram, ProgramName},
    ids::SessionId,
    mcp::{McpLink, McpServerConfig},
    sandbox::SandboxGrant,
};
use castor_engine::{
    step::{ForeignTool, Input, McpTools},
    turn::agents::session_agent::find_session_agent,
};
use castor_tools::mcp::{HostHandles, RelayError, RelayReply, RelayedRequest, ServerEvent};
use castor_wire::{
    acp::{
        elicitation,
        mcp_message::{MESSAGE, McpNotice, message_params, read_answer, read_notice},
        updates,
    },
    jsonrpc::{message::RpcError, open_requests::OutgoingRequests, write},
};

/// Connects a session with its servers, without waiting for any of them.
pub fn connect(state: &mut State, session: &SessionId, request: ServerRequest) {
    let owner = ServerOwner::session(session);
    if request.servers.is_empty() && request.off.is_empty() && !state.tasks.mcp.has(&owner) {
        return;
    }
    start_servers(state, &owner, request);
    refresh_session(state, session);
}

/// Connects a session with the own servers of the agent that it is.
pub fn connect_session_agent(state: &mut State, session: &SessionId) {
    let Some(live) = state.sessions.get(session) else { return };
    let agents = live.session.agents();
    let agent = live.session.record().chosen_agent();
    let found = agent.and_then(|it| find_session_agent(&agents, it));
    if let Some((definition, run)) = found {
        connect_agent(state, session, &definition.descriptor.name, &run.mcp_servers);
    }
}

/// Connects the run of an agent with the agent's own servers. They stay for its next runs in the session.
pub fn connect_agent(state: &mut State, session: &SessionId, agent: &str, servers: &[McpServerConfig]) {
    let Some(live) = state.sessions.get(session) else { return };
    if servers.is_empty() || live.session.spec().toolbox.host().runs_all() {
        return;
    }
    let (_, settings) = load_ground(&state.options, &state.env, &live.resources.children.hooks.project);
    let request = agent_server_request(servers, settings.mcp.rules, &live.resources);
    let owner = ServerOwner::agent(session, agent);
    start_servers(state, &owner, request);
    refresh_owner(state, &owner);
}

fn start_servers(state: &mut State, owner: &ServerOwner, request: ServerRequest) {
    let fresh = state.tasks.mcp.set_servers(owner, request, state.now.unix_ms);
    withdraw_of_stopped(state);
    start_fresh(state, fresh);
}

/// What servers are reached with, as it is from now on for all who share one.
pub fn host_handles(state: &State) -> HostHandles {
    let client = state.client.as_ref().filter(|it| !it.headless);
    let shows =
        client.map(|it| ElicitationSupport { forms: it.shows_forms, pages: it.opens_links }).unwrap_or_default();
    HostHandles {
        groups: state.tasks.groups.clone(),
        http: state.models.http(),
        elicitation: shows,
        home: state.tasks.store.home().clone(),
        env: state.env.clone(),
    }
}

pub fn start_fresh(state: &mut State, fresh: Vec<FreshServer>) {
    let handles = host_handles(state);
    for (id, launch, stop) in fresh {
        state.tasks.start_server(id, launch, handles.clone(), stop);
    }
}

/// Connects anew with a server of the session that could not be reached.
pub fn restart(state: &mut State, session: &SessionId, name: &str, link: McpLink) {
    let Some(live) = state.sessions.get(session) else { return };
    for owner in owners(session, live) {
        let fresh = state.tasks.mcp.restart(&owner, name, &link, state.now.unix_ms);
        start_fresh(state, fresh.into_iter().collect());
    }
    refresh_session(state, session);
}

/// The user gives a program of the session more, for the session. A server has it from a new start on.
pub fn widen(state: &mut State, session: &SessionId, program: ProgramName, grant: &SandboxGrant) {
    let Some(live) = state.sessions.get(session) else { return };
    let owners = owners(session, live);
    live.resources.children.hooks.rights.widen(program.clone(), grant);
    let ProgramName::Server(name) = program else { return };
    for owner in owners {
        let fresh = state.tasks.mcp.widen(&owner, &name, grant, state.now.unix_ms);
        start_fresh(state, fresh.into_iter().collect());
    }
    withdraw_of_stopped(state);
    refresh_session(state, session);
}

/// A server has something to say.
pub fn handle_event(state: &mut State, server: u64, event: ServerEvent) {
    match event {
        ServerEvent::Question(it) => {
            let (calls, now_ms) = (state.tasks.calls_of(server), state.now.unix_ms);
            let users = state.tasks.mcp.sessions_of(server);
            if let Some((session, input)) = state.tasks.server_uses.questions.ask(server, it, (calls, users), now_ms) {
                state.step(&session, input);
            }
        }
        ServerEvent::QuestionWithdrawn(number) => {
            if let Some((session, input)) = state.tasks.server_uses.questions.withdraw(server, number) {
                state.step(&session, input);
            }
        }
        ServerEvent::Held(why) => {
            for (session, name) in state.tasks.mcp.sessions_of(server) {
                let held = HeldProgram { program: ProgramName::Server(name), why: why.clone() };
                state.step(&session, Input::ProgramHeld(Box::new(held)));
            }
        }
        ServerEvent::Relay(request) => relay(state, server, *request),
        ServerEvent::RelayWithdrawn(number) => {
            withdraw((&mut state.outgoing, &mut state.outbox), |of, it| of == server && it == number)
        }
        ServerEvent::ResourceUpdated(uri) => tell_readers(state, server, &uri),
        ServerEvent::PageCompleted(page) => {
            if let Some(id) = state.tasks.server_uses.questions.complete_page(server, &page) {
                let params = elicitation::complete(&id.to_string());
                state.outbox.queue_lines(None, |lines| updates::notification(elicitation::COMPLETE, &params, lines));
            }
        }
        ServerEvent::Ready { connection, lists } => {
            update_server(state, server, Stage::Ready { connection, lists: lists.into() })
        }
        ServerEvent::ListsChanged(lists) => {
            if let Some(connection) = state.tasks.mcp.connection(server) {
                update_server(state, server, Stage::Ready { connection, lists: lists.into() });
            }
        }
        ServerEvent::Down(outage) => {
            forget_requests(state, server);
            if let Some(stage) = state.tasks.mcp.down_stage(server, outage, state.now.unix_ms) {
                update_server(state, server, stage);
            }
        }
        ServerEvent::Lost(why) => {
            forget_requests(state, server);
            update_server(state, server, Stage::Lost(why));
        }
        ServerEvent::Unauthorized(why) => {
            forget_requests(state, server);
            update_server(state, server, Stage::Unauthorized(why));
        }
    }
}

/// The sessions that read it tell their models.
fn tell_readers(state: &mut State, server: u64, uri: &str) {
    let names = state.tasks.mcp.sessions_of(server);
    for session in state.tasks.server_uses.read_resources.readers(server, uri) {
        let Some((_, name)) = names.iter().find(|it| it.0 == session) else { continue };
        state.step(&session, Input::ResourceChanged { server: name.clone(), uri: uri.to_owned() });
    }
}

/// Nobody waits for what the server asked, or was asked.
fn forget_requests(state: &mut State, server: u64) {
    state.tasks.server_uses.questions.forget_server(server);
    withdraw((&mut state.outgoing, &mut state.outbox), |of, _| of == server);
}

/// Asks the client, which is the server.
fn relay(state: &mut State, server: u64, request: RelayedRequest) {
    // One that was stopped meanwhile has nobody who waits.
    let Some(McpLink::Client { server_id }) = state.tasks.mcp.link(server) else { return };
    let RelayedRequest { number, method, params, reply } = request;
    let id = state.outgoing.register(ClientRequest::Relayed { server, number, reply });
    let params = message_params(server_id, id, &method, params);
    state.outbox.queue_lines(None, |lines| _ = write::request(lines, id, MESSAGE, &params));
}

/// What the client answered in a server's place.
pub fn answer_relayed(reply: RelayReply, outcome: Result<Box<RawValue>, RpcError>) {
    reply.answer(read_answer(outcome).map_err(|RpcError { code, message, data }| RelayError { code, message, data }));
}

/// `mcp/message` of the client: about a request that it has not answered. Of any other there is nobody to tell.
pub fn take_notice(servers: &Servers, outgoing: &OutgoingRequests<ClientRequest>, params: Option<&RawValue>) {
    let Some(McpNotice { request, server_id, method, params }) = read_notice(params) else { return };
    let open = outgoing.iter().find(|(id, _)| *id == request);
    let Some((_, ClientRequest::Relayed { server, reply, .. })) = open else { return };
    if servers.link(*server) == Some(&McpLink::Client { server_id }) {
        reply.notify(&method, params);
    }
}

/// Takes back what a server in the client was asked. `is_over`: of its server, under its number there.
fn withdraw(
    (outgoing, outbox): (&mut OutgoingRequests<ClientRequest>, &mut Outbox),
    is_over: impl Fn(u64, i64) -> bool,
) {
    let is_it = |it: &mut ClientRequest| matches!(it, ClientRequest::Relayed { server, number, .. } if is_over(*server, *number));
    let mut lines = Vec::new();
    pending_requests::withdraw(outgoing, is_it, &mut lines);
    outbox.queue_lines(None, |it| it.append(&mut lines));
}

/// Takes back what servers were asked that no session has any more.
pub fn withdraw_of_stopped(state: &mut State) {
    let stopped: Vec<u64> = state.outgoing.iter().filter_map(|(_, it)| it.server()).collect();
    let stopped: Vec<u64> = stopped.into_iter().filter(|it| state.tasks.mcp.link(*it).is_none()).collect();
    if !stopped.is_empty() {
        withdraw((&mut state.outgoing, &mut state.outbox), |of, _| stopped.contains(&of));
    }
}

/// A server is no longer as it was.
fn update_server(state: &mut State, server: u64, stage: Stage) {
    for owner in state.tasks.mcp.set_stage(server, stage) {
        refresh_owner(state, &owner);
    }
}

fn refresh_owner(state: &mut State, owner: &ServerOwner) {
    let has_it = |it: &(&SessionId, &LiveSession)| owners(it.0, it.1).contains(owner);
    let ids: Vec<SessionId> = state.sessions.iter().filter(has_it).map(|it| it.0.clone()).collect();
    ids.iter().for_each(|id| refresh_session(state, id));
}

/// The owners of the servers whose tools a session has, the strongest first.
pub fn owners(id: &SessionId, live: &LiveSession) -> Vec<ServerOwner> {
    let record = live.session.record();
    let acting = record.principal.agent();
    let own = |it: &str| ServerOwner::agent(id, it);
    if live.parent.is_some() {
        return acting.map(own).into_iter().collect();
    }
    // A turn that runs stays with the agent that it began with.
    let acting = acting.filter(|it| live.session.is_busy() && record.chosen_agent() != Some(it));
    let agents = record.chosen_agent().into_iter().chain(acting);
    agents.map(own).chain([ServerOwner::session(id)]).collect()
}

/// Brings tools and notices of a session up to date.
pub fn refresh_session(state: &mut State, session: &SessionId) {
    let Some(live) = state.sessions.get(session) else { return };
    // The session above connected the servers that a sub-agent has from it.
    let inherited = live.parent.as_ref().and_then(|it| state.sessions.get(&it.session)).map(|it| &it.resources.mcp);
    let inherited = inherited.cloned().unwrap_or_default();
    let (mut all, mut access) = (McpTools::default(), McpAccess::default());
    for owner in owners(session, live) {
        let (its, more) = state.tasks.mcp.tools_of(&owner);
        let is_new = |it: &ForeignTool| access.find_tool(&it.spec.name).is_none();
        all.tools.extend(its.tools.into_iter().filter(is_new));
        all.servers.extend(its.servers);
        all.notices.extend(its.notices);
        access.extend(more);
    }
    access.extend(inherited);
    let Some(live) = state.sessions.get_mut(session) else { return };
    Arc::make_mut(&mut live.resources).mcp = access;
    state.step(session, Input::ToolsChanged(all));
    if let Some(live) = state.sessions.get_mut(session) {
        offered_commands::update(live, &mut state.outbox);
    }
}
