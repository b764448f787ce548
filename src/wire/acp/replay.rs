//! Replay of a session with its sub-agents, for a client that loads it.

use std::collections::BTreeSet;

use super::{
    subagents::{self, ChildState},
    updates::{Playback, SessionView},
};
use crate::base::{
    content::joined_text,
    endings::{CASTOR_ENDED, interrupted_call, is_ending},
    event::{AgentEvent, EventKind, Speaker},
    ids::{CallId, SessionId},
    log::{ChildLink, Decision, Entry, Fact},
    rewind,
};

/// A sub-agent of which the log is replayed.
struct Child {
    id: SessionId,
    from: ChildLink,
    /// Agents above it, without that of the session.
    n_above: usize,
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
        let mut all: Vec<(Option<usize>, usize, &Entry)> = own.iter().map(|it| (None, 0, *it)).collect();
        let mut found: Vec<Child> = Vec::new();
        for log in children {
            let Some(mut child) = self.child_of(log, &calls) else { continue };
            // Whose end is not its own is cut off.
            let log: Vec<&Entry> = log.iter().filter(|it| !event_of(it).is_some_and(is_ending)).collect();
            child.n_above = found.iter().find(|it| it.id == child.from.session).map_or(0, |it| it.n_above + 1);
            calls.extend(log.iter().filter_map(|it| requested_call(it)));
            // A cancel ends all at one time: what is below ends first.
            let (n_before, at_end) = (log.iter().take_while(|it| !is_end(it)).count(), usize::MAX - 1 - child.n_above);
            let order = |n: usize| if n < n_before { 0 } else { at_end };
            all.extend(log.iter().enumerate().map(|(n, it)| (Some(found.len()), order(n), *it)));
            found.push(child);
        }
        // Each log is in order already.
        all.sort_by_key(|(_, order, it)| (it.at, *order));
        let mut endings: Vec<&Entry> = Vec::new();
        for (child, _, entry) in all {
            match child {
                Some(at) => self.replay_child(&mut found, at, entry, lines),
                // They have the time of the last entry before them, and sub-agents went on after that.
                None if event_of(entry).is_some_and(is_ending) => endings.push(entry),
                None => {
                    std::mem::take(&mut endings).into_iter().for_each(|it| self.replay_own(&mut found, it, lines));
                    self.replay_own(&mut found, entry, lines);
                }
            }
        }
        endings.into_iter().for_each(|it| self.replay_own(&mut found, it, lines));
        // What is below ends first.
        found.iter_mut().rev().for_each(|it| it.cut_off(self.profile.features.subagents, lines));
        self.interrupt(CASTOR_ENDED, lines);
    }

    fn replay_child(&self, found: &mut [Child], at: usize, entry: &Entry, lines: &mut Vec<u8>) {
        let is_session = self.profile.features.subagents;
        if is_end(entry) {
            cut_off_below(found, at, is_session, lines);
        }
        // After its end it says nothing.
        if let Some(child) = found.get_mut(at).filter(|it| !it.is_over) {
            child.replay(&entry.fact, is_session, lines);
        }
    }

    fn replay_own(&mut self, found: &mut [Child], entry: &Entry, lines: &mut Vec<u8>) {
        if let Some(call) = event_of(entry).and_then(|it| interrupted_call(&it.kind)) {
            self.cut_off_run(found, call, lines);
        }
        self.push_fact(&entry.fact, Playback::Replay, lines);
    }

    /// The call of a sub-agent got an end: it goes with all below it.
    fn cut_off_run(&self, found: &mut [Child], call: &CallId, lines: &mut Vec<u8>) {
        let Some(at) = found.iter().position(|it| it.from.call == *call && !it.is_over) else { return };
        let is_session = self.profile.features.subagents;
        cut_off_below(found, at, is_session, lines);
        found.iter_mut().skip(at).take(1).for_each(|it| it.cut_off(is_session, lines));
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
        Some(Child { id, from: link.clone(), n_above: 0, agent, task, view, is_over: false })
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
        if std::mem::replace(&mut self.is_over, true) && is_session {
            return;
        }
        self.view.interrupt(CASTOR_ENDED, lines);
        if is_session {
            self.show_state(ChildState::CutOff, lines);
        }
    }

    fn show_state(&self, state: ChildState, lines: &mut Vec<u8>) {
        subagents::show_state(&self.from.session, &self.id, state, self.view.profile.features.version, lines);
    }
}

/// An agent ends: what is below it, and has no end of its own, ends first.
fn cut_off_below(found: &mut [Child], at: usize, is_session: bool, lines: &mut Vec<u8>) {
    let mut ids: BTreeSet<SessionId> = found.get(at).map(|it| it.id.clone()).into_iter().collect();
    for it in &*found {
        if ids.contains(&it.from.session) {
            ids.insert(it.id.clone());
        }
    }
    let below = found.iter_mut().rev().filter(|it| ids.contains(&it.from.session) && !it.is_over);
    below.for_each(|it| it.cut_off(is_session, lines));
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

fn is_end(entry: &Entry) -> bool {
    matches!(&entry.fact, Fact::Event { event } if matches!(event.kind, EventKind::AgentEnd { .. }))
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
