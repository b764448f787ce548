//! Transports of MCP servers: pipes, HTTP, and the client itself.

pub(super) mod client_transport;
pub(super) mod http_client;
pub(super) mod line_limit;
pub(super) mod line_transport;
pub(super) mod sse;
pub(super) mod stdio;
pub(super) mod web;
