//! The stream that events belong to: numbers them, and says which agent and thread they come from.

use serde_json::Map;

use crate::base::{
    event::{AGENT_SOURCE, AgentEvent, EventKind, EventSource, Speaker},
    ids::{AgentId, StreamId, ThreadId},
    log::Principal,
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventStream {
    pub(super) id: StreamId,
    pub(super) thread: Option<ThreadId>,
    n_events: u64,
    agent: AgentId,
    /// The agent's name; `None`: the main agent.
    name: Option<EventSource>,
}

impl Default for EventStream {
    fn default() -> Self {
        Self::new(&Principal::Root, None)
    }
}

impl EventStream {
    /// The first of a session.
    pub(super) fn new(principal: &Principal, thread: Option<ThreadId>) -> Self {
        let agent = match (&thread, principal.agent()) {
            (Some(thread), _) => thread.agent(),
            (None, Some(name)) => AgentId::from(name),
            (None, None) => AgentId::main(),
        };
        let name = principal.agent().map(|it| it.to_owned().into());
        Self { id: StreamId::from("s"), thread, n_events: 0, agent, name }
    }

    pub(super) fn begin(&mut self, id: StreamId) {
        (self.id, self.n_events) = (id, 0);
    }

    /// Takes in an event, which may begin another stream.
    pub(super) fn count(&mut self, event: &AgentEvent) {
        if event.stream_id != self.id {
            self.begin(event.stream_id.clone());
        }
        self.n_events += 1;
    }

    /// The next event.
    pub(super) fn event(&self, at_ms: u64, kind: EventKind) -> AgentEvent {
        AgentEvent {
            id: format!("{}-{}", self.id, self.n_events),
            stream_id: self.id.clone(),
            timestamp: at_ms,
            agent_id: self.agent.clone(),
            thread_id: self.thread.clone(),
            source: self.source(&kind),
            kind,
            meta: Map::new(),
        }
    }

    /// What a sub-agent is asked comes from the agent that started it.
    fn source(&self, kind: &EventKind) -> EventSource {
        match (&self.name, kind) {
            (None, _) => kind.source(),
            (Some(_), EventKind::Message { role: Speaker::User, .. }) => AGENT_SOURCE,
            (Some(name), _) => name.clone(),
        }
    }
}
