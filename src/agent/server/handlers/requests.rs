//! Request handlers: one function for each ACP method.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::{json, value::RawValue};

use crate::{
    errors::store_error,
    server::{
        agents, event_feed, flush,
        handlers::{auth::login_command, definitions, host_tools, workspace_trust::reply_opened},
        live::{children, foreground, offered_commands, session_state},
        mcp,
        open_session::{check_message, check_open, set_owner},
        outbox::OutboxItem,
        pending_requests::{self, RequestOwner},
        reply::{self, Reply, reply_now},
        sessions,
        state::State,
    },
    session::{agents::folder_agents, live_session::LiveSession, modes, place::load_ground},
};
use castor_base::{
    agent::AgentList,
    client_settings::ClientSetting,
    content::PromptContent,
    ids::{PromptId, SessionId},
    log::Mode,
    policy_answer::PolicyOrder,
    prompt_options::PromptOptions,
    state::StateOrder,
};
use castor_engine::{
    step::{self, Input},
    turn,
};
use castor_hands::disk;
use castor_store::sessions::StoreError;
use castor_wire::{
    acp::{
        initialize::{self, AcpVersion},
        options::{self, SetOptionParams},
        own::{
            agents::{AgentsPlace, read_place},
            policy::{PolicyParams, read_evaluate},
            prompt_options::{PromptOptionsParams, read_update},
            state::{StateParams, read_state},
        },
        session::{self, PromptParams, SteerParams},
        updates::SessionView,
        v2,
    },
    jsonrpc::{error, open_requests::Ticket},
};

pub fn initialize(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let version = AcpVersion::negotiate(params);
    if version != foreground::version(state.client.as_ref()) && !state.sessions.is_empty() {
        let fix = "Start another castor for the other version.";
        return Err(error::invalid_request("sessions are open in another protocolVersion", fix));
    }
    let client = match version {
        AcpVersion::V1 => initialize::read(params),
        AcpVersion::V2 => v2::initialize::read(params),
    };
    let client = client.map_err(|it| error::invalid_params(&it))?;
    let login = login_command(&state.env);
    let response = match version {
        AcpVersion::V1 => initialize::response(&client, &login),
        AcpVersion::V2 => v2::initialize::response(&client, &login),
    };
    state.tasks.store.set_client(&client.name);
    state.client = Some(client);
    state.tasks.probe_sandbox();
    reply_now(&response)
}

pub fn new_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let place = session::read_new(params).map_err(|it| error::invalid_params(&it))?;
    if state.sessions.is_empty() {
        state.tasks.load_tables();
    }
    let id = sessions::create(state, &place)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
    let live = offer_commands(state, &id)?;
    let response = session::new_response(&id, &live.profile.offer, &live.chosen_options());
    reply_opened(state, &id, &response)
}

/// Replays the conversation, then answers: both leave in this order.
pub fn load_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, place) = session::read_load(params).map_err(|it| error::invalid_params(&it))?;
    set_owner(&mut state.requests, ticket, RequestOwner::Reader(id.clone()));
    let entries = sessions::load(state, &id, &place, true)?;
    let children = state.tasks.read_children(&id);
    let live = offer_commands(state, &id)?;
    let response = session::load_response(&live.profile.offer, &live.chosen_options());
    let mut lines = Vec::new();
    let mut view = SessionView::new(id.clone(), live.profile.clone(), live.chosen_options());
    view.replay(&entries, &children, &mut lines);
    let (last, cost) = live.context_usage();
    view.show_context_usage(last, cost, &mut lines);
    state.outbox.items.push(OutboxItem::Lines(Some(id.clone()), lines));
    reply_opened(state, &id, &response)
}

/// As load, for a client that remembers the conversation: nothing of it is said again but how full the context is.
pub fn resume_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, place) = session::read_resume(params).map_err(|it| error::invalid_params(&it))?;
    set_owner(&mut state.requests, ticket, RequestOwner::Reader(id.clone()));
    sessions::load(state, &id, &place, false)?;
    answer_resumed(state, &id, |live| session::resume_response(&live.profile.offer, &live.chosen_options()))
}

/// A copy of a session up to a message of it, live at once.
pub fn fork_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let fork = session::read_fork(params).map_err(|it| error::invalid_params(&it))?;
    let id = sessions::fork(state, &fork)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Reader(id.clone()));
    answer_resumed(state, &id, |live| session::fork_response(&id, &live.profile.offer, &live.chosen_options()))
}

