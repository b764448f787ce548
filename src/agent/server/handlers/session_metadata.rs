//! Handlers of the methods about sessions that need not be open: set_title, archive, unarchive and status.

use std::collections::BTreeMap;

use serde_json::{json, value::RawValue};

use crate::server::{
    handlers::requests::end_session,
    open_session::set_owner,
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    state::State,
    tasks::{Tasks, metadata_order::MetadataOrder},
};
use crate::{errors::store_error, session::live_session::LiveSession};
use castor_base::{client_settings::ClientSetting, ids::SessionId};
use castor_engine::step::Input;
use castor_wire::{
    acp::drafts::session_metadata::{
        TitleParams, read_archive, read_set_title, read_status, read_unarchive, status_response, title_response,
    },
    jsonrpc::{error, open_requests::Ticket},
};

/// `session/set_title`: for good, as castor makes no other title after it.
pub fn set_title(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let TitleParams { session: id, title } = read_set_title(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    let (is_open, now_ms) = (state.sessions.contains_key(&id), state.now().unix_ms);
    let order = MetadataOrder::Title { title: title.clone(), is_open, now_ms };
    state.tasks.order_metadata(&id, &order).map_err(|it| store_error(&id, &it))?;
    if is_open {
        set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
        state.step(&id, Input::ClientSetting(ClientSetting::Title(title.clone())));
    }
    reply_now(&title_response(&title))
}

/// `session/archive`: closes the session, if it is open, and hides it from the list.
pub fn archive(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = read_archive(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    if state.sessions.contains_key(&id) {
        end_session(state, &id);
    }
    let order = MetadataOrder::Archived { archived: true, is_open: false };
    state.tasks.order_metadata(&id, &order).map_err(|it| store_error(&id, &it))?;
    reply_now(&json!({}))
}

/// `session/unarchive`: the list shows the session again. It is not opened.
pub fn unarchive(tasks: &mut Tasks, open: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_unarchive(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    let order = MetadataOrder::Archived { archived: false, is_open: open.contains_key(&id) };
    tasks.order_metadata(&id, &order).map_err(|it| store_error(&id, &it))?;
    reply_now(&json!({}))
}

/// `session/status`: whether it is open here. Changes nothing.
pub fn status(tasks: &mut Tasks, open: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_status(params).map_err(|it| error::invalid_params(&it))?;
    check_id(&id)?;
    let is_open = open.contains_key(&id);
    match is_open || tasks.order_metadata(&id, &MetadataOrder::Present).is_ok() {
        true => reply_now(&status_response(is_open)),
        false => Err(error::session_not_found(id.as_str())),
    }
}

/// A sub-agent's session is none of the list's.
fn check_id(id: &SessionId) -> Result<(), jsonrpsee::types::ErrorObjectOwned> {
    if id.is_child() { Err(error::session_not_found(id.as_str())) } else { Ok(()) }
}
