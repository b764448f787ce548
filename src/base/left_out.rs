//! Parts that requests to a model go without: masked results, media in words, refused parameters and tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ids::CallId, model_table::Parameter, path::AbsPath};

/// What stands for the result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mask {
    pub call: CallId,
    /// Where the model finds all of it.
    pub path: AbsPath,
    pub text: String,
}

/// A part of requests that was refused, or made one too large.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    Parameter(Parameter),
    /// By its name.
    Tool(String),
    /// Words stand for them from here on, whichever model is asked.
    Media(Vec<MediaInWords>),
    /// What goes beyond so many bytes.
    BytesAbove(u64),
}

/// Words that stand for an image, a recording or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaInWords {
    #[serde(flatten)]
    pub place: MediaPlace,
    pub text: String,
}

/// Where media are in a conversation, counted from 0: as it was when this was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaPlace {
    pub turn: usize,
    pub part: usize,
    /// Within a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
}