/// The answer, and after it what can be typed and how full the context is.
fn answer_resumed<T: Serialize>(state: &mut State, id: &SessionId, response: impl FnOnce(&LiveSession) -> T) -> Reply {
    let live = offer_commands(state, id)?;
    let response = response(live);
    let mut lines = Vec::new();
    let (last, cost) = live.context_usage();
    SessionView::new(id.clone(), live.profile.clone(), live.chosen_options())
        .show_context_usage(last, cost, &mut lines);
    state.outbox.after_answer.extend(lines);
    reply_opened(state, id, &response)
}

/// Ends what runs as session/cancel does, then lets the session go.
pub fn close_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = session::read_close(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &id)?;
    end_session(state, &id);
    reply_now(&json!({}))
}

/// Deleting what is not there is done already.
pub fn delete_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = session::read_delete(params).map_err(|it| error::invalid_params(&it))?;
    if state.sessions.contains_key(&id) {
        end_session(state, &id);
    }
    let deleted = state.tasks.chores.store.take_deleted().unwrap_or_else(|| state.tasks.store.delete(&id));
    match deleted {
        Ok(()) => {
            state.tasks.release_checkpoints(None, Some(id));
            reply_now(&json!({}))
        }
        Err(StoreError::NotFound { .. }) => reply_now(&json!({})),
        Err(it) => Err(store_error(&id, &it)),
    }
}

/// The turn so far ends here, so that what comes next, in the same bytes perhaps, finds the session gone.
pub fn end_session(state: &mut State, id: &SessionId) {
    state.step(id, Input::Cancel);
    flush::flush_early(state, id);
    children::cancel_all(state, id);
    flush::flush_early(state, id);
    if let Some(LiveSession { session, resources, .. }) = state.sessions.get_mut(id) {
        session.session_end_hooks("other").into_iter().for_each(|run| state.tasks.tell_hook(resources, run));
    }
    state.tasks.abort_session(id, state.now.unix_ms);
    // What it asks the client beside its turn, as a look at a file for a question about policy.
    let mut lines = Vec::new();
    pending_requests::withdraw(&mut state.outgoing, |it| it.forget_session(id), &mut lines);
    state.outbox.queue_lines(Some(id), |it| it.append(&mut lines));
    state.tasks.mcp.release(id);
    mcp::withdraw_of_stopped(state);
    state.tasks.traces.forget_session(id);
    // What still waits for it, as a change of its state may.
    for ticket in state.prompts_of(id) {
        reply::answer::<()>(state, ticket, Err(error::session_not_found(id.as_str())));
    }
    event_feed::close(state, id);
    if let Some(live) = state.sessions.remove(id) {
        state.tasks.release_checkpoints(live.resources.files.checkpoints.clone(), None);
    }
}

pub fn prompt(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let read = session::read_prompt(params).map_err(|it| error::invalid_params(&it))?;
    let PromptParams { session: id, mut content, options, file_report } = read;
    if content.parts.is_empty() && foreground::version(state.client.as_ref()) == AcpVersion::V2 {
        return Err(error::invalid_params("prompt is empty; the answer names a message, so say something"));
    }
    match options.resumes() {
        true => check_resume(live_session(state, &id)?, &content)?,
        false => check_message(&state.sessions, &id, &content)?,
    }
    content.options = Box::new(prompt_options(state, &id, options)?);
    let live = live_session(state, &id)?;
    if content.results.is_empty() {
        content.results = host_tools::interrupted_results(state.client.as_ref(), &live.session);
    }
    check_results(live, &content)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Prompt(id.clone()));
    if let Some(live) = state.sessions.get_mut(&id) {
        live.keep_report_request(PromptId(ticket.0), file_report);
    }
    session_state::refresh(state, &id);
    definitions::refresh(state, &id, &content.parts);
    state.step(&id, Input::Prompt { prompt: PromptId(ticket.0), content });
    Ok(None)
}

/// Only a turn that ended without an answer can be resumed, and nothing is said to the model.
fn check_resume(live: &LiveSession, content: &PromptContent) -> Result<(), ErrorObjectOwned> {
    let is_empty = content.parts.is_empty() && content.results.is_empty();
    match (live.session.is_busy(), is_empty, live.session.record().owes_answer()) {
        (true, ..) => Err(error::busy("the session is busy with a prompt", "Wait for its end.")),
        (_, false, _) => Err(error::invalid_params("_meta.castor.resume: the prompt has content; leave it empty")),
        (_, _, false) => Err(error::invalid_params("_meta.castor.resume: the last turn has its answer; send a prompt")),
        _ => Ok(()),
    }
}

