//! The view of a sub-agent for clients that know no child sessions: only calls that the user is asked about are shown.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::SessionUpdate;

use super::{
    options::ChosenOptions,
    tool_calls,
    updates::{ChildFilter, ClientProfile, INTERRUPTED, Playback, SessionView},
};
use crate::base::{
    event::EventKind,
    ids::{CallId, SessionId},
    log::{Decision, Entry, Fact},
    rewind,
};

impl SessionView {
    /// `root`: the session that the client knows.
    pub fn of_child(root: SessionId, agent: String, profile: ClientProfile, chosen: ChosenOptions) -> Self {
        let mut res = Self::new(root, profile, chosen);
        res.child = Some(ChildFilter { agent, asked: BTreeSet::new() });
        res
    }

    /// Who asks, where that is not the agent that the user speaks to.
    pub fn asking_agent(&self) -> Option<&str> {
        self.child.as_ref().map(|it| it.agent.as_str())
    }

    /// Shows a call before its question: clients ask only about what they know.
    pub fn announce(&mut self, call: &CallId, lines: &mut Vec<u8>) {
        let Some(child) = &mut self.child else { return };
        let Some(shown) = self.calls.get(call).filter(|_| child.asked.insert(call.clone())) else { return };
        let Some(mut told) = shown.call.clone() else { return };
        told.title = format!("{}: {}", child.agent, told.title);
        told.content.extend(shown.proposed.as_ref().map(tool_calls::display_content));
        self.push_update(SessionUpdate::ToolCall(told), lines);
    }

    /// Calls that the client was asked about and that will not end any more.
    pub fn interrupt_asked(&mut self, why: &str, lines: &mut Vec<u8>) {
        if let Some(child) = &mut self.child {
            self.calls.retain(|it, _| child.asked.contains(it));
            child.asked.clear();
            self.interrupt(why, lines);
        }
    }

    /// What the client sees of a fact of a sub-agent; calls are followed in any case.
    pub(super) fn show_of_child(&mut self, fact: &Fact, way: Playback, lines: &mut Vec<u8>) {
        let Fact::Event { event } = fact else { return };
        let (EventKind::ToolRequest { request_id, .. }
        | EventKind::ToolUpdate { request_id, .. }
        | EventKind::ToolResponse { request_id, .. }) = &event.kind
        else {
            return;
        };
        let is_shown = self.child.as_ref().is_some_and(|it| it.asked.contains(request_id));
        let mut unseen = Vec::new();
        self.push_fact(fact, way, if is_shown { lines } else { &mut unseen });
    }

    /// Appends what there is of the conversation, for a client that knows nothing of it. `children`: the logs of
    /// sub-agents, of which the calls are shown that the user was asked about.
    pub fn replay(&mut self, entries: &[Entry], children: &[Vec<Entry>], lines: &mut Vec<u8>) {
        let own: Vec<&Entry> = rewind::remaining_entries(entries).collect();
        let mut calls: BTreeSet<&CallId> = own.iter().filter_map(|it| requested_call(it)).collect();
        let mut all: Vec<(Option<usize>, &Entry)> = own.iter().map(|it| (None, *it)).collect();
        let mut views = Vec::new();
        for log in children {
            let Some(agent) = child_agent(log, &calls) else { continue };
            calls.extend(log.iter().filter_map(requested_call));
            all.extend(log.iter().map(|it| (Some(views.len()), it)));
            views.push(Self::of_child(self.session.clone(), agent, self.profile.clone(), self.chosen.clone()));
        }
        // Each log is in order already.
        all.sort_by_key(|(_, it)| it.at);
        for (child, entry) in all {
            match child.and_then(|it| views.get_mut(it)) {
                None => self.push_fact(&entry.fact, Playback::Replay, lines),
                Some(view) => view.replay_of_child(&entry.fact, lines),
            }
        }
        views.iter_mut().for_each(|it| it.interrupt_asked(INTERRUPTED, lines));
        self.interrupt(INTERRUPTED, lines);
    }

    fn replay_of_child(&mut self, fact: &Fact, lines: &mut Vec<u8>) {
        if let Fact::Decision { call, decision: Decision::Ask, .. } = fact {
            self.announce(call, lines);
        }
        self.show_of_child(fact, Playback::Replay, lines);
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

/// Whose log it is, if the call that started it is one of these.
fn child_agent(log: &[Entry], calls: &BTreeSet<&CallId>) -> Option<String> {
    match &log.first()?.fact {
        Fact::Created { principal, child_of: Some(link), .. } if calls.contains(&link.call) => {
            principal.agent().map(str::to_owned)
        }
        _ => None,
    }
}
