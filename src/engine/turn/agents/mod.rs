//! Agents in a turn: sub-agents, composites, templates, and the transfer to another agent.

pub(super) mod agent_run;
pub(super) mod child_spec;
pub(super) mod composing;
pub(super) mod composition;
pub(super) mod conversation_text;
pub mod session_agent;
pub(super) mod template;
pub(super) mod transfer;
