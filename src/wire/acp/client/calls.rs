//! Tool calls of an agent as it tells them: fields that change, parts of the content, places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ContentBlock, block_text};
use crate::acp::meta::messages::CallMeta;
use castor_base::tool::ToolKind;

/// A `tool_call` or `tool_call_update`: what is absent stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallUpdate {
    /// Empty in a question that names no call.
    #[serde(rename = "toolCallId")]
    pub id: String,
    /// True: a `tool_call`, which tells all of it.
    #[serde(skip)]
    pub begins: bool,
    pub title: Option<String>,
    /// The tool's.
    pub name: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<CallStatus>,
    pub content: Option<Vec<CallPart>>,
    pub locations: Option<Vec<CallLocation>>,
    pub raw_input: Option<Value>,
    pub raw_output: Option<Value>,
    #[serde(rename = "_meta")]
    pub meta: Option<Box<CallMeta>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    /// Version 1 says that it failed.
    Cancelled,
}

/// A part of what a call shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallPart {
    Content {
        content: ContentBlock,
    },
    Diff(CallDiff),
    #[serde(rename_all = "camelCase")]
    Terminal {
        terminal_id: String,
    },
    /// A type that this client does not know.
    #[serde(untagged)]
    Other(Value),
}

/// A change of a file. Version 2 has a patch of several files in place of the two texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallDiff {
    pub path: String,
    /// `None`: the file is new.
    pub old_text: Option<String>,
    pub new_text: Option<String>,
    pub changes: Vec<Value>,
    pub patch: Option<Value>,
    /// Words of other agents.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallLocation {
    pub path: String,
    #[serde(default)]
    pub line: Option<u32>,
}

/// A `tool_call_content_chunk` of version 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallPartChunk {
    pub tool_call_id: String,
    pub content: CallPart,
}

impl CallStatus {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    pub fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Cancelled)
    }
}

impl CallPart {
    /// `None`: it is no text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Content { content } => block_text(content),
            Self::Diff(_) | Self::Terminal { .. } | Self::Other(_) => None,
        }
    }

    pub fn diff(&self) -> Option<&CallDiff> {
        match self {
            Self::Diff(it) => Some(it),
            Self::Content { .. } | Self::Terminal { .. } | Self::Other(_) => None,
        }
    }
}

impl CallUpdate {
    /// What the agent printed anew, where it tells output by pieces.
    pub fn printed(&self) -> Option<&str> {
        self.meta.as_ref()?.terminal_output.as_ref().map(|it| it.data.as_str())
    }

    /// Whether it fails because nobody could be asked for an approval.
    pub fn is_unasked(&self) -> bool {
        self.meta.as_ref().and_then(|it| it.castor.as_ref()?.unasked) == Some(true)
    }

    /// The tool's name; older agents say it in `_meta`.
    pub fn tool_name(&self) -> Option<&str> {
        self.meta.as_ref().and_then(|it| it.tool_name.as_deref()).or(self.name.as_deref())
    }
}
