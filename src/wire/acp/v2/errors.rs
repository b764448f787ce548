//! Errors of version 2: its own ways to log in are in the data, and an error can be the end of a turn.

use agent_client_protocol_schema::v2::{Error, ErrorStopReason, StopReason};
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Value, json};

use super::{initialize, same_json};

/// The same error, with the ways to log in as version 2 writes them.
pub fn error(it: ErrorObjectOwned) -> ErrorObjectOwned {
    let mut data: Value = it.data().and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
    let Some(methods) = data.get_mut("authMethods") else { return it };
    *methods = json!(initialize::plain_methods());
    ErrorObjectOwned::owned(it.code(), it.message(), Some(data))
}

/// Why the foreground work stopped: it failed.
pub fn failure(it: &ErrorObjectOwned) -> StopReason {
    let error: Option<Error> = same_json(it);
    StopReason::Error(ErrorStopReason::new().error(error))
}
