//! How commands are confined: what they may write and reach, what a denial was, and what more may be allowed.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::base::{guarded, log::Grant, path::AbsPath, text};

/// Of [`guarded::CONFIG`], what must not even be made in a folder that commands write: it is obeyed as soon as it is there.
pub const NEVER_MADE: &[&str] = &[".castor", ".envrc", ".gemini", ".git", ".idea", ".mcp.json", ".vscode", ".zed"];

/// What a sandbox holds in a folder that commands write.
const LISTS: [guarded::Guarded; 2] = [guarded::CONFIG, guarded::TOOLS];

/// Where names that follow each other may be held in a folder. One name alone begins with the folder's own.
pub fn held_below(root: &Path) -> Vec<PathBuf> {
    LISTS.iter().flat_map(|it| it.paths_below(root)).map(|it| it.1).collect()
}

/// Whether an entry at the top of a folder is held there. `below`: what [`held_below`] says of the folder.
pub fn is_held(name: &OsStr, below: &[PathBuf]) -> bool {
    let is_same = |it: &PathBuf| it.as_os_str().eq_ignore_ascii_case(name);
    guarded::CONFIG.find(Path::new(name)).is_some() || below.iter().any(is_same)
}

/// What stands in the place of something that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    Folder,
    /// A file with that in it.
    File(&'static str),
}

impl StandIn {
    /// What is in it; `None`: it is a folder.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::Folder => None,
            Self::File(text) => Some(text),
        }
    }
}

/// Below a repository's `.git`: what git runs or obeys, and what may stand there without a change to what git does. The
/// rest is written by every commit.
pub const GIT_CONFIG: &[(&str, StandIn)] = &[
    ("branches", StandIn::Folder),
    ("commondir", ITSELF),
    ("config", StandIn::File("")),
    ("config.worktree", StandIn::File("")),
    ("hooks", StandIn::Folder),
    ("info", StandIn::Folder),
    ("modules", StandIn::Folder),
    ("remotes", StandIn::Folder),
];
/// "The repository's common part is here": an empty file is an error to git, and a folder too. Written as nobody does it.
pub const ITSELF: StandIn = StandIn::File("././.\n");

/// The same for each folder in `.git/worktrees`. `None`: always there.
pub const WORKTREE_CONFIG: &[(&str, Option<StandIn>)] =
    &[("commondir", None), ("config.worktree", Some(StandIn::File(""))), ("gitdir", None)];

/// What shells and git obey in a home folder, where that is a workspace.
pub const HOME_CONFIG: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config",
    ".gitconfig",
    ".local",
    ".profile",
    ".ssh",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// How much commands may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As much as the user.
    Off,
    /// Below the session's roots, but not its configuration.
    WorkspaceWrite,
    /// Temporary files only.
    ReadOnly,
}

impl Level {
    /// As settings and flags spell them.
    pub const NAMES: &[&str] = &["off", "workspace-write", "read-only"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "workspace-write" => Some(Self::WorkspaceWrite),
            "read-only" => Some(Self::ReadOnly),
            _ => None,
        }
    }
}

/// How a session's commands are held, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub level: Level,
    pub network: bool,
    /// The system can.
    pub available: bool,
    /// The folder may be written by commands, as far as its trust goes.
    pub trusted: bool,
}

impl Hold {
    /// Whether there is a sandbox in which commands write in the folder.
    pub fn is_written(&self) -> bool {
        self.available && self.level == Level::WorkspaceWrite
    }

    /// Behind "sandbox: ".
    pub fn in_words(&self) -> String {
        let network = if self.network { "with network" } else { "without network" };
        match (self.level, self.available) {
            (Level::Off, true) => "off; commands may do what you may".to_owned(),
            (Level::Off, false) => "off; this system has nothing to confine commands with".to_owned(),
            (_, false) => "wanted, but this system has nothing to confine commands with: they do not start".to_owned(),
            (Level::WorkspaceWrite, true) => format!("workspace-write, {network}"),
            (Level::ReadOnly, true) if !self.trusted => format!("read-only, as the folder is not trusted, {network}"),
            (Level::ReadOnly, true) => format!("read-only, {network}"),
        }
    }
}

