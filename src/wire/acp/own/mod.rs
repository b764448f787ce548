//! castor's own methods of the protocol.

pub mod agents;
pub mod attach;
pub mod custom_event;
pub mod definition_list;
pub mod events;
pub mod folder_options;
pub mod host_tools;
pub mod intercept;
pub mod mcp_complete;
pub mod own_methods;
pub mod policy;
pub mod prompt_options;
pub mod rewind;
pub mod state;
pub(super) mod steering;
pub mod tool_list;
