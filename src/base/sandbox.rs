//! Sandbox levels and confinement: the paths and the network that a command may use, and protected paths.

mod denial;
mod grant;
pub mod held_program;
mod program;
mod protected_paths;
mod refusal;
mod shared_tmp;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use crate::{
    guarded_names::{self, GuardedNames},
    path::AbsPath,
};

pub use denial::{Denial, in_a_row};
pub use grant::{OpenSecret, SandboxGrant};
pub use program::ProgramSandbox;
pub use protected_paths::ProtectedPaths;
pub use refusal::{Refusal, Refused};
pub use shared_tmp::{SHARED_TMP, TMP};

/// Of [`guarded::CONFIG`], what is read-only also deeper than at the top of a folder that commands write.
pub const PROTECTED_BELOW: &[&str] = &[".castor", ".envrc", ".gemini", ".git", ".idea", ".mcp.json", ".vscode", ".zed"];

/// What a sandbox holds in a folder that commands write.
static PROTECTED_LISTS: [&LazyLock<&GuardedNames>; 2] = [&guarded_names::CONFIG, &guarded_names::TOOLS];

/// Where names that follow each other may be held in a folder. One name alone begins with the folder's own.
pub fn protected_below(root: &Path) -> Vec<PathBuf> {
    PROTECTED_LISTS.iter().flat_map(|it| it.paths_below(root)).map(|it| it.1).collect()
}

/// Tells whether an entry at the top of a folder is held there. `below`: what [`protected_below`] says of the folder.
pub fn is_protected(name: &OsStr, below: &[PathBuf]) -> bool {
    let is_same = |it: &PathBuf| it.as_os_str().eq_ignore_ascii_case(name);
    guarded_names::CONFIG.find(Path::new(name)).is_some() || below.iter().any(is_same)
}

/// A file or folder in the place of absent configuration.
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
    ("commondir", SELF_COMMONDIR),
    ("config", Placeholder::File("")),
    ("config.worktree", Placeholder::File("")),
    ("hooks", Placeholder::Folder),
    ("info", Placeholder::Folder),
    ("modules", Placeholder::Folder),
    ("remotes", Placeholder::Folder),
];
/// "The repository's common part is here": an empty file is an error to git, and a folder too. Written as nobody does it.
pub const SELF_COMMONDIR: Placeholder = Placeholder::File("././.\n");

/// The same for each folder in `.git/worktrees`. `None`: always there.
pub const WORKTREE_CONFIG: &[(&str, Option<Placeholder>)] =
    &[("commondir", None), ("config.worktree", Some(Placeholder::File(""))), ("gitdir", None)];

/// Write access of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxLevel {
    /// As much as the user.
    Off,
    /// Below the session's roots, but not its configuration.
    WorkspaceWrite,
    /// Temporary files only.
    ReadOnly,
}

impl SandboxLevel {
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

/// A session's confinement of commands, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxState {
    pub level: SandboxLevel,
    pub network: bool,
    /// The system can.
    pub available: bool,
    /// The folder may be written by commands, as far as its trust goes.
    pub trusted: bool,
}

impl SandboxState {
    /// Behind "sandbox: ".
    pub fn in_words(&self) -> String {
        let network = if self.network { "with network" } else { "without network" };
        match (self.level, self.available) {
            (SandboxLevel::Off, true) => "off; commands may do what you may".to_owned(),
            (SandboxLevel::Off, false) => "off; this system has nothing to confine commands with".to_owned(),
            (_, false) => "wanted, but this system has nothing to confine commands with: they do not start".to_owned(),
            (SandboxLevel::WorkspaceWrite, true) => format!("workspace-write, {network}"),
            (SandboxLevel::ReadOnly, true) if !self.trusted => {
                format!("read-only, as the folder is not trusted, {network}")
            }
            (SandboxLevel::ReadOnly, true) => format!("read-only, {network}"),
        }
    }
}

