//! `_castor/session/attach`: a session that is open, as it is now, for one more client of a hub.

use serde_json::{json, value::RawValue};

use crate::server::{
    flush,
    handlers::requests::live_session,
    open_session::check_open,
    reply::{Reply, reply_now},
    state::State,
};
use crate::{errors::store_error, session::events::event_log::children_of};
use castor_base::event::CLIENT_ACT;
use castor_engine::step::Input;
use castor_wire::{
    acp::{
        own::attach::{AttachResult, read_attach, read_client_act},
        session,
        updates::SessionView,
    },
    jsonrpc::{error, open_requests::Ticket},
};

/// `_castor/session/attach {sessionId, history?}`. What was said before is said before the answer, and what comes after it
/// is not in it.
pub fn attach(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, with_history) = read_attach(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &id)?;
    flush::flush_early(state, &id);
    let mut lines = Vec::new();
    if with_history {
        let store = &state.tasks.store;
        let entries = store.read(&id).map_err(|it| store_error(&id, &it))?;
        let children = children_of(store, &id);
        let live = live_session(state, &id)?;
        let mut view = SessionView::new(id.clone(), live.profile.clone(), live.chosen_options());
        view.replay_open(&entries, &children, &mut lines);
        let (last, cost) = live.context_usage();
        view.show_context_usage(last, cost, &mut lines);
    }
    let live = live_session(state, &id)?;
    let response = session::load_response(&live.profile.offer, &live.chosen_options());
    reply_now(&AttachResult::new(&response, with_history.then_some(&lines)))
}

/// `_castor/session/client_act {sessionId, act}`: the hub says which of its clients did something.
pub fn note_client_act(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (id, act) = read_client_act(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &id)?;
    state.step(&id, Input::CustomEvent { kind: CLIENT_ACT.to_owned(), data: json!(act) });
    reply_now(&json!({}))
}
