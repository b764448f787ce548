//! Followers of a session's events: subscriptions, and requests that wait for the end of a stream.

use std::collections::BTreeMap;

use crate::session::events::event_window::FollowedStream;
use castor_base::{
    event::AgentEvent,
    ids::{PromptId, SessionId, StreamId},
};
use castor_wire::{
    acp::{
        own::events::{EVENT, EventFilter, EventNotice},
        updates::notification,
    },
    jsonrpc::{message::RequestId, open_requests::Ticket},
};

/// Most followers of one session.
pub const MAX_FOLLOWERS: usize = 64;

/// The clients of a session's events.
#[derive(Debug, Default)]
pub struct Followers {
    n_subscribed: u64,
    subscriptions: BTreeMap<String, EventFilter>,
    streams: BTreeMap<Ticket, (RequestId, FollowedStream)>,
    /// The first stream of each prompt that is not answered yet.
    prompts: BTreeMap<PromptId, StreamId>,
}

impl Followers {
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty() && self.streams.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.subscriptions.len() + self.streams.len() >= MAX_FOLLOWERS
    }

    /// Adds a subscription; returns its id, which no other of the session ever has.
    pub fn subscribe(&mut self, filter: EventFilter) -> String {
        self.n_subscribed += 1;
        let id = format!("sub-{}", self.n_subscribed);
        self.subscriptions.insert(id.clone(), filter);
        id
    }

    /// Tells whether there was such a subscription.
    pub fn unsubscribe(&mut self, id: &str) -> bool {
        self.subscriptions.remove(id).is_some()
    }

    /// The request is answered when the stream has ended.
    pub fn follow(&mut self, ticket: Ticket, request: RequestId, stream: FollowedStream) {
        self.streams.insert(ticket, (request, stream));
    }

    /// Nobody waits for the end of the stream any more.
    pub fn stop_following(&mut self, ticket: Ticket) -> Option<FollowedStream> {
        self.streams.remove(&ticket).map(|(_, it)| it)
    }

    /// All requests that wait for the end of a stream.
    pub fn followed(&self) -> Vec<Ticket> {
        self.streams.keys().copied().collect()
    }

    /// A prompt begins a stream. It may begin more, where another agent goes on with it.
    pub fn begin_stream(&mut self, prompt: PromptId, stream: &StreamId) {
        self.prompts.entry(prompt).or_insert_with(|| stream.clone());
    }

    /// The first stream of a prompt that is answered now.
    pub fn end_prompt(&mut self, prompt: PromptId) -> Option<StreamId> {
        self.prompts.remove(&prompt)
    }

    /// No prompt is under way any more.
    pub fn end_all_prompts(&mut self) {
        self.prompts.clear();
    }

    /// Appends an event for those that want it; returns the requests whose stream ended with it.
    pub fn tell(&mut self, session: &SessionId, event: &AgentEvent, lines: &mut Vec<u8>) -> Vec<(Ticket, StreamId)> {
        for (id, _) in self.subscriptions.iter().filter(|(_, filter)| filter.fits(event)) {
            tell_subscriber(session, id, event, lines);
        }
        for (request, stream) in self.streams.values_mut() {
            if stream.take(event) {
                tell_request(session, request, event, lines);
            }
        }
        let ended = self.streams.iter().filter(|(_, (_, it))| it.has_ended).map(|(ticket, _)| *ticket);
        let ended: Vec<Ticket> = ended.collect();
        ended.iter().for_each(|it| _ = self.streams.remove(it));
        ended.into_iter().map(|ticket| (ticket, event.stream_id.clone())).collect()
    }
}

/// Appends an event of a subscription.
pub fn tell_subscriber(session: &SessionId, id: &str, event: &AgentEvent, lines: &mut Vec<u8>) {
    let notice = EventNotice { session_id: session, subscription_id: Some(id), request_id: None, event };
    notification(EVENT, &notice, lines);
}

/// Appends an event for a request that waits for the end of its stream.
pub fn tell_request(session: &SessionId, request: &RequestId, event: &AgentEvent, lines: &mut Vec<u8>) {
    let notice = EventNotice { session_id: session, subscription_id: None, request_id: Some(request), event };
    notification(EVENT, &notice, lines);
}
