//! Options of `castor acp` from the command line.

use std::path::PathBuf;

use crate::{
    app::settings::{Flag, provider_routing::ProviderRouting},
    base::log::Mode,
};

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--model`; `None`: as the settings say.
    pub model: Option<String>,
    /// `--approval-mode`; `None`: as the settings say.
    pub approval_mode: Option<Mode>,
    /// `--sandbox`; `None`: as the settings say.
    pub sandbox: Option<String>,
    /// `--max-turns`, `--allowed-tools` and the like.
    pub flags: Vec<Flag>,
    /// `--extensions`: no others than these; `None`: all that are on.
    pub extensions: Option<Vec<String>>,
    /// A scripted model instead of a real one.
    pub script: Option<Script>,
    /// Where answers of the model are recorded, in the script's format.
    pub record: Option<PathBuf>,
    /// As the client set it; no option of the command line.
    pub routing: ProviderRouting,
}

impl Options {
    /// Whether sessions work without a key: scripted, or the demo.
    pub fn needs_no_access(&self) -> bool {
        self.script.is_some() || self.model.as_deref() == Some(DEMO)
    }
}

/// The model that needs no key and no network.
pub const DEMO: &str = "demo";

#[derive(Clone, Debug)]
pub struct Script {
    pub file: PathBuf,
    /// In order, each line for its method; else the first remaining line of the method.
    pub strict: bool,
}
