//! Replay of a session with its sub-agents, for a client that loads it.

use std::collections::{BTreeSet, VecDeque};

use crate::acp::{
    update::subagents::{self, ChildState},
    updates::{Playback, SessionView},
};
use castor_base::{
    content::joined_text,
    endings::{CASTOR_ENDED, is_ending},
    event::{AgentEvent, EventKind, Speaker},
    ids::{CallId, SessionId},
    log::{ChildLink, Decision, Entry, Fact},
    rewind,
};

/// A sub-agent of which the log is replayed.
struct Child<'a> {
    id: SessionId,
    from: ChildLink,
    /// Entries that are not told yet.
    rest: VecDeque<&'a Entry>,
    agent: String,
    task: String,
    view: SessionView,
    is_over: bool,
}

impl SessionView {
    /// Appends what there is of the conversation, for a client that knows nothing of it. `children`: the logs of
    /// sub-agents, oldest first. Of these the client sees all, or only calls that the user was asked about.
    pub fn replay(&mut self, entries: &[Entry], children: &[Vec<Entry>], lines: &mut Vec<u8>) {
        let mut found = self.replay_live(entries, children, lines);
        (0..found.len()).for_each(|at| self.finish(&mut found, at, lines));
        self.interrupt(CASTOR_ENDED, lines);
    }

    /// The same of a session that is open: what runs goes on.
    pub fn replay_open(&mut self, entries: &[Entry], children: &[Vec<Entry>], lines: &mut Vec<u8>) {
        self.replay_live(entries, children, lines);
    }

    /// Returns sub-agents that have not ended by then.
    fn replay_live<'e>(
        &mut self,
        entries: &'e [Entry],
        children: &'e [Vec<Entry>],
        lines: &mut Vec<u8>,
    ) -> Vec<Child<'e>> {
        let own: Vec<&Entry> = rewind::remaining_entries(entries).collect();
        let mut calls: BTreeSet<&CallId> = own.iter().filter_map(|it| requested_call(it)).collect();
        let mut all: Vec<(Option<usize>, &Entry)> = own.iter().map(|it| (None, *it)).collect();
        let mut found: Vec<Child<'_>> = Vec::new();
        for log in children {
            let Some(child) = self.child_of(log, &calls) else { continue };
            calls.extend(child.rest.iter().filter_map(|it| requested_call(it)));
            all.extend(child.rest.iter().map(|it| (Some(found.len()), *it)));
            found.push(child);
        }
        // Each log is in order already.
        all.sort_by_key(|(_, it)| it.at);
        for (child, entry) in all {
            let Some(at) = child else {
                if let Some(call) = event_of(entry).and_then(answered_call) {
                    self.finish_runs(&mut found, &self.session, Some(call), lines);
                }
                self.push_fact(&entry.fact, Playback::Replay, lines);
                continue;
            };
            // It came before its turn where it had to come before the answer of a call.
            if found.get(at).and_then(|it| it.rest.front()).is_some_and(|it| std::ptr::eq(*it, entry)) {
                self.replay_next(&mut found, at, lines);
            }
        }
        found
    }

    /// The next entry of a sub-agent, if there is one.
    fn replay_next(&self, found: &mut [Child<'_>], at: usize, lines: &mut Vec<u8>) -> bool {
        let Some(child) = found.get_mut(at) else { return false };
        let (id, Some(entry)) = (child.id.clone(), child.rest.pop_front()) else { return false };
        let event = event_of(entry);
        if let Some(call) = event.and_then(answered_call) {
            self.finish_runs(found, &id, Some(call), lines);
        } else if event.is_some_and(is_end) {
            self.finish_runs(found, &id, None, lines);
        }
        // After its end it says nothing.
        if let Some(child) = found.get_mut(at).filter(|it| !it.is_over) {
            child.replay(&entry.fact, self.profile.features.subagents, lines);
        }
        true
    }

    /// Tells all that is left of the sub-agents that a call of the agent above started, or any call of it: that goes
    /// before its answer, or its end. The times do not say so, as the log of a castor that died gets its endings later.
    fn finish_runs(&self, found: &mut [Child<'_>], above: &SessionId, call: Option<&CallId>, lines: &mut Vec<u8>) {
        let is_of = |it: &Child<'_>| it.from.session == *above && call.is_none_or(|call| it.from.call == *call);
        for at in 0..found.len() {
            if found.get(at).is_some_and(is_of) {
                self.finish(found, at, lines);
            }
        }
    }

    fn finish(&self, found: &mut [Child<'_>], at: usize, lines: &mut Vec<u8>) {
        while self.replay_next(found, at, lines) {}
        let Some(id) = found.get(at).filter(|it| !it.is_over).map(|it| it.id.clone()) else { return };
        self.finish_runs(found, &id, None, lines);
        found.iter_mut().skip(at).take(1).for_each(|it| it.cut_off(self.profile.features.subagents, lines));
    }

    /// The sub-agent that a log is of, if the call that started it is one of these.
    fn child_of<'a>(&self, log: &'a [Entry], calls: &BTreeSet<&CallId>) -> Option<Child<'a>> {
        let Fact::Created { session, principal, child_of: Some(link), .. } = &log.first()?.fact else { return None };
        if !calls.contains(&link.call) {
            return None;
        }
        let (id, agent) = (session.clone(), principal.agent()?.to_owned());
        let (profile, chosen) = (self.profile.clone(), self.chosen.clone());
        let view = match self.profile.features.subagents {
            true => Self::new(id.clone(), profile, chosen),
            false => Self::of_child(self.session.clone(), agent.clone(), profile, chosen),
        };
        let task = log.iter().find_map(prompt_text).unwrap_or_default();
        // Whose end is not its own is cut off.
        let rest = log.iter().filter(|it| !event_of(it).is_some_and(is_ending)).collect();
        Some(Child { id, from: link.clone(), rest, agent, task, view, is_over: false })
    }
}

