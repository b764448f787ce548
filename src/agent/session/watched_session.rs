//! A session that is not open here, as another castor has it perhaps: its logs are read as they grow.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::events::{
    event_log::{all_events, events_of},
    followers::Followers,
};
use castor_base::{
    endings::is_ending,
    event::AgentEvent,
    ids::{SessionId, ThreadId},
    log::Entry,
};
use castor_store::sessions::{NewsMark, SessionStore, StoreError};

/// A session that is only read, and its followers.
#[derive(Debug, Default)]
pub struct WatchedSession {
    pub followers: Followers,
    /// How much was read of each log: its own, and those of its sub-agents.
    read: BTreeMap<SessionId, u64>,
    /// Ends that were told, whoever writes them: by thread and id.
    ends: BTreeSet<(Option<ThreadId>, String)>,
    /// Nobody is at work, and all is told.
    pub is_quiet: bool,
    /// Until where a shared store was looked at.
    pub mark: NewsMark,
}

impl WatchedSession {
    /// What was read before, in order.
    pub fn past(&self, store: &SessionStore) -> Vec<AgentEvent> {
        let of_log = |(id, len): (&SessionId, &u64)| store.read_part(id, 0..*len).map(|it| it.0).unwrap_or_default();
        events_of(self.read.iter().flat_map(of_log).collect())
    }

    /// What is new, up to so many bytes of each log. Where nobody is at work, also the ends of what a crash cut off.
    pub fn read_on(&mut self, store: &SessionStore, id: &SessionId, max: u64) -> Result<Vec<AgentEvent>, StoreError> {
        let is_at_work = store.is_at_work(id)?;
        let mut entries = self.read_log(store, id, max)?;
        for child in store.children(id) {
            entries.extend(self.read_log(store, &child, max)?);
        }
        self.is_quiet &= entries.is_empty();
        let mut res = events_of(entries);
        if res.is_empty() && !is_at_work && !std::mem::replace(&mut self.is_quiet, true) {
            res = all_events(store, id)?.into_iter().filter(is_ending).collect();
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
