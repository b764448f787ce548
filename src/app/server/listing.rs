//! ACP `session/list`: reads the disk on a thread of its own, since a machine may hold thousands of logs.

use serde_json::value::RawValue;

use crate::{
    app::server::{
        air_reports,
        event::{ListParams, Listing},
        reply::{self, Reply},
        state::State,
        tasks::Tasks,
    },
    base::ids::SessionId,
    wire::{
        acp::{archive_filter::ArchiveFilter, initialize::Client, options::DEFAULT_AGENT, session},
        jsonrpc::{error, open_requests::Ticket},
    },
    world::store::SessionSummary,
};

/// Sessions of one page.
const PAGE: usize = 100;

/// Answers later, by [`answer`].
pub fn list(client: Option<&Client>, tasks: &mut Tasks, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let is_index = air_reports::features(client).session_index;
    let query = session::read_list(params, is_index).map_err(|it| error::invalid_params(&it))?;
    let session::ListQuery { cwd, cursor, archived, agent, index } = query;
    let after = cursor.map(|it| {
        read_cursor(&it)
            .ok_or_else(|| error::invalid_params("the cursor is not one of ours; send the last answer's nextCursor"))
    });
    let wanted = ListParams { cwd, after: after.transpose()?, archived, agent, index };
    tasks.list(ticket, wanted);
    Ok(None)
}

/// The page that was asked for.
pub fn answer(state: &mut State, listing: Listing) {
    let Listing { ticket, params, found, cache } = listing;
    let listings = &mut state.tasks.listings;
    listings.n_running = listings.n_running.saturating_sub(1);
    listings.cache = cache;
    let found = match found {
        Ok(it) => it,
        Err(why) => {
            let why = format!("{why}. Make the folder of castor's sessions readable.");
            return reply::answer::<()>(state, ticket, Err(error::failed("log", &why)));
        }
    };
    let size = params.index.map_or(PAGE, |it| it.limit);
    // An empty conversation is nothing to come back to, unless it is open here.
    let worth = found.into_iter().filter(|it| it.has_prompts || state.sessions.contains_key(&it.id));
    let mut page: Vec<SessionSummary> = worth.filter(|it| params.is_next(it)).take(size + 1).collect();
    let has_more = page.len() > size;
    page.truncate(size);
    let next = page.last().filter(|_| has_more).map(|it| format!("{}.{}", it.updated_ms, it.id));
    let names_agents = params.agent.is_some() || state.client.as_ref().is_some_and(|it| it.features.castor);
    let listed: Vec<session::ListedSession> = page
        .into_iter()
        .map(|it| session::ListedSession {
            row: params.index.map(|_| air_reports::index_row(&state.sessions, &state.outgoing, &it)),
            session: it.id,
            cwd: it.cwd,
            title: it.title,
            updated_ms: it.updated_ms,
            agent: it.agent.filter(|_| names_agents),
            archived: (params.archived != ArchiveFilter::Unasked).then_some(it.archived),
        })
        .collect();
    reply::answer(state, ticket, Ok(&session::list_response(&listed, next)));
}

impl ListParams {
    fn is_next(&self, it: &SessionSummary) -> bool {
        self.archived.shows(it.archived)
            && self.agent.as_ref().is_none_or(|name| it.agent.as_deref().unwrap_or(DEFAULT_AGENT) == name)
            && self.after.as_ref().is_none_or(|(ms, id)| (it.updated_ms, &it.id) < (*ms, id))
    }
}

fn read_cursor(text: &str) -> Option<(u64, SessionId)> {
    let (ms, id) = text.split_once('.')?;
    let id = SessionId::from(id);
    Some((ms.parse().ok()?, id.is_safe().then_some(id)?))
}
