//! Approval modes of `--approval-mode` and `--mode`, as they are typed.

use clap::ValueEnum;

use castor_base::log::Mode;

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
    pub fn mode(self) -> Mode {
        match self {
            Self::Default => Mode::Default,
            Self::AutoEdit => Mode::AutoEdit,
            Self::Auto => Mode::Auto,
            Self::Yolo => Mode::Yolo,
            Self::Plan => Mode::Plan,
        }
    }
}
