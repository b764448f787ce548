//! Choices of a session: its limits, its agent, the agents that are switched on or off, and what they left for later.

use std::collections::BTreeMap;

use crate::base::{
    limits::Limits,
    log::{Mode, Principal},
};

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
    pub fn choose_agent(&mut self, agent: Option<String>) {
        self.next_agent = Some(agent.map_or(Principal::Root, Principal::Agent));
    }

    pub fn switch_agent(&mut self, agent: String, enabled: bool) {
        self.switched_agents.insert(agent, enabled);
    }

    pub fn keep_peer_memory(&mut self, agent: String, memory: String) {
        self.peer_memory.insert(agent, memory);
    }
}
