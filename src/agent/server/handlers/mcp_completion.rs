//! Handler of `_castor/mcp/complete`: a server is asked, and the client is answered when it says something.

use serde_json::value::RawValue;

use crate::server::{
    open_session::{check_open, set_owner},
    pending_requests::RequestOwner,
    reply::{Reply, answer},
    state::State,
    tasks::jobs::CompletionJob,
};
use castor_base::server_offer::Completion;
use castor_wire::{
    acp::own::mcp_complete::{CompleteResult, read_complete},
    jsonrpc::{error, open_requests::Ticket},
};

pub fn complete(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (session, server, query) = read_complete(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &session)?;
    let live = state.sessions.get(&session);
    let found = live.and_then(|it| it.resources.mcp.find_server(&server)).map(|it| it.connection.clone());
    let Some(connection) = found else {
        return Err(error::invalid_params(&format!("server: the session has no connected server {server:?}")));
    };
    set_owner(&mut state.requests, ticket, RequestOwner::Other);
    state.tasks.start_completion(CompletionJob { ticket, connection, query });
    Ok(None)
}

/// The server said something, or did not.
pub fn finish(state: &mut State, ticket: Ticket, result: Result<Completion, String>) {
    let outcome = result.map(CompleteResult::from);
    let outcome = outcome.map_err(|why| error::failed("mcp", &format!("the server gives no completions: {why}")));
    answer(state, ticket, outcome.as_ref().map_err(Clone::clone));
}
