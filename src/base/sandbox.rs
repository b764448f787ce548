//! How commands are confined: what they may write and reach, what a denial was, and what more may be allowed.

mod denial;
mod leave;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::base::{guarded, path::AbsPath};

pub use denial::Denial;
pub use leave::Leave;

/// Of [`guarded::CONFIG`], what is read-only also deeper than at the top of a folder that commands write.
pub const PROTECTED_BELOW: &[&str] = &[".castor", ".envrc", ".gemini", ".git", ".idea", ".mcp.json", ".vscode", ".zed"];

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

/// What holds the place of something that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    Folder,
    /// A file with that in it.
    File(&'static str),
}

impl Placeholder {
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
pub const GIT_CONFIG: &[(&str, Placeholder)] = &[
    ("branches", Placeholder::Folder),
    ("commondir", ITSELF),
    ("config", Placeholder::File("")),
    ("config.worktree", Placeholder::File("")),
    ("hooks", Placeholder::Folder),
    ("info", Placeholder::Folder),
    ("modules", Placeholder::Folder),
    ("remotes", Placeholder::Folder),
];
/// "The repository's common part is here": an empty file is an error to git, and a folder too. Written as nobody does it.
pub const ITSELF: Placeholder = Placeholder::File("././.\n");

/// The same for each folder in `.git/worktrees`. `None`: always there.
pub const WORKTREE_CONFIG: &[(&str, Option<Placeholder>)] =
    &[("commondir", None), ("config.worktree", Some(Placeholder::File(""))), ("gitdir", None)];

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
    /// The roots are read-only.
    pub read_only: bool,
    /// That is so as the folder is not trusted.
    pub untrusted: bool,
    /// The session's folders, canonical.
    pub roots: Vec<AbsPath>,
    /// More that may be written, at every level.
    pub writable: Vec<AbsPath>,
    /// Git folders outside of the roots that git works with in them: written but for what git obeys.
    pub gits: Vec<AbsPath>,
    /// Never written, wherever it is: castor's own folder, a home's configuration.
    pub kept: Vec<AbsPath>,
    /// In the roots, and read-only, as no checkpoint can give it back.
    pub read_only_paths: Vec<AbsPath>,
    /// What a process does not see: credentials, castor's own folder, sockets of the desktop.
    pub masked: Vec<AbsPath>,
    /// The user's home folder, canonical: with the network, only the tools' folders in it are seen.
    pub home: Option<AbsPath>,
    /// What the user allowed meanwhile, or asks for: nothing of `kept` is ever written.
    pub leave: Leave,
    pub own: OwnFolders,
    pub network: bool,
}

/// What commands are kept from wherever the workspace is, for castor's own hands: as [`Confinement`] has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedPaths {
    pub kept: Vec<AbsPath>,
    pub masked: Vec<AbsPath>,
}

impl ProtectedPaths {
    /// Whether no command of a session in these folders would see `real`. A workspace in what is masked is seen.
    pub fn is_masked(&self, real: &AbsPath, roots: &[AbsPath]) -> bool {
        let opens = |all: &AbsPath| roots.iter().any(|it| it.is_within(all) && real.is_within(it));
        self.masked.iter().any(|it| real.is_within(it) && !opens(it))
    }

    /// Whether none would write it. What is elsewhere is asked about as that.
    pub fn is_kept(&self, real: &AbsPath, roots: &[AbsPath]) -> bool {
        let root = roots.iter().filter(|it| real.is_within(it)).max_by_key(|it| it.as_path().components().count());
        root.is_some_and(|root| self.kept.iter().any(|it| it.is_within(root) && real.is_within(it)))
    }
}

/// Castor's own folders that a confined process, or castor for it, works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFolders {
    /// For temporary files.
    pub tmp: AbsPath,
    /// Where castor writes down which placeholders stand.
    pub records: AbsPath,
    /// Where package managers keep what they fetched, in place of the home folder.
    pub caches: Option<AbsPath>,
}

impl Confinement {
    /// The same with what the user allowed beyond it; `None`: nothing is left of it.
    pub fn with(&self, leave: &Leave) -> Option<Self> {
        if leave.unconfined {
            return None;
        }
        let mut res = self.clone();
        res.network |= leave.network || leave.unasked;
        res.leave = res.leave.and(leave);
        // Of a file that is obeyed by itself its name says all; of what lies in a folder the sandbox asks for the folder.
        let named = res.leave.named.iter().filter(|it| !res.read_only && res.config_of(it).as_ref() == Some(it));
        let config = named.cloned().collect();
        res.leave = res.leave.and(&Leave { config, ..Leave::default() });
        Some(if leave.looks { res.looking() } else { res })
    }

