//! Options of `castor acp` from the command line.

use std::path::PathBuf;

use crate::settings::{Flag, provider_routing::ProviderRouting};
use castor_base::{log::Mode, model::DEMO, path::AbsPath};

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
    /// `--store`; `None`: as the environment says.
    pub store: Option<String>,
    /// As the client set it; no option of the command line.
    pub routing: ProviderRouting,
    /// What an agent is held to that serves somebody else.
    pub only: SessionRights,
}

/// The only modes, models and folders that sessions may have; empty: any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRights {
    pub modes: Vec<Mode>,
    pub models: Vec<String>,
    pub roots: Vec<AbsPath>,
}

impl SessionRights {
    /// The modes that may not be chosen.
    pub fn barred_modes(&self) -> impl Iterator<Item = Mode> {
        Mode::OFFERED.iter().copied().filter(|it| !self.modes.is_empty() && !self.modes.contains(it))
    }

    /// A folder that lies in none of the roots. `folders` are real paths.
    pub fn outside<'f>(&self, folders: &'f [AbsPath]) -> Option<&'f AbsPath> {
        let is_inside = |it: &AbsPath| self.roots.iter().any(|root| it.is_within(root));
        folders.iter().find(|it| !self.roots.is_empty() && !is_inside(it))
    }
}

impl Options {
    /// Tells whether sessions work without a key: scripted, or the demo.
    pub fn needs_no_access(&self) -> bool {
        self.script.is_some() || self.model.as_deref() == Some(DEMO)
    }
}

#[derive(Clone, Debug)]
pub struct Script {
    pub file: PathBuf,
    /// In order, each line for its method; else the first remaining line of the method.
    pub strict: bool,
}