/// What a prompt has for itself, if that may be now.
fn prompt_options(
    state: &State,
    id: &SessionId,
    options: PromptOptionsParams,
) -> Result<PromptOptions, ErrorObjectOwned> {
    let live = live_session(state, id)?;
    let spec = live.session.spec();
    let limits = turn::limits(live.session.record(), spec);
    let has_tool = |it: &str| spec.toolbox.find(it).is_some();
    let options = options.options((&live.profile.offer, &live.chosen_options()), limits, has_tool);
    let options = options.map_err(|it| error::invalid_params(&it))?;
    options.mode.map(|it| check_mode(state, id, it)).transpose()?;
    host_tools::check_capability(state.client.as_ref(), &options.host)?;
    host_tools::check_names(&spec.toolbox, &options.host)?;
    Ok(options)
}

/// What waits in the queue is looked at when its turn comes.
fn check_results(live: &LiveSession, content: &PromptContent) -> Result<(), ErrorObjectOwned> {
    if live.session.is_busy() && content.results.is_empty() {
        return Ok(());
    }
    let checked = live.session.record().check_results(&content.results);
    checked.map_err(|it| error::invalid_params(&format!("_meta.castor: {it}")))
}

/// `_session/steering {sessionId, prompt}`: words for the running turn. Answered when the model has them, or cannot; or
/// when they begin a turn.
pub fn steer(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let it = session::read_steer(params).map_err(|it| error::invalid_params(&it))?;
    let SteerParams { session: id, content, starts_turn } = it;
    check_message(&state.sessions, &id, &content)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Prompt(id.clone()));
    session_state::refresh(state, &id);
    state.step(&id, Input::Steer { prompt: PromptId(ticket.0), content: content.parts, starts_turn });
    Ok(None)
}

/// `_castor/session/state {sessionId, get?, set?}`: the values, after they were changed.
pub fn state(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let StateParams { session, get, set } = read_state(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &session)?;
    // Answered with the prompts, should the session end before.
    set_owner(&mut state.requests, ticket, RequestOwner::Prompt(session.clone()));
    let order = StateOrder { prompt: PromptId(ticket.0), get, set };
    state.step(&session, Input::State(Box::new(order)));
    Ok(None)
}

/// `_castor/policy/evaluate {sessionId, tool, args?, mode?, principal?}`: what policy says of a call.
pub fn evaluate_policy(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let it = read_evaluate(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &it.session)?;
    // Answered with the prompts, should the session end before.
    set_owner(&mut state.requests, ticket, RequestOwner::Prompt(it.session.clone()));
    let PolicyParams { session, tool, args, mode, principal } = it;
    let order = PolicyOrder { prompt: PromptId(ticket.0), tool, args, mode, principal };
    state.step(&session, Input::EvaluatePolicy(Box::new(order)));
    Ok(None)
}

pub fn set_mode(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, mode) = session::read_set_mode(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &id)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
    check_mode(state, &id, mode)?;
    state.step(&id, Input::SetOption(step::OptionValue::Mode(mode)));
    reply_now(&json!({}))
}

pub fn set_config_option(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let option = options::read_set_option(params).map_err(|it| error::invalid_params(&it))?;
    choose(state, ticket, &option)?;
    let live = live_session(state, &option.session)?;
    reply_now(&options::response(&live.profile.offer, &live.chosen_options()))
}

pub fn set_model(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let option = options::read_set_model(params).map_err(|it| error::invalid_params(&it))?;
    choose(state, ticket, &option)?;
    reply_now(&json!({}))
}

pub(in crate::server) fn choose(
    state: &mut State,
    ticket: Ticket,
    option: &SetOptionParams,
) -> Result<(), ErrorObjectOwned> {
    let live = live_session(state, &option.session)?;
    let choice = option.choice(&live.profile.offer, &live.chosen_options()).map_err(|it| error::invalid_params(&it))?;
    apply(state, ticket, &option.session, choice)
}

