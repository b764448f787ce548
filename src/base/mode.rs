//! Modes of a session: what castor does without asking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    Plan,
    #[default]
    Default,
    AutoEdit,
    /// Runs what is confined and can be taken back.
    Auto,
    Yolo,
}

impl Mode {
    /// The modes on offer, most careful first.
    pub const OFFERED: &[Mode] = &[Mode::Plan, Mode::Default, Mode::AutoEdit, Mode::Auto, Mode::Yolo];

    /// The protocol's spelling; see [`Self::flag`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::AutoEdit => "autoEdit",
            Self::Auto => "auto",
            Self::Yolo => "yolo",
        }
    }

    /// As `--approval-mode` and settings spell it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::AutoEdit => "auto_edit",
            it => it.as_str(),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "plan" => Some(Self::Plan),
            "default" => Some(Self::Default),
            "autoEdit" | "auto_edit" => Some(Self::AutoEdit),
            "auto" => Some(Self::Auto),
            "yolo" => Some(Self::Yolo),
            _ => None,
        }
    }
}
