//! Sessions that are not open here, and are followed: a timer has their logs read.

use std::collections::BTreeSet;

use jsonrpsee::types::ErrorObjectOwned;

use crate::server::{event_feed, state::State};
use crate::{
    errors::store_error,
    session::events::{event_log::all_events, followers::Followers},
};
use castor_base::{
    event::AgentEvent,
    ids::{EffectId, SessionId},
};
use castor_store::sessions::{NewsMark, StoreError};
use castor_wire::jsonrpc::error;

/// Most sessions that are watched at a time.
const MAX_WATCHED: usize = 16;
/// How often their logs are looked at, in milliseconds.
const INTERVAL_MS: u64 = 100;
/// Most of a log that is taken at a time, in bytes.
const MAX_READ: u64 = 1 << 20;
/// Their timers are of no effect.
const NO_EFFECT: EffectId = EffectId(0);

/// All that happened in a session so far, for one more follower; those that it has are told what is new of it.
///
/// # Errors
/// For the client: there is no such session, or too many are watched.
pub fn past_events(state: &mut State, id: &SessionId) -> Result<Vec<AgentEvent>, ErrorObjectOwned> {
    state.tasks.watched.retain(|_, it| !it.followers.is_empty());
    if !state.tasks.watched.contains_key(id) && state.tasks.watched.len() >= MAX_WATCHED {
        let why = format!("{MAX_WATCHED} sessions that are not open here are followed");
        return Err(error::busy(&why, "Unsubscribe from one of them first."));
    }
    state.tasks.watched.entry(id.clone()).or_default();
    while read_on(state, id, u64::MAX).map_err(|it| store_error(id, &it))? {}
    let store = &state.tasks.store;
    let Some(watched) = state.tasks.watched.get(id) else { return Ok(Vec::new()) };
    let mut all = watched.past(store);
    if watched.is_quiet {
        let known: BTreeSet<_> = all.iter().map(|it| (it.thread_id.clone(), it.id.clone())).collect();
        let ends = all_events(store, id).map_err(|it| store_error(id, &it))?;
        all.extend(ends.into_iter().filter(|it| !known.contains(&(it.thread_id.clone(), it.id.clone()))));
        all.sort_by_key(|it| it.timestamp);
    }
    Ok(all)
}

/// A session that is not open here gets a follower.
pub fn watch(state: &mut State, id: &SessionId) {
    if state.tasks.watched.get(id).is_some_and(|it| it.followers.is_empty()) {
        state.timers.add(state.now.unix_ms + INTERVAL_MS, id.clone(), NO_EFFECT);
    }
}

/// It is time to look at the logs of a session. `takes_more`: the client reads what it was told. Whether the session is
/// one of these.
pub fn look(state: &mut State, id: &SessionId, takes_more: bool) -> bool {
    let Some(watched) = state.tasks.watched.get_mut(id) else { return false };
    if takes_more && state.tasks.store.has_news(id, &mut watched.mark, state.now.unix_ms) {
        read_some(state, id);
    }
    let is_followed = state.tasks.watched.get(id).is_some_and(|it| !it.followers.is_empty());
    if is_followed {
        state.timers.add(state.now.unix_ms + INTERVAL_MS, id.clone(), NO_EFFECT);
    } else {
        state.tasks.watched.remove(id);
    }
    true
}

fn read_some(state: &mut State, id: &SessionId) {
    match read_on(state, id, MAX_READ) {
        // There may be more than was taken.
        Ok(true) => _ = state.tasks.watched.get_mut(id).map(|it| it.mark = NewsMark::default()),
        // A store on another machine may answer the next time.
        Ok(false) | Err(StoreError::Shared(_)) => (),
        Err(_) => {
            // Its log is gone.
            event_feed::close(state, id);
            state.tasks.watched.remove(id);
        }
    }
}

/// The session is open here from now on, and nobody else writes its log. Its followers know all that there is.
pub fn hand_over(state: &mut State, id: &SessionId) -> Followers {
    while read_on(state, id, u64::MAX).unwrap_or_default() {}
    state.tasks.watched.remove(id).map(|it| it.followers).unwrap_or_default()
}

/// Tells what is new. Whether there was anything.
fn read_on(state: &mut State, id: &SessionId, max: u64) -> Result<bool, StoreError> {
    let Some(watched) = state.tasks.watched.get_mut(id) else { return Ok(false) };
    let events = watched.read_on(&state.tasks.store, id, max)?;
    let mut lines = Vec::new();
    events.iter().for_each(|it| event_feed::tell_followers(state, id, it, &mut lines));
    state.outbox.queue_lines(None, |it| it.append(&mut lines));
    Ok(!events.is_empty())
}
