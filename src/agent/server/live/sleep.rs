//! Sleep of a session: it leaves the memory, and its log is closed, until session/resume opens it again.

use serde_json::value::RawValue;

use crate::server::{
    flush,
    handlers::requests::end_session,
    open_session::check_open,
    reply::{Reply, reply_now},
    state::State,
};
use castor_base::ids::SessionId;
use castor_wire::{
    acp::own::attach::{SleepResult, read_sleep},
    jsonrpc::{error, open_requests::Ticket},
};

/// `_castor/session/sleep {sessionId}`. One that would be another when it is opened again stays.
pub fn sleep(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let id = read_sleep(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &id)?;
    flush::flush_early(state, &id);
    let asleep = may_sleep(state, &id);
    if asleep {
        end_session(state, &id);
    }
    reply_now(&SleepResult { asleep })
}

fn may_sleep(state: &State, id: &SessionId) -> bool {
    let Some(live) = state.sessions.get(id) else { return false };
    let is_undecided = live.pending_trust.is_some() || live.definitions.is_fixed;
    let is_watched = !live.followers.is_empty() || state.sessions.keys().any(|it| it.is_child() && it.root() == *id);
    let is_used = state.tasks.has_running(id) || !state.prompts_of(id).is_empty() || state.outbox.is_storing(id);
    live.session.is_at_rest() && !is_undecided && !is_watched && !is_used
}
