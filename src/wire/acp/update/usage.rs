//! Context usage for the client: tokens of the last answer and the model's window.

use agent_client_protocol_schema::v1::{Cost, SessionUpdate, UsageUpdate};

use crate::acp::{drafts::session_metadata::title_info, updates::SessionView};
use castor_base::{event::EventKind, model::Purpose, money::Money};

impl SessionView {
    /// How full the context is, of a session that goes on.
    pub fn set_context_usage(&mut self, used: u64, cost: Option<Money>) {
        self.context_usage = Some((used, cost));
    }

    /// Appends the same; nothing where no model was asked.
    pub fn show_context_usage(&mut self, last: Option<(u64, u64)>, cost: Option<Money>, lines: &mut Vec<u8>) {
        if let Some((used, size)) = last {
            self.set_context_usage(used, cost);
            self.push_usage(size, lines);
        }
    }

    /// Appends the title; `None`: it has none any more.
    pub fn push_title(&self, title: Option<&str>, lines: &mut Vec<u8>) {
        self.push_update(SessionUpdate::SessionInfoUpdate(title_info(title)), lines);
    }

    /// What is asked aside fills no context; its cost is in the next sum.
    pub(in crate::acp) fn take_usage(&mut self, kind: &EventKind) -> Option<u64> {
        let EventKind::Usage { usage, size, purpose: Purpose::Agent, session_cost, .. } = kind else { return None };
        self.context_usage = Some((usage.total, *session_cost));
        Some(*size)
    }

    /// The context is as full as it was, of a window of `size`.
    pub(in crate::acp) fn push_usage(&self, size: u64, lines: &mut Vec<u8>) {
        let Some((used, cost)) = self.context_usage else { return };
        let cost = cost.map(|it| Cost::new(it.as_dollars(), "USD"));
        self.push_update(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost)), lines);
    }
}
