//! Definitions of a session's folder: agents, commands and skills, read anew when asked for, and when files changed.

use super::{agents, offered_commands, outbox::OutboxItem, state::State};
use crate::{
    app::session::{
        agents::session_agents,
        place::load_ground,
        prompts::{changes, folder_prompts},
    },
    base::{
        content::Part,
        ids::{EffectId, SessionId},
    },
    engine::{session::commands::reads_definitions, step::Input},
    world::workspace::prompts::stamp,
};

/// Before a prompt: files that changed since the last look count as they are now.
pub fn refresh(state: &mut State, id: &SessionId, prompt: &[Part]) {
    let Some(live) = state.sessions.get_mut(id) else { return };
    // What nobody decided about yet is not read, and what was trusted for the session alone is as it was then.
    if live.session.is_busy() || live.pending_trust.is_some() || live.definitions.is_fixed {
        return;
    }
    let now = stamp(&state.env, &live.resources.cwd);
    let before = live.definitions.stamp.replace(now.clone());
    if before.is_some_and(|it| it != now) && !reads_definitions(prompt) {
        read(state, id, None);
    }
}

/// `Effect::ReadDefinitions`, or files that changed.
pub fn read(state: &mut State, id: &SessionId, effect: Option<EffectId>) {
    let Some(live) = state.sessions.get(id) else { return };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    let (agents, _) = session_agents(&ground, &settings, live.session.record().client_agent());
    let prompts = folder_prompts(&ground);
    let known = live.session.prompts().notes.clone();
    let before_answer = state.outbox.items.len();
    state.step(id, Input::DefinitionsRead { effect, agents, prompts });
    if effect.is_none() {
        for it in changes(&ground).into_iter().filter(|it| !known.contains(it)) {
            state.step(id, Input::Notice(it));
        }
    }
    let mut lines = Vec::new();
    if let Some(live) = state.sessions.get_mut(id) {
        agents::update_offer(live, &mut lines);
        offered_commands::append_update(live, &mut lines);
    }
    state.outbox.items.insert(before_answer, OutboxItem::Lines(lines));
}
