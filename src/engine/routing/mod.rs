//! Which model serves this request, and what to do when it fails.

pub mod class;
pub mod failure;
pub mod limits;

use std::sync::Arc;

/// Where a request goes, and why: the user will ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub model: Arc<str>,
    pub why: &'static str,
}

/// The model for the next request. Today the configured one serves all; strategies become rows before this last.
pub fn route(configured: &str) -> Route {
    Route { model: configured.into(), why: "configured" }
}
