//! Session factory: creates, loads, forks and readmits live sessions.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    errors::store_error,
    model::chosen_model::{model_of, resumed_model},
    server::{
        agents, flush,
        handlers::host_tools,
        live::{reconnect, session_state, watching},
        mcp,
        outbox::Outbox,
        state::State,
        trust,
    },
    session::{
        build_session::{SessionParts, build_session, server_request},
        confinement,
        fork_log::{ForkOrder, copy_log},
        live_session::LiveSession,
        mcp_servers::ServerRequest,
        modes::first_mode,
        place::{SessionPlace, bring_up_to_date, inspect_place},
        session_basis::SessionBasis,
        session_resources::SessionResources,
        settings_notices::SettingsFindings,
        trust::{PendingTrust, unread_notice},
    },
    settings::Settings,
};
use castor_base::{
    client_settings::ClientSetting,
    clock::Now,
    ids::SessionId,
    log::{Entry, Principal},
    state::DEFAULT_USER,
};
use castor_engine::{
    record::{Record, SessionOrigin},
    session::Session,
    step::{Input, StepOutput},
    turn::Spec,
};
use castor_store::sessions::{LogDamage, SessionLog, SessionStore, StoreError};
use castor_wire::{
    acp::{
        initialize::{AcpVersion, Client},
        options::{ChosenOptions, OfferedOptions},
        session::{ForkParams, NewParams, SessionFolders, WantedAgent},
        updates::{ClientProfile, SessionView},
    },
    jsonrpc::error,
};

/// A new session, live at once.
///
/// # Errors
/// For the client: a folder that is not there, no usable model, a log that cannot be written.
pub fn create(state: &mut State, params: &NewParams) -> Result<SessionId, ErrorObjectOwned> {
    let NewParams { folders, agent, state: first, user, id: wanted } = params;
    host_tools::check_capability(state.client.as_ref(), &folders.host)?;
    let (mut place, leftovers) = inspect_place(&state.options, &state.env, state.tasks.store.home(), folders)?;
    place.client_agent = agent.as_ref().and_then(WantedAgent::definition);
    let agent = agent.as_ref().map(|it| agents::first_agent(&place, it)).transpose()?;
    let own_model = agent.as_ref().and_then(|it| it.model.clone());
    let model = own_model.unwrap_or_else(|| model_of(&state.options, &place.settings));
    let (mode, notice) = first_mode(&state.options, &place.ground.trust, &place.settings)?;
    let unread = unread_notice(&place.ground);
    let ignored = confinement::notice(&state.env, confinement::is_harmless(&place.ground), &place.settings);
    let now = state.now();
    let id = unused_id(&state.tasks.store, wanted.as_ref(), now)?;
    let SessionParts { spec, resources, trouble } = build_session(state.host(&id), &id, &place, &model);
    if let Some(it) = trouble {
        return Err(it);
    }
    host_tools::check_names(&spec.toolbox, &folders.host)?;
    let outside = session_state::begin(&state.tasks.store, user.as_deref().unwrap_or(DEFAULT_USER), first)?;
    let log = state.tasks.store.begin(&id).map_err(|it| store_error(&id, &it))?;
    let servers = server_request(&place, folders, &resources);
    let SessionPlace { cwd, roots, ground, client_agent, settings, .. } = place;
    let origin = SessionOrigin {
        session: id.clone(),
        cwd,
        roots,
        mode,
        model,
        principal: Principal::Root,
        child_of: None,
        thread: None,
        user: user.clone(),
    };
    let mut out = StepOutput::default();
    let mut session = Session::create(origin, spec, now, &mut out);
    session.begin_state(outside, first.clone(), now, &mut out);
    if let Some(it) = &folders.system_prompt {
        session.apply_client_setting(&ClientSetting::Prompt(it.clone()), now, &mut out);
    }
    if let Some(it) = agent {
        session.become_agent(it.name, client_agent, now, &mut out);
    }
    insert_session(state, session, log, resources);
    state.outbox.queue_acts(&id, out);
    let of_settings =
        SettingsFindings::of_session(&state.options, &ground).notices(state.tasks.store.home(), &ground.folder);
    for it in [notice, unread, ignored, leftovers].into_iter().flatten().chain(of_settings) {
        state.step(&id, Input::Notice(it));
    }
    reconnect::send_outages(state, &id);
    let trust = PendingTrust { ground, folders: folders.clone(), is_resumed: false, seen: Vec::new() };
    begin_work(state, &id, (trust, settings), servers);
    Ok(id)
}

/// The id that the client wants, or a new one.
fn unused_id(store: &SessionStore, wanted: Option<&SessionId>, now: Now) -> Result<SessionId, ErrorObjectOwned> {
    let Some(id) = wanted else { return Ok(new_id(now)) };
    // A shared store says so with the first append.
    match !store.is_shared() && store.has(id) {
        true => {
            let why = format!("_meta.castor.sessionId: there is a session {id} already");
            Err(error::invalid_params(&format!("{why}; send another id, or load that one")))
        }
        false => Ok(id.clone()),
    }
}

