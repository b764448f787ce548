//! Settings of a client for a session: its title, its system prompt, its skills.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a client gives a session for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientSetting {
    /// castor makes no other after it.
    Title(String),
    /// From the next request on.
    Prompt(ClientPrompt),
    /// Whether the model may ask for a skill.
    Skill { skill: String, enabled: bool },
}

/// Instructions of a client, of at most [`MAX_CLIENT_PROMPT`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientPrompt {
    pub mode: ClientPromptMode,
    pub text: Arc<str>,
}

/// Longest system prompt of a client, in bytes: it is part of every request.
pub const MAX_CLIENT_PROMPT: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientPromptMode {
    /// It follows castor's own instructions.
    Append,
    /// It stands in their place. What the model is told of folders and system stays.
    Override,
}
