//! A page of `session/list`, of the sessions that a look at the disk found.

use std::{collections::BTreeMap, sync::Arc};

use crate::server::{air::air_reports, event::ListParams, pending_requests::ClientRequest};
use crate::session::live_session::LiveSession;
use castor_base::ids::SessionId;
use castor_store::sessions::SessionSummary;
use castor_wire::{
    acp::{drafts::archive_filter::ArchiveFilter, options::DEFAULT_AGENT, session::ListedSession},
    jsonrpc::open_requests::OutgoingRequests,
};

/// Sessions of one page.
const PAGE: usize = 100;

/// The rows of a page, and where the next one begins.
pub fn page(
    sessions: &BTreeMap<SessionId, LiveSession>,
    outgoing: &OutgoingRequests<ClientRequest>,
    (params, found): (&ListParams, &[Arc<SessionSummary>]),
) -> (Vec<ListedSession>, Option<String>) {
    let size = params.index.map_or(PAGE, |it| it.limit);
    // An empty conversation is nothing to come back to, unless it is open here.
    let worth = found.iter().filter(|it| it.has_prompts || sessions.contains_key(&it.id));
    let mut page: Vec<&Arc<SessionSummary>> = worth.filter(|it| params.is_next(it)).take(size + 1).collect();
    let has_more = page.len() > size;
    page.truncate(size);
    let next = page.last().filter(|_| has_more).map(|it| format!("{}.{}", it.updated_ms, it.id));
    let row = |it: &Arc<SessionSummary>| ListedSession {
        row: params.index.map(|_| air_reports::index_row(sessions, outgoing, it)),
        session: it.id.clone(),
        cwd: it.cwd.clone(),
        title: it.title.clone(),
        updated_ms: it.updated_ms,
        agent: it.agent.clone().filter(|_| params.names_agents),
        archived: (params.archived != ArchiveFilter::Unasked).then_some(it.archived),
    };
    (page.into_iter().map(row).collect(), next)
}

impl ListParams {
    fn is_next(&self, it: &SessionSummary) -> bool {
        (self.folders.is_empty() || self.folders.contains(&it.cwd))
            && self.archived.shows(it.archived)
            && self.agent.as_ref().is_none_or(|name| it.agent.as_deref().unwrap_or(DEFAULT_AGENT) == name)
            && self.after.as_ref().is_none_or(|(ms, id)| (it.updated_ms, &it.id) < (*ms, id))
    }
}
