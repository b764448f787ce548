//! Trust in a session's folder: raises the question when the session begins, and applies the answer.

use std::sync::Arc;

use crate::{
    model::{catalog::Catalog, chosen_model},
    server::{agents, live::offered_commands, mcp, state::State},
    session::{
        build_session::{SessionParts, build_session, server_request},
        live_session::LiveSession,
        mcp_servers::ServerRequest,
        modes,
        place::{SessionPlace, load_ground, log_warnings, settings_of},
        session_basis::SessionBasis,
        settings_notices::SettingsFindings,
        shown_unseen::looked,
        trust::PendingTrust,
    },
    settings::{Settings, options::Options},
};
use castor_base::{
    ids::{EffectId, SessionId},
    log::{Grant, Mode},
    path::AbsPath,
    trust::{Trust, TrustChoice},
    unseen_files::SeenBytes,
};
use castor_engine::step::{Input, OptionValue};
use castor_tools::workspace::{
    folder_config::{self, FolderConfig},
    saved,
};
use castor_wire::acp::session::SessionFolders;

/// The session's next turn asks, or tells where nobody can be asked.
pub fn ask_trust(state: &mut State, id: &SessionId, mut pending: PendingTrust) {
    let is_headless = state.client.as_ref().is_some_and(|it| it.headless);
    let Some(provenance) = state.sessions.get(id).map(|it| it.resources.files.provenance.clone()) else { return };
    let Some(prompt) = pending.prompt((&state.options, &state.env), &provenance, is_headless) else { return };
    if let Some(live) = state.sessions.get_mut(id) {
        live.pending_trust = Some(Box::new(pending));
    }
    // Such a client knows it by the answer that opens the session, and asks by itself.
    if !state.client.as_ref().is_some_and(|it| it.features.drafts.workspace_trust) {
        state.step(id, Input::TrustPrompt(prompt));
    }
}

/// For how long a decision holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrustExtent {
    Saved,
    /// Nothing is written down.
    Session,
}

/// The user said it, and the log has it.
pub fn apply_answer(state: &mut State, id: &SessionId, effect: EffectId, choice: TrustChoice) {
    let result = match state.sessions.get_mut(id).and_then(|it| it.pending_trust.take()) {
        Some(pending) => {
            if matches!(choice, TrustChoice::Folder | TrustChoice::Parent) {
                state.sessions.get(id).into_iter().for_each(|it| look(it, &pending.seen));
            }
            apply_choice(state, id, *pending, (choice, TrustExtent::Saved))
        }
        // Said already, by an earlier turn.
        None => Ok(()),
    };
    state.step(id, Input::TrustApplied { effect, result });
}

/// What the question showed is looked at. Where that cannot be written down it does not count, and its notice says so.
fn look(live: &LiveSession, seen: &[SeenBytes]) {
    if !seen.is_empty()
        && let Err(why) = live.resources.files.provenance.look(&looked(seen))
    {
        tracing::warn!("instructions that the user looked at stay unseen: {why}");
    }
}

/// The session goes on with more or less of its folder.
///
/// # Errors
/// In words: the decision could not be written down, the session is gone.
pub fn apply_choice(
    state: &mut State,
    id: &SessionId,
    pending: PendingTrust,
    (choice, extent): (TrustChoice, TrustExtent),
) -> Result<(), String> {
    let PendingTrust { ground, folders, is_resumed, .. } = pending;
    if extent == TrustExtent::Saved {
        let saved = folder_config::save_decision(state.tasks.store.home(), &ground, choice);
        saved.map_err(|it| it.to_string())?.iter().for_each(|it| tracing::warn!("{it}"));
        if choice == TrustChoice::FolderAuto {
            let kept = saved::save_grant(state.tasks.store.home(), &ground.folder, &Grant::Auto, true);
            kept.map_err(|it| it.to_string())?.iter().for_each(|it| tracing::warn!("{it}"));
        }
    }
    let before = settings_of(&state.options, &ground);
    let (begun, notice) = first_mode(&state.options, &ground.trust, &before);
    let ground = match choice {
        TrustChoice::Never => ground.without_trust(&state.env, "you said so"),
        _ => ground.with_trust(&state.env, "you said so"),
    };
    let trust = ground.trust.clone();
    let findings = SettingsFindings::of_session(&state.options, &ground).of_folder(&ground.folder);
    let of_settings = findings.notices(state.tasks.store.home(), &ground.folder);
    let after = readmit_session(state, id, ground.clone(), &folders)?;
    if let Some(live) = state.sessions.get_mut(id) {
        live.definitions.is_fixed = extent == TrustExtent::Session;
        live.begin_watching(&state.env, SessionBasis::new(&folders, &ground, after.settings.clone()));
    }
    // What the session began with follows the settings; what was chosen in it stays.
    if !is_resumed {
        follow_model(state, id, &before, &after.settings);
    }
    let follows = follow_mode(state, id, begun, &after);
    // Why the session began as it did, as it is after the answer.
    if let Some(it) = notice {
        state.step(id, Input::WithdrawNotice(it));
    }
    let still = first_mode(&state.options, &trust, &after.settings).1.filter(|_| follows && !is_resumed);
    for it in still.into_iter().chain(of_settings) {
        state.step(id, Input::Notice(it));
    }
    mcp::connect(state, id, after.servers);
    mcp::connect_session_agent(state, id);
    let State { sessions, outbox, .. } = state;
    if let Some(live) = sessions.get_mut(id) {
        outbox.queue_lines(Some(id), |lines| agents::update_offer(live, lines));
        offered_commands::update(live, outbox);
    }
    Ok(())
}

