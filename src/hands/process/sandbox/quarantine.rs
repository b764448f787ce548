//! Quarantine: renames new configuration files that a command made, so that no program obeys them.
//!
//! What is there is read-only; what is not there yet cannot be. So the names at the top of each root are compared before and
//! after, and so are the places that git's settings name. Who made a new one cannot be told: the user's own may be among
//! them, and so nothing is removed.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

#[cfg(target_os = "linux")]
use super::watch::{WatchedCommand, watch};
use super::{
    committed::{self, SessionCommits},
    new_repositories::KnownRepositories,
    placeholder_files::{looks_like_placeholder, open_folder},
    placeholder_records::{self, QuarantineRecord},
    plain_repository,
    repository::is_repository,
    unfinished_work,
};
use crate::disk::dirfd::{self, DirFd};
use castor_base::{
    path::AbsPath,
    sandbox::{is_protected, protected_below},
    terminal::ObeyedFindings,
};

/// What is put behind the name.
const ASIDE_SUFFIX: &str = ".castor-aside";
/// Names that are taken are passed over, but not for ever.
const TRIES: usize = 100;

/// Repositories that this castor renamed: they are repositories still.
static ASIDE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What was there before a command, and what was mended since. The next castor has the first of it, where this one is killed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Quarantine {
    roots: Vec<(PathBuf, BTreeSet<PathBuf>)>,
    /// Symlinks on the way to guarded names: the user's, and not quarantined.
    links: BTreeSet<PathBuf>,
    repositories: KnownRepositories,
    /// Configuration that is new.
    #[serde(skip)]
    absent: Vec<PathBuf>,
    /// Placeholders: device and number of each.
    #[serde(skip)]
    standing: Vec<(PathBuf, (u64, u64))>,
    #[serde(skip)]
    heads: Vec<GitHead>,
    /// May be made: the user said so.
    open: Vec<PathBuf>,
    /// What the session began with.
    #[serde(skip)]
    begun: Arc<SessionCommits>,
    /// From now on the origin of new files is unknown.
    #[serde(skip)]
    settled: AtomicBool,
    /// What is not reported yet.
    #[serde(skip)]
    mended: Mutex<ObeyedFindings>,
    #[serde(skip)]
    gone: CancellationToken,
    /// As long as it is written down.
    #[serde(skip)]
    noted: Mutex<Option<QuarantineRecord>>,
}

impl Quarantine {
    /// What is there. `new_repositories::look` has looked below the roots.
    pub(super) fn take_snapshot(roots: &[PathBuf]) -> Self {
        let mut res = Self::default();
        for root in roots {
            let deep = nested_names(root);
            res.links.extend(deep.iter().filter_map(|it| link_on_the_way(root, it)));
            res.roots.push((root.clone(), guarded_names(root, deep)));
        }
        res.repositories = KnownRepositories::known(roots);
        res
    }

    /// The same with placeholders, places where nothing is, heads of repositories, and what the user lets the command write.
    pub(super) fn with(
        self,
        standing: Vec<(PathBuf, (u64, u64))>,
        absent: Vec<PathBuf>,
        heads: Vec<GitHead>,
        open: &[PathBuf],
    ) -> Self {
        let guarded: Vec<_> = heads.iter().map(|it| it.git.clone()).collect();
        let repositories = self.repositories.with_guarded(&guarded);
        Self { standing, absent, heads, repositories, open: open.to_owned(), ..self }
    }

    /// The same, where what a commit from before has is not new.
    pub(super) fn with_commits(self, begun: Arc<SessionCommits>) -> Self {
        Self { begun, ..self }
    }

    /// The same, written down in case that castor is killed.
    pub(super) fn with_record(self, records: &Path) -> Self {
        let noted = (!self.roots.is_empty()).then(|| placeholder_records::record_quarantine(records, &self)).flatten();
        Self { noted: Mutex::new(noted), ..self }
    }

