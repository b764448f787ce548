//! models answer: linear async leaves for providers, scripts and agents that stand in a model's place.

pub mod a2a;
pub mod acp_agent;
pub mod providers;
