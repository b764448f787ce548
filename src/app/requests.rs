//! The handlers of the method table, one function for each method.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    app::{
        commands,
        errors::store_error,
        events, flush,
        reply::{Reply, done},
        sessions,
        state::{Asker, Live, Said, State},
    },
    base::{
        content::Part,
        event::AgentEvent,
        ids::{PromptId, SessionId},
        log::Fact,
    },
    engine::step::{self, Input},
    wire::{
        acp::{
            self, initialize,
            options::{self, Wish},
            session,
            updates::View,
        },
        jsonrpc::{error, queue::Ticket},
    },
    world::store::StoreError,
};

pub fn initialize(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let client = initialize::read(params).map_err(|it| error::invalid_params(&it))?;
    // What the client starts in a terminal has its own environment: it must find the same home.
    let command = std::env::current_exe().map_or("castor".to_owned(), |it| it.display().to_string());
    let login = initialize::Login { command, home: state.env.get("CASTOR_HOME").map(str::to_owned) };
    let response = initialize::response(&client, &login);
    state.world.store.serve(&client.name);
    state.client = Some(client);
    state.world.probe();
    done(&response)
}

pub fn new_session(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let place = session::read_new(params).map_err(|it| error::invalid_params(&it))?;
    let id = sessions::create(state, &place)?;
    asks(state, ticket, Asker::Setter(id.clone()));
    commands::offer(state, &id);
    let live = live(state, &id)?;
    done(&session::new_response(&id, &live.manner.offer, &live.chosen()))
}

/// Replays the conversation, then answers: both leave in this order.
pub fn load_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, place) = session::read_load(params).map_err(|it| error::invalid_params(&it))?;
    let entries = sessions::load(state, &id, &place)?;
    commands::offer(state, &id);
    let live = live(state, &id)?;
    let response = done(&session::load_response(&live.manner.offer, &live.chosen()));
    let mut lines = Vec::new();
    let mut view = View::new(id.clone(), live.manner.clone(), live.chosen());
    view.replay(&entries, &mut lines);
    let (last, cost) = live.filled();
    view.filled_as(last, cost, &mut lines);
    state.outbox.said.push(Said::Lines(lines));
    response
}

/// As load, for a client that remembers the conversation: nothing of it is said again but how full the context is.
pub fn resume_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, place) = session::read_resume(params).map_err(|it| error::invalid_params(&it))?;
    sessions::load(state, &id, &place)?;
    goes_on(state, &id, |live| done(&session::resume_response(&live.manner.offer, &live.chosen())))
}

/// A copy of a session up to a message of it, live at once.
pub fn fork_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let wish = session::read_fork(params).map_err(|it| error::invalid_params(&it))?;
    let id = sessions::fork(state, &wish)?;
    goes_on(state, &id, |live| done(&session::fork_response(&id, &live.manner.offer, &live.chosen())))
}

/// The answer, and after it what can be typed and how full the context is.
fn goes_on(state: &mut State, id: &SessionId, response: impl FnOnce(&Live) -> Reply) -> Reply {
    commands::offer(state, id);
    let live = live(state, id)?;
    let response = response(live);
    let mut lines = Vec::new();
    let (last, cost) = live.filled();
    View::new(id.clone(), live.manner.clone(), live.chosen()).filled_as(last, cost, &mut lines);
    state.outbox.afterwards.extend(lines);
    response
}

/// Ends what runs as session/cancel does, then lets the session go.
pub fn close_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = session::read_close(params).map_err(|it| error::invalid_params(&it))?;
    known(state, &id)?;
    let_go(state, &id);
    done(&json!({}))
}

/// Deleting what is not there is done already.
pub fn delete_session(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = session::read_delete(params).map_err(|it| error::invalid_params(&it))?;
    if state.sessions.contains_key(&id) {
        let_go(state, &id);
    }
    match state.world.store.delete(&id) {
        Ok(()) => {
            state.world.part_with(None, Some(id));
            done(&json!({}))
        }
        Err(StoreError::NotFound { .. }) => done(&json!({})),
        Err(it) => Err(store_error(&id, &it)),
    }
}

/// The turn so far ends here, so that what comes next, in the same bytes perhaps, finds the session gone.
fn let_go(state: &mut State, id: &SessionId) {
    state.step(id, Input::Cancel);
    let lines = flush::flush(state);
    state.say_lines(|it| it.extend_from_slice(&lines));
    if let Some(Live { session, desk, .. }) = state.sessions.get_mut(id) {
        session.part("other").into_iter().for_each(|run| state.world.bid_farewell(desk, run));
    }
    state.world.abort_session(id, state.now.unix_ms);
    state.world.mcp.release(id);
    state.world.traces.forget_turn(id);
    if let Some(live) = state.sessions.remove(id) {
        state.world.part_with(live.desk.files.checkpoints.clone(), None);
    }
}

