//! The log of a fork: a copy of its session's, also of one that is open elsewhere.

use jsonrpsee::types::ErrorObjectOwned;

use crate::errors::store_error;
use castor_base::{
    ids::{MessageId, SessionId},
    path::AbsPath,
    text,
};
use castor_engine::record::{Fork, Record};
use castor_hands::disk;
use castor_store::sessions::{SessionStore, StoreError};
use castor_wire::{acp::session::ForkParams, jsonrpc::error};

/// What the copy is to be.
pub struct ForkOrder {
    pub params: ForkParams,
    /// The folder of the session, if it is open here.
    pub cwd: Option<AbsPath>,
    pub copy: SessionId,
    pub now_ms: u64,
}

/// Writes the copy, which nobody holds.
///
/// # Errors
/// For the client: another folder than the session's, a message that it does not have, a store that fails.
pub fn copy_log(store: &SessionStore, order: &ForkOrder) -> Result<(), ErrorObjectOwned> {
    let ForkParams { parent, place, until } = &order.params;
    let entries = store.read(parent).map_err(|it| store_error(parent, &it))?;
    let missing = || store_error(parent, &StoreError::NotFound { id: parent.clone() });
    let logged = Record::begin(entries.first().ok_or_else(missing)?).ok_or_else(missing)?;
    let cwd = order.cwd.clone().unwrap_or(logged.cwd);
    if disk::real_path(&place.cwd).ok() != disk::real_path(&cwd).ok() {
        let why = format!("cwd: a fork stays in the folder of its session, which is {cwd}");
        return Err(error::invalid_params(&format!("{why}; send that, or begin another session with session/new")));
    }
    let until_id = until.as_ref().map(|it| it.0.clone());
    let fork = Fork { session: order.copy.clone(), until: until_id, now_ms: order.now_ms };
    let log = fork.copy_log(&entries).ok_or_else(|| no_message(until.as_ref()))?;
    store.create_with(&order.copy, &log).map_err(|it| store_error(&order.copy, &it))
}

fn no_message(until: Option<&(MessageId, &str)>) -> ErrorObjectOwned {
    let (id, param) = until.map(|(id, param)| (text::head(id.as_str(), 200), *param)).unwrap_or_default();
    let why = format!("{param}: the session has no message {id:?}");
    error::invalid_params(&format!("{why}; session/load shows those there are"))
}