    /// The same where only what can be given back may be written: not the folders of the settings, nor `not_kept`, nor
    /// a repository outside the roots that the user did not open.
    #[must_use]
    pub fn undoable(&self, not_kept: &[AbsPath]) -> Self {
        let is_closed = |git: &&AbsPath| !self.leave.write.iter().any(|it| git.is_within(it));
        let read_only_paths = self.gits.iter().filter(is_closed).chain(not_kept).cloned().collect();
        Self { writable: Vec::new(), read_only_paths, ..self.clone() }
    }

    /// Whether it sees no secrets of the workspace, and of the home only tools.
    pub fn is_apart(&self) -> bool {
        self.network || self.leave.apart.is_some()
    }

    /// That of who only looks.
    #[must_use]
    pub fn looking(self) -> Self {
        let credentials = self.leave.credentials;
        let leave = Leave { looks: true, credentials, ..Leave::default() };
        let own = OwnFolders { caches: None, ..self.own };
        Self { read_only: true, network: false, writable: Vec::new(), gits: Vec::new(), leave, own, ..self }
    }

    /// Whether writing there is what it allows.
    pub fn writes(&self, path: &AbsPath) -> bool {
        let below = |them: &[AbsPath]| them.iter().any(|it| path.is_within(it));
        let in_roots = !self.read_only && (below(&self.roots) || below(&self.gits));
        let granted = self.leave.write.iter().any(|it| path.is_within(it) && !self.is_too_wide(it));
        let opened = self.read_only && below(&self.leave.config);
        let caches = self.own.caches.as_ref().is_some_and(|it| path.is_within(it));
        let open = below(&self.writable) || granted || opened || caches || path.is_within(&self.own.tmp) || in_roots;
        open && !self.obeyed(path) && !self.is_not_kept_by_checkpoints(path)
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
        let is_config = || self.folders().any(in_root) || self.gits.iter().any(in_git);
        self.keeps(path) || !self.is_open(path) && is_config()
    }

    /// The configuration in the workspace that a path belongs to: the first on the way that is obeyed as a whole. Of a
    /// repository, only what was wanted.
    pub fn config_of(&self, path: &AbsPath) -> Option<AbsPath> {
        if self.keeps(path) || !self.obeyed(path) {
            return None;
        }
        let root = self.folders().chain(&self.gits).find(|root| path.is_within(root))?;
        let below = path.as_path().strip_prefix(root.as_path()).ok()?;
        let mut whole = root.clone();
        for part in below.iter() {
            whole = whole.join(part);
            if self.obeyed(&whole) && (part != ".git" || whole == *path) {
                break;
            }
        }
        (!self.keeps(&whole)).then_some(whole)
    }

    /// Whether it is read-only as no checkpoint can give it back.
    pub fn is_not_kept_by_checkpoints(&self, path: &AbsPath) -> bool {
        !self.is_open(path) && self.read_only_paths.iter().any(|it| path.is_within(it))
    }

    fn is_open(&self, path: &AbsPath) -> bool {
        self.leave.config.iter().any(|it| path.is_within(it))
    }

    /// All that may be written with what is below, and has guards.
    pub fn folders(&self) -> impl Iterator<Item = &AbsPath> {
        self.roots.iter().chain(&self.writable).chain(&self.leave.write)
    }

    /// Whether it cannot be granted: it holds what is kept, as a home folder does, or is held by it.
    pub fn is_too_wide(&self, path: &AbsPath) -> bool {
        self.kept.iter().any(|it| touches(it, path))
    }

    /// Whether it is never written, whatever the user says of the workspace.
    pub fn keeps(&self, path: &AbsPath) -> bool {
        let is_own = path.is_within(&self.own.tmp) || self.own.caches.as_ref().is_some_and(|it| path.is_within(it));
        self.kept.iter().any(|it| path.is_within(it)) && !is_own
    }

    /// Whether a secret is not seen. Castor's own folder no question opens.
    pub fn hides(&self, secret: &AbsPath) -> bool {
        touches(secret, &self.own.records) || !self.leave.credentials.iter().any(|it| touches(it, secret))
    }
}

/// Whether one of them lies within the other.
fn touches(one: &AbsPath, other: &AbsPath) -> bool {
    one.is_within(other) || other.is_within(one)
}