fn apply(
    state: &mut State,
    ticket: Ticket,
    session: &SessionId,
    choice: options::OptionChoice,
) -> Result<(), ErrorObjectOwned> {
    let choice = match choice {
        options::OptionChoice::Mode(mode) => {
            check_mode(state, session, mode)?;
            step::OptionValue::Mode(mode)
        }
        options::OptionChoice::Model(model) => step::OptionValue::Model(model),
        options::OptionChoice::Tuning(tuning) => step::OptionValue::Tuning(tuning),
        options::OptionChoice::Agent(agent) => {
            set_owner(&mut state.requests, ticket, RequestOwner::Setter(session.clone()));
            agents::choose(state, session, agent);
            return Ok(());
        }
        options::OptionChoice::Limits(limits) => step::OptionValue::Limits(Some(limits)),
    };
    set_owner(&mut state.requests, ticket, RequestOwner::Setter(session.clone()));
    state.step(session, Input::SetOption(choice));
    Ok(())
}

/// `_castor/session/update {sessionId, title?, model?, config?}`: all of it, or nothing.
pub fn update(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let order = read_update(params).map_err(|it| error::invalid_params(&it))?;
    let id = &order.session;
    check_open(&state.sessions, id)?;
    let live = live_session(state, id)?;
    let choices =
        order.choices(&live.profile.offer, &live.chosen_options()).map_err(|it| error::invalid_params(&it))?;
    let mut model = None;
    for it in &choices {
        match it {
            options::OptionChoice::Mode(mode) => check_mode(state, id, *mode)?,
            options::OptionChoice::Model(it) => model = Some(it.clone()),
            _ => (),
        }
    }
    let known = live_session(state, id)?.session.prompts();
    if let Some(name) = order.skills.keys().find(|it| known.skill(it).is_none()) {
        return Err(error::invalid_params(&format!("skills: this session has no skill {name}")));
    }
    set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
    choices.into_iter().try_for_each(|it| apply(state, ticket, id, it))?;
    for (skill, enabled) in order.skills {
        if known.skill(&skill).is_some_and(|it| it.enabled != enabled) {
            state.step(id, Input::ClientSetting(ClientSetting::Skill { skill, enabled }));
        }
    }
    if order.title.is_some() || model.is_some() {
        state.step(id, Input::Update { title: order.title.clone(), model });
    }
    let live = live_session(state, id)?;
    reply_now(&options::response(&live.profile.offer, &live.chosen_options()))
}

/// The client is told what can be typed, behind the answer.
fn offer_commands<'a>(state: &'a mut State, id: &SessionId) -> Result<&'a LiveSession, ErrorObjectOwned> {
    let live = state.sessions.get_mut(id).ok_or_else(|| error::session_not_found(id.as_str()))?;
    offered_commands::offer(live, &mut state.outbox);
    Ok(live)
}

pub(in crate::server) fn live_session<'a>(
    state: &'a State,
    id: &SessionId,
) -> Result<&'a LiveSession, ErrorObjectOwned> {
    state.sessions.get(id).ok_or_else(|| error::session_not_found(id.as_str()))
}

/// `_castor/agents/list`: of a session, or of a folder.
pub fn list_agents(state: &State, params: Option<&RawValue>) -> Reply {
    let agents = match read_place(params).map_err(|it| error::invalid_params(&it))? {
        AgentsPlace::Session(id) => {
            check_open(&state.sessions, &id)?;
            state.sessions.get(&id).map(|it| it.session.agents()).unwrap_or_default()
        }
        AgentsPlace::Folder(cwd) => {
            if !disk::metadata(&cwd).is_ok_and(|it| it.is_dir) {
                return Err(error::invalid_params(&format!("{cwd} is not a folder; choose one that exists")));
            }
            let (ground, settings) = load_ground(&state.options, &state.env, &cwd);
            folder_agents(&ground, &settings).0
        }
    };
    reply_now(&AgentList::from(&agents))
}

pub fn cancel(state: &mut State, params: Option<&RawValue>) {
    if let Ok(id) = session::read_cancel(params) {
        if id.is_child() {
            // A cancel of the session above, in the same input, ends the tree from below.
            flush::flush_early(state, &id);
        }
        state.step(&id, Input::Cancel);
    }
}

/// Whether a mode may be set in a session now.
///
/// # Errors
/// For the client, with what would allow it.
fn check_mode(state: &State, id: &SessionId, mode: Mode) -> Result<(), ErrorObjectOwned> {
    let Some(live) = state.sessions.get(id) else { return Err(error::session_not_found(id.as_str())) };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    modes::allow_mode(mode, &ground.trust, &settings)
}
