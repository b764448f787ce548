//! Handler of the draft method `quota/read`, and the update after each prompt for clients that know it.

use serde_json::value::RawValue;

use crate::server::{
    open_session::check_open,
    reply::{Reply, reply_now},
    state::State,
};
use crate::session::live_session::LiveSession;
use castor_base::{ids::SessionId, limits::LimitSpan};
use castor_engine::turn;
use castor_wire::{
    acp::{
        drafts::quota::{QuotaPool, QuotaSnapshot, pool_of_limits, pool_of_provider, push_update, read_params},
        session::iso_time,
    },
    jsonrpc::{error, open_requests::Ticket},
};

pub fn read(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let session = read_params(params).map_err(|it| error::invalid_params(&it))?;
    if let Some(id) = &session {
        check_open(&state.sessions, id)?;
    }
    let pools = pools(state, session.as_ref());
    let live = session.as_ref().and_then(|it| state.sessions.get_mut(it));
    reply_now(&snapshot(live, pools, state.now.unix_ms))
}

/// A prompt is over: the client is told what is left, if that changed.
pub fn tell_change(state: &mut State, id: &SessionId, lines: &mut Vec<u8>) {
    if !state.client.as_ref().is_some_and(|it| it.features.drafts.quota) {
        return;
    }
    let pools = pools(state, Some(id));
    let told = state.sessions.get(id).and_then(|it| it.extras.told_quota.as_ref());
    if told.map_or(pools.is_empty(), |(_, it)| *it == pools) {
        return;
    }
    push_update(id, &snapshot(state.sessions.get_mut(id), pools, state.now.unix_ms), lines);
}

/// Of a session: its own limits first.
fn pools(state: &State, id: Option<&SessionId>) -> Vec<QuotaPool> {
    let own = id.and_then(|it| state.sessions.get(it)).into_iter().flat_map(|LiveSession { session, .. }| {
        let record = session.record();
        let limits = turn::limits(record, session.spec());
        LimitSpan::ALL.into_iter().filter_map(move |it| pool_of_limits(it, &limits, &record.limit_usage(it)))
    });
    let known = state.models.http().rate_limits().all();
    let of_providers = known.iter().filter_map(|(name, it)| pool_of_provider(name, it, state.now.unix_ms));
    own.chain(of_providers).collect()
}

/// The time tells snapshots of a session apart: another content has a later one, the same content the same.
fn snapshot(live: Option<&mut LiveSession>, pools: Vec<QuotaPool>, now_ms: u64) -> QuotaSnapshot {
    let updated_ms = match live.map(|it| &mut it.extras.told_quota) {
        None => now_ms,
        Some(Some((ms, told))) if *told == pools => *ms,
        Some(told) => {
            let ms = told.as_ref().map_or(now_ms, |(ms, _)| now_ms.max(ms + 1));
            *told = Some((ms, pools.clone()));
            ms
        }
    };
    QuotaSnapshot { updated_at: iso_time(updated_ms), pools }
}
