//! `castor acp`: the loop, the table of methods with its handlers, all state, and the tasks on threads.

mod auth;
mod dispatch;
mod event;
pub mod event_loop;
mod event_window;
pub mod flush;
mod listing;
pub mod machine;
pub mod mcp;
mod questions;
mod refold;
mod reply;
mod requests;
mod rewind;
pub mod serve;
pub mod state;
mod stdio;
mod sweep;
pub mod tasks;
mod traces;
