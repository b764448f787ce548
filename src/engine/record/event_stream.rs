//! The stream that events belong to: numbers them, and says which agent and thread they come from.

use serde_json::Map;

use super::Record;
use castor_base::{
    endings::is_ending,
    event::{AGENT_SOURCE, AgentEvent, EventKind, EventSource, Speaker},
    hook::TurnPlace,
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
    /// Of a sub-agent: the agents above it, from the main one down.
    above: Vec<String>,
}

impl Default for EventStream {
    fn default() -> Self {
        Self::new(&Principal::Root, None, Vec::new())
    }
}

impl EventStream {
    /// The first of a session.
    pub(super) fn new(principal: &Principal, thread: Option<ThreadId>, above: Vec<String>) -> Self {
        let agent = match (&thread, principal.agent()) {
            (Some(thread), _) => thread.agent(),
            (None, Some(name)) => AgentId::from(name),
            (None, None) => AgentId::main(),
        };
        let name = principal.agent().map(|it| it.to_owned().into());
        Self { id: StreamId::from("s"), thread, n_events: 0, agent, name, above }
    }

    /// A session that clients open can be another agent's with each prompt.
    pub(super) fn begin(&mut self, id: StreamId, agent: AgentId) {
        (self.id, self.n_events) = (id, 0);
        if self.thread.is_none() {
            self.agent = agent;
        }
    }

    /// Takes in an event, which may begin another stream.
    pub(super) fn count(&mut self, event: &AgentEvent) {
        if event.stream_id != self.id {
            // An earlier one only gets its end, after others began.
            if is_ending(event) {
                return;
            }
            self.begin(event.stream_id.clone(), event.agent_id.clone());
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

impl Record {
    /// The agents from the main one down to this session's.
    pub fn principal_path(&self) -> Vec<String> {
        let own = self.principal.agent().map_or_else(|| AgentId::main().to_string(), str::to_owned);
        self.past.stream.above.iter().cloned().chain([own]).collect()
    }

    /// Who acts in the stream that begins now.
    pub(super) fn acting_agent(&self) -> AgentId {
        let principal = self.past.choices.next_agent.as_ref().unwrap_or(&self.principal);
        principal.agent().map_or_else(AgentId::main, AgentId::from)
    }

    /// Where the current turn is.
    pub(crate) fn place(&self) -> TurnPlace {
        let EventStream { id, thread, .. } = &self.past.stream;
        let principal_path = thread.as_ref().map(|_| self.principal_path()).unwrap_or_default();
        TurnPlace { stream: id.clone(), thread: thread.clone(), principal_path }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        hooks::{HookNotice, HookOutcome},
        record::{Record, SerialNumbers, SessionOrigin, Step},
        step::{Act, StepOutput},
    };
    use castor_base::{
        clock::Now,
        content::Part,
        event::{EventKind, Speaker},
        hook::HookEvent,
        ids::{MessageId, PromptId, SessionId, ThreadId},
        log::{ChildLink, Entry, Fact, Mode, Principal},
        path::AbsPath,
    };

    /// What the events of a session say of where they come from, in order; a replay of them goes on in the same way.
    fn origins(principal: Principal, thread: Option<&str>) -> Vec<String> {
        let (session, cwd) = (SessionId::from("a"), AbsPath::new("/w").unwrap());
        let child_of =
            thread.map(|_| ChildLink { session: SessionId::from("p"), call: "c".into(), agents: Vec::new() });
        let thread = thread.map(ThreadId::from);
        let (roots, mode, model) = (vec![cwd.clone()], Mode::Default, String::new());
        let origin = SessionOrigin { session, cwd, roots, mode, model, principal, child_of, thread, user: None };
        let mut log = vec![Entry { at: 0, fact: origin.fact() }];
        let mut record = Record::replay(&log).unwrap();
        let (mut serial, mut out) = (SerialNumbers::default(), StepOutput::default());
        let mut step = Step::new(&mut record, &mut serial, Now { unix_ms: 1, seed: 0 }, &mut out);
        step.begin_stream(PromptId(1));
        let (role, message_id, content) = (Speaker::User, MessageId::from("m"), vec![Part::text("x")]);
        step.emit_event(EventKind::Message { role, message_id, content, cuts: Vec::new() });
        let notice = HookNotice { hook: "lint".to_owned(), text: "x".to_owned() };
        let outcome = HookOutcome { notices: vec![notice], ..HookOutcome::default() };
        step.log_hooks(HookEvent::AfterTool, &outcome, None, false);
        let mut res = Vec::new();
        for act in out.acts {
            let Act::Log(entry) = act else { continue };
            let Fact::Event { event: it } = &entry.fact else { panic!("{entry:?}") };
            res.push(format!(
                "{} {} {:?} {}",
                it.id.rsplit_once('-').unwrap().1,
                it.agent_id,
                it.thread_id.as_ref().map(ThreadId::as_str),
                it.source
            ));
            log.push(serde_json::from_value(json!(entry)).unwrap());
        }
        assert_eq!(Record::replay(&log).unwrap(), record);
        res
    }

    #[test]
    fn events_say_agent_thread_and_source() {
        let expected = ["0 castor None agent", "1 castor None user", "2 castor None hooks/lint"];
        assert_eq!(origins(Principal::Root, None), expected);
        let expected = [
            "0 run2 Some(\"run1.run2\") helper",
            "1 run2 Some(\"run1.run2\") agent",
            "2 run2 Some(\"run1.run2\") hooks/lint",
        ];
        assert_eq!(origins(Principal::Agent("helper".to_owned()), Some("run1.run2")), expected);
    }
}
