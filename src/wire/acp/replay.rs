//! Replay of a session with its sub-agents, for a client that loads it.

use std::collections::{BTreeSet, VecDeque};

use super::{
    subagents::{self, ChildState},
    updates::{Playback, SessionView},
};
use crate::base::{
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
        (0..found.len()).for_each(|at| self.finish(&mut found, at, lines));
        self.interrupt(CASTOR_ENDED, lines);
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
