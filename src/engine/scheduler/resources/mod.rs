//! Resources of MCP servers in calls: their tools, and which server a call goes to.

pub(super) mod resource_calls;
pub(super) mod resource_tools;
