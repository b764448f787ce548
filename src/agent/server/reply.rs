//! Answers to the client's requests.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{outbox::OutboxItem, pending_requests::RequestOwner, state::State};
use crate::server::live::foreground;
use castor_wire::{
    acp::{initialize::AcpVersion, v2::errors},
    jsonrpc::{error, open_requests::Ticket, write},
};

/// A handler's reply: an answer now, one later (through its ticket), or an error.
pub type Reply = Result<Option<Box<RawValue>>, ErrorObjectOwned>;

/// The one answer to a request; a second one is dropped here.
pub fn answer<T: Serialize + ?Sized>(state: &mut State, ticket: Ticket, outcome: Result<&T, ErrorObjectOwned>) {
    state.tasks.traces.end_request(ticket, outcome.as_ref().err().map(ErrorObjectOwned::code));
    let Some((request, about)) = state.requests.complete(ticket) else { return };
    match (outcome, about) {
        (Ok(result), RequestOwner::Setter(session)) => {
            let mut lines = Vec::new();
            write::result(&mut lines, &request, result);
            state.outbox.items.push(OutboxItem::Answer { session, request, lines });
        }
        (Ok(result), about) => {
            state.outbox.queue_lines(about.session(), |lines| write::result(lines, &request, result));
        }
        (Err(error), about) => {
            let error = match foreground::version(state.client.as_ref()) {
                AcpVersion::V1 => error,
                AcpVersion::V2 => errors::error(error),
            };
            state.outbox.queue_lines(about.session(), |lines| write::error(lines, &request, &error));
        }
    }
}

/// A result for now.
pub fn reply_now<T: Serialize>(result: &T) -> Reply {
    to_raw_value(result).map(Some).map_err(|it| error::bug(&format!("the result has no JSON form: {it}")))
}
