//! How full the context is, as the client is told: tokens of the last answer, of the window of the model that is chosen.

use agent_client_protocol_schema::v1::{Cost, SessionUpdate, UsageUpdate};

use super::updates::View;
use crate::base::{
    event::EventKind,
    log::{Entry, Fact},
    model::Purpose,
    money::Money,
};

impl View {
    /// How full the context is, of a session that goes on.
    pub fn fill(&mut self, used: u64, cost: Option<Money>) {
        self.filled = Some((used, cost));
    }

    /// Appends how full the context is: what all the calls cost so far is in the last one's figures.
    pub fn replay_usage(&mut self, entries: &[Entry], lines: &mut Vec<u8>) {
        // Another model may have been chosen since.
        let mut chosen = None;
        for it in entries.iter().rev() {
            match &it.fact {
                Fact::Model { window: size @ 1.., .. } => chosen = chosen.or(Some(*size)),
                Fact::Event { event } => {
                    if let Some(size) = self.take_usage(&event.kind) {
                        return self.usage(chosen.unwrap_or(size), lines);
                    }
                }
                _ => (),
            }
        }
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
