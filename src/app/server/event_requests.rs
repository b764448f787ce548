//! Handlers of the methods about AgentEvents: windows, subscriptions, and streams that are followed to their end.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{json, value::RawValue};

use super::{
    attachments, flush,
    pending_requests::RequestOwner,
    reply::{self, Reply, reply_now},
    requests::{children_of, set_owner},
    state::State,
};
use crate::{
    app::{
        errors::store_error,
        session::{
            event_window::{FollowedStream, page_of, window_of},
            followers::{Followers, MAX_FOLLOWERS, tell_request, tell_subscriber},
        },
    },
    base::{
        event::AgentEvent,
        ids::{PromptId, SessionId, StreamId},
        log::{Entry, Fact},
    },
    wire::{
        acp::{
            events::{
                EVENT, STREAM_STARTED, StreamEnd, StreamOutcome, StreamStarted, Subscribed, Subscription, read_events,
                read_stream, read_subscribe, read_unsubscribe,
            },
            updates::notification,
        },
        jsonrpc::{error, open_requests::Ticket, write},
    },
    world::store::{SessionStore, StoreError},
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

/// `_castor/session/unsubscribe`: no event of it comes after the answer.
pub fn unsubscribe(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (session, id) = read_unsubscribe(params).map_err(|it| error::invalid_params(&it))?;
    flush::flush_early(state);
    match known_followers(state, &session).is_some_and(|it| it.unsubscribe(&id)) {
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
        state.outbox.queue_lines(|it| it.append(&mut lines));
        return reply_now(&StreamEnd { stream_id: stream.id, outcome: StreamOutcome::Ended });
    }
    followers(state, &session)?.follow(ticket, request, stream);
    state.outbox.queue_lines(|it| it.append(&mut lines));
    set_owner(&mut state.requests, ticket, RequestOwner::Follower(session));
    Ok(None)
}

/// Appends an event for all that want it.
pub fn tell_event(state: &mut State, id: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    let session = id.root();
    if state.client.as_ref().is_some_and(|it| it.wants_events) {
        notification(EVENT, &json!({ "sessionId": session, "event": event }), lines);
    }
    tell_followers(state, &session, event, lines);
}

/// Appends an event for the followers of a session, and the answers to those whose stream ends with it.
pub fn tell_followers(state: &mut State, session: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    let Some(followers) = known_followers(state, session) else { return };
    for (ticket, stream) in followers.tell(session, event, lines) {
        state.tasks.traces.end_request(ticket, None);
        if let Some((request, _)) = state.requests.complete(ticket) {
            let end = StreamEnd { stream_id: Some(stream), outcome: StreamOutcome::Ended };
            write::result(lines, &request, &end);
        }
    }
}

/// A prompt begins a stream: a client that asked for it learns which.
pub fn announce_stream(
    state: &mut State,
    id: &SessionId,
    (prompt, stream): (PromptId, &StreamId),
    lines: &mut Vec<u8>,
) {
    if id.is_child() || !state.client.as_ref().is_some_and(|it| it.features.streams) {
        return;
    }
    if let Some(live) = state.sessions.get_mut(id) {
        live.followers.begin_stream(prompt, stream);
    }
    if let Some(request_id) = state.requests.id(Ticket(prompt.0)) {
        notification(STREAM_STARTED, &StreamStarted { session_id: id, request_id, stream_id: stream }, lines);
    }
}

/// A client does not want the rest of a stream any more.
pub fn cancel(state: &mut State, session: &SessionId, ticket: Ticket) {
    finish(state, session, ticket, StreamOutcome::Cancelled);
}

/// The session goes: nothing more happens in it.
pub fn close(state: &mut State, session: &SessionId) {
    let open = known_followers(state, session).map(|it| it.followed()).unwrap_or_default();
    open.into_iter().for_each(|it| finish(state, session, it, StreamOutcome::Closed));
}

fn finish(state: &mut State, session: &SessionId, ticket: Ticket, outcome: StreamOutcome) {
    let followed = known_followers(state, session).and_then(|it| it.stop_following(ticket));
    let stream_id = followed.and_then(|it| it.id);
    reply::answer(state, ticket, Ok(&StreamEnd { stream_id, outcome }));
}

/// Who follows a session, open here or not.
fn known_followers<'a>(state: &'a mut State, session: &SessionId) -> Option<&'a mut Followers> {
    match state.sessions.get_mut(session) {
        Some(live) => Some(&mut live.followers),
        None => state.tasks.attached.get_mut(session).map(|it| &mut it.followers),
    }
}

/// The followers of a session of which [`past_events`] were read, for one more.
///
/// # Errors
/// For the client: there are too many.
fn followers<'a>(state: &'a mut State, session: &SessionId) -> Result<&'a mut Followers, ErrorObjectOwned> {
    if !state.sessions.contains_key(session) {
        attachments::watch(state, session);
    }
    let followers = known_followers(state, session).ok_or_else(|| error::session_not_found(session.as_str()))?;
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
    flush::flush_early(state);
    match state.sessions.contains_key(session) {
        true => all_events(&state.tasks.store, session).map_err(|it| store_error(session, &it)),
        false => attachments::past_events(state, session),
    }
}

/// All events of a session and its sub-agents, in order.
pub fn all_events(store: &SessionStore, session: &SessionId) -> Result<Vec<AgentEvent>, StoreError> {
    let mut entries: Vec<Entry> = store.read(session)?;
    entries.extend(children_of(store, session).into_iter().flatten());
    // Each log is in order already.
    entries.sort_by_key(|it| it.at);
    let event = |fact: Fact| if let Fact::Event { event } = fact { Some(event) } else { None };
    Ok(entries.into_iter().filter_map(|it| event(it.fact)).collect())
}
