//! Errors for the client that several handlers share.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;

use crate::{
    base::ids::SessionId,
    wire::{acp::initialize, jsonrpc::error},
    world::store::StoreError,
};

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