    /// Whether configuration may be written, which holds for one call.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits until all confined processes have ended. Returns what was mended then.
    pub async fn final_findings(self: Arc<Self>) -> ObeyedFindings {
        self.gone.cancelled().await;
        self.take_findings()
    }

    /// Mends what can be mended; what was, and was not told yet.
    pub fn findings(&self) -> ObeyedFindings {
        self.repair();
        self.take_findings()
    }

    /// As [`Self::findings`], of a process that goes on for long: what comes later may be the user's.
    pub fn settle(&self) -> ObeyedFindings {
        let res = self.findings();
        self.settled.store(true, Ordering::Relaxed);
        self.forget();
        res
    }

    /// All confined processes have ended.
    pub(super) fn finish(&self) {
        self.repair();
        self.forget();
        self.gone.cancel();
    }

    fn forget(&self) {
        drop(self.noted.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn repair(&self) {
        let restored = paths(self.heads.iter().filter(|it| it.restore()).map(|it| it.git.join(HEAD)));
        let new = match self.settled.load(Ordering::Relaxed) {
            true => ObeyedFindings { quarantined: paths(self.new_heads()), ..ObeyedFindings::default() },
            false => self.put_aside(),
        };
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.quarantined.extend(new.quarantined);
        mended.restored.extend(restored);
        mended.disarmed.extend(new.disarmed);
    }

    fn take_findings(&self) -> ObeyedFindings {
        let found = std::mem::take(&mut *self.mended.lock().unwrap_or_else(PoisonError::into_inner));
        ObeyedFindings { staged: paths(self.repositories.take_gitlinks(&self.root_folders())), ..found }
    }

    /// Renames what is new.
    fn put_aside(&self) -> ObeyedFindings {
        let mut res = Vec::new();
        for (root, before) in &self.roots {
            let new = guarded_names(root, nested_names(root));
            let is_new = |name: &&PathBuf| !self.is_wanted(&root.join(name)) && !self.is_vouched_for(root, name);
            let new = new.difference(before).filter(is_new);
            res.extend(new.filter_map(|name| self.rename_through(root, name)));
        }
        let is_new = |it: &&PathBuf| it.symlink_metadata().is_ok() && !self.is_wanted(it);
        // Somebody outside removed a placeholder, and with it the mount that held the name.
        let taken = self.standing.iter().filter(|(path, number)| is_taken(path, *number)).map(|it| &it.0);
        let new = self.absent.iter().filter(is_new).chain(taken);
        res.extend(new.filter(|it| try_rename(it).is_some()).cloned());
        let (roots, mut disarmed) = (self.root_folders(), Vec::new());
        for (root, place) in self.repositories.find_all(&roots) {
            if self.repositories.is_new(&roots, &place, false) {
                res.extend(self.disarm(&root, &place));
            }
            disarmed.extend(self.repositories.find_new_programs(&place).into_iter().filter(|it| disarm_work(it)));
        }
        ObeyedFindings { quarantined: paths(res), disarmed: paths(disarmed), ..ObeyedFindings::default() }
    }

    /// Watched until it is over, where it has roots.
    pub(super) fn watched(self) -> Arc<Self> {
        let res = Arc::new(self);
        #[cfg(target_os = "linux")]
        if !res.roots.is_empty() {
            let command: std::sync::Weak<Self> = Arc::downgrade(&res);
            watch(command);
        }
        res
    }

    fn root_folders(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|it| it.0.clone()).collect()
    }

    /// Renames that by which git finds a repository, unless the user wants it, or a commit from before has it.
    fn disarm(&self, root: &Path, place: &Path) -> Option<PathBuf> {
        let name = place.strip_prefix(root).ok()?;
        let is_open = self.open.iter().any(|it| place.starts_with(it) || it.starts_with(place));
        if is_open || !place.ends_with(".git") && self.is_vouched_for(root, name) {
            return None;
        }
        let mut aside = ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut res = None;
        let keys = if aside.contains(place) { Vec::new() } else { plain_repository::keys_of(place) };
        for key in keys {
            let Some(new) = try_rename(&key) else { continue };
            aside.insert(key.with_file_name(new));
            res.get_or_insert(key);
        }
        res
    }

    /// Whether the user said that it may be made, or it does no harm: a repository as `git init` leaves it.
    fn is_wanted(&self, path: &Path) -> bool {
        // Links and files are looked at with all others.
        let is_repository = || path.ends_with(".git");
        self.open.iter().any(|it| path.starts_with(it)) || is_repository()
    }

    /// Whether all of it is files that the user named, or that a commit from before has as they are.
    fn is_vouched_for(&self, root: &Path, name: &Path) -> bool {
        let files = committed::files(&root.join(name)).filter(|_| link_on_the_way(root, name).is_none());
        let Some(mut files) = files.filter(|_| name != Path::new(HEAD)) else { return false };
        files.retain(|it| !self.open.contains(it));
        files.is_empty() || self.begun.has(&files)
    }

    /// What was renamed. A link that is new on the way goes itself; through the user's own what it leads to, if it lies
    /// where commands write.
    fn rename_through(&self, root: &Path, name: &Path) -> Option<PathBuf> {
        let path = root.join(name);
        let Some(link) = link_on_the_way(root, name) else { return try_rename(&path).map(|_| path) };
        if !self.links.contains(&link) {
            return try_rename(&link).map(|_| link);
        }
        let folder = path.parent()?.canonicalize().ok()?;
        let is_within = self.roots.iter().any(|(root, _)| folder.starts_with(root));
        is_within.then(|| try_rename(&folder.join(path.file_name()?)))?.map(|_| path)
    }

    /// What made roots bare repositories goes in any case.
    fn new_heads(&self) -> Vec<PathBuf> {
        let is_new = |(root, before): &&(PathBuf, BTreeSet<PathBuf>)| {
            is_repository(root) && !before.contains(Path::new(HEAD)) && !self.is_wanted(root)
        };
        let new = self.roots.iter().filter(is_new).map(|(root, _)| root.join(HEAD));
        new.filter(|it| try_rename(it).is_some()).collect()
    }
}

#[cfg(target_os = "linux")]
impl WatchedCommand for Quarantine {
    fn is_watched(&self) -> bool {
        !self.settled.load(Ordering::Relaxed) && !self.gone.is_cancelled()
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.root_folders()
    }

