//! Handlers of the methods about AgentEvents: windows, subscriptions, and streams that are followed to their end.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{json, value::RawValue};

use crate::server::{
    event_feed::followers_of,
    flush,
    live::watching,
    open_session::{check_open, set_owner},
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    state::State,
};
use crate::{
    errors::store_error,
    session::events::{
        event_log::all_events,
        event_window::{FollowedStream, page_of, window_of},
        followers::{Followers, MAX_FOLLOWERS, tell_request, tell_subscriber},
    },
};
use castor_base::{event::AgentEvent, ids::SessionId};
use castor_engine::step::Input;
use castor_store::sessions::SessionStore;
use castor_wire::{
    acp::own::{
        custom_event::{CustomEventParams, read_custom_event},
        events::{
            StreamEnd, StreamOutcome, Subscribed, Subscription, read_events, read_stream, read_subscribe,
            read_unsubscribe,
        },
    },
    jsonrpc::{error, open_requests::Ticket},
};

/// `_castor/session/events`: the trajectory, or a window of it, whole or in pages.
pub fn events(store: &SessionStore, params: Option<&RawValue>) -> Reply {
    let (session, window, page) = read_events(params).map_err(|it| error::invalid_params(&it))?;
    let all = all_events(store, &session).map_err(|_| error::session_not_found(session.as_str()))?;
    let events = window_of(&window, &all).and_then(|it| page_of(&page, it));
    reply_now(&events.map_err(|it| error::invalid_params(&it))?)
}

/// `_castor/session/subscribe`: what happens from now on, after what is wanted of the past.
pub fn subscribe(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let Subscription { session, filter, past } = read_subscribe(params).map_err(|it| error::invalid_params(&it))?;
    let all = past_events(state, &session)?;
    let past = past.map(|it| window_of(&it, &all)).transpose().map_err(|it| error::invalid_params(&it))?;
    let subscription_id = followers(state, &session)?.subscribe(filter);
    let mut lines = Vec::new();
    for event in past.into_iter().flatten() {
        tell_subscriber(&session, &subscription_id, event, &mut lines);
    }
    // The client knows by the answer whose events these are.
    state.outbox.after_answer.extend(lines);
    reply_now(&Subscribed { subscription_id })
}

/// `_castor/session/custom_event`: an event of the client's own.
pub fn custom_event(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let CustomEventParams { session_id, kind, data, .. } =
        read_custom_event(params).map_err(|it| error::invalid_params(&it))?;
    check_open(&state.sessions, &session_id)?;
    state.step(&session_id, Input::CustomEvent { kind, data });
    reply_now(&json!({}))
}

/// `_castor/session/unsubscribe`: no event of it comes after the answer.
pub fn unsubscribe(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (session, id) = read_unsubscribe(params).map_err(|it| error::invalid_params(&it))?;
    flush::flush_early(state, &session);
    match followers_of(state, &session).is_some_and(|it| it.unsubscribe(&id)) {
        true => reply_now(&json!({})),
        false => Err(error::invalid_params("subscriptionId: there is none of that id; send one that was answered")),
    }
}

/// `_castor/session/stream`: what there is of a stream, then what is added to it. Answered after its last event.
pub fn stream(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let (session, window) = read_stream(params).map_err(|it| error::invalid_params(&it))?;
    let all = past_events(state, &session)?;
    let (past, stream) = FollowedStream::begin(&window, &all).map_err(|it| error::invalid_params(&it))?;
    let Some(request) = state.requests.id(ticket).cloned() else { return Ok(None) };
    let mut lines = Vec::new();
    past.into_iter().for_each(|it| tell_request(&session, &request, it, &mut lines));
    if stream.has_ended {
        state.outbox.queue_lines(Some(&session), |it| it.append(&mut lines));
        return reply_now(&StreamEnd { stream_id: stream.id, outcome: StreamOutcome::Ended });
    }
    followers(state, &session)?.follow(ticket, request, stream);
    state.outbox.queue_lines(Some(&session), |it| it.append(&mut lines));
    set_owner(&mut state.requests, ticket, RequestOwner::Follower(session));
    Ok(None)
}

/// The followers of a session of which [`past_events`] were read, for one more.
///
/// # Errors
/// For the client: there are too many.
fn followers<'a>(state: &'a mut State, session: &SessionId) -> Result<&'a mut Followers, ErrorObjectOwned> {
    if !state.sessions.contains_key(session) {
        watching::watch(state, session);
    }
    let followers = followers_of(state, session).ok_or_else(|| error::session_not_found(session.as_str()))?;
    match followers.is_full() {
        false => Ok(followers),
        true => {
            let why = format!("{MAX_FOLLOWERS} subscriptions and streams of this session are open");
            Err(error::busy(&why, "End one of them first."))
        }
    }
}

/// What happened up to this request. Nothing happens in between.
fn past_events(state: &mut State, session: &SessionId) -> Result<Vec<AgentEvent>, ErrorObjectOwned> {
    if session.is_child() {
        return Err(error::session_not_found(session.as_str()));
    }
    flush::flush_early(state, session);
    match state.sessions.contains_key(session) {
        true => all_events(&state.tasks.store, session).map_err(|it| store_error(session, &it)),
        false => watching::past_events(state, session),
    }
}
