//! How full the context is, as the client is told: tokens of the last answer, of the window of the model that is chosen.

use agent_client_protocol_schema::v1::{Cost, SessionInfoUpdate, SessionUpdate, UsageUpdate};

use super::updates::View;
use crate::base::{event::EventKind, model::Purpose, money::Money};

impl View {
    /// How full the context is, of a session that goes on.
    pub fn fill(&mut self, used: u64, cost: Option<Money>) {
        self.filled = Some((used, cost));
    }

    /// Appends the same; nothing where no model was asked.
    pub fn filled_as(&mut self, last: Option<(u64, u64)>, cost: Option<Money>, lines: &mut Vec<u8>) {
        if let Some((used, size)) = last {
            self.fill(used, cost);
            self.usage(size, lines);
        }
    }

    /// Appends the title; `None`: it has none any more.
    pub fn title(&self, title: Option<&str>, lines: &mut Vec<u8>) {
        let info = SessionInfoUpdate::new().title(title.map(str::to_owned));
        self.update(SessionUpdate::SessionInfoUpdate(info), lines);
    }

    /// What is asked aside fills no context; its cost is in the next sum.
    pub(super) fn take_usage(&mut self, kind: &EventKind) -> Option<u64> {
        let EventKind::Usage { usage, size, purpose: Purpose::Agent, session_cost, .. } = kind else { return None };
        self.filled = Some((usage.total, *session_cost));
        Some(*size)
    }

    /// The context is as full as it was, of a window of `size`.
    pub(super) fn usage(&self, size: u64, lines: &mut Vec<u8>) {
        let Some((used, cost)) = self.filled else { return };
        let cost = cost.map(|it| Cost::new(it.as_dollars(), "USD"));
        self.update(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost)), lines);
    }
}