impl Child<'_> {
    fn replay(&mut self, fact: &Fact, is_session: bool, lines: &mut Vec<u8>) {
        if !is_session {
            if let Fact::Decision { call, decision: Decision::Ask, .. } = fact {
                self.view.announce(call, lines);
            }
            return self.view.show_of_child(fact, Playback::Replay, lines);
        }
        if let Fact::Created { .. } = fact {
            let version = self.view.profile.features.version;
            subagents::announce(&self.from, &self.id, (&self.agent, &self.task), version, lines);
        }
        self.view.push_fact(fact, Playback::Replay, lines);
        if let Fact::Event { event } = fact
            && let EventKind::AgentEnd { reason, .. } = &event.kind
        {
            self.is_over = true;
            self.show_state(ChildState::Ended(*reason), lines);
        }
    }

    /// Its log has no end: castor ended before it did, or could not write it.
    fn cut_off(&mut self, is_session: bool, lines: &mut Vec<u8>) {
        self.is_over = true;
        self.view.interrupt(CASTOR_ENDED, lines);
        if is_session {
            self.show_state(ChildState::CutOff, lines);
        }
    }

    fn show_state(&self, state: ChildState, lines: &mut Vec<u8>) {
        subagents::show_state(&self.from.session, &self.id, state, self.view.profile.features.version, lines);
    }
}

fn event_of(entry: &Entry) -> Option<&AgentEvent> {
    if let Fact::Event { event } = &entry.fact { Some(event) } else { None }
}

fn requested_call(entry: &Entry) -> Option<&CallId> {
    match &event_of(entry)?.kind {
        EventKind::ToolRequest { request_id, .. } => Some(request_id),
        _ => None,
    }
}

fn answered_call(event: &AgentEvent) -> Option<&CallId> {
    if let EventKind::ToolResponse { request_id, .. } = &event.kind { Some(request_id) } else { None }
}

fn is_end(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::AgentEnd { .. })
}

