//! `castor serve`: principals with their tokens, an agent for each, and the loop between listener, hubs and agents. Also
//! the bridge by which clients on stdio reach such a server.

mod agents;
pub mod bridge;
mod connections;
mod door;
mod limits;
mod local_machine;
mod principal;
mod serve_loop;
pub mod server;
pub mod tokens;

pub use limits::ServeLimits;