pub fn prompt(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, content) = said(state, params)?;
    asks(state, ticket, Asker::Prompt(id.clone()));
    state.step(&id, Input::Prompt { prompt: PromptId(ticket.0), content });
    Ok(None)
}

/// `_session/steering {sessionId, prompt}`: words for the running turn. Answered when the model has them, or cannot.
pub fn steer(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, content) = said(state, params)?;
    asks(state, ticket, Asker::Prompt(id.clone()));
    state.step(&id, Input::Steer { prompt: PromptId(ticket.0), content });
    Ok(None)
}

/// What somebody says to a session. Nothing at all is no question: no model is paid to answer it.
fn said(state: &State, params: Option<&RawValue>) -> Result<(SessionId, Vec<Part>), ErrorObjectOwned> {
    let (id, content) = session::read_prompt(params).map_err(|it| error::invalid_params(&it))?;
    known(state, &id)?;
    let is_blank = |it: &Part| matches!(it, Part::Text { text, .. } if text.trim().is_empty());
    if content.iter().all(is_blank) {
        return Err(error::invalid_params("prompt is empty; say something"));
    }
    Ok((id, content))
}

pub fn set_mode(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, mode) = session::read_set_mode(params).map_err(|it| error::invalid_params(&it))?;
    known(state, &id)?;
    asks(state, ticket, Asker::Setter(id.clone()));
    sessions::check_mode(state, &id, mode)?;
    state.step(&id, Input::Choose(step::Choice::Mode(mode)));
    done(&json!({}))
}

pub fn set_config_option(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let wish = options::read_wish(params).map_err(|it| error::invalid_params(&it))?;
    choose(state, ticket, &wish)?;
    let live = live(state, &wish.session)?;
    done(&options::response(&live.manner.offer, &live.chosen()))
}

pub fn set_model(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let wish = options::read_set_model(params).map_err(|it| error::invalid_params(&it))?;
    choose(state, ticket, &wish)?;
    done(&json!({}))
}

fn choose(state: &mut State, ticket: Ticket, wish: &Wish) -> Result<(), ErrorObjectOwned> {
    let live = live(state, &wish.session)?;
    let choice = wish.choice(&live.manner.offer, &live.chosen()).map_err(|it| error::invalid_params(&it))?;
    let choice = match choice {
        options::Choice::Mode(mode) => {
            sessions::check_mode(state, &wish.session, mode)?;
            step::Choice::Mode(mode)
        }
        options::Choice::Model(model) => step::Choice::Model(model),
        options::Choice::Tuning(tuning) => step::Choice::Tuning(tuning),
        options::Choice::Limits(limits) => step::Choice::Limits(Some(limits)),
    };
    asks(state, ticket, Asker::Setter(wish.session.clone()));
    state.step(&wish.session, Input::Choose(choice));
    Ok(())
}

pub fn asks(state: &mut State, ticket: Ticket, what: Asker) {
    if let Some(about) = state.requests.get_mut(ticket) {
        *about = what;
    }
}

fn live<'a>(state: &'a State, id: &SessionId) -> Result<&'a Live, ErrorObjectOwned> {
    state.sessions.get(id).ok_or_else(|| error::session_not_found(id.as_str()))
}

/// `_castor/session/events {sessionId, streamId?, eventId?}`: the trajectory, or a window of it.
pub fn events(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_id: SessionId,
        stream_id: Option<String>,
        event_id: Option<String>,
    }
    let it: Params = acp::params(params).map_err(|it| error::invalid_params(&it))?;
    let entries = match state.world.store.read(&it.session_id) {
        Ok(entries) => entries,
        Err(_) => return Err(error::session_not_found(it.session_id.as_str())),
    };
    let all: Vec<AgentEvent> = entries
        .into_iter()
        .filter_map(|it| match it.fact {
            Fact::Event { event } => Some(event),
            _ => None,
        })
        .collect();
    let window = events::window(&all, it.stream_id.as_deref(), it.event_id.as_deref())
        .map_err(|it| error::invalid_params(&it))?;
    done(&json!({ "events": window }))
}

pub fn cancel(state: &mut State, params: Option<&RawValue>) {
    if let Ok(id) = session::read_cancel(params) {
        state.step(&id, Input::Cancel);
    }
}

/// # Errors
/// For the client: the session is not open here.
pub fn known(state: &State, id: &SessionId) -> Result<(), ErrorObjectOwned> {
    match state.sessions.contains_key(id) {
        true => Ok(()),
        false => Err(error::session_not_found(id.as_str())),
    }
}
