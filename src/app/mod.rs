//! app joins: the one loop that owns all state, and the command line.

pub mod access;
mod auth;
pub mod cli;
mod client;
mod desk;
mod dispatch;
mod effects;
mod event;
mod event_loop;
mod events;
mod flush;
mod listing;
mod mcp;
mod models;
mod options;
mod policies;
mod questions;
mod reply;
mod requests;
pub mod serve;
mod sessions;
pub mod settings;
mod state;
mod stdio;
mod sweep;
mod terminals;
mod traces;
