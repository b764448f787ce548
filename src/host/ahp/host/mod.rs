//! Messages that come in: requests and actions of clients, messages of the hub, each on the way to its part of the host.

mod actions;
pub mod client_requests;
mod completions;
pub mod handshakes;
mod host_call;
pub mod hub_messages;
mod introductions;
mod opening;
mod session_requests;
