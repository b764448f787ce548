//! Options of one prompt: what holds until its turn is over, in place of what the session has.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{host_tools::HostTools, limits::Limits, mode::Mode};

/// What a prompt has for itself; what is absent is as the session has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// All of them, not only those that the prompt names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The only tools that the model and its sub-agents have, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Its questions may have fields, also where other clients of the session show none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forms: bool,
    /// What the host brings for it, beside what it brought to the session.
    #[serde(default, skip_serializing_if = "HostTools::is_empty")]
    pub host: HostTools,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerForm>,
}

/// What the last answer to a prompt has to look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerForm {
    /// A JSON Schema: an object.
    pub schema: Arc<Value>,
    /// The prompt asks for nothing but the answer: no tool is needed for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_alone: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptModel {
    pub name: String,
    /// How much it reads at once, in tokens; 0: unknown.
    #[serde(default)]
    pub window: u64,
}

impl PromptOptions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
