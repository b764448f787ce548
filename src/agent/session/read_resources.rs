//! Resources of MCP servers that sessions have read: they hear when one changes.

use std::collections::{BTreeMap, BTreeSet};

use castor_base::ids::SessionId;

/// Of one session.
const MAX_READ: usize = 100;

/// By session: servers and addresses.
#[derive(Default)]
pub struct ReadResources(BTreeMap<SessionId, BTreeSet<(u64, String)>>);

impl ReadResources {
    /// What a sub-agent reads, the session above it hears of.
    pub fn add(&mut self, session: &SessionId, (server, uri): (u64, String)) {
        let all = self.0.entry(session.root()).or_default();
        if all.len() < MAX_READ {
            all.insert((server, uri));
        }
    }

    pub fn readers(&self, server: u64, uri: &str) -> Vec<SessionId> {
        let is_it = |it: &(u64, String)| it.0 == server && it.1 == uri;
        self.0.iter().filter(|(_, all)| all.iter().any(is_it)).map(|(session, _)| session.clone()).collect()
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.0.remove(session);
    }
}
