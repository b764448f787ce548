//! engine decides: pure state machines. No async, clock, disk, environment or randomness.

pub mod commands;
pub mod context;
pub mod hooks;
pub mod policy;
pub mod record;
pub mod routing;
pub mod scheduler;
pub mod session;
pub mod session_tools;
pub mod step;
#[cfg(test)]
mod testing;
pub mod turn;
