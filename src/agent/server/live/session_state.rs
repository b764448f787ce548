//! State of sessions: what the store has of it, what other sessions change, and answers to the client.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::server::{reply, state::State};
use castor_base::{
    ids::SessionId,
    state::{StateDelta, StateMap, is_shared},
};
use castor_engine::step::Input;
use castor_store::sessions::{SessionStore, StateError, read_state, save_state};
use castor_wire::{
    acp::own::state::StateValues,
    jsonrpc::{error, open_requests::Ticket},
};

/// `Effect::AnswerState`.
pub fn answer(state: &mut State, ticket: Ticket, result: Result<StateMap, String>) {
    let outcome = result.map(|state| StateValues { state }).map_err(|why| refused(&why));
    reply::answer(state, ticket, outcome.as_ref().map_err(Clone::clone));
}

fn refused(why: &str) -> ErrorObjectOwned {
    error::failed("state", &format!("the state was not changed: {why}"))
}

/// What a new session's state has beside its own keys, once the first values are saved that others share.
///
/// # Errors
/// For the client: they cannot be saved.
pub fn begin(store: &SessionStore, user: &str, first: &StateDelta) -> Result<Arc<StateMap>, ErrorObjectOwned> {
    let shared = first.part(is_shared);
    let saved = save_state(store.home(), user, &shared);
    match saved {
        Ok(values) => Ok(Arc::new(values)),
        Err(it) if shared.is_empty() => Ok(unread(&it)),
        Err(it) => Err(refused(&it.to_string())),
    }
}

/// A session goes on without them.
fn unread(why: &StateError) -> Arc<StateMap> {
    tracing::warn!("shared state is not used: {why}");
    Arc::default()
}

/// What the store has now, also from other processes. What cannot be read stays as it is known.
pub fn refresh(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get(id) else { return };
    match read_state(state.tasks.store.home(), live.session.record().user()) {
        Ok(values) => state.step(id, Input::SharedState(Arc::new(values))),
        Err(it) => _ = unread(&it),
    }
}

/// A session changed what others share: those that are open here know.
pub fn share(state: &mut State, from: &SessionId, values: &Arc<StateMap>) {
    let Some(live) = state.sessions.get(from) else { return };
    let user = live.session.record().user().to_owned();
    let others = state.sessions.iter().filter(|(id, it)| *id != from && it.parent.is_none());
    let others: Vec<(SessionId, bool)> =
        others.map(|(id, it)| (id.clone(), it.session.record().user() == user)).collect();
    for (id, is_same_user) in others {
        match is_same_user {
            true => state.step(&id, Input::SharedState(Arc::clone(values))),
            false => refresh(state, &id),
        }
    }
}
