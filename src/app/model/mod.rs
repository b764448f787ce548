//! Model access for sessions: credentials, providers, connections, and outages that all sessions share.

pub mod access;
pub mod catalog;
pub mod connection;
pub mod model_factory;
pub mod providers;
pub mod reachability;
