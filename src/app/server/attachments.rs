//! Sessions that are not open here, as another castor has them perhaps: their logs are read as they grow.

use std::collections::{BTreeMap, BTreeSet};

use jsonrpsee::types::ErrorObjectOwned;

use super::{event_requests, state::State};
use crate::{
    app::{errors::store_error, session::followers::Followers},
    base::{
        endings::is_ending,
        event::AgentEvent,
        ids::{EffectId, SessionId, ThreadId},
        log::{Entry, Fact},
    },
    wire::jsonrpc::error,
    world::store::{SessionStore, StoreError},
};

/// Most sessions that are watched at a time.
const MAX_ATTACHED: usize = 16;
/// How often their logs are looked at, in milliseconds.
const INTERVAL_MS: u64 = 100;
/// Most of a log that is taken at a time, in bytes.
const MAX_READ: u64 = 1 << 20;
/// Their timers are of no effect.
const NO_EFFECT: EffectId = EffectId(0);

/// A session that is only read, and its followers.
#[derive(Debug, Default)]
pub struct Attachment {
    pub followers: Followers,
    /// How much was read of each log: its own, and those of its sub-agents.
    read: BTreeMap<SessionId, u64>,
    /// Ends that were told, whoever writes them: by thread and id.
    ends: BTreeSet<(Option<ThreadId>, String)>,
    /// Nobody is at work, and all is told.
    is_quiet: bool,
}

impl Attachment {
    /// What was read before, in order.
    fn past(&self, store: &SessionStore) -> Vec<AgentEvent> {
        let of_log = |(id, len): (&SessionId, &u64)| store.read_part(id, 0..*len).map(|it| it.0).unwrap_or_default();
        let mut entries: Vec<Entry> = self.read.iter().flat_map(of_log).collect();
        entries.sort_by_key(|it| it.at);
        entries.into_iter().filter_map(event).collect()
    }

    /// What is new, up to so many bytes of each log. Where nobody is at work, also the ends of what a crash cut off.
    fn read_on(&mut self, store: &SessionStore, id: &SessionId, max: u64) -> Result<Vec<AgentEvent>, StoreError> {
        let is_at_work = store.is_at_work(id)?;
        let mut entries = self.read_log(store, id, max)?;
        for child in store.children(id) {
            entries.extend(self.read_log(store, &child, max)?);
        }
        entries.sort_by_key(|it| it.at);
        self.is_quiet &= entries.is_empty();
        let mut res: Vec<AgentEvent> = entries.into_iter().filter_map(event).collect();
        if res.is_empty() && !is_at_work && !std::mem::replace(&mut self.is_quiet, true) {
            res = event_requests::all_events(store, id)?.into_iter().filter(is_ending).collect();
        }
        res.retain(|it| !is_ending(it) || self.ends.insert((it.thread_id.clone(), it.id.clone())));
        Ok(res)
    }

    fn read_log(&mut self, store: &SessionStore, id: &SessionId, max: u64) -> Result<Vec<Entry>, StoreError> {
        let from = self.read.get(id).copied().unwrap_or_default();
        let (entries, len) = store.read_part(id, from..from.saturating_add(max))?;
        self.read.insert(id.clone(), len);
        Ok(entries)
    }
}

fn event(entry: Entry) -> Option<AgentEvent> {
    if let Fact::Event { event } = entry.fact { Some(event) } else { None }
}

/// All that happened in a session so far, for one more follower; those that it has are told what is new of it.
///
/// # Errors
/// For the client: there is no such session, or too many are watched.
pub fn past_events(state: &mut State, id: &SessionId) -> Result<Vec<AgentEvent>, ErrorObjectOwned> {
    state.tasks.attached.retain(|_, it| !it.followers.is_empty());
    if !state.tasks.attached.contains_key(id) && state.tasks.attached.len() >= MAX_ATTACHED {
        let why = format!("{MAX_ATTACHED} sessions that are not open here are followed");
        return Err(error::busy(&why, "Unsubscribe from one of them first."));
    }
    state.tasks.attached.entry(id.clone()).or_default();
    while read_on(state, id, u64::MAX).map_err(|it| store_error(id, &it))? {}
    let store = &state.tasks.store;
    let Some(attachment) = state.tasks.attached.get(id) else { return Ok(Vec::new()) };
    let mut all = attachment.past(store);
    if attachment.is_quiet {
        let known: BTreeSet<_> = all.iter().map(|it| (it.thread_id.clone(), it.id.clone())).collect();
        let ends = event_requests::all_events(store, id).map_err(|it| store_error(id, &it))?;
        all.extend(ends.into_iter().filter(|it| !known.contains(&(it.thread_id.clone(), it.id.clone()))));
        all.sort_by_key(|it| it.timestamp);
    }
    Ok(all)
}

/// A session that is not open here gets a follower.
pub fn watch(state: &mut State, id: &SessionId) {
    if state.tasks.attached.get(id).is_some_and(|it| it.followers.is_empty()) {
        state.timers.add(state.now.unix_ms + INTERVAL_MS, id.clone(), NO_EFFECT);
    }
}

/// It is time to look at the logs of a session. `takes_more`: the client reads what it was told. Whether the session is
/// one of these.
pub fn look(state: &mut State, id: &SessionId, takes_more: bool) -> bool {
    if !state.tasks.attached.contains_key(id) {
        return false;
    }
    if takes_more && read_on(state, id, MAX_READ).is_err() {
        // Its log is gone.
        event_requests::close(state, id);
        state.tasks.attached.remove(id);
    }
    let is_followed = state.tasks.attached.get(id).is_some_and(|it| !it.followers.is_empty());
    if is_followed {
        state.timers.add(state.now.unix_ms + INTERVAL_MS, id.clone(), NO_EFFECT);
    } else {
        state.tasks.attached.remove(id);
    }
    true
}

/// The session is open here from now on, and nobody else writes its log. Its followers know all that there is.
pub fn hand_over(state: &mut State, id: &SessionId) -> Followers {
    while read_on(state, id, u64::MAX).unwrap_or_default() {}
    state.tasks.attached.remove(id).map(|it| it.followers).unwrap_or_default()
}

/// Tells what is new. Whether there was anything.
fn read_on(state: &mut State, id: &SessionId, max: u64) -> Result<bool, StoreError> {
    let Some(attachment) = state.tasks.attached.get_mut(id) else { return Ok(false) };
    let events = attachment.read_on(&state.tasks.store, id, max)?;
    let mut lines = Vec::new();
    events.iter().for_each(|it| event_requests::tell_followers(state, id, it, &mut lines));
    state.outbox.queue_lines(|it| it.append(&mut lines));
    Ok(!events.is_empty())
}
