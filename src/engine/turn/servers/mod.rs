//! MCP servers in a turn: their start, their questions, and their own requests to a model.

pub(super) mod mentions;
pub(super) mod open_samplings;
pub(super) mod server_credentials;
pub(super) mod server_questions;
pub(super) mod server_sampling;
pub(super) mod server_wait;
