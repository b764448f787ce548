//! the agent joins: the one loop that owns all state, and what a session is made of.

pub mod errors;
pub mod model;
pub mod panics;
pub mod server;
pub mod session;
pub mod settings;
pub mod telemetry;