/// The rights of a confined process.
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
    pub git_dirs: Vec<AbsPath>,
    /// Never written, wherever it is: castor's own folder, a home's configuration.
    pub never_written: Vec<AbsPath>,
    /// Read-only: in the roots what no checkpoint can give back, in castor's own folder what extensions brought.
    pub read_only_paths: Vec<AbsPath>,
    /// What a process does not see: credentials, castor's own folder, sockets of the desktop.
    pub masked: Vec<AbsPath>,
    /// The user's home folder, canonical: only the tools' folders in it are seen.
    pub home: Option<AbsPath>,
    /// What the user allowed meanwhile, or asks for: nothing of `kept` is ever written.
    pub grant: SandboxGrant,
    pub own_folders: OwnFolders,
    pub network: bool,
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
    pub fn with_grant(&self, leave: &SandboxGrant) -> Option<Self> {
        if leave.unconfined {
            return None;
        }
        let mut res = self.clone();
        res.network |= leave.network || leave.network_by_mode;
        res.grant = res.grant.union(leave);
        // Of a file that is obeyed by itself its name says all; of what lies in a folder the sandbox asks for the folder.
        let named =
            res.grant.named_config.iter().filter(|it| !res.read_only && res.config_root(it).as_ref() == Some(it));
        let config = named.cloned().collect();
        res.grant = res.grant.union(&SandboxGrant { config, ..SandboxGrant::default() });
        Some(if leave.read_only { res.into_read_only() } else { res })
    }

    /// The same where only what can be given back may be written: not the folders of the settings, nor `not_kept`, nor
    /// a repository outside the roots that the user did not open.
    #[must_use]
    pub fn undoable_only(&self, not_kept: &[AbsPath]) -> Self {
        let is_closed = |git: &&AbsPath| !self.grant.write.iter().any(|it| git.is_within(it));
        let read_only_paths =
            self.git_dirs.iter().filter(is_closed).chain(not_kept).chain(&self.read_only_paths).cloned().collect();
        let seen = [&*self.grant.seen, &*self.writable].concat();
        let grant = SandboxGrant { seen, ..self.grant.clone() };
        Self { writable: Vec::new(), read_only_paths, grant, ..self.clone() }
    }

    /// Tells whether it sees no secrets of the workspace.
    pub fn hides_secrets(&self) -> bool {
        self.network || self.grant.isolation_reason.is_some() || self.grant.reach.leads_out()
    }

    /// Tells whether it may have sockets of its own, and such as were given: those of others are hidden then. What only
    /// looks needs none.
    pub fn opens_sockets(&self) -> bool {
        !self.grant.read_only || !self.grant.reach.sockets.is_empty()
    }

    /// The read-only variant.
    #[must_use]
    pub fn into_read_only(self) -> Self {
        let SandboxGrant { credentials, seen, .. } = self.grant;
        let leave = SandboxGrant { read_only: true, credentials, seen, ..SandboxGrant::default() };
        let own = OwnFolders { caches: None, ..self.own_folders };
        Self { read_only: true, network: false, writable: Vec::new(), grant: leave, own_folders: own, ..self }
    }

    /// Tells whether writing there is what it allows.
    pub fn allows_write(&self, path: &AbsPath) -> bool {
        let below = |them: &[AbsPath]| them.iter().any(|it| path.is_within(it));
        let in_roots = !self.read_only && (below(&self.roots) || below(&self.git_dirs));
        let granted = self.grant.write.iter().any(|it| path.is_within(it) && !self.is_too_wide(it));
        let opened = self.read_only && below(&self.grant.config);
        let caches = self.own_folders.caches.as_ref().is_some_and(|it| path.is_within(it));
        let open =
            below(&self.writable) || granted || opened || caches || path.is_within(&self.own_folders.tmp) || in_roots;
        open && !self.is_obeyed(path) && !self.lacks_checkpoint(path)
    }

    /// Tells whether a program outside of the sandbox runs or obeys its content.
    pub fn is_obeyed(&self, path: &AbsPath) -> bool {
        let in_root = |root: &AbsPath| {
            let Ok(below) = path.as_path().strip_prefix(root.as_path()) else { return false };
            match below.strip_prefix(".git") {
                Ok(rest) => rest.as_os_str().is_empty() || is_git_config(rest),
                Err(_) => PROTECTED_LISTS.iter().any(|it| it.find_below(root.as_path(), path.as_path()).is_some()),
            }
        };
        let in_git = |git: &AbsPath| path.as_path().strip_prefix(git.as_path()).is_ok_and(is_git_config);
        let is_config = || self.writable_folders().any(in_root) || self.git_dirs.iter().any(in_git);
        self.is_never_written(path) || !self.is_granted(path) && is_config()
    }

    /// The configuration in the workspace that a path belongs to: the first on the way that is obeyed as a whole. Of a
    /// repository, only what was wanted.
    pub fn config_root(&self, path: &AbsPath) -> Option<AbsPath> {
        if self.is_never_written(path) || !self.is_obeyed(path) {
            return None;
        }
        let root = self.writable_folders().chain(&self.git_dirs).find(|root| path.is_within(root))?;
        let below = path.as_path().strip_prefix(root.as_path()).ok()?;
        let mut whole = root.clone();
        for part in below.iter() {
            whole = whole.join(part);
            if self.is_obeyed(&whole) && (part != ".git" || whole == *path) {
                break;
            }
        }
        (!self.is_never_written(&whole)).then_some(whole)
    }

    /// Tells whether it is read-only as no checkpoint can give it back.
    pub fn lacks_checkpoint(&self, path: &AbsPath) -> bool {
        !self.is_granted(path) && self.read_only_paths.iter().any(|it| path.is_within(it))
    }

    fn is_granted(&self, path: &AbsPath) -> bool {
        self.grant.config.iter().any(|it| path.is_within(it))
    }

    /// All that may be written with what is below, and has guards.
    pub fn writable_folders(&self) -> impl Iterator<Item = &AbsPath> {
        self.roots.iter().chain(&self.writable).chain(&self.grant.write)
    }

    /// Tells whether it cannot be granted: it holds what is kept, as a home folder does, or is held by it.
    pub fn is_too_wide(&self, path: &AbsPath) -> bool {
        self.never_written.iter().any(|it| overlaps(it, path))
    }

    /// Tells whether it is never written, whatever the user says of the workspace.
    pub fn is_never_written(&self, path: &AbsPath) -> bool {
        let is_own = path.is_within(&self.own_folders.tmp)
            || self.own_folders.caches.as_ref().is_some_and(|it| path.is_within(it));
        self.never_written.iter().any(|it| path.is_within(it)) && !is_own
    }

    /// Tells whether a secret is not seen. Castor's own folder no question opens.
    pub fn masks_secret(&self, secret: &AbsPath) -> bool {
        let is_online = self.network || self.grant.isolation_reason.is_some();
        let opens = |it: &OpenSecret| overlaps(&it.path, secret) && it.holds_beside(is_online, &self.grant.reach);
        overlaps(secret, &self.own_folders.records) || !self.grant.credentials.iter().any(opens)
    }
}