/// The session has its folder and its servers, or asks about them.
fn begin_work(state: &mut State, id: &SessionId, (trust, settings): (PendingTrust, Settings), servers: ServerRequest) {
    if let Some(live) = state.sessions.get_mut(id) {
        live.begin_watching(&state.env, SessionBasis::new(&trust.folders, &trust.ground, settings));
    }
    trust::ask_trust(state, id, trust);
    mcp::connect(state, id, servers);
    mcp::connect_session_agent(state, id);
}

/// Sorts by time, as the UUIDs of version 7 do.
pub fn new_id(now: Now) -> SessionId {
    let mut random = [0; 10];
    let dice = [now.random(u64::MAX), now.random(u64::MAX - 1)].map(u64::to_le_bytes);
    random.iter_mut().zip(dice.iter().flatten()).for_each(|(to, from)| *to = *from);
    SessionId::from(uuid::Builder::from_unix_timestamp_millis(now.unix_ms, &random).into_uuid().to_string())
}

/// A session from its log, live at once. Returns the log's entries, if it is loaded to be shown; nothing is written. It
/// keeps its own model, unless castor was started with one; one that cannot be asked now does not keep anybody from looking
/// at what was said.
///
/// # Errors
/// For the client: a folder or a session that is not there, that another process has open, or that is busy here; a
/// script that cannot be read.
pub fn load(
    state: &mut State,
    id: &SessionId,
    folders: &SessionFolders,
    is_shown: bool,
) -> Result<Vec<Entry>, ErrorObjectOwned> {
    host_tools::check_capability(state.client.as_ref(), &folders.host)?;
    if state.sessions.get(id).is_some_and(|it| it.session.is_busy()) {
        return Err(error::busy("the session is busy with a prompt", "Cancel it first, or wait for its end."));
    }
    // A change that is being saved belongs to the session as it is.
    if !state.prompts_of(id).is_empty() {
        return Err(error::busy("the session's state is being changed", "Send it again when that is answered."));
    }
    let (mut place, leftovers) = inspect_place(&state.options, &state.env, state.tasks.store.home(), folders)?;
    let (record, entries, log) = read_session(state, id, is_shown).map_err(|it| store_error(id, &it))?;
    let mut record = record.ok_or_else(|| store_error(id, &StoreError::NotFound { id: id.clone() }))?;
    bring_up_to_date(&mut record, &place);
    place.client_agent = record.client_agent().cloned();
    let model = match state.sessions.get(id) {
        // What was chosen here since holds.
        Some(live) => live.session.record().lasting_model().to_owned(),
        None => resumed_model(&record, &state.options, &place.settings),
    };
    let SessionParts { spec, resources, trouble } = build_session(state.host(id), id, &place, &model);
    host_tools::check_names(&spec.toolbox, &folders.host)?;
    // Files that castor was started with are an order.
    if let Some(it) = trouble.filter(|_| state.options.script.is_some() || state.options.record.is_some()) {
        return Err(it);
    }
    let servers = server_request(&place, folders, &resources);
    let moved = log.as_ref().and_then(SessionLog::moved_from).map(moved_notice);
    let damage = log.as_ref().map(|it| it.damage().clone()).unwrap_or_default();
    match log {
        Some(log) => {
            let mut session = Session::resume(record, spec);
            session.override_model(model);
            let followers = watching::hand_over(state, id);
            insert_session(state, session, log, resources);
            if let Some(live) = state.sessions.get_mut(id) {
                live.followers = followers;
            }
        }
        None => replace_session(state, record, spec, resources),
    }
    let damaged = show_damage((state.sessions.get(id), is_shown), &mut state.outbox, &damage);
    leftovers.into_iter().chain(moved).chain(damaged).for_each(|it| state.step(id, Input::Notice(it)));
    if let Some(it) = &folders.system_prompt {
        state.step(id, Input::ClientSetting(ClientSetting::Prompt(it.clone())));
    }
    session_state::refresh(state, id);
    reconnect::send_outages(state, id);
    let trust = PendingTrust { ground: place.ground, folders: folders.clone(), is_resumed: true, seen: Vec::new() };
    begin_work(state, id, (trust, place.settings), servers);
    Ok(entries)
}

type ReadSession = (Option<Record>, Vec<Entry>, Option<SessionLog>);

