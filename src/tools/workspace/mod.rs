//! Configuration files of user, system and workspace: settings, policies, agents, commands, skills, memory and trust.

use std::{fmt, io, sync::Arc};

use castor_base::{agent::AgentOrigin, path::AbsPath};
use castor_hands::{disk, secrets::Env};

pub mod agents;
pub mod dotenv;
pub mod extension_files;
pub mod extensions;
mod files_below;
pub mod folder_config;
mod front_matter;
pub mod integrity;
pub mod jsonc;
pub mod memory;
pub mod model_file;
pub mod policies;
mod programs;
pub mod project;
pub mod prompts;
pub mod said_once;
pub mod saved;
pub mod settings;
pub mod settings_edit;
pub mod trust;
pub mod watched_files;

type ReadFn<'a> = dyn Fn(&AbsPath) -> io::Result<Vec<u8>> + 'a;
type RealPathFn<'a> = dyn Fn(&AbsPath) -> io::Result<AbsPath> + 'a;

/// File access of this room: the disk, or in tests a recorder of what was opened.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub read: &'a ReadFn<'a>,
    pub real_path: &'a RealPathFn<'a>,
}

impl Reader<'static> {
    pub fn disk() -> Self {
        Self { read: &read, real_path: &disk::real_path }
    }
}

impl Reader<'_> {
    /// Without symlinks where the path exists, as given where not.
    pub fn real(&self, path: &AbsPath) -> AbsPath {
        (self.real_path)(path).unwrap_or_else(|_| path.clone())
    }

    /// `None`: there is no such file.
    fn optional(&self, path: &AbsPath) -> io::Result<Option<Vec<u8>>> {
        match (self.read)(path) {
            Ok(it) => Ok(Some(it)),
            Err(it) if matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(it) => Err(it),
        }
    }
}

/// Whose a folder of agents, commands or skills is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FolderOwner {
    User,
    Workspace,
    Extension(Arc<str>),
}

impl FolderOwner {
    fn origin(&self, file: AbsPath) -> AgentOrigin {
        match self {
            Self::User => AgentOrigin::User(file),
            Self::Workspace => AgentOrigin::Workspace(file),
            Self::Extension(name) => AgentOrigin::Extension(name.clone(), file),
        }
    }
}

/// Longer files are not read to their end.
const MAX_BYTES: usize = 4 << 20;

fn read(path: &AbsPath) -> io::Result<Vec<u8>> {
    let res = disk::read_head(path, MAX_BYTES as u64 + 1)?;
    match res.len() > MAX_BYTES {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is over {} MiB", MAX_BYTES >> 20))),
        false => Ok(res),
    }
}

/// Something in a user's file, variable or flag that was not taken as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file, or `environment NAME`, or the flag.
    pub origin: String,
    /// Line and column, from 1, where the text itself is at fault.
    pub at: Option<(usize, usize)>,
    /// The dotted path of the setting at fault.
    pub key: Option<String>,
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names with line ends in them make no lines of their own.
        let line = |it: &str| it.replace('\n', " ");
        f.write_str(&line(&self.origin))?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        match &self.key {
            Some(key) => write!(f, ": {}: {}", line(key), self.message),
            None => write!(f, ": {}", self.message),
        }
    }
}

/// The user's own folder that Gemini CLI uses.
pub fn gemini_home(env: &Env) -> Option<AbsPath> {
    let (_, home) = env.first_set(&["GEMINI_CLI_HOME", "HOME"])?;
    Some(AbsPath::new(home)?.join(".gemini"))
}

/// What to say where [`castor_home`] finds none.
pub const NO_HOME: &str = "CASTOR_HOME, or HOME where that is not set, has to be an absolute path";

/// What to do where that is a file.
pub const NO_FOLDER: &str = "Move it away, or set CASTOR_HOME to a folder.";

/// The user's own folder of castor: the only one outside the workspace that it writes to.
pub fn castor_home(env: &Env) -> Option<AbsPath> {
    match env.get("CASTOR_HOME") {
        Some(it) => AbsPath::new(it),
        None => Some(AbsPath::new(env.get("HOME")?)?.join(".castor")),
    }
}