fn prompt_text(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::Message { role: Speaker::User, content, .. } => Some(joined_text(content)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::acp::{
        initialize::{AcpVersion, ClientFeatures},
        options::{ChosenOptions, OfferedOptions},
        updates::{ClientProfile, SessionView},
    };
    use castor_base::{
        content::Part,
        event::{AgentEvent, EventKind, Speaker, ToolDisplay},
        ids::{CallId, MessageId, SessionId, StreamId},
        log::{ChildLink, Entry, Fact, Mode, Principal, Tuning},
        path::AbsPath,
        tool::{ToolError, ToolKind},
    };

    fn event(at: u64, kind: EventKind) -> Entry {
        Entry { at, fact: Fact::Event { event: AgentEvent::of_main(format!("e-{at}"), StreamId::from("e"), at, kind) } }
    }

    fn message(at: u64, role: Speaker, text: &str) -> Entry {
        let content = vec![Part::text(text)];
        event(at, EventKind::Message { role, message_id: MessageId::from(text), content, cuts: Vec::new() })
    }

    /// A call that castor did not see the end of: that end was written later, with the time of the entry before it, and the
    /// session went on before the clock did.
    fn broken_off() -> Vec<Entry> {
        let (request_id, name) = (CallId::from("c1"), "invoke_agent".to_owned());
        let request = EventKind::ToolRequest {
            request_id: request_id.clone(),
            name: name.clone(),
            args: json!({}),
            signature: None,
            display: ToolDisplay { title: "helper".to_owned(), kind: ToolKind::Think, locations: Vec::new() },
        };
        let error = Some(ToolError::new("interrupted", "It was interrupted."));
        let (content, display, summary, data, seen) = (Vec::new(), None, None, Value::Null, None);
        let response = EventKind::ToolResponse { request_id, name, content, display, summary, error, data, seen };
        vec![event(5, request), event(5, response), message(5, Speaker::User, "Again.")]
    }

    fn child() -> Vec<Entry> {
        let (session, call) = (SessionId::from("s"), CallId::from("c1"));
        let created = Fact::Created {
            version: 2,
            castor: String::new(),
            session: SessionId::from("s/c"),
            cwd: AbsPath::new("/w").unwrap(),
            roots: Vec::new(),
            mode: Mode::Default,
            model: String::new(),
            principal: Principal::Agent("helper".to_owned()),
            parent: None,
            child_of: Some(ChildLink { session, call, agents: Vec::new() }),
            thread: None,
            user: None,
        };
        vec![Entry { at: 5, fact: created }, message(5, Speaker::User, "Look."), message(7, Speaker::Agent, "Half.")]
    }

    #[test]
    fn a_sub_agent_is_told_whole_before_its_call_has_an_answer() {
        let features = ClientFeatures { version: AcpVersion::V1, subagents: true, ..Default::default() };
        let profile = ClientProfile { offer: OfferedOptions::default(), features };
        let (model, tuning) = (String::new(), Tuning::default());
        let chosen = ChosenOptions { mode: Mode::Default, model, tuning, limits: None, agent: None };
        let mut lines = Vec::new();
        SessionView::new(SessionId::from("s"), profile, chosen).replay(&broken_off(), &[child()], &mut lines);
        let brief = |line: &[u8]| {
            let params = serde_json::from_slice::<Value>(line).unwrap()["params"].take();
            let update = &params["update"];
            let detail = ["/state/state", "/status", "/content/text"].iter().find_map(|it| update.pointer(it));
            let words = [&params["sessionId"], &update["sessionUpdate"], detail.unwrap_or(&Value::Null)];
            words.map(|it| it.as_str().unwrap_or_default()).join(" ")
        };
        let told: Vec<String> = lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()).map(brief).collect();
        expect_test::expect![[r#"
            s tool_call 
            s subagent_update running
            s/c user_message_chunk Look.
            s/c agent_message_chunk Half.
            s subagent_update unknown
            s tool_call_update failed
            s user_message_chunk Again."#]]
        .assert_eq(&told.join("\n"));
    }
}