impl Confinement {
    /// That of commands in one folder: they write nothing else, and there is no network.
    pub fn of(root: &AbsPath) -> Self {
        Self {
            read_only: false,
            untrusted: false,
            roots: vec![root.clone()],
            writable: Vec::new(),
            gits: Vec::new(),
            kept: Vec::new(),
            read_only_paths: Vec::new(),
            masked: Vec::new(),
            home: None,
            leave: Leave::default(),
            own: OwnFolders { tmp: root.join("/t"), records: root.join("/r"), caches: None },
            network: false,
        }
    }
}

fn is_git_config(below: &Path) -> bool {
    let of_worktree = |rest: &Path| WORKTREE_CONFIG.iter().any(|(name, _)| rest.iter().skip(1).eq([OsStr::new(name)]));
    GIT_CONFIG.iter().any(|(name, _)| below.starts_with(name)) || below.strip_prefix("worktrees").is_ok_and(of_worktree)
}

#[cfg(test)]
mod tests {
    use super::{Confinement, Denial, Hold, Leave, Level, OwnFolders};
    use crate::base::path::AbsPath;

    fn own(castor: &str) -> OwnFolders {
        let at = |it: &str| AbsPath::new(castor).unwrap().join(it);
        OwnFolders { tmp: at("tmp"), records: at("stand-ins"), caches: None }
    }

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
            own: own("/h/.castor"),
            ..Confinement::of(&path("/w"))
        };
        let it = Confinement { read_only_paths: vec![path("/w/big")], ..it };
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
            "/w/big/x",
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
        assert!(it.with(&Denial::Network.leave()).unwrap().network);
        let open = it.with(&Denial::Config { path: path("/w/.vscode") }.leave()).unwrap();
        assert!(open.writes(&path("/w/.vscode/a")) && !open.writes(&path("/w/.zed/a")) && !open.writes(&path("/x")));
        // What is kept stays so, wherever the workspace is.
        let home = Confinement { roots: vec![path("/h")], ..it.clone() };
        let open = home.with(&Denial::Config { path: path("/h/.castor") }.leave()).unwrap();
        assert!(!open.writes(&path("/h/.castor/x")));
        let big = it.with(&Denial::NotKept { path: path("/w/big") }.leave()).unwrap();
        assert!(big.writes(&path("/w/big/x")) && !big.writes(&path("/w/.vscode/a")));
        let grant = |folder: &str| Denial::Write { folder: path(folder) }.grant();
        assert!(grant("/opt").is_none() && grant("/opt/x").is_some());
        // What is asked for by name is open where that is all there is to it.
        let named = [path("/w/.npmrc"), path("/w/.vscode/a"), path("/h/.castor/x"), path("/w/plain")].to_vec();
        let named = it.with(&Leave { named, ..Leave::default() }).unwrap();
        assert_eq!(named.leave.config, [path("/w/.npmrc")]);
        assert!(named.writes(&path("/w/.npmrc")) && !named.writes(&path("/w/.vscode/a")));
        assert_eq!(it.with(&Denial::Other.leave()), None);
        assert_eq!(it.with(&Leave::default()), Some(it));
    }

    #[test]
    fn who_only_looks_writes_nothing_and_stays_one_who_looks() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement { writable: vec![path("/more")], network: true, ..Confinement::of(&path("/w")) };
        let leave = Leave { looks: true, ..Leave::default() };
        let more =
            Leave { network: true, write: vec![path("/x")], config: vec![path("/w/.vscode")], ..Leave::default() };
        let looking = it.with(&more.and(&leave)).unwrap();
        assert!(looking.leave.looks && !looking.network);
        for no in ["/w/a", "/more/a", "/x/a", "/w/.vscode/a"] {
            assert!(!looking.writes(&path(no)), "{no}");
        }
        assert!(looking.writes(&path("/t/x")));
    }

    #[test]
    fn a_yes_opens_the_credential_it_names_and_never_castors_own() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let masked = ["/h/.ssh", "/h/.aws", "/h/.castor"].map(path).to_vec();
        let it = Confinement { masked, own: own("/h/.castor"), ..Confinement::of(&path("/w")) };
        let masked = |open: &[&str]| {
            let leave = Leave { credentials: open.iter().map(|it| path(it)).collect(), ..Leave::default() };
            let it = it.with(&leave).unwrap();
            it.masked.iter().filter(|secret| it.hides(secret)).map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(masked(&[]), "/h/.ssh /h/.aws /h/.castor");
        assert_eq!(masked(&["/h/.ssh/id_rsa"]), "/h/.aws /h/.castor");
        assert_eq!(masked(&["/h", "/h/.castor/oauth"]), "/h/.castor");
        let leave = Denial::Credential { path: path("/h/.ssh") }.leave();
        assert!(leave.network && it.with(&leave).unwrap().network);
    }
}
