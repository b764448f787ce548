//! The view of a sub-agent for clients that know no child sessions: only calls that the user is asked about are shown.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::SessionUpdate;

use crate::acp::{
    options::ChosenOptions,
    update::tool_calls,
    updates::{ChildFilter, ClientProfile, Playback, SessionView, drawn_call},
};
use castor_base::{
    event::EventKind,
    ids::{CallId, SessionId},
    log::Fact,
    shown_text::show_line,
    terminal::Screen,
};

impl SessionView {
    /// `root`: the session that the client knows.
    pub fn of_child(root: SessionId, agent: String, profile: ClientProfile, chosen: ChosenOptions) -> Self {
        let mut res = Self::new(root, profile, chosen);
        res.child = Some(ChildFilter { agent, asked: BTreeSet::new() });
        res
    }

    /// Shows a call before its question: clients ask only about what they know.
    pub fn announce(&mut self, call: &CallId, lines: &mut Vec<u8>) {
        let Some(child) = &mut self.child else { return };
        let Some(shown) = self.calls.get(call).filter(|_| child.asked.insert(call.clone())) else { return };
        let Some(told) = shown.call.clone() else { return };
        let mut told = match &shown.screen {
            Some(Screen::Drawn { cwd }) => drawn_call(told, call, cwd),
            _ => told,
        };
        told.title = format!("{}: {}", show_line(&child.agent), told.title);
        told.content.extend(shown.proposed.iter().flat_map(tool_calls::question_content));
        self.push_update(SessionUpdate::ToolCall(told), lines);
    }

    /// What the client sees of a fact of a sub-agent; calls are followed in any case.
    pub(in crate::acp) fn show_of_child(&mut self, fact: &Fact, way: Playback, lines: &mut Vec<u8>) {
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
}
