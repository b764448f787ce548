//! Parts of a session: trust, confinement, policies, hooks, MCP servers, terminals, and the builder that joins them.

pub mod agent_folders;
pub mod agents;
pub mod build_session;
pub mod confinement;
pub mod event_log;
pub mod event_window;
pub mod followers;
pub mod hooks;
pub mod host;
pub mod live_session;
pub mod mcp_access;
pub mod mcp_servers;
pub mod modes;
pub mod peers;
pub mod place;
pub mod policies;
pub mod prompts;
pub mod read_resources;
pub mod server_questions;
pub mod session_basis;
pub mod session_resources;
pub mod settings_notices;
pub mod terminals;
pub mod trust;
pub mod watched_session;
pub mod web_search;