/// What a confined process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    pub read_only: bool,
    /// That is so as the folder is not trusted.
    pub untrusted: bool,
    /// The session's folders, canonical.
    pub roots: Vec<AbsPath>,
    /// More that may be written, at every level.
    pub writable: Vec<AbsPath>,
    /// Folders and files that the user allowed meanwhile. Made where they are not there; nothing of `kept` is ever among them.
    pub granted: Vec<Granted>,
    /// Git folders outside of the roots that git works with in them: written but for what git obeys.
    pub gits: Vec<AbsPath>,
    /// Never written, wherever it is: castor's own folder, a home's configuration.
    pub kept: Vec<AbsPath>,
    /// Configuration in the roots that may be written all the same.
    pub open: Vec<AbsPath>,
    /// A folder for temporary files of its own.
    pub tmp: AbsPath,
    /// Where castor writes down what stands in for configuration meanwhile.
    pub records: AbsPath,
    pub network: bool,
}

impl Confinement {
    /// The same with what the user allowed beyond it; `None`: nothing is left of it.
    pub fn with(&self, leave: &Leave) -> Option<Self> {
        if leave.unconfined {
            return None;
        }
        let mut res = self.clone();
        res.network |= leave.network;
        res.granted.extend(leave.write.iter().filter(|it| self.takes(it)).cloned());
        res.open.extend(leave.config.iter().cloned());
        Some(res)
    }

    /// Where output goes only what is neither held nor written anyway: a mount of its own would be in the way there.
    fn takes(&self, it: &Granted) -> bool {
        match it {
            Granted::Output(path) => !self.is_too_wide(path) && !self.obeyed(path) && !self.writes(path),
            Granted::Folder(_) | Granted::File(_) => true,
        }
    }

    /// Whether writing there is what it allows.
    pub fn writes(&self, path: &AbsPath) -> bool {
        let below = |them: &[AbsPath]| them.iter().any(|it| path.is_within(it));
        let in_roots = !self.read_only && (below(&self.roots) || below(&self.gits));
        let granted = self.granted.iter().any(|it| path.is_within(it.path()) && !self.is_too_wide(it.path()));
        let opened = self.read_only && below(&self.open);
        let open = below(&self.writable) || granted || opened || path.is_within(&self.tmp) || in_roots;
        open && !self.obeyed(path)
    }

    /// Whether its content is run or obeyed by somebody outside.
    pub fn obeyed(&self, path: &AbsPath) -> bool {
        let in_root = |root: &AbsPath| {
            let Ok(below) = path.as_path().strip_prefix(root.as_path()) else { return false };
            match below.strip_prefix(".git") {
                Ok(rest) => rest.as_os_str().is_empty() || is_git_config(rest),
                Err(_) => LISTS.iter().any(|it| it.find_below(root.as_path(), path.as_path()).is_some()),
            }
        };
        let in_git = |git: &AbsPath| path.as_path().strip_prefix(git.as_path()).is_ok_and(is_git_config);
        let is_open = self.open.iter().any(|it| path.is_within(it));
        let is_config = || self.folders().any(in_root) || self.gits.iter().any(in_git);
        self.keeps(path) || !is_open && is_config()
    }

    /// All that may be written with what is below, and has guards.
    pub fn folders(&self) -> impl Iterator<Item = &AbsPath> {
        self.roots.iter().chain(&self.writable).chain(self.granted.iter().map(Granted::path))
    }

    /// Whether it cannot be granted: it holds what is kept, as a home folder does, or is held by it.
    pub fn is_too_wide(&self, path: &AbsPath) -> bool {
        self.kept.iter().any(|it| it.is_within(path) || path.is_within(it))
    }

    /// Whether it is never written, whatever the user says of the workspace.
    pub fn keeps(&self, path: &AbsPath) -> bool {
        self.kept.iter().any(|it| path.is_within(it)) && !path.is_within(&self.tmp)
    }
}

impl Confinement {
    /// That of commands in one folder, for who only looks: they write nothing else, and there is no network.
    pub fn of(root: &AbsPath) -> Self {
        Self {
            read_only: false,
            untrusted: false,
            roots: vec![root.clone()],
            writable: Vec::new(),
            granted: Vec::new(),
            gits: Vec::new(),
            kept: Vec::new(),
            open: Vec::new(),
            tmp: root.join("/t"),
            records: root.join("/r"),
            network: false,
        }
    }
}

fn is_git_config(below: &Path) -> bool {
    let of_worktree = |rest: &Path| WORKTREE_CONFIG.iter().any(|(name, _)| rest.iter().skip(1).eq([OsStr::new(name)]));
    GIT_CONFIG.iter().any(|(name, _)| below.starts_with(name)) || below.strip_prefix("worktrees").is_ok_and(of_worktree)
}

