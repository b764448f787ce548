//! Content parts: what prompts, messages and tool results are made of.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ids::CallId, prompt_options::PromptOptions};

/// One part of a message. Signatures are the model's own, opaque, and go back to it unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
    },
    Thought {
        thought: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
    },
    /// Inline bytes, base64.
    Media {
        /// `mime` in logs of version 1.
        #[serde(rename = "mimeType", alias = "mime")]
        // Old lines need not have this name.
        #[schemars(default, transform = without_default)]
        mime: String,
        data: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    /// Something that a prompt points at. `text` or `data` (base64) when the client sent it along.
    Reference {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// `mime` in logs of version 1.
        #[serde(rename = "mimeType", alias = "mime", default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Arc<str>>,
    },
}

fn without_default(schema: &mut schemars::Schema) {
    schema.remove("default");
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), signature: None }
    }

    /// Media type and base64 data of a part that has bytes and no text.
    pub fn bytes(&self) -> Option<(&str, &Arc<str>)> {
        match self {
            Self::Media { mime, data, .. } => Some((mime, data)),
            Self::Reference { text: None, data: Some(data), mime, .. } => {
                Some((mime.as_deref().unwrap_or("application/octet-stream"), data))
            }
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// What the user sends with one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptContent {
    pub parts: Vec<Part>,
    /// The first so many are data that was piped into `castor run`: they give the session no title.
    pub n_piped: usize,
    /// What holds for this prompt alone.
    pub options: Box<PromptOptions>,
    /// Of calls that the prompt before ended with.
    pub results: Vec<HostResult>,
}

impl PromptContent {
    /// What was not piped.
    pub fn typed(&self) -> &[Part] {
        self.parts.get(self.n_piped..).unwrap_or_default()
    }
}

impl From<Vec<Part>> for PromptContent {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts, n_piped: 0, options: Box::default(), results: Vec::new() }
    }
}

/// The result of a call that the prompt before ended with.
#[derive(Clone, Debug, PartialEq)]
pub struct HostResult {
    pub call: CallId,
    pub answer: HostAnswer,
}

/// What the host says a call came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostAnswer {
    /// For the model, in the host's own words.
    pub content: Vec<Part>,
    /// For people; `None`: the content's text will do.
    pub shown: Option<String>,
    pub is_error: bool,
}

/// The texts of `parts`, one after the other.
pub fn joined_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}
