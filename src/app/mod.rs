//! app joins: the one loop that owns all state, and the command line.

mod ahp;
pub mod cli;
mod errors;
mod hub;
mod model;
mod panics;
pub mod serve;
pub mod server;
mod session;
pub mod settings;

pub use session::policies;
