//! What a command made that somebody would obey: it gets a name that nobody obeys.
//!
//! A stand-in for each of those names would be in the way: programs fail at a folder where they look for a file, and git
//! sees a file. So the names at the top of each root are compared before and after. Who made a new one cannot be told: the
//! user's own may be among them, and so nothing is removed.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use nix::{
    fcntl::{OFlag, openat, renameat},
    sys::stat::Mode,
};
use tokio_util::sync::CancellationToken;

use super::held::{is_placeholder, looks_like_placeholder, open_folder};
use crate::base::{
    path::AbsPath,
    sandbox::{held_below, is_held},
    terminal::{Findings, Later},
};

/// What is put behind the name.
const ASIDE: &str = ".castor-aside";
/// Names that are taken are passed over, but not for ever.
const TRIES: usize = 100;

/// What was there before a command.
#[derive(Debug, Default)]
pub struct Before {
    roots: Vec<(PathBuf, BTreeSet<PathBuf>)>,
    /// Links on the way to guarded names: the user's, and not put aside.
    links: BTreeSet<PathBuf>,
    /// Stand-ins: device and number of each.
    standing: Vec<(PathBuf, (u64, u64))>,
    /// What mounts hold: they go with the file when somebody outside puts another one in its place.
    mounted: Vec<(PathBuf, Identity)>,
    heads: Vec<Head>,
    /// May be made: the user said so.
    open: Vec<PathBuf>,
    /// What was found replaced: it is told once.
    told: Mutex<BTreeSet<PathBuf>>,
    /// What was put aside and restored when the last one was gone, and nobody was told of.
    mended: Mutex<(Vec<PathBuf>, Vec<PathBuf>)>,
    /// Somebody runs, and nobody looked back yet: where nobody ever does, because the call was cut short, it is done when
    /// the last one is gone.
    unseen: AtomicBool,
    gone: CancellationToken,
}

/// Device, number, and when it was made: numbers are given again.
type Identity = (u64, u64, Option<SystemTime>);

impl Before {
    /// Looks at what is there, stand-ins included.
    pub(super) fn look(roots: &[PathBuf], standing: Vec<(PathBuf, (u64, u64))>) -> Self {
        let mut res = Self { standing, ..Self::default() };
        for root in roots {
            let deep = deep(root);
            res.links.extend(deep.iter().filter_map(|it| link_on_the_way(root, it)));
            res.roots.push((root.clone(), obeyed(root, deep)));
        }
        res
    }

    /// The same, but for what the user lets the command write.
    pub(super) fn but(self, open: &[PathBuf]) -> Self {
        Self { open: open.to_owned(), ..self }
    }

    /// The same, with what mounts hold, and heads of repositories, which they cannot: git replaces them.
    pub(super) fn with(mut self, mounted: &[&[PathBuf]], heads: Vec<Head>) -> Self {
        let standing: BTreeSet<&PathBuf> = self.standing.iter().map(|it| &it.0).collect();
        let held = mounted.iter().copied().flatten().filter(|it| !standing.contains(it));
        self.mounted = held.filter_map(|it| Some((it.clone(), identity(it)?))).collect();
        self.heads = heads;
        self
    }

    /// Whether configuration may be written, which holds for one call.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// From now on somebody may change it.
    pub fn begins(&self) {
        self.unseen.store(true, Ordering::Relaxed);
    }

    /// Waits until nobody is left who was confined; what was mended then.
    pub async fn gone(self: Arc<Self>) -> Findings {
        self.gone.cancelled().await;
        self.held_findings(Vec::new())
    }

    /// What is other than it was; mends what can be mended.
    pub fn findings(&self) -> Findings {
        self.unseen.store(false, Ordering::Relaxed);
        let aside = paths(self.put_aside());
        let held = self.held_findings(Vec::new());
        Findings { aside: [aside, held.aside].concat(), ..held }
    }

    /// The same where somebody goes on after their call. Nothing is put aside: what is new may be anybody's, also what took
    /// the place of a stand-in.
    pub fn later(self: Arc<Self>) -> Later {
        self.unseen.store(false, Ordering::Relaxed);
        Box::new(move || {
            let taken = self.standing.iter().filter(|(path, number)| is_taken(path, *number));
            self.held_findings(taken.map(|it| it.0.clone()).collect())
        })
    }

