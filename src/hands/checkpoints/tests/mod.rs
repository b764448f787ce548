//! Checkpoints on real disks.
#![allow(clippy::disallowed_methods)]

mod built;
mod hostile;
mod interrupted;
mod left;
mod lives;
#[cfg(target_os = "linux")]
mod power;
mod retained;
mod tables;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::{Gid, Uid, geteuid, setfsgid, setfsuid};

use super::{Buffers, Checkpoints, Limits, RestoreOutcome};
use crate::disk::fault::injected as fault;
use castor_base::{
    checkpoint::{Changes, OnConflict, RestoreOrder, Scope},
    ids::CheckpointId,
    path::AbsPath,
};

/// A root and a home of castor's, apart from each other.
struct Bed {
    dir: tempfile::TempDir,
    root: AbsPath,
    home: AbsPath,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let real = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let (root, home) = (real.join("root"), real.join("home/.castor"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(home.parent().unwrap()).unwrap();
    Bed { dir, root, home }
}

fn never() -> bool {
    false
}

fn id(text: &str) -> CheckpointId {
    text.into()
}

impl Bed {
    fn session(&self, name: &str) -> Checkpoints {
        self.limited(name, Limits::default())
    }

    fn limited(&self, name: &str, limits: Limits) -> Checkpoints {
        Checkpoints::new(&self.home, &name.into(), std::slice::from_ref(&self.root), limits)
    }

    fn opened(&self, name: &str) -> Checkpoints {
        let res = self.session(name);
        res.open(&never).unwrap();
        res
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.as_path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|it| it.to_string())
    }

    /// Runs a line of the shell in the root, as a call does.
    fn sh(&self, line: &str) {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.root).env_clear().env("PATH", std::env::var("PATH").unwrap());
        for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{who}_NAME"), "a").env(format!("{who}_EMAIL"), "a@example.org");
            command.env(format!("{who}_DATE"), "2001-01-01T00:00:00Z");
        }
        let out = command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.dir.path()).output().unwrap();
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

impl Checkpoints {
    /// As a kill leaves it.
    fn abandon(self) {
        self.state().stores.clear();
    }
}

/// Whom modes hold back, as they do not root.
const SOMEBODY: u32 = 12345;

/// Gives everything to somebody whom modes hold back, and runs as that one, where tests run as root.
fn as_somebody<T>(bed: &Bed, act: impl FnOnce() -> T) -> T {
    if geteuid().is_root() {
        let own = |it| std::os::unix::fs::lchown(it, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        walkdir(bed.dir.path()).into_iter().for_each(own);
    }
    look_as_somebody(act)
}

fn look_as_somebody<T>(act: impl FnOnce() -> T) -> T {
    let is_root = geteuid().is_root();
    // Of this thread alone.
    let be = |it| {
        if is_root {
            _ = (setfsgid(Gid::from_raw(it)), setfsuid(Uid::from_raw(it)))
        }
    };
    be(SOMEBODY);
    let res = act();
    be(0);
    res
}

/// A folder and all that is in it.
fn walkdir(dir: &Path) -> Vec<PathBuf> {
    let mut res = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => res.extend(walkdir(&entry.path())),
            false => res.push(entry.path()),
        }
    }
    res
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A call that may write anything.
fn call(checkpoints: &Checkpoints, name: &str, act: impl FnOnce()) -> Changes {
    checkpoints.before(&id(name), &Scope::Roots, &never).unwrap();
    act();
    checkpoints.after(&id(name)).unwrap()
}

fn order(own: &str, undo: &[&str], on_conflict: OnConflict) -> RestoreOrder {
    RestoreOrder { id: id(own), undo: undo.iter().map(|it| id(it)).collect(), on_conflict, paths: None }
}

fn undo(checkpoints: &Checkpoints, own: &str, ids: &[&str]) -> RestoreOutcome {
    checkpoints.restore(&order(own, ids, OnConflict::Fail), &Buffers::default()).unwrap()
}

fn conflicts(outcome: &RestoreOutcome, root: &AbsPath) -> Vec<String> {
    let short = |it: &Path| it.strip_prefix(root.as_path()).unwrap_or(it).display().to_string();
    outcome.restored.conflicts.iter().map(|it| format!("{}: {}", short(&it.path), it.reason)).collect()
}

/// Everything that is promised: kinds, bytes, modes, links and empty folders. Of git's folders what it means, not how it
/// is laid out.
type Tree = BTreeMap<Vec<u8>, String>;

fn tree(root: &Path) -> Tree {
    let mut res = Tree::new();
    visit(root, root, &mut res);
    res
}

fn visit(root: &Path, dir: &Path, res: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        let mode = meta.permissions().mode() & 0o1777;
        if path.ends_with(".git") && meta.is_dir() && path.join("HEAD").exists() {
            res.insert(name, repository(&path));
        } else if meta.is_dir() {
            res.insert(name, format!("folder {mode:o}"));
            visit(root, &path, res);
        } else if meta.is_symlink() {
            res.insert(name, format!("link {:?}", fs::read_link(&path).unwrap()));
        } else if meta.is_file() {
            let hash = super::hash_of(&fs::read(&path).unwrap());
            res.insert(name, format!("file {mode:o} {} {hash:02x?}", meta.len()));
        }
    }
}

/// What a repository has: refs, HEAD, what is staged, stashes, configuration, hooks; and that it is sound.
fn repository(dir: &Path) -> String {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "core.fsmonitor=false", "--git-dir"]).arg(dir).args(args);
        let out = command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(out.status.success(), "{}: {args:?}: {}", dir.display(), String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let fsck = git(&["fsck", "--full", "--no-dangling", "--no-progress"]);
    assert_eq!(fsck, "", "{}", dir.display());
    let mut res = git(&["for-each-ref"]) + &fs::read_to_string(dir.join("HEAD")).unwrap();
    if dir.join("index").exists() {
        res += &git(&["ls-files", "--stage"]);
    }
    if !git(&["for-each-ref", "refs/stash"]).is_empty() {
        res += &git(&["stash", "list"]);
    }
    for name in ["config", "hooks/pre-commit", "info/exclude", "description"] {
        let path = dir.join(name);
        let mode = path.symlink_metadata().map(|it| it.permissions().mode() & 0o777).ok();
        res += &format!("{name} {mode:?} {:?}\n", fs::read_to_string(path).ok());
    }
    res
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok_and(|it| it.status.success())
}
