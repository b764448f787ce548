//! Edit tools: which of the two a model was trained with.

use serde::Deserialize;

/// The tool for edits that a model was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditTool {
    #[default]
    Replace,
    ApplyPatch,
}
