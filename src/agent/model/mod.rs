//! Model access for sessions: credentials, providers, connections, and outages that all sessions share.

pub mod access;
pub mod catalog;
pub mod chosen_model;
pub mod connection;
pub mod endpoint_checks;
pub mod model_factory;
mod only_models;
pub mod outages;
pub mod providers;
pub mod reachability;
pub mod refused_parameters;