    fn put_all_aside(&self) {
        let roots = self.root_folders();
        let all = self.repositories.find_all(&roots);
        let new = all.iter().filter(|it| self.repositories.is_new(&roots, &it.1, true));
        let aside = new.filter_map(|(root, place)| self.disarm(root, place));
        self.mended.lock().unwrap_or_else(PoisonError::into_inner).quarantined.extend(aside.filter_map(AbsPath::new));
    }

    fn put_aside(&self, places: &BTreeSet<PathBuf>) {
        let roots = self.root_folders();
        let at = |place: &PathBuf| {
            let root = roots.iter().find(|it| place.starts_with(it))?;
            self.repositories.is_new(&roots, place, true).then(|| self.disarm(root, place))?
        };
        // Held from the rename on: whoever reports at the command's end waits for what is to be told of it.
        let mut mended = self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        mended.quarantined.extend(places.iter().filter_map(at).filter_map(AbsPath::new));
    }
}

/// Puts aside what is new since castors that are no more ran something.
pub fn quarantine_orphans(folder: &Path) -> ObeyedFindings {
    let before = placeholder_records::take_quarantines::<Quarantine>(folder);
    let found = before.map(|it| it.findings());
    let quarantined = found.flat_map(|it| it.quarantined.into_iter().chain(it.disarmed)).collect();
    ObeyedFindings { quarantined, ..ObeyedFindings::default() }
}

fn paths(them: impl IntoIterator<Item = PathBuf>) -> Vec<AbsPath> {
    them.into_iter().filter_map(AbsPath::new).collect()
}

/// Whether something else is where a placeholder was. Another castor's may not be locked yet.
fn is_taken(path: &Path, number: (u64, u64)) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| (it.dev(), it.ino()) != number) && !looks_like_placeholder(path)
}

