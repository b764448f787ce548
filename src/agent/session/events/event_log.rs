//! Events of a session as its logs have them: its own, and those of its sub-agents.

use castor_base::{
    event::AgentEvent,
    ids::SessionId,
    log::{Entry, Fact},
};
use castor_store::sessions::{SessionStore, StoreError};

/// All events of a session and its sub-agents, in order.
///
/// # Errors
/// When there is no such session.
pub fn all_events(store: &SessionStore, session: &SessionId) -> Result<Vec<AgentEvent>, StoreError> {
    let mut entries: Vec<Entry> = store.read(session)?;
    entries.extend(children_of(store, session).into_iter().flatten());
    Ok(events_of(entries))
}

/// The events of these entries, by time. Each log is in order already.
pub fn events_of(mut entries: Vec<Entry>) -> Vec<AgentEvent> {
    entries.sort_by_key(|it| it.at);
    let event = |it: Entry| if let Fact::Event { event } = it.fact { Some(event) } else { None };
    entries.into_iter().filter_map(event).collect()
}

/// The logs of sub-agents, oldest first.
pub fn children_of(store: &SessionStore, id: &SessionId) -> Vec<Vec<Entry>> {
    let mut res: Vec<Vec<Entry>> =
        store.children(id).iter().map(|it| store.read(it).unwrap_or_default()).filter(|it| !it.is_empty()).collect();
    res.sort_by_key(|it| it.first().map(|it| it.at));
    res
}
