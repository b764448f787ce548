//! The feed of AgentEvents to the client: to all that want an event, and the ends of what follows.

use serde_json::json;

use super::{reply, state::State};
use crate::session::events::followers::Followers;
use castor_base::{
    event::AgentEvent,
    ids::{PromptId, SessionId, StreamId},
};
use castor_wire::{
    acp::{
        own::events::{EVENT, STREAM_STARTED, StreamEnd, StreamOutcome, StreamStarted},
        updates::notification,
    },
    jsonrpc::{open_requests::Ticket, write},
};

/// Appends an event for all that want it.
pub fn tell_event(state: &mut State, id: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    let session = id.root();
    if state.client.as_ref().is_some_and(|it| it.features.events) {
        notification(EVENT, &json!({ "sessionId": session, "event": event }), lines);
    }
    tell_followers(state, &session, event, lines);
}

/// Appends an event for the followers of a session, and the answers to those whose stream ends with it.
pub fn tell_followers(state: &mut State, session: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) {
    let Some(followers) = followers_of(state, session) else { return };
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
    let open = followers_of(state, session).map(|it| it.followed()).unwrap_or_default();
    open.into_iter().for_each(|it| finish(state, session, it, StreamOutcome::Closed));
}

fn finish(state: &mut State, session: &SessionId, ticket: Ticket, outcome: StreamOutcome) {
    let followed = followers_of(state, session).and_then(|it| it.stop_following(ticket));
    let stream_id = followed.and_then(|it| it.id);
    reply::answer(state, ticket, Ok(&StreamEnd { stream_id, outcome }));
}

/// Who follows a session, open here or not.
pub fn followers_of<'a>(state: &'a mut State, session: &SessionId) -> Option<&'a mut Followers> {
    match state.sessions.get_mut(session) {
        Some(live) => Some(&mut live.followers),
        None => state.tasks.watched.get_mut(session).map(|it| &mut it.followers),
    }
}