/// What the user allowed to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    Folder(AbsPath),
    /// This file alone.
    File(AbsPath),
    /// The same of one that output goes to, as the command says: where it is not there it is made as the shell would, and
    /// removed with the command if nothing came.
    Output(AbsPath),
}

impl Granted {
    pub fn path(&self) -> &AbsPath {
        match self {
            Self::Folder(it) | Self::File(it) | Self::Output(it) => it,
        }
    }
}

/// What a user allows beyond the confinement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leave {
    pub network: bool,
    pub write: Vec<Granted>,
    /// Configuration in the session's roots.
    pub config: Vec<AbsPath>,
    pub unconfined: bool,
    /// The command only looks: everything is read-only to it.
    pub looks: bool,
}

impl Leave {
    /// What both allow.
    #[must_use]
    pub fn and(mut self, more: &Self) -> Self {
        self.network |= more.network;
        self.unconfined |= more.unconfined;
        self.looks |= more.looks;
        let write = more.write.iter().filter(|it| !self.write.contains(it)).cloned().collect::<Vec<_>>();
        let config = more.config.iter().filter(|it| !self.config.contains(it)).cloned().collect::<Vec<_>>();
        self.write.extend(write);
        self.config.extend(config);
        self
    }
}

fn shown(path: &AbsPath) -> String {
    text::path_in_words(&path.to_string())
}

/// What a confined command most likely failed at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "denied", rename_all = "snake_case")]
pub enum Denial {
    Network,
    /// Writing below a folder. It is made where it is not there.
    Write {
        folder: AbsPath,
    },
    /// Writing one file, in a folder that is too wide to be given at all: a home folder.
    File {
        path: AbsPath,
    },
    /// Writing in a folder that is too wide to be given for longer than once.
    Outside {
        path: AbsPath,
        folder: AbsPath,
    },
    /// Making what must not be there before, in such a folder: castor can only open what is there.
    New {
        path: AbsPath,
    },
    /// Writing, or making, configuration in the workspace.
    Config {
        path: AbsPath,
    },
    /// Something that is never allowed to a confined command (sockets of other programs, the user's own configuration), or
    /// of which nobody says what it was.
    Other,
}

impl Denial {
    /// For model and user.
    pub fn in_words(&self) -> String {
        match self {
            Self::Network => "The sandbox kept this command from the network.".to_owned(),
            Self::Write { folder } => format!("The sandbox kept this command from writing below {}.", shown(folder)),
            Self::Outside { path, .. } | Self::File { path } => {
                format!(
                    "The sandbox kept this command from writing {}, which is outside of the workspace.",
                    shown(path)
                )
            }
            Self::New { path } => {
                format!("The sandbox kept this command from making {}, which is outside of the workspace.", shown(path))
            }
            Self::Config { path } => {
                let path = shown(path);
                format!("The sandbox kept this command from writing {path}, which editors, git or castor obey.")
            }
            Self::Other => {
                "The sandbox kept this command from something that it names nowhere, or that is open to none: \
                            a file elsewhere, configuration that editors, git or castor obey, sockets of other \
                            programs, or other processes."
                    .to_owned()
            }
        }
    }

    /// What a yes to running it again comes to, for once.
    pub fn leave(&self) -> Leave {
        match self {
            Self::Network => Leave { network: true, ..Leave::default() },
            Self::Write { folder } => Leave { write: vec![Granted::Folder(folder.clone())], ..Leave::default() },
            Self::File { path } => Leave { write: vec![Granted::File(path.clone())], ..Leave::default() },
            // All that the user may write is no less than to go without the sandbox.
            Self::Outside { folder, .. } if folder.parent().is_none() => Leave { unconfined: true, ..Leave::default() },
            Self::Outside { folder, .. } => Leave { write: vec![Granted::Folder(folder.clone())], ..Leave::default() },
            Self::Config { path } => Leave { config: vec![path.clone()], ..Leave::default() },
            Self::New { .. } | Self::Other => Leave { unconfined: true, ..Leave::default() },
        }
    }

