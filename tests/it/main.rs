//! The integration tests: the real binary, over pipes.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod acp_agent;
mod agents;
mod aliases;
mod auth;
mod auth_required;
mod background;
mod chosen;
mod client;
mod compositions;
mod confined;
mod connections;
mod context;
mod contract;
mod conversation;
#[cfg(target_os = "linux")]
mod disk_full;
mod doctor;
mod editors;
mod events;
mod examples;
mod exits;
mod failures;
mod fallback;
mod faults;
mod file_commands;
mod hooks;
mod host_tools;
mod hostile;
mod http_model;
mod incidents;
mod injection;
mod interceptors;
mod kill9;
mod ledger;
mod leftovers;
mod life;
mod links;
mod locked;
mod logs;
mod long;
mod looks;
mod masks;
mod mcp;
mod mcp_offers;
mod mcp_over_acp;
mod mcp_server;
mod mcp_web;
mod memory;
mod model_server;
mod outgrown;
mod pages;
mod peers;
mod providers;
mod questions;
#[cfg(target_os = "linux")]
mod recorded;
mod redaction;
mod remote;
mod remote_server;
mod repositories;
mod resume;
mod rewind;
#[cfg(target_os = "linux")]
mod rights;
mod router;
mod run;
mod run_input;
mod run_output;
mod schema;
mod schema_files;
mod schemas;
mod signals;
mod stale;
mod start;
mod state;
mod stderr;
mod streams;
#[cfg(feature = "otel")]
mod telemetry;
mod undo;
mod unread;
mod verbs;
mod vertex;
mod web_fetch;
