//! What a session is made of: trust, confinement, policies, hooks, MCP servers, terminals, and the parts from all these.

pub mod build_session;
pub mod confinement;
pub mod hooks;
pub mod host;
pub mod live_session;
pub mod mcp_servers;
pub mod modes;
pub mod place;
pub mod policies;
pub mod server_questions;
pub mod session_resources;
pub mod terminals;
pub mod trust;