    /// What a yes does, for the user.
    pub fn offer(&self) -> String {
        match self {
            Self::Network | Self::Write { .. } => "Allow runs all of it again with that, and no more.".to_owned(),
            Self::Config { .. } | Self::File { .. } => {
                "Allow runs all of it again with that, this once, and no more.".to_owned()
            }
            Self::Outside { folder, .. } if folder.parent().is_some() => {
                format!("Allow runs all of it again with writing below {}, this once, and no more.", shown(folder))
            }
            Self::Outside { .. } | Self::New { .. } | Self::Other => {
                "Allow runs all of it again without the sandbox, with all your rights.".to_owned()
            }
        }
    }

    /// The same for the session; `None`: not on offer.
    pub fn grant(&self) -> Option<Grant> {
        match self {
            Self::Network => Some(Grant::Network),
            Self::Write { folder } => Some(Grant::Write { folder: folder.clone() }),
            Self::File { .. } | Self::Outside { .. } | Self::New { .. } | Self::Config { .. } | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Confinement, Denial, Hold, Leave, Level};
    use crate::base::path::AbsPath;

    #[test]
    fn how_commands_are_held_is_said() {
        let check = |level, available, trusted, want: &str| {
            assert_eq!(Hold { level, network: false, available, trusted }.in_words(), want);
        };
        check(Level::WorkspaceWrite, true, true, "workspace-write, without network");
        check(Level::ReadOnly, true, true, "read-only, without network");
        check(Level::ReadOnly, true, false, "read-only, as the folder is not trusted, without network");
        check(Level::Off, true, true, "off; commands may do what you may");
        check(Level::Off, false, true, "off; this system has nothing to confine commands with");
        let why = "wanted, but this system has nothing to confine commands with: they do not start";
        check(Level::ReadOnly, false, true, why);
        let online = Hold { level: Level::WorkspaceWrite, network: true, available: true, trusted: true };
        assert_eq!(online.in_words(), "workspace-write, with network");
    }

    #[test]
    fn what_may_be_written() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement {
            writable: vec![path("/more")],
            gits: vec![path("/up/.git")],
            kept: vec![path("/h/.castor")],
            tmp: path("/h/.castor/tmp"),
            ..Confinement::of(&path("/w"))
        };
        for yes in ["/w", "/w/a", "/w/.git/index", "/w/.github/x", "/more/x", "/up/.git/index", "/h/.castor/tmp/x"] {
            assert!(it.writes(&path(yes)), "{yes}");
        }
        for no in [
            "/",
            "/wide",
            "/w/.git/hooks/x",
            "/w/.git",
            "/w/.git/config",
            "/w/.vscode/a",
            "/up/a",
            "/up/.git/hooks/x",
            "/up/.git/worktrees/t/commondir",
            "/h/.castor/x",
            "/x",
        ] {
            assert!(!it.writes(&path(no)), "{no}");
        }
        let read_only = Confinement { read_only: true, ..it.clone() };
        assert!(!read_only.writes(&path("/w/a")) && read_only.writes(&path("/h/.castor/tmp/x")));
        let wider = it.with(&Denial::Write { folder: path("/x") }.leave()).unwrap();
        assert!(wider.writes(&path("/x/y")) && !wider.network);
        let too_wide = it.with(&Denial::Write { folder: path("/h") }.leave()).unwrap();
        assert!(!too_wide.writes(&path("/h/x")) && !too_wide.writes(&path("/h/.castor/x")));
        let file = it.with(&Denial::File { path: path("/h/x") }.leave()).unwrap();
        assert!(file.writes(&path("/h/x")) && !file.writes(&path("/h/y")));
        assert!(it.with(&Denial::Network.leave()).unwrap().network);
        let open = it.with(&Denial::Config { path: path("/w/.vscode") }.leave()).unwrap();
        assert!(open.writes(&path("/w/.vscode/a")) && !open.writes(&path("/w/.zed/a")) && !open.writes(&path("/x")));
        // What is kept stays so, wherever the workspace is.
        let home = Confinement { roots: vec![path("/h")], ..it.clone() };
        let open = home.with(&Denial::Config { path: path("/h/.castor") }.leave()).unwrap();
        assert!(!open.writes(&path("/h/.castor/x")));
        let outside = |folder: &str| Denial::Outside { path: path("/opt/x"), folder: path(folder) };
        let wider = it.with(&outside("/opt").leave()).unwrap();
        assert!(wider.writes(&path("/opt/x")) && !wider.writes(&path("/x")));
        assert_eq!((it.with(&outside("/").leave()), outside("/opt").grant()), (None, None));
        assert_eq!(it.with(&Denial::Other.leave()), None);
        assert_eq!(it.with(&Leave::default()), Some(it));
    }
}
