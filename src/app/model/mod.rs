//! Which model answers: credentials, providers, connections, and what all sessions know of models that are out.

pub mod access;
pub mod catalog;
pub mod chosen_model;
pub mod connection;
pub mod endpoint_checks;
pub mod model_factory;
pub mod outages;
pub mod providers;
pub mod reachability;
