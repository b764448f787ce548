//! `castor acp`: the loop, the table of methods with its handlers, all state, and the tasks on threads.

mod agents;
mod auth;
mod children;
mod dispatch;
mod event;
mod event_feed;
pub mod event_loop;
mod event_requests;
mod flush;
mod listing;
pub mod machine;
mod mcp;
mod offered_commands;

mod outbox;
mod pending_requests;
mod questions;
mod reconnect;
mod reply;
mod requests;
mod rewind;
mod rewind_results;
pub mod serve;
mod session_state;
pub mod sessions;
mod state;
mod stdio;
mod step;
mod sweep;
pub mod tasks;
mod timers;
mod traces;
mod trust;
mod watching;
