//! MCP servers of sessions: connects them and handles their events.

use std::sync::Arc;

use super::{offered_commands, state::State, tasks::Tasks};
use crate::{
    app::session::mcp_servers::{ServerRequest, Stage},
    base::{elicitation::ElicitationSupport, ids::SessionId},
    engine::step::Input,
    wire::acp::{elicitation, updates},
    world::mcp::{HostHandles, ServerEvent},
};

/// Connects a session with its servers, without waiting for any of them.
pub fn connect(state: &mut State, session: &SessionId, request: ServerRequest) {
    let had_some = state.tasks.mcp.has(session);
    if request.servers.is_empty() && request.off.is_empty() && !had_some {
        return;
    }
    let fresh = state.tasks.mcp.set_servers(session, request, state.now.unix_ms);
    let client = state.client.as_ref().filter(|it| !it.headless);
    // As it is from now on for all who share the server.
    let shows =
        client.map(|it| ElicitationSupport { forms: it.shows_forms, pages: it.opens_links }).unwrap_or_default();
    let handles = HostHandles { groups: state.tasks.groups.clone(), http: state.models.http(), elicitation: shows };
    for (id, launch, stop) in fresh {
        state.tasks.start_server(id, launch, handles.clone(), stop);
    }
    refresh_session(state, session);
}

/// A server has something to say.
pub fn handle_event(state: &mut State, server: u64, event: ServerEvent) {
    match event {
        ServerEvent::Question(it) => {
            let (calls, now_ms) = (state.tasks.calls_of(server), state.now.unix_ms);
            if let Some((session, input)) = state.tasks.server_questions.ask(server, it, calls, now_ms) {
                state.step(&session, input);
            }
        }
        ServerEvent::QuestionWithdrawn(number) => {
            if let Some((session, input)) = state.tasks.server_questions.withdraw(server, number) {
                state.step(&session, input);
            }
        }
        ServerEvent::PageCompleted(page) => {
            if let Some(id) = state.tasks.server_questions.complete_page(server, &page) {
                let params = elicitation::complete(&id.to_string());
                state.outbox.queue_lines(|lines| updates::notification(elicitation::COMPLETE, &params, lines));
            }
        }
        ServerEvent::Ready { connection, tools } => {
            update_server(state, server, Stage::Ready { connection, tools: tools.into() })
        }
        ServerEvent::ToolsChanged(tools) => {
            if let Some(connection) = state.tasks.mcp.connection(server) {
                update_server(state, server, Stage::Ready { connection, tools: tools.into() });
            }
        }
        ServerEvent::Down(why) => {
            state.tasks.server_questions.forget_server(server);
            if let Some(stage) = state.tasks.mcp.down_stage(server, why) {
                update_server(state, server, stage);
            }
        }
        ServerEvent::Lost(why) => {
            state.tasks.server_questions.forget_server(server);
            update_server(state, server, Stage::Lost(why));
        }
    }
}

/// A server is no longer as it was.
fn update_server(state: &mut State, server: u64, stage: Stage) {
    for session in state.tasks.mcp.set_stage(server, stage) {
        refresh_session(state, &session);
    }
}

/// Brings tools and notices of a session up to date.
fn refresh_session(state: &mut State, session: &SessionId) {
    let Some(live) = state.sessions.get_mut(session) else { return };
    let Tasks { mcp, .. } = &mut state.tasks;
    let (mcp_tools, tools) = mcp.session_tools(session);
    Arc::make_mut(&mut live.resources).mcp = tools;
    state.step(session, Input::ToolsChanged(mcp_tools));
    if let Some(live) = state.sessions.get_mut(session) {
        offered_commands::update(live, &mut state.outbox);
    }
}
