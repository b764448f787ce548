//! Questions of a client about policy, and the answers.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    ids::PromptId,
    log::{Decision, Mode},
};

/// A client's question about a call that nobody makes.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyOrder {
    pub prompt: PromptId,
    pub tool: String,
    pub args: Value,
    /// In place of the session's.
    pub mode: Option<Mode>,
    /// The sub-agent that calls.
    pub principal: Option<String>,
}

/// The answer to `_castor/policy/evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAnswer {
    pub decision: Decision,
    /// The rule that decides, with its source.
    pub rule: String,
    /// Why it is asked or denied, where that is more than the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a shell line: what is said of each command in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PolicyPart>,
    /// Safety checkers that would be heard, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkers: Vec<String>,
}

/// One command of a line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyPart {
    pub command: String,
    pub decision: Decision,
    pub rule: String,
}
