//! Choices of a session: what of mode, limits and agents holds from now on, and what agents left to their next runs.

use std::collections::BTreeMap;

use crate::base::{
    limits::Limits,
    log::{Mode, Principal},
};

/// What was chosen in the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionChoices {
    /// The mode that plan mode took the place of.
    pub before_plan: Option<Mode>,
    /// How far it may go.
    pub limits: Option<Limits>,
    /// Whose the session is from the next prompt on; `None`: that was not chosen.
    pub next_agent: Option<Principal>,
    /// Agents that were switched on or off.
    pub switched_agents: BTreeMap<String, bool>,
    /// What runs of agents that are not castor's left to the next ones.
    pub peer_memory: BTreeMap<String, String>,
}

impl SessionChoices {
    pub fn switch_agent(&mut self, agent: &str, enabled: bool) {
        self.switched_agents.insert(agent.to_owned(), enabled);
    }

    pub fn keep_peer_memory(&mut self, agent: &str, memory: &str) {
        self.peer_memory.insert(agent.to_owned(), memory.to_owned());
    }
}