/// Tells whether one of them lies within the other.
fn overlaps(one: &AbsPath, other: &AbsPath) -> bool {
    one.is_within(other) || other.is_within(one)
}

impl Confinement {
    /// That of commands in one folder: they write nothing else, and there is no network.
    pub fn for_folder(root: &AbsPath) -> Self {
        Self {
            read_only: false,
            untrusted: false,
            roots: vec![root.clone()],
            writable: Vec::new(),
            git_dirs: Vec::new(),
            never_written: Vec::new(),
            read_only_paths: Vec::new(),
            masked: Vec::new(),
            home: None,
            grant: SandboxGrant::default(),
            own_folders: OwnFolders { tmp: root.join("/t"), records: root.join("/r"), caches: None },
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
    use super::{Confinement, Denial, OpenSecret, OwnFolders, SandboxGrant, SandboxLevel, SandboxState};
    use crate::path::AbsPath;

    fn own(castor: &str) -> OwnFolders {
        let at = |it: &str| AbsPath::new(castor).unwrap().join(it);
        OwnFolders { tmp: at("tmp"), records: at("stand-ins"), caches: None }
    }

    #[test]
    fn how_commands_are_held_is_said() {
        let check = |level, available, trusted, want: &str| {
            assert_eq!(SandboxState { level, network: false, available, trusted }.in_words(), want);
        };
        check(SandboxLevel::WorkspaceWrite, true, true, "workspace-write, without network");
        check(SandboxLevel::ReadOnly, true, true, "read-only, without network");
        check(SandboxLevel::ReadOnly, true, false, "read-only, as the folder is not trusted, without network");
        check(SandboxLevel::Off, true, true, "off; commands may do what you may");
        check(SandboxLevel::Off, false, true, "off; this system has nothing to confine commands with");
        let why = "wanted, but this system has nothing to confine commands with: they do not start";
        check(SandboxLevel::ReadOnly, false, true, why);
        let online =
            SandboxState { level: SandboxLevel::WorkspaceWrite, network: true, available: true, trusted: true };
        assert_eq!(online.in_words(), "workspace-write, with network");
    }

    #[test]
    fn writes_reach_roots_and_no_configuration() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement {
            writable: vec![path("/more")],
            git_dirs: vec![path("/up/.git")],
            never_written: vec![path("/h/.castor")],
            own_folders: own("/h/.castor"),
            ..Confinement::for_folder(&path("/w"))
        };
        let it = Confinement { read_only_paths: vec![path("/w/big")], ..it };
        for yes in ["/w", "/w/a", "/w/.git/index", "/w/.github/x", "/more/x", "/up/.git/index", "/h/.castor/tmp/x"] {
            assert!(it.allows_write(&path(yes)), "{yes}");
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
            assert!(!it.allows_write(&path(no)), "{no}");
        }
        let read_only = Confinement { read_only: true, ..it.clone() };
        assert!(!read_only.allows_write(&path("/w/a")) && read_only.allows_write(&path("/h/.castor/tmp/x")));
        let wider = it.with_grant(&Denial::Write { folder: path("/x") }.grant_once()).unwrap();
        assert!(wider.allows_write(&path("/x/y")) && !wider.network);
        let too_wide = it.with_grant(&Denial::Write { folder: path("/h") }.grant_once()).unwrap();
        assert!(!too_wide.allows_write(&path("/h/x")) && !too_wide.allows_write(&path("/h/.castor/x")));
        assert!(it.with_grant(&Denial::Network.grant_once()).unwrap().network);
        let open = it.with_grant(&Denial::Config { path: path("/w/.vscode") }.grant_once()).unwrap();
        assert!(
            open.allows_write(&path("/w/.vscode/a"))
                && !open.allows_write(&path("/w/.zed/a"))
                && !open.allows_write(&path("/x"))
        );
        // What is kept stays so, wherever the workspace is.
        let home = Confinement { roots: vec![path("/h")], ..it.clone() };
        let open = home.with_grant(&Denial::Config { path: path("/h/.castor") }.grant_once()).unwrap();
        assert!(!open.allows_write(&path("/h/.castor/x")));
        let big = it.with_grant(&Denial::NotKept { path: path("/w/big") }.grant_once()).unwrap();
        assert!(big.allows_write(&path("/w/big/x")) && !big.allows_write(&path("/w/.vscode/a")));
        let grant = |folder: &str| Denial::Write { folder: path(folder) }.session_grant();
        assert!(grant("/opt").is_none() && grant("/opt/x").is_some());
        // What is asked for by name is open where that is all there is to it.
        let named = [path("/w/.npmrc"), path("/w/.vscode/a"), path("/h/.castor/x"), path("/w/plain")].to_vec();
        let named = it.with_grant(&SandboxGrant { named_config: named, ..SandboxGrant::default() }).unwrap();
        assert_eq!(named.grant.config, [path("/w/.npmrc")]);
        assert!(named.allows_write(&path("/w/.npmrc")) && !named.allows_write(&path("/w/.vscode/a")));
        assert_eq!(it.with_grant(&Denial::Other.grant_once()), None);
        assert_eq!(it.with_grant(&SandboxGrant::default()), Some(it));
    }

    #[test]
    fn who_only_looks_writes_nothing_and_stays_one_who_looks() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement { writable: vec![path("/more")], network: true, ..Confinement::for_folder(&path("/w")) };
        let leave = SandboxGrant { read_only: true, ..SandboxGrant::default() };
        let more = SandboxGrant {
            network: true,
            write: vec![path("/x")],
            config: vec![path("/w/.vscode")],
            ..SandboxGrant::default()
        };
        let looking = it.with_grant(&more.union(&leave)).unwrap();
        assert!(looking.grant.read_only && !looking.network);
        for no in ["/w/a", "/more/a", "/x/a", "/w/.vscode/a"] {
            assert!(!looking.allows_write(&path(no)), "{no}");
        }
        assert!(looking.allows_write(&path("/t/x")));
    }

