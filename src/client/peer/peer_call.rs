//! Calls of castor's tools for another agent, and the error that it gets in place of an answer.

use serde_json::Value;

/// A call of castor's that a request waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerCall {
    pub name: &'static str,
    pub args: Value,
}

/// An error as an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

impl Refusal {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn invalid(key: &str) -> Self {
        Self::new(-32602, format!("{key} is missing or not of its kind"))
    }
}
