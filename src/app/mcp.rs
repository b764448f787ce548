//! MCP servers and sessions: connecting them, and what happens when a server says something.

pub mod servers;

use std::sync::Arc;

use crate::{
    app::{commands, mcp::servers::Wish, state::State, world::World},
    base::ids::SessionId,
    engine::step::Input,
    world::mcp::{Doors, News},
};

/// Connects a session with its servers, without waiting for any of them.
pub fn connect(state: &mut State, session: &SessionId, wish: Wish) {
    let had_some = state.world.mcp.has(session);
    if wish.servers.is_empty() && wish.off.is_empty() && !had_some {
        return;
    }
    let fresh = state.world.mcp.set(session, wish, state.now.unix_ms);
    let doors = Doors { groups: state.world.groups.clone(), http: state.models.http() };
    for (id, launch, stop) in fresh {
        state.world.start_server(id, launch, doors.clone(), stop);
    }
    refresh(state, session);
}

/// A server has something to say.
pub fn heard(state: &mut State, server: u64, news: News) {
    for session in state.world.mcp.take(server, news) {
        refresh(state, &session);
    }
}

/// Brings tools and notices of a session up to date.
fn refresh(state: &mut State, session: &SessionId) {
    let Some(live) = state.sessions.get_mut(session) else { return };
    let World { mcp, .. } = &mut state.world;
    let (kit, tools) = mcp.kit(session);
    Arc::make_mut(&mut live.desk).mcp = tools;
    state.step(session, Input::ToolsChanged(kit));
    commands::update(state, session);
}
