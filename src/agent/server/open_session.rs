//! Checks of requests about open sessions, and the owner of a request.

use std::collections::BTreeMap;

use jsonrpsee::types::ErrorObjectOwned;

use super::pending_requests::RequestOwner;
use crate::session::live_session::LiveSession;
use castor_base::{
    content::{Part, PromptContent},
    ids::SessionId,
};
use castor_wire::jsonrpc::{
    error,
    open_requests::{IncomingRequests, Ticket},
};

/// # Errors
/// For the client: the session is not open here.
pub fn check_open(open: &BTreeMap<SessionId, LiveSession>, id: &SessionId) -> Result<(), ErrorObjectOwned> {
    if open.contains_key(id) && !id.is_child() { Ok(()) } else { Err(error::session_not_found(id.as_str())) }
}

/// An empty prompt is refused, unless it brings results: no model is paid to answer it.
pub fn check_message(
    open: &BTreeMap<SessionId, LiveSession>,
    id: &SessionId,
    content: &PromptContent,
) -> Result<(), ErrorObjectOwned> {
    check_open(open, id)?;
    let is_blank = |it: &Part| matches!(it, Part::Text { text, .. } if text.trim().is_empty());
    match content.results.is_empty() && content.parts.iter().all(is_blank) {
        true => Err(error::invalid_params("prompt is empty; say something")),
        false => Ok(()),
    }
}

pub fn set_owner(requests: &mut IncomingRequests<RequestOwner>, ticket: Ticket, what: RequestOwner) {
    if let Some(about) = requests.get_mut(ticket) {
        *about = what;
    }
}