    #[test]
    fn a_yes_opens_the_credential_it_names_and_never_castors_own() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let masked = ["/h/.ssh", "/h/.aws", "/h/.castor"].map(path).to_vec();
        let it = Confinement { masked, own_folders: own("/h/.castor"), ..Confinement::for_folder(&path("/w")) };
        let masked = |open: &[&str]| {
            let leave = SandboxGrant {
                credentials: open.iter().map(|it| OpenSecret::once(path(it))).collect(),
                ..SandboxGrant::default()
            };
            let it = it.with_grant(&leave).unwrap();
            it.masked
                .iter()
                .filter(|secret| it.masks_secret(secret))
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(masked(&[]), "/h/.ssh /h/.aws /h/.castor");
        assert_eq!(masked(&["/h/.ssh/id_rsa"]), "/h/.aws /h/.castor");
        assert_eq!(masked(&["/h", "/h/.castor/oauth"]), "/h/.castor");
        let leave = Denial::Credential { path: path("/h/.ssh"), hosts: vec![] }.grant_once();
        assert!(leave.network && it.with_grant(&leave).unwrap().network);
        let hosts = vec!["github.com:22".to_owned().try_into().unwrap()];
        let opened = it.with_grant(&Denial::Credential { path: path("/h/.ssh"), hosts }.grant_once()).unwrap();
        assert!(!opened.network && opened.hides_secrets() && !opened.masks_secret(&path("/h/.ssh")));
    }
}
