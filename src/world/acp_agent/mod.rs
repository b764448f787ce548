//! Agents that speak ACP: castor is their client.

pub mod connection;
