//! What `castor acp` was started with.

use std::path::PathBuf;

use crate::base::log::Mode;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--model`; `None`: as the settings say.
    pub model: Option<String>,
    /// `--approval-mode`; `None`: as the settings say.
    pub approval_mode: Option<Mode>,
    /// A scripted model instead of a real one.
    pub script: Option<Script>,
    /// Where answers of the model are recorded, in the script's format.
    pub record: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Script {
    pub file: PathBuf,
    /// In order, each line for its method; else the first remaining line of the method.
    pub strict: bool,
}
