//! Errors of MCP servers, each as the end of a sentence about one.

use std::error::Error;

use rmcp::{
    service::ServiceError,
    transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError},
};

use castor_base::text;

/// Why a server does not come up.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum StartError {
    /// castor does not try: its settings cannot be used, or its files are not those that were trusted.
    #[error("{0}")]
    Refused(String),
    #[error("{command} could not be started: {why}")]
    Absent { command: String, why: String },
    /// It ended, or the way to it broke.
    #[error("{0}")]
    Gone(String),
    /// It speaks a newer revision of MCP, or none.
    #[error("{0}")]
    NoHandshake(String),
    /// It speaks, but no MCP.
    #[error("{0}")]
    Broken(&'static str),
    #[error("it answered with HTTP status {0}")]
    Status(u16),
    /// It wants another credential than castor has.
    #[error("{0}")]
    Unauthorized(String),
    /// It wants a credential that is good for these, too.
    #[error("it wants an authorization for more: {0}")]
    NeedsScopes(String),
    #[error("it did not answer within {0} s")]
    Silent(f64),
}

/// A message that the older HTTP transport could not send.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error("{0}")]
    Unsent(String),
    #[error("it answered a message with HTTP status {0}")]
    Status(u16),
}

impl StartError {
    /// Tells whether another try is of no use.
    pub(super) fn is_final(&self) -> bool {
        let wants_credential = matches!(self, Self::Unauthorized(_) | Self::NeedsScopes(_) | Self::Status(401));
        wants_credential || matches!(self, Self::Refused(_) | Self::Broken(_))
    }
}

impl SseError {
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Status(401))
    }
}

/// Tells whether a server wants another credential than what castor proves itself with: HTTP status 401.
pub(super) fn is_unauthorized(error: &(dyn Error + 'static)) -> bool {
    let is_it = |it: &(dyn Error + 'static)| {
        let answer = it.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        // Without a challenge rmcp has the status in words only.
        let is_status =
            matches!(answer, Some(StreamableHttpError::UnexpectedServerResponse(it)) if it.starts_with("HTTP 401"));
        is_status
            || it.is::<AuthRequiredError>()
            || it.downcast_ref::<SseError>().is_some_and(SseError::is_unauthorized)
    };
    let mut next = Some(error);
    while let Some(it) = next {
        if is_it(it) {
            return true;
        }
        next = it.source();
    }
    false
}

/// The innermost cause, in one line: it says most, and names no address.
pub(super) fn innermost_cause(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    // This one does not name its cause as such.
    if let Some(StreamableHttpError::Client(it)) = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        deepest = it;
    }
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    text::first_line(&deepest.to_string(), 300)
}

/// The scopes that a server refuses a call for want of: HTTP status 403 with a challenge that says so.
pub(super) fn missing_scopes(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(it) = next {
        if let Some(found) = it.downcast_ref::<InsufficientScopeError>() {
            return Some(found.required_scope.clone().unwrap_or_default());
        }
        next = it.source();
    }
    None
}

/// Why a call has nobody to go to.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("its server is gone: {0}")]
    Gone(String),
    #[error("its server is gone: {why}; started again, it is not ready after {seconds} s")]
    NotReady { why: String, seconds: u64 },
    #[error("its server is gone: {why}; castor starts it again in {seconds} s")]
    Pausing { why: String, seconds: u64 },
    #[error("the call was cancelled")]
    Cancelled,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error(transparent)]
    Nobody(#[from] PeerError),
    #[error("it was cancelled")]
    Cancelled,
    #[error("it did not answer within {0} s")]
    Silent(f64),
    /// What the server needs first did not come about.
    #[error("{0}")]
    Unprovided(String),
    #[error("{}", in_words(.0))]
    Failed(ServiceError),
}

/// What a server says itself needs no more words.
fn in_words(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(it) => text::first_line(&it.message, 1_000),
        it => text::first_line(&it.to_string(), 1_000),
    }
}