/// Trusts a folder that brings nothing to trust, as the user wants to work without questions in it.
pub fn trust_plain_folder(state: &State, folder: &AbsPath) {
    let (ground, _) = load_ground(&state.options, &state.env, folder);
    if ground.trust == Trust::Unknown && ground.doubt.is_none() {
        match folder_config::save_decision(state.tasks.store.home(), &ground, TrustChoice::Folder) {
            Ok(warnings) => warnings.iter().for_each(|it| tracing::warn!("{it}")),
            Err(it) => tracing::warn!("the folder is not trusted: {it}"),
        }
    }
}

/// The session's model follows the settings, unless it was chosen.
pub fn follow_model(state: &mut State, id: &SessionId, before: &Settings, after: &Settings) {
    let [old, new] = [before, after].map(|it| chosen_model::model_of(&state.options, it));
    let model = state.sessions.get(id).map(|it| &it.session.record().model);
    if model == Some(&old) && old != new {
        offer_model(state, id, after, &new);
        state.step(id, Input::SetOption(OptionValue::Model(new)));
    }
}

/// The mode that a session begins in with these settings, and what is to be said about it.
pub fn first_mode(options: &Options, trust: &Trust, settings: &Settings) -> (Mode, Option<String>) {
    modes::first_mode(options, trust, settings).unwrap_or((settings.approval_mode, None))
}

/// The session's mode follows the settings, unless it was chosen, which it was if it is not `begun`. Whether it follows.
pub fn follow_mode(state: &mut State, id: &SessionId, begun: Mode, after: &ReadmittedSession) -> bool {
    let Some(mode) = state.sessions.get(id).map(|it| it.session.record().mode) else { return false };
    let follows = mode == begun;
    let now = nearest_mode(if follows { after.settings.approval_mode } else { mode }, after);
    if now != mode {
        state.step(id, Input::SetOption(OptionValue::Mode(now)));
    }
    follows
}

fn offer_model(state: &mut State, id: &SessionId, settings: &Settings, model: &str) {
    let models =
        Catalog::for_options(&state.options, state.tasks.store.home()).models_on_offer(&state.options, settings, model);
    if let Some(LiveSession { profile, view, .. }) = state.sessions.get_mut(id) {
        profile.offer.models = models;
        view.set_offer(profile.offer.clone());
    }
}

/// A session that sees more or less of its folder than before.
pub struct ReadmittedSession {
    pub settings: Settings,
    pub servers: ServerRequest,
    pub modes: Vec<Mode>,
}

/// The session with other files of its folder: all but its servers, which are to be connected with.
///
/// # Errors
/// In words: the session is gone.
pub fn readmit_session(
    state: &mut State,
    id: &SessionId,
    ground: FolderConfig,
    folders: &SessionFolders,
) -> Result<ReadmittedSession, String> {
    let Some(live) = state.sessions.get(id) else { return Err("the session is gone".to_owned()) };
    let record = live.session.record();
    let (cwd, roots, model) = (record.cwd.clone(), record.roots.clone(), record.model.clone());
    let settings = settings_of(&state.options, &ground);
    let host = Arc::new(folders.host.clone());
    let client_agent = record.client_agent().cloned();
    let place = SessionPlace { cwd, roots, ground, settings, host, client_agent };
    log_warnings(&place);
    let SessionParts { spec, resources, .. } = build_session(state.host(id), id, &place, &model);
    let servers = server_request(&place, folders, &resources);
    let modes = spec.choices.modes.allowed.clone();
    if let Some(live) = state.sessions.get_mut(id) {
        live.session.replace_spec(spec);
        live.resources = resources;
    }
    Ok(ReadmittedSession { settings: place.settings, servers, modes })
}

/// `mode` where it is allowed, else the most careful one.
fn nearest_mode(mode: Mode, session: &ReadmittedSession) -> Mode {
    if session.modes.contains(&mode) { mode } else { Mode::Default }
}
