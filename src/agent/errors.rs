//! Errors for the client that several handlers share.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;

use castor_base::ids::SessionId;
use castor_store::sessions::StoreError;
use castor_tools::workspace;
use castor_wire::{acp::initialize, jsonrpc::error};

/// -32000 with what can be done about it.
pub fn auth_required(why: &str) -> ErrorObjectOwned {
    error::auth_required(why, json!(initialize::auth_methods()))
}

/// What the store could not do, for the client.
pub fn store_error(id: &SessionId, it: &StoreError) -> ErrorObjectOwned {
    match it {
        StoreError::NotFound { .. } => error::session_not_found(id.as_str()),
        StoreError::Locked { holder, .. } => error::locked(id.as_str(), json!(holder), &it.to_string()),
        StoreError::Newer { .. } => {
            error::failed("log", &format!("{it}. Update castor, or fork the session: the copy is of this version."))
        }
        StoreError::Unrepairable { .. } => {
            let fix = "Begin another session; castor leaves the log unchanged.";
            error::failed("log", &format!("{it}. {fix}"))
        }
        StoreError::NotAFolder { .. } => error::failed("log", &format!("{it}. {}", workspace::NO_FOLDER)),
        StoreError::Shared(_) => error::failed("log", &format!("{it}. Try again when it answers.")),
        StoreError::Io { .. } | StoreError::Folder { .. } => {
            let fix = "Make room on the disk, or make the folder of castor's sessions writable.";
            error::failed("log", &format!("{it}. {fix}"))
        }
    }
}
