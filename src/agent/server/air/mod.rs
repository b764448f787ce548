//! Handlers of AIR's requests. To other clients these methods are unknown.

pub(super) mod air_reports;
pub(super) mod index_watch;
pub(super) mod watched_lists;

use serde_json::{json, value::RawValue};

use crate::server::{
    air::air_reports::features,
    handlers::session_metadata,
    open_session::check_open,
    reply::{Reply, reply_now},
    state::State,
};
use castor_wire::{
    acp::{
        air::tasks::{Stopped, read_stop},
        drafts::session_metadata::read_archive,
    },
    jsonrpc::{
        error::{self, session_active},
        open_requests::Ticket,
    },
};

/// `_session/async_task/stop`
pub fn stop_task(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    if !features(state.client.as_ref()).async_tasks {
        return Err(error::method_not_found("_session/async_task/stop", 1));
    }
    let order = read_stop(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &order.session_id)?;
    let mut lines = Vec::new();
    let live = state.sessions.get_mut(&order.session_id);
    let pid = live.and_then(|it| it.view.stop_task(&order.async_task_id, &mut lines));
    pid.into_iter().for_each(|it| state.tasks.groups.end(it));
    state.outbox.after_answer.extend(lines);
    reply_now(&Stopped { stopped: pid.is_some() })
}

/// `_session/rename`, for AIR's index: as `session/set_title`.
pub fn rename(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    if !features(state.client.as_ref()).session_index {
        return Err(error::method_not_found("_session/rename", 1));
    }
    session_metadata::set_title(state, ticket, params)?;
    reply_now(&json!({}))
}

/// `_session/archive`: a session that is open stays so.
pub fn archive(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    if !features(state.client.as_ref()).session_index {
        return Err(error::method_not_found("_session/archive", 1));
    }
    let id = read_archive(params).map_err(|it| error::invalid_params(&it))?;
    match state.sessions.contains_key(&id) {
        true => Err(session_active(id.as_str())),
        false => session_metadata::archive(state, ticket, params),
    }
}

/// `_session/unarchive`
pub fn unarchive(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    match features(state.client.as_ref()).session_index {
        true => session_metadata::unarchive(&mut state.tasks, &state.sessions, params),
        false => Err(error::method_not_found("_session/unarchive", 1)),
    }
}
