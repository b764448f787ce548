//! AIR's `_session/list_changed`: the first pages that it read are read again when sessions may have changed.

use std::sync::Arc;

use crate::server::{
    air::watched_lists::timer_owner,
    event::{ListAsker, ListParams},
    handlers::list_page,
    state::State,
};
use castor_base::{ids::SessionId, path::AbsPath};
use castor_store::sessions::SessionSummary;
use castor_wire::acp::{
    air::session_index::{LIST_CHANGED, ListChanged},
    session::ListedSession,
    updates,
};

/// AIR has read a page: from now on it is told when that is another one.
pub fn watch(state: &mut State, params: ListParams, rows: Vec<ListedSession>) {
    if params.index.is_some() && params.cwd.is_some() && params.after.is_none() {
        let watches = &mut state.tasks.listings.watches;
        watches.add(params, rows, state.now.unix_ms);
        watches.set_timer(&mut state.timers);
    }
}

/// A session may have changed.
pub fn note_change(state: &mut State) {
    let watches = &mut state.tasks.listings.watches;
    watches.note_change(state.now.unix_ms);
    watches.set_timer(&mut state.timers);
}

/// It may be time to look. `takes_more`: the client reads what it was told. Whether the timer is this one.
pub fn look(state: &mut State, owner: &SessionId, takes_more: bool) -> bool {
    if *owner != timer_owner() {
        return false;
    }
    let queries = state.tasks.listings.watches.due(state.now.unix_ms);
    if takes_more && !queries.is_empty() {
        state.tasks.list(ListAsker::Watches, queries);
    }
    state.tasks.listings.watches.set_timer(&mut state.timers);
    true
}

/// The sessions that there are now: tells of each folder whose first page is another one.
pub fn compare(state: &mut State, queries: &[ListParams], found: &[Arc<SessionSummary>]) {
    let mut changed: Vec<AbsPath> = Vec::new();
    for params in queries {
        let (rows, _) = list_page::page(&state.sessions, &state.outgoing, (params, found));
        if state.tasks.listings.watches.replace(params, rows) {
            changed.extend(params.cwd.clone().filter(|it| !changed.contains(it)));
        }
    }
    state.outbox.queue_lines(None, |lines| {
        changed.iter().for_each(|cwd| updates::notification(LIST_CHANGED, &ListChanged { cwd }, lines));
    });
}
