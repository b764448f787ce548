//! MCP servers and sessions: connecting them, and what happens when a server says something.

pub mod asks;
pub mod servers;

use std::sync::Arc;

use crate::{
    app::{
        commands,
        mcp::servers::{Stage, Wish},
        state::State,
        world::World,
    },
    base::{elicitation::Shows, ids::SessionId},
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
    let client = state.client.as_ref().filter(|it| !it.headless);
    // As it is from now on for all who share the server.
    let shows = client.map(|it| Shows { forms: it.shows_forms, pages: it.opens_links }).unwrap_or_default();
    let doors = Doors { groups: state.world.groups.clone(), http: state.models.http(), shows };
    for (id, launch, stop) in fresh {
        state.world.start_server(id, launch, doors.clone(), stop);
    }
    refresh(state, session);
}

/// A server has something to say.
pub fn heard(state: &mut State, server: u64, news: News) {
    match news {
        News::Asks(it) => asks::asked(state, server, it),
        News::TakesBack(number) => asks::taken_back(state, server, number),
        News::Completed(page) => asks::completed(state, server, &page),
        News::Ready { connection, tools } => changed(state, server, Stage::Ready { connection, tools: tools.into() }),
        News::Changed(tools) => {
            if let Some(connection) = state.world.mcp.connection(server) {
                changed(state, server, Stage::Ready { connection, tools: tools.into() });
            }
        }
        News::Down(why) => {
            state.world.asks.lost(server);
            if let Some(stage) = state.world.mcp.down(server, why) {
                changed(state, server, stage);
            }
        }
        News::Lost(why) => {
            state.world.asks.lost(server);
            changed(state, server, Stage::Lost(why));
        }
    }
}

/// A server is no longer as it was.
fn changed(state: &mut State, server: u64, stage: Stage) {
    for session in state.world.mcp.take(server, stage) {
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
