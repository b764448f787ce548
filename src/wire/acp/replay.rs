//! Replay of a session with its sub-agents, for a client that loads it.

use std::collections::BTreeSet;

use super::{
    subagents::{self, ChildState},
    updates::{INTERRUPTED, Playback, SessionView},
};
use crate::base::{
    content::joined_text,
    event::{EndReason, EventKind, Speaker},
    ids::{CallId, SessionId},
    log::{ChildLink, Decision, Entry, Fact},
    rewind,
};

/// A sub-agent of which the log is replayed.
struct Child {
    id: SessionId,
    from: ChildLink,
    agent: String,
    task: String,
    view: SessionView,
    end: Option<EndReason>,
}

impl SessionView {
    /// Appends what there is of the conversation, for a client that knows nothing of it. `children`: the logs of
    /// sub-agents, oldest first. Of these the client sees all, or only calls that the user was asked about.
    pub fn replay(&mut self, entries: &[Entry], children: &[Vec<Entry>], lines: &mut Vec<u8>) {
        let own: Vec<&Entry> = rewind::remaining_entries(entries).collect();
        let mut calls: BTreeSet<&CallId> = own.iter().filter_map(|it| requested_call(it)).collect();
        let mut all: Vec<(Option<usize>, &Entry)> = own.iter().map(|it| (None, *it)).collect();
        let mut found: Vec<Child> = Vec::new();
        for log in children {
            let Some(child) = self.child_of(log, &calls) else { continue };
            calls.extend(log.iter().filter_map(requested_call));
            all.extend(log.iter().map(|it| (Some(found.len()), it)));
            found.push(child);
        }
        // Each log is in order already.
        all.sort_by_key(|(_, it)| it.at);
        for (child, entry) in all {
            match child.and_then(|it| found.get_mut(it)) {
                None => self.push_fact(&entry.fact, Playback::Replay, lines),
                Some(child) => child.replay(&entry.fact, self.profile.features.subagents, lines),
            }
        }
        // What is below ends first.
        found.iter_mut().rev().for_each(|it| it.cut_off(self.profile.features.subagents, lines));
        self.interrupt(INTERRUPTED, lines);
    }

    /// The sub-agent that a log is of, if the call that started it is one of these.
    fn child_of(&self, log: &[Entry], calls: &BTreeSet<&CallId>) -> Option<Child> {
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
        Some(Child { id, from: link.clone(), agent, task, view, end: None })
    }
}

impl Child {
    fn replay(&mut self, fact: &Fact, is_session: bool, lines: &mut Vec<u8>) {
        if !is_session {
            if let Fact::Decision { call, decision: Decision::Ask, .. } = fact {
                self.view.announce(call, lines);
            }
            return self.view.show_of_child(fact, Playback::Replay, lines);
        }
        if let Fact::Created { .. } = fact {
            subagents::announce(&self.from, &self.id, (&self.agent, &self.task), lines);
        }
        self.view.push_fact(fact, Playback::Replay, lines);
        if let Fact::Event { event } = fact
            && let EventKind::AgentEnd { reason, .. } = &event.kind
        {
            self.end = Some(*reason);
            subagents::show_state(&self.from.session, &self.id, ChildState::Ended(*reason), lines);
        }
    }

    /// castor ended before it did.
    fn cut_off(&mut self, is_session: bool, lines: &mut Vec<u8>) {
        match is_session {
            false => self.view.interrupt(INTERRUPTED, lines),
            true if self.end.is_none() => {
                self.view.interrupt(INTERRUPTED, lines);
                subagents::show_state(&self.from.session, &self.id, ChildState::CutOff, lines);
            }
            true => (),
        }
    }
}

fn requested_call(entry: &Entry) -> Option<&CallId> {
    match &entry.fact {
        Fact::Event { event } => match &event.kind {
            EventKind::ToolRequest { request_id, .. } => Some(request_id),
            _ => None,
        },
        _ => None,
    }
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