    /// What mounts held and no longer do, with `more` of the kind; heads.
    fn held_findings(&self, more: Vec<PathBuf>) -> Findings {
        let is_other = |(path, before): &&(PathBuf, Identity)| identity(path).is_some_and(|it| it != *before);
        let replaced = self.mounted.iter().filter(is_other).map(|it| it.0.clone()).chain(more);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = replaced.filter(|it| told.insert(it.clone())).collect();
        let (aside, mut restored) = std::mem::take(&mut *self.mended.lock().unwrap_or_else(PoisonError::into_inner));
        restored.extend(self.restore());
        Findings { aside: paths(aside), replaced: paths(replaced), restored: paths(restored), ..Findings::default() }
    }

    /// Renames what is new; its old names.
    fn put_aside(&self) -> Vec<PathBuf> {
        let mut res = Vec::new();
        for (root, before) in &self.roots {
            for name in obeyed(root, deep(root)).difference(before) {
                let path = root.join(name);
                // Of another castor, or wanted.
                if is_placeholder(&path) || self.open.iter().any(|it| path.starts_with(it)) {
                    continue;
                }
                res.extend(self.put_name(root, name));
            }
        }
        // Somebody outside removed a stand-in, and with it the mount that held the name.
        for (path, number) in &self.standing {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if is_taken(path, *number) && put(folder, Path::new(name)) {
                res.push(path.clone());
            }
        }
        res
    }
}

impl Before {
    /// What was renamed. A link that is new on the way goes itself; through the user's own what it leads to, if it lies
    /// where commands write.
    fn put_name(&self, root: &Path, name: &Path) -> Option<PathBuf> {
        let Some(link) = link_on_the_way(root, name) else { return put(root, name).then(|| root.join(name)) };
        if !self.links.contains(&link) {
            return put(root, link.strip_prefix(root).ok()?).then_some(link);
        }
        let folder = root.join(name).parent()?.canonicalize().ok()?;
        let is_within = self.roots.iter().any(|(root, _)| folder.starts_with(root));
        (is_within && put(&folder, Path::new(name.file_name()?))).then(|| root.join(name))
    }

    /// Nobody who was confined is left: a root is no repository that it was not, and a repository is one.
    pub(super) fn over(&self) {
        let restored = self.restore();
        let is_new = |(root, before): &&(PathBuf, BTreeSet<PathBuf>)| {
            is_repository(root) && !before.contains(Path::new(HEAD)) && !self.open.iter().any(|it| root.starts_with(it))
        };
        let aside = self.roots.iter().filter(is_new).filter(|(root, _)| put(root, Path::new(HEAD)));
        let aside: Vec<PathBuf> = aside.map(|(root, _)| root.join(HEAD)).collect();
        let cut_short = self.unseen.swap(false, Ordering::Relaxed);
        let more = if cut_short { self.put_aside() } else { Vec::new() };
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.0.extend(aside.into_iter().chain(more));
        mended.1.extend(restored);
        drop(mended);
        self.gone.cancel();
    }

    /// The heads that were gone or spoilt.
    fn restore(&self) -> Vec<PathBuf> {
        self.heads.iter().filter(|it| it.restore()).map(|it| it.git.join(HEAD)).collect()
    }
}

fn paths(them: Vec<PathBuf>) -> Vec<AbsPath> {
    them.into_iter().filter_map(AbsPath::new).collect()
}

/// Whether something else is where a stand-in was. Another castor's may not be locked yet.
fn is_taken(path: &Path, number: (u64, u64)) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| (it.dev(), it.ino()) != number) && !looks_like_placeholder(path)
}

fn identity(path: &Path) -> Option<Identity> {
    let it = fs::symlink_metadata(path).ok()?;
    Some((it.dev(), it.ino(), it.created().ok()))
}

/// By which git knows a repository: without it, it looks for one elsewhere.
#[derive(Debug)]
pub(super) struct Head {
    git: PathBuf,
    text: Vec<u8>,
}

