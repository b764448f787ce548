//! Handlers of the methods about sessions that need not be open: set_title, archive, unarchive and status.

use std::collections::BTreeMap;

use serde_json::{json, value::RawValue};

use super::{
    open_session::set_owner,
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    requests::end_session,
    state::State,
};
use crate::{
    app::{errors::store_error, session::live_session::LiveSession},
    base::{client_settings::ClientSetting, ids::SessionId},
    engine::{record::Record, step::Input},
    wire::{
        acp::session_metadata::{
            TitleParams, read_archive, read_set_title, read_status, read_unarchive, status_response, title_response,
        },
        jsonrpc::{error, open_requests::Ticket},
    },
    world::store::{SessionStore, StoreError},
};

/// `session/set_title`: for good, as castor makes no other title after it.
pub fn set_title(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let TitleParams { session: id, title } = read_set_title(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    match state.sessions.contains_key(&id) {
        true => {
            state.tasks.store.set_title(&id, &title).map_err(|it| store_error(&id, &it))?;
            set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
            state.step(&id, Input::ClientSetting(ClientSetting::Title(title.clone())));
        }
        false => {
            let now_ms = state.now().unix_ms;
            retitle_saved(&state.tasks.store, &id, &title, now_ms).map_err(|it| store_error(&id, &it))?;
        }
    }
    reply_now(&title_response(&title))
}

/// The title stands in the log, too, so that a session that is loaded later has it.
fn retitle_saved(store: &SessionStore, id: &SessionId, title: &str, now_ms: u64) -> Result<(), StoreError> {
    let (entries, mut log) = store.open(id)?;
    let record = Record::replay(&entries).ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
    let entry = record.client_title_entry(title, now_ms);
    log.append([&entry]).map_err(|source| StoreError::Io { id: id.clone(), source })?;
    store.set_title(id, title)
}

/// `session/archive`: closes the session, if it is open, and hides it from the list.
pub fn archive(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = read_archive(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    if state.sessions.contains_key(&id) {
        end_session(state, &id);
    }
    state.tasks.store.set_archived(&id, true).map_err(|it| store_error(&id, &it))?;
    reply_now(&json!({}))
}

/// `session/unarchive`: the list shows the session again. It is not opened.
pub fn unarchive(store: &SessionStore, open: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_unarchive(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    match open.contains_key(&id) {
        true => store.set_held_archived(&id, false),
        false => store.set_archived(&id, false),
    }
    .map_err(|it| store_error(&id, &it))?;
    reply_now(&json!({}))
}

/// `session/status`: whether it is open here. Changes nothing.
pub fn status(store: &SessionStore, open: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_status(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    let is_open = open.contains_key(&id);
    let is_saved = || store.has(&id);
    match is_open || is_saved() {
        true => reply_now(&status_response(is_open)),
        false => Err(error::session_not_found(id.as_str())),
    }
}

/// A sub-agent's session is none of the list's.
fn check_id(id: &SessionId) -> Result<(), jsonrpsee::types::ErrorObjectOwned> {
    if id.is_child() { Err(error::session_not_found(id.as_str())) } else { Ok(()) }
}
