//! Which model answers: credentials, providers, connections, and what all sessions know of models that are out.

pub mod access;
pub mod catalog;
pub mod connection;
pub mod model_factory;
pub mod providers;
pub mod reachability;
