//! `castor acp`: the loop, the table of methods with its handlers, all state, and the tasks on threads.

mod agents;
mod air;
mod dispatch;
mod early_effects;
mod event;
mod event_feed;
pub mod event_loop;
mod flush;
mod handlers;
mod live;
pub mod machine;
mod mcp;
mod moments;
mod open_session;

mod outbox;
mod pending_requests;
mod prompt_answer;
mod questions;
mod reply;
pub mod serve;
pub mod server_orders;
pub mod sessions;
mod state;
mod stdio;
mod step;
mod store_gate;
mod sweep;
pub mod tasks;
mod timers;
mod traces;
mod trust;

/// Every method that a client may call.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    dispatch::METHODS.iter().map(|it| it.0)
}
