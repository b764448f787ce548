//! Approval modes of `--approval-mode` and `--mode`, as they are typed.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApprovalMode {
    /// Ask before anything that changes something
    Default,
    /// Edit files without asking
    #[value(name = "auto_edit", alias = "autoEdit")]
    AutoEdit,
    /// Run what the sandbox holds and a checkpoint takes back
    Auto,
    /// Ask only before what cannot be taken back
    Yolo,
    /// Look and plan only
    Plan,
}

impl ApprovalMode {
    /// As `--approval-mode` and the protocol's mode ids spell it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AutoEdit => "auto_edit",
            Self::Auto => "auto",
            Self::Yolo => "yolo",
            Self::Plan => "plan",
        }
    }

    /// As Gemini CLI and castor name the mode over ACP.
    pub fn mode_id(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AutoEdit => "autoEdit",
            Self::Auto => "auto",
            Self::Yolo => "yolo",
            Self::Plan => "plan",
        }
    }
}
