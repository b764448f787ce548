//! The view of a sub-agent for clients that know no child sessions: only calls that the user is asked about are shown.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::SessionUpdate;

use super::{
    options::ChosenOptions,
    tool_calls,
    updates::{ClientProfile, SessionView},
};
use crate::base::{
    event::EventKind,
    ids::{CallId, SessionId},
    log::Fact,
};

/// What is shown of a sub-agent, in the session that the client knows.
#[derive(Debug)]
pub(super) struct ChildFilter {
    agent: String,
    /// Calls that the client knows, as it was asked about them.
    asked: BTreeSet<CallId>,
}

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
        if let Some(child) = &self.child {
            self.calls.retain(|it, _| child.asked.contains(it));
            self.interrupt(why, lines);
        }
    }

    /// What the client sees of a fact of a sub-agent; calls are followed in any case.
    pub(super) fn show_of_child(&mut self, fact: &Fact, lines: &mut Vec<u8>) {
        let Fact::Event { event } = fact else { return };
        let (EventKind::ToolRequest { request_id, .. }
        | EventKind::ToolUpdate { request_id, .. }
        | EventKind::ToolResponse { request_id, .. }) = &event.kind
        else {
            return;
        };
        let is_shown = self.child.as_ref().is_some_and(|it| it.asked.contains(request_id));
        let mut unseen = Vec::new();
        self.show_live(fact, if is_shown { lines } else { &mut unseen });
    }
}
