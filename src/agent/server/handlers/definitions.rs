//! Files that a session goes by: settings, policies, memory, agents, commands and skills. Those that changed are read anew
//! before a prompt, and definitions also when asked for.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::server::{
    agents,
    live::offered_commands,
    mcp,
    outbox::OutboxItem,
    reply::{Reply, reply_now},
    state::State,
    trust::{ask_trust, first_mode, follow_mode, follow_model, readmit_session},
};
use crate::{
    session::{
        agents::session_agents,
        live_session::LiveSession,
        place::load_ground,
        prompts::{changes, folder_prompts},
        session_basis::{SessionBasis, definition_changes, in_words},
        settings_notices::SettingsFindings,
        trust::PendingTrust,
    },
    settings::Settings,
};
use castor_base::{
    content::Part,
    file_prompt::FolderPrompts,
    ids::{EffectId, SessionId},
    path::AbsPath,
};
use castor_engine::{commands::reads_definitions, step::Input};
use castor_hands::secrets::Env;
use castor_tools::workspace::{folder_config::FolderConfig, watched_files::WatchedKind};
use castor_wire::{
    acp::own::definition_list::{self, DefinitionList},
    jsonrpc::error,
};

type ChangedFiles = Vec<(WatchedKind, AbsPath)>;

/// Before a prompt: files that changed since the last look count as they are now.
pub fn refresh(state: &mut State, id: &SessionId, prompt: &[Part]) {
    let Some(changed) = state.sessions.get_mut(id).and_then(|it| look(it, &state.env)) else { return };
    let is = |kinds: &[WatchedKind]| changed.iter().any(|it| kinds.contains(&it.0));
    let Some(live) = state.sessions.get(id) else { return };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    let before = (live.session.agents(), live.session.prompts());
    let is_asked = ask_anew(state, id, &ground);
    let mut said = Vec::new();
    // What a changed file says, or says no longer, holds when the user has decided about it: until then all is as it was.
    let is_open = is_asked && ground.trust.is_trusted();
    if is(&[WatchedKind::Settings, WatchedKind::Policy, WatchedKind::Trust]) && !is_open {
        said.extend(rebuild(state, id, &ground, (settings, &changed)));
    }
    if is(&[WatchedKind::Memory]) {
        state.step(id, Input::MemoryOutdated);
    }
    if is(&[WatchedKind::Definition, WatchedKind::Settings, WatchedKind::Trust]) && !reads_definitions(prompt) {
        read_definitions(state, id, None);
        if !is_asked {
            tell_unused(state, id, &ground, &before.1);
        }
        let now = state.sessions.get(id).map(|it| (it.session.agents(), it.session.prompts()));
        said.extend(now.iter().flat_map(|now| definition_changes((&before.0, &before.1), (&now.0, &now.1))));
    }
    if !said.is_empty() {
        let text = format!("Files changed, and castor read them anew. This holds now: {}.", said.join("; "));
        state.step(id, Input::Notice(text));
    }
}

/// What changed since the last look; `None`: nothing, or it is not to be looked at.
fn look(live: &mut LiveSession, env: &Env) -> Option<ChangedFiles> {
    // What nobody decided about yet is not read, and what was trusted for the session alone is as it was then.
    let is_undecided = live.pending_trust.as_ref().is_some_and(|it| !it.ground.trust.is_trusted());
    if live.session.is_busy() || is_undecided || live.definitions.is_fixed {
        return None;
    }
    Some(live.changed_files(env)).filter(|it| !it.is_empty())
}

/// Asks about files that are others than those that the user trusted. Whether they are asked.
fn ask_anew(state: &mut State, id: &SessionId, ground: &FolderConfig) -> bool {
    let basis = state.sessions.get(id).and_then(|it| it.definitions.basis.as_ref());
    let Some(folders) = basis.map(|it| it.folders.clone()).filter(|_| ground.doubt.is_some()) else { return false };
    ask_trust(state, id, PendingTrust { ground: ground.clone(), folders, is_resumed: true, seen: Vec::new() });
    // Others ask by themselves, when a session opens.
    !state.client.as_ref().is_some_and(|it| it.features.drafts.workspace_trust)
}

/// Makes the session anew where settings, rules or trust are others. What is so, in words.
fn rebuild(
    state: &mut State,
    id: &SessionId,
    ground: &FolderConfig,
    (settings, changed): (Settings, &ChangedFiles),
) -> Vec<String> {
    let Some(live) = state.sessions.get_mut(id) else { return Vec::new() };
    let Some(before) = live.definitions.basis.take() else { return Vec::new() };
    let now = SessionBasis::new(&before.folders, ground, settings);
    let policies = changed.iter().filter(|it| it.0 == WatchedKind::Policy);
    let policies: Vec<String> = policies.map(|it| it.1.relative_to(&ground.folder)).collect();
    let is_other = before.differs(&now) || !policies.is_empty();
    live.definitions.basis = Some(Box::new(now.clone()));
    let Some(after) = is_other.then(|| readmit_session(state, id, ground.clone(), &now.folders)).and_then(Result::ok)
    else {
        return Vec::new();
    };
    follow_model(state, id, &before.settings, &after.settings);
    let (begun, was_said) = first_mode(&state.options, &before.trust, &before.settings);
    let follows = follow_mode(state, id, begun, &after);
    let why_not =
        first_mode(&state.options, &now.trust, &now.settings).1.filter(|it| follows && Some(it) != was_said.as_ref());
    if let Some(it) = why_not {
        state.step(id, Input::Notice(it));
    }
    if changed.iter().any(|it| it.0 == WatchedKind::Settings) {
        let found = SettingsFindings::of_session(&state.options, ground);
        for it in found.notices(state.tasks.store.home(), &ground.folder) {
            state.step(id, Input::Notice(it));
        }
    }
    mcp::connect(state, id, after.servers);
    mcp::connect_session_agent(state, id);
    let keys = before.changed_keys(&now);
    [in_words("settings", &keys), in_words("policies", &policies)].into_iter().flatten().collect()
}

/// Files of the folder that are not used, as they changed after the user's yes.
fn tell_unused(state: &mut State, id: &SessionId, ground: &FolderConfig, before: &FolderPrompts) {
    for it in changes(ground).into_iter().filter(|it| !before.notes.contains(it)) {
        state.step(id, Input::Notice(it));
    }
}

/// `Effect::ReadDefinitions`, or files that changed.
pub fn read_definitions(state: &mut State, id: &SessionId, effect: Option<EffectId>) {
    let Some(live) = state.sessions.get(id) else { return };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    let (agents, _) = session_agents(&ground, &settings, live.session.record().client_agent());
    let prompts = folder_prompts(&ground);
    let before_answer = state.outbox.items.len();
    state.step(id, Input::DefinitionsRead { effect, agents, prompts });
    let mut lines = Vec::new();
    if let Some(live) = state.sessions.get_mut(id) {
        agents::update_offer(live, &mut lines);
        offered_commands::append_update(live, &mut lines);
    }
    state.outbox.items.insert(before_answer, OutboxItem::Lines(Some(id.clone()), lines));
}

/// `_castor/definitions/list`: what a session has of files, as it was switched there.
pub fn list(sessions: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = definition_list::read_definitions(params).map_err(|it| error::invalid_params(&it))?;
    let live = sessions.get(&id).ok_or_else(|| error::session_not_found(id.as_str()))?;
    reply_now(&DefinitionList::from(&live.session.prompts()))
}
