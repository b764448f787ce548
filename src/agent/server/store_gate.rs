//! The gate to a shared store: it is asked before a request is carried out, so that the loop does not wait.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    outbox::OutboxItem,
    sessions::new_id,
    state::State,
    tasks::{
        metadata_order::MetadataOrder,
        store_requests::{QueuedMessage, StoreAnswer, StoreProgress, StoreQuestion, StoreRequests, WaitingRequest},
    },
};
use crate::server::handlers::requests::end_session;
use crate::session::fork_log::ForkOrder;
use castor_base::ids::SessionId;
use castor_engine::step::Input;
use castor_wire::{
    acp::{self, session::read_fork},
    jsonrpc::open_requests::Ticket,
};

/// What a request about a session needs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreNeed {
    /// What the session said so far is stored.
    Settled,
    /// As `Settled`, after what runs is cancelled.
    Ended,
    /// Its log is open here, or read if it is open already.
    Opened,
    Read,
    Deleted,
    /// There is a copy of its log.
    Forked,
    /// What the list shows of it is changed.
    Listed,
    /// It is closed, and the list does not show it.
    Archived,
    /// It is looked for, if it is not open.
    Found,
}

const NEEDS: &[(&str, StoreNeed)] = &[
    ("session/load", StoreNeed::Opened),
    ("session/resume", StoreNeed::Opened),
    ("session/fork", StoreNeed::Forked),
    ("session/close", StoreNeed::Ended),
    ("session/set_title", StoreNeed::Listed),
    ("session/archive", StoreNeed::Archived),
    ("session/unarchive", StoreNeed::Listed),
    ("session/status", StoreNeed::Found),
    ("session/delete", StoreNeed::Deleted),
    ("_castor/session/rewind", StoreNeed::Read),
    ("_castor/session/attach", StoreNeed::Settled),
    ("_castor/session/subscribe", StoreNeed::Settled),
    ("_castor/session/unsubscribe", StoreNeed::Settled),
    ("_castor/session/stream", StoreNeed::Settled),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    session_id: SessionId,
}

/// Keeps a request for later, if it needs the store or one before it in its session does.
pub fn hold_request(store: &mut StoreRequests, it: &WaitingRequest) -> bool {
    let Some(session) = session_of(it.params.as_deref()) else { return false };
    let is_held = store.has(&session) || need_of(it.method).is_some();
    if is_held {
        store.push(session, QueuedMessage::Request(it.clone()));
    }
    is_held
}

/// The same for a notification.
pub fn hold_notification(store: &mut StoreRequests, method: &'static str, params: Option<&RawValue>) -> bool {
    if store.is_empty() {
        return false;
    }
    let Some(session) = session_of(params).filter(|it| store.has(it)) else { return false };
    store.push(session, QueuedMessage::Notification { method, params: params.map(RawValue::to_owned) });
    true
}

fn session_of(params: Option<&RawValue>) -> Option<SessionId> {
    acp::params::<SessionParams>(params).ok().map(|it| it.session_id)
}

fn need_of(method: &str) -> Option<StoreNeed> {
    NEEDS.iter().find(|it| it.0 == method).map(|it| it.1)
}

/// Asks the store for those whose turn it is, and returns the next one that waits for nothing more, with what was found.
pub fn next_ready(state: &mut State) -> Option<(QueuedMessage, Option<Box<StoreAnswer>>)> {
    while let Some(due) = state.tasks.chores.store.next_due() {
        let session = due.session.clone();
        let (is_settled, request) = match (&due.progress, &due.message) {
            (StoreProgress::Ready(_), _) => break,
            (_, QueuedMessage::Notification { .. }) => {
                due.progress = StoreProgress::Ready(None);
                continue;
            }
            (it, QueuedMessage::Request(request)) => (matches!(it, StoreProgress::Settled), request.clone()),
        };
        let need = need_of(request.method).filter(|it| is_settled || !is_refused(state, &session, *it));
        let progress = match need {
            Some(need) if is_settled || !state.sessions.contains_key(&session) => ask(state, &session, need, &request),
            Some(need) => settle(state, &session, need, request.ticket),
            None => StoreProgress::Ready(None),
        };
        state.tasks.chores.store.advance(request.ticket, progress);
    }
    state.tasks.chores.store.take_ready()
}

/// A session that is busy is refused anyway, and one that is open is there: nothing needs to wait for the end of what it
/// says.
fn is_refused(state: &State, id: &SessionId, need: StoreNeed) -> bool {
    let is_busy = || state.sessions.get(id).is_some_and(|it| it.session.is_busy());
    match need {
        StoreNeed::Opened | StoreNeed::Read => is_busy() || !state.prompts_of(id).is_empty(),
        StoreNeed::Found => state.sessions.contains_key(id),
        _ => false,
    }
}

/// What the session says from now on waits for nothing of the request.
fn settle(state: &mut State, id: &SessionId, need: StoreNeed, ticket: Ticket) -> StoreProgress {
    if matches!(need, StoreNeed::Ended | StoreNeed::Deleted | StoreNeed::Archived) {
        state.step(id, Input::Cancel);
    }
    state.outbox.items.push(OutboxItem::Stored(id.clone(), ticket));
    StoreProgress::Settles
}

/// All that the session said before is stored.
fn ask(state: &mut State, id: &SessionId, need: StoreNeed, request: &WaitingRequest) -> StoreProgress {
    let is_live = state.sessions.contains_key(id);
    let question = match need {
        StoreNeed::Settled | StoreNeed::Ended => return StoreProgress::Ready(None),
        StoreNeed::Read if !is_live => return StoreProgress::Ready(None),
        StoreNeed::Opened if !is_live => StoreQuestion::Open(id.clone()),
        StoreNeed::Opened | StoreNeed::Read => StoreQuestion::Read(id.clone()),
        StoreNeed::Deleted => {
            if is_live {
                end_session(state, id);
            }
            StoreQuestion::Delete(id.clone())
        }
        StoreNeed::Listed | StoreNeed::Archived | StoreNeed::Found => {
            let now_ms = state.now().unix_ms;
            let order = MetadataOrder::read(request.method, request.params.as_deref(), is_live, now_ms);
            let Some((id, order)) = order else { return StoreProgress::Ready(None) };
            if is_live && need == StoreNeed::Archived {
                end_session(state, &id);
            }
            StoreQuestion::Metadata(id, order)
        }
        StoreNeed::Forked => {
            let Ok(params) = read_fork(request.params.as_deref()) else { return StoreProgress::Ready(None) };
            let cwd = state.sessions.get(id).map(|it| it.resources.cwd.clone());
            let now = state.now();
            StoreQuestion::Fork(Box::new(ForkOrder { params, cwd, copy: new_id(now), now_ms: now.unix_ms }))
        }
    };
    state.tasks.ask_store(request.ticket, question);
    StoreProgress::Asks
}