const HEAD: &str = "HEAD";
/// Longer ones are none.
const MAX_HEAD: u64 = 4096;

impl Head {
    /// `None`: there is none that git would take.
    pub(super) fn of(git: &Path) -> Option<Self> {
        let text = read_head(&open_folder(git).ok()?)?;
        Some(Self { git: git.to_owned(), text })
    }

    /// Writes it anew where it is gone, or is something else.
    fn restore(&self) -> bool {
        let Ok(folder) = open_folder(&self.git) else { return false };
        if read_head(&folder).is_some() {
            return false;
        }
        // What is there in its place is kept, whatever it is.
        _ = free_name(&folder, OsStr::new(HEAD));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let written = openat(&folder, HEAD, flags, Mode::from_bits_truncate(0o666))
            .map_err(io::Error::from)
            .and_then(|it| fs::File::from(it).write_all(&self.text));
        let said = |it: &io::Error| tracing::warn!("{} is gone and cannot be restored: {it}", self.git.display());
        written.inspect_err(said).is_ok()
    }
}

fn read_head(git: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = fs::File::from(openat(git, HEAD, flags, Mode::empty()).ok()?);
    if !file.metadata().is_ok_and(|it| it.is_file() && it.len() <= MAX_HEAD) {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_HEAD).read_to_end(&mut text).ok()?;
    let words = String::from_utf8_lossy(&text);
    let is_commit = |it: &str| matches!(it.len(), 40 | 64) && it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_name = words.strip_prefix("ref:").is_some_and(|it| it.trim_start().starts_with("refs/"));
    (is_name || is_commit(words.trim_end())).then_some(text)
}

fn put(folder: &Path, name: &Path) -> bool {
    rename(folder, name)
        .inspect_err(|it| tracing::warn!("{} is new and cannot be put aside: {it}", folder.join(name).display()))
        .is_ok()
}

/// Whether git takes the folder itself for a repository, whose configuration it obeys, where it finds no other.
pub(super) fn is_repository(folder: &Path) -> bool {
    let is_there = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    // As a folder it is a stand-in, at which git fails.
    let is_linked = || fs::metadata(folder.join("commondir")).is_ok_and(|it| it.is_file());
    is_there(HEAD) && (is_there("objects") && is_there("refs") || is_linked())
}

/// Guarded names at the top of a root, below it where a list names several in a row. `.git` has guards of its own.
fn obeyed(root: &Path, deep: Vec<PathBuf>) -> BTreeSet<PathBuf> {
    let names = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok).map(|it| PathBuf::from(it.file_name()));
    let below = held_below(root);
    let at_top = names.filter(|it| it.as_os_str() != ".git" && is_held(it.as_os_str(), &below));
    // Without this one it is no repository.
    let head = is_repository(root).then(|| PathBuf::from(HEAD));
    at_top.chain(deep.into_iter().filter(|it| fs::symlink_metadata(root.join(it)).is_ok())).chain(head).collect()
}

/// Names that follow each other, where the first of them is there.
pub(super) fn deep(root: &Path) -> Vec<PathBuf> {
    let all = held_below(root);
    let same_first = all.chunk_by(|a, b| a.iter().next() == b.iter().next());
    let is_there = |it: &&[PathBuf]| {
        let first = it.first().and_then(|it| it.iter().next());
        first.is_some_and(|it| fs::symlink_metadata(root.join(it)).is_ok())
    };
    same_first.filter(is_there).flatten().cloned().collect()
}

/// The first link between a root and what lies below it.
fn link_on_the_way(root: &Path, name: &Path) -> Option<PathBuf> {
    let mut path = root.to_owned();
    name.parent()?.iter().find_map(|part| {
        path.push(part);
        path.is_symlink().then(|| path.clone())
    })
}

/// Each folder on the way is opened as what it is: a link, made meanwhile, leads nowhere.
fn rename(root: &Path, name: &Path) -> io::Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut folder = open_folder(root)?;
    let mut parts = name.components().peekable();
    while let Some(Component::Normal(part)) = parts.next() {
        if parts.peek().is_none() {
            return free_name(&folder, part);
        }
        folder = openat(&folder, part, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
    }
    Ok(())
}