/// The record of a session, its facts if they are to be shown, and its log if it is not live here.
fn read_session(state: &mut State, id: &SessionId, is_shown: bool) -> Result<ReadSession, StoreError> {
    let (entries, log) = match (state.sessions.contains_key(id), is_shown) {
        (true, _) => {
            // What it was told in the same breath belongs to it.
            flush::flush_early(state, id);
            (state.tasks.read_log(id)?, None)
        }
        (false, true) => state.tasks.open_log(id).map(|(entries, log)| (entries, Some(log)))?,
        (false, false) => {
            let (record, log) = state.tasks.open_record(id)?;
            return Ok((record, Vec::new(), Some(log)));
        }
    };
    Ok((Record::replay(&entries), entries, log))
}

/// Says what of a log is damaged. Returns it for the next turn where the client takes nothing outside of one; `is_shown`:
/// the conversation is.
fn show_damage(
    (live, is_shown): (Option<&LiveSession>, bool),
    outbox: &mut Outbox,
    damage: &LogDamage,
) -> Option<String> {
    let live = live.filter(|_| damage.n > 0 && damage.is_sealed)?;
    let kept = damage.kept.as_ref().map(|it| format!(" The bytes at its end are kept in {it}.")).unwrap_or_default();
    let id = &live.resources.session;
    let mend = format!("To mend it, close the session and run: castor sessions repair {id}");
    let what = "What cannot be trusted is left out.";
    let text = format!("The log of this session is damaged: {damage}. {what}{kept} {mend}");
    let features = &live.profile.features;
    if !is_shown && !features.notices && features.version != AcpVersion::V2 {
        return Some(text);
    }
    let mut lines = Vec::new();
    live.view.notice("log-damage", &text, None, &mut lines);
    outbox.queue_lines(Some(id), |it| it.append(&mut lines));
    None
}

/// What of a session stays where it was.
fn moved_notice(from: &str) -> String {
    format!(
        "This session was open in {from}. Its conversation is here; checkpoints for undo, long outputs and background \
         processes are not. The files of its folders are those of this machine."
    )
}

/// A session that begins as a copy of another, live at once. The other is only read, whoever has it: what a turn of it did
/// not end yet is interrupted in the copy.
///
/// # Errors
/// As [`load`]; also for another folder than the parent's, and for a message that it does not have.
pub fn fork(state: &mut State, params: &ForkParams) -> Result<SessionId, ErrorObjectOwned> {
    let id = match state.tasks.chores.store.take_forked() {
        Some(it) => it?,
        None => {
            // What it was told in the same breath belongs to it.
            flush::flush_early(state, &params.parent);
            let now = state.now();
            let cwd = state.sessions.get(&params.parent).map(|it| it.resources.cwd.clone());
            let order = ForkOrder { params: params.clone(), cwd, copy: new_id(now), now_ms: now.unix_ms };
            copy_log(&state.tasks.store, &order)?;
            order.copy
        }
    };
    load(state, &id, &params.place, false).inspect_err(|_| _ = state.tasks.store.delete(&id))?;
    Ok(id)
}

fn insert_session(state: &mut State, session: Session, log: SessionLog, resources: Arc<SessionResources>) {
    let id = resources.session.clone();
    let client = state.client.clone().unwrap_or_default();
    let (profile, view) = client_view(&client, !state.options.needs_no_access(), (&id, &session));
    let live = LiveSession::new(session, log, (profile, view), resources);
    agents::note_in_list(&live, &mut state.tasks);
    state.sessions.insert(id, live);
}

/// As [`insert_session`], for a session that is live: rules, trust and what confines commands are those of now.
fn replace_session(state: &mut State, record: Record, spec: Arc<Spec>, resources: Arc<SessionResources>) {
    let Some(mut live) = state.sessions.remove(&resources.session) else { return };
    live.session.replace_record(record);
    live.session.replace_spec(spec);
    // Its commands are told with the answer.
    let LiveSession { session, log, followers, view, .. } = live;
    let id = resources.session.clone();
    insert_session(state, session, log, resources);
    if let Some(live) = state.sessions.get_mut(&id) {
        live.followers = followers;
        live.view.adopt_tasks(view);
    }
}

/// How the client sees it.
fn client_view(client: &Client, thinking: bool, (id, session): (&SessionId, &Session)) -> (ClientProfile, SessionView) {
    let record = session.record();
    let (mode, model, tuning) = (record.lasting_mode(), record.lasting_model().to_owned(), record.tuning);
    let agent = record.chosen_agent().map(str::to_owned);
    let chosen = ChosenOptions { mode, model, tuning, limits: record.lasting_limits(), agent };
    let models = session.models().to_vec();
    let limits = session.configured_limits();
    let modes = session.offered_modes().to_vec();
    let agents = agents::offered(session);
    let offer = OfferedOptions { modes, models, thinking, booleans: client.bool_options, limits, agents };
    let profile = ClientProfile { offer, features: client.features };
    let mut view = SessionView::new(id.clone(), profile.clone(), chosen);
    if let Some((usage, _)) = record.spent.last {
        view.set_context_usage(usage.total, record.spent.cost_with(None));
    }
    (profile, view)
}
