//! world acts: linear async leaves. Rooms use the hands (disk, process, http, secrets) and never each
//! other, but for who answers in a model's place.

pub mod a2a;
pub mod acp_agent;
pub mod checkers;
#[cfg(unix)]
pub mod checkpoints;
pub mod disk;
pub mod door;
pub mod hooks;
pub mod http;
pub mod mcp;
pub mod models;
pub mod process;
#[cfg(unix)]
pub mod provenance;
pub mod redaction;
pub mod remote;
pub mod secrets;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod workspace;
