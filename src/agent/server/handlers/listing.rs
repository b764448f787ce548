//! ACP `session/list`: reads the disk on a thread of its own, since a machine may hold thousands of logs.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::server::{
    air::{air_reports, index_watch},
    event::{ListAsker, ListParams, Listing},
    handlers::list_page,
    reply::{self, Reply},
    state::State,
    tasks::Tasks,
};
use castor_base::ids::SessionId;
use castor_wire::{
    acp::{initialize::Client, session},
    jsonrpc::{error, open_requests::Ticket},
};

/// Answers later, by [`answer`].
pub fn list(client: Option<&Client>, tasks: &mut Tasks, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let is_index = air_reports::features(client).session_index;
    let query = session::read_list(params, is_index).map_err(|it| error::invalid_params(&it))?;
    let session::ListQuery { cwd, cursor, archived, agent, index } = query;
    let after = cursor.map(|it| {
        read_cursor(&it)
            .ok_or_else(|| error::invalid_params("the cursor is not one of ours; send the last answer's nextCursor"))
    });
    let names_agents = agent.is_some() || client.is_some_and(|it| it.host.knows_castor);
    let folders = BTreeSet::new();
    let wanted = ListParams { cwd, folders, after: after.transpose()?, archived, agent, names_agents, index };
    tasks.list(ListAsker::Request(ticket), vec![wanted]);
    Ok(None)
}

/// Answers the request for a page, or tells AIR which pages are others now.
pub fn answer(state: &mut State, listing: Listing) {
    let Listing { asker, queries, found, cache } = listing;
    let listings = &mut state.tasks.listings;
    listings.n_running = listings.n_running.saturating_sub(1);
    listings.cache = cache;
    let ticket = match (asker, &found) {
        (ListAsker::Request(it), _) => it,
        (ListAsker::Watches, Ok(found)) => return index_watch::compare(state, &queries, found),
        (ListAsker::Watches, Err(_)) => return,
    };
    let found = match found {
        Ok(it) => it,
        Err(why) => {
            let why = format!("{why}. Make the folder of castor's sessions readable.");
            return reply::answer::<()>(state, ticket, Err(error::failed("log", &why)));
        }
    };
    for params in queries {
        let (rows, next) = list_page::page(&state.sessions, &state.outgoing, (&params, &found));
        reply::answer(state, ticket, Ok(&session::list_response(&rows, next)));
        index_watch::watch(state, params, rows);
    }
}

fn read_cursor(text: &str) -> Option<(u64, SessionId)> {
    let (ms, id) = text.split_once('.')?;
    let id = SessionId::from(id);
    Some((ms.parse().ok()?, id.is_safe().then_some(id)?))
}