fn free_name(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    for idx in 0..TRIES {
        let mut new = name.to_owned();
        new.push(ASIDE);
        if idx > 0 {
            new.push(format!("-{idx}"));
        }
        let there =
            openat(folder, new.as_os_str(), OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty());
        if matches!(there, Err(nix::errno::Errno::ENOENT)) {
            return Ok(renameat(folder, name, folder, new.as_os_str())?);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::Before;

    #[test]
    fn what_is_new_gets_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let (root, out) = (dir.path().join("w"), dir.path().join("out"));
        for it in [root.join(".github"), out.join("workflows"), root.join("src")] {
            fs::create_dir_all(it).unwrap();
        }
        fs::write(root.join(".npmrc"), "mine").unwrap();
        fs::write(root.join(".bashrc.castor-aside"), "earlier").unwrap();
        let before = Before::look(std::slice::from_ref(&root), Vec::new());
        for it in [".bashrc", ".npmrc", "src/a", "x.code-workspace", ".github/CODEOWNERS"] {
            fs::write(root.join(it), "new").unwrap();
        }
        fs::create_dir(root.join(".github/workflows")).unwrap();
        fs::create_dir(root.join(".cargo")).unwrap();
        symlink("/nowhere", root.join(".cargo/config")).unwrap();
        let mut names: Vec<_> = before.put_aside();
        names.sort();
        assert_eq!(
            names,
            [".bashrc", ".cargo/config", ".github/workflows", "x.code-workspace"].map(|it| root.join(it))
        );
        for it in [".bashrc.castor-aside-1", ".github/workflows.castor-aside", "src/a", ".npmrc", ".github/CODEOWNERS"]
        {
            assert!(root.join(it).exists(), "{it}");
        }
        assert_eq!(fs::read_to_string(root.join(".bashrc.castor-aside")).unwrap(), "earlier");
        assert!(before.put_aside().is_empty());
        for it in ["objects", "refs"] {
            fs::create_dir(root.join(it)).unwrap();
        }
        fs::write(root.join("HEAD"), "ref: refs/heads/m").unwrap();
        assert_eq!(before.put_aside(), [root.join("HEAD")]);
        // A link in the way is not followed: it goes itself.
        fs::rename(root.join(".github"), root.join("moved")).unwrap();
        symlink(&out, root.join(".github")).unwrap();
        assert_eq!(before.put_aside(), [root.join(".github")]);
        assert!(out.join("workflows").exists() && root.join(".github.castor-aside").is_symlink());
    }

    /// Another castor made its own where ours was, and did not lock it yet.
    #[test]
    fn another_stand_in_is_not_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
        for (name, mode) in [(".zed", 0o1755), (".idea", 0o755), (".vscode", 0o1755)] {
            fs::create_dir(at(name)).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::write(at(".vscode/settings.json"), "{}").unwrap();
        let standing = [".idea", ".vscode", ".zed"].map(|it| (at(it), (0, 0))).to_vec();
        let before = Before::look(&[], standing);
        assert_eq!(before.put_aside(), [".idea", ".vscode"].map(at));
        assert!(at(".zed").exists());
    }

    #[test]
    fn through_the_users_own_link_goes_what_is_new_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let (root, out) = (dir.path().canonicalize().unwrap().join("w"), dir.path().join("out"));
        for it in [root.join("cfg"), root.join("github"), out.join("workflows")] {
            fs::create_dir_all(it).unwrap();
        }
        symlink("cfg", root.join(".cargo")).unwrap();
        symlink(&out, root.join(".gitea")).unwrap();
        fs::remove_dir(out.join("workflows")).unwrap();
        let before = Before::look(std::slice::from_ref(&root), Vec::new());
        fs::write(root.join("cfg/config.toml"), "evil").unwrap();
        // Nobody who is confined writes there.
        fs::create_dir(out.join("workflows")).unwrap();
        assert_eq!(before.put_aside(), [root.join(".cargo/config.toml")]);
        assert!(root.join(".cargo").is_symlink() && root.join("cfg/config.toml.castor-aside").exists());
        assert!(out.join("workflows").exists());
    }
}
