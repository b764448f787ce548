//! Answers to the client: what a handler gives, how it leaves, and the errors that several handlers share.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use crate::{
    app::state::State,
    base::ids::SessionId,
    wire::{
        acp::initialize,
        jsonrpc::{error, queue::Ticket, write},
    },
    world::store::StoreError,
};

/// What a request is answered with: now, later (by who completes its ticket), or an error.
pub type Reply = Result<Option<Box<RawValue>>, ErrorObjectOwned>;

/// The one answer to a request; a second one is dropped here.
pub fn answer<T: Serialize + ?Sized>(state: &mut State, ticket: Ticket, outcome: Result<&T, ErrorObjectOwned>) {
    state.world.traces.end(ticket);
    let Some((id, _)) = state.requests.complete(ticket) else { return };
    state.say_lines(|lines| match outcome {
        Ok(result) => write::result(lines, &id, result),
        Err(error) => write::error(lines, &id, &error),
    });
}

/// A result for now.
pub fn done<T: Serialize>(result: &T) -> Reply {
    to_raw_value(result).map(Some).map_err(|it| error::internal(&it.to_string()))
}

/// -32000 with what can be done about it.
pub fn auth_required(why: &str) -> ErrorObjectOwned {
    let base = error::auth_required(Some(why));
    let data = json!({ "authMethods": initialize::auth_methods() });
    ErrorObjectOwned::owned(base.code(), base.message(), Some(data))
}

/// What the store could not do, for the client.
pub fn store_error(id: &SessionId, it: &StoreError) -> ErrorObjectOwned {
    match it {
        StoreError::NotFound { .. } => error::session_not_found(id.as_str()),
        StoreError::Locked { holder, .. } => {
            let data = json!({ "kind": "locked", "sessionId": id, "holder": holder });
            ErrorObjectOwned::owned(-32600, format!("Invalid request: {it}"), Some(data))
        }
        other => error::internal(&other.to_string()),
    }
}
