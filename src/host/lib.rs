//! the host shares one agent: with many connections, with AHP's clients, over the network.

pub mod ahp;
pub mod hub;
pub mod remote;
