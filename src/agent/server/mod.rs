//! `castor acp`: the loop, the table of methods with its handlers, all state, and the tasks on threads.

mod agents;
mod air;
mod air_reports;
mod attach;
mod auth;
mod auth_status;
mod children;
mod definitions;
mod dispatch;
mod draft_rewind;
mod early_effects;
mod event;
mod event_feed;
pub mod event_loop;
mod event_requests;
mod flush;
mod folder_options;
mod foreground;
mod host_tools;
mod index_watch;
mod list_page;
mod listing;
pub mod machine;
mod mcp;
mod mcp_completion;
mod moments;
mod offered_commands;
mod open_session;

mod outbox;
mod pending_requests;
mod prompt_answer;
mod providers;
mod questions;
mod quota;
mod reconnect;
mod renewals;
mod reply;
mod requests;
mod requests_v2;
mod rewind;
mod rewind_results;
pub mod serve;
pub mod server_orders;
mod session_metadata;
mod session_state;
pub mod sessions;
mod sleep;
mod state;
mod stdio;
mod step;
mod store_gate;
mod sweep;
pub mod tasks;
mod timers;
mod tool_list;
mod traces;
mod trust;
mod watched_lists;
mod watching;
mod workspace_trust;

/// Every method that a client may call.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    dispatch::METHODS.iter().map(|it| it.0)
}