/// A repository whose configuration is protected, and by which git knows it: without that, it looks for one elsewhere.
#[derive(Debug)]
pub(super) struct GitHead {
    git: PathBuf,
    /// `None`: there is none that git would take.
    text: Option<Vec<u8>>,
}

const HEAD: &str = "HEAD";
/// Longer ones are none.
const MAX_HEAD: u64 = 4096;

impl GitHead {
    pub(super) fn of(git: &Path) -> Self {
        let text = open_folder(git).ok().and_then(|it| read_head(&it));
        Self { git: git.to_owned(), text }
    }

    /// Writes it anew where it is gone, or is something else.
    fn restore(&self) -> bool {
        let (Ok(folder), Some(text)) = (open_folder(&self.git), &self.text) else { return false };
        if read_head(&folder).is_some() {
            return false;
        }
        // What is there in its place is kept, whatever it is.
        _ = rename_aside(&folder, OsStr::new(HEAD));
        let written = dirfd::create_new(folder.fd(), HEAD.as_bytes(), 0o666).and_then(|mut it| it.write_all(text));
        let said = |it: &io::Error| tracing::warn!("{} is gone and cannot be restored: {it}", self.git.display());
        written.inspect_err(said).is_ok()
    }
}

fn read_head(git: &DirFd) -> Option<Vec<u8>> {
    let (file, mut text) = (git.open_file(HEAD.as_bytes()).ok()?, Vec::new());
    file.take(MAX_HEAD).read_to_end(&mut text).ok().filter(|it| (*it as u64) < MAX_HEAD)?;
    let words = String::from_utf8_lossy(&text);
    let is_commit = |it: &str| matches!(it.len(), 40 | 64) && it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_name = words.strip_prefix("ref:").is_some_and(|it| it.trim_start().starts_with("refs/"));
    (is_name || is_commit(words.trim_end())).then_some(text)
}

/// Whether a file of git's unfinished work has another name now, and a list of steps without its commands is in its place.
fn disarm_work(file: &Path) -> bool {
    try_rename(file).is_some_and(|new| unfinished_work::write_harmless(file, &file.with_file_name(new)))
}

/// The new name. Each folder on the way is opened as what it is: a link, made meanwhile, leads nowhere.
fn try_rename(path: &Path) -> Option<OsString> {
    let (above, name) = (path.parent()?, path.file_name()?);
    let renamed = open_folder(above).and_then(|it| rename_aside(&it, name));
    renamed.inspect_err(|it| tracing::warn!("{} is new and cannot be put aside: {it}", path.display())).ok()
}

/// Guarded names at the top of a root, below it where a list names several in a row. `.git` has guards of its own.
fn guarded_names(root: &Path, deep: Vec<PathBuf>) -> BTreeSet<PathBuf> {
    let names = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok).map(|it| PathBuf::from(it.file_name()));
    let below = protected_below(root);
    let at_top = names.filter(|it| it.as_os_str() != ".git" && is_protected(it.as_os_str(), &below));
    // Without this one it is no repository.
    let head = is_repository(root).then(|| PathBuf::from(HEAD));
    at_top.chain(deep.into_iter().filter(|it| fs::symlink_metadata(root.join(it)).is_ok())).chain(head).collect()
}

/// Names that follow each other, where the first of them is there.
pub(super) fn nested_names(root: &Path) -> Vec<PathBuf> {
    let all = protected_below(root);
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

fn rename_aside(folder: &DirFd, name: &OsStr) -> io::Result<OsString> {
    for idx in 0..TRIES {
        let mut new = name.to_owned();
        new.push(ASIDE_SUFFIX);
        if idx > 0 {
            new.push(format!("-{idx}"));
        }
        match dirfd::rename_noreplace((folder.fd(), name.as_bytes()), (folder.fd(), new.as_bytes())) {
            Err(it) if it.kind() == io::ErrorKind::AlreadyExists => (),
            it => return it.map(|()| new),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests;
