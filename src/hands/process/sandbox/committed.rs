//! Files that a commit from before the session holds: checking them out creates no new configuration.
//!
//! No git is started for that. What the refs pointed to is noted when the session's first process is confined. From there
//! on commits and trees are read in git's own files. Commands write those, and so each object is checked by its hash: that
//! one is merely there says nothing.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::disk::{
    self,
    git_commits::{CommitSearch, GitCheckout},
    git_objects::ObjectId,
};
use castor_base::{path::AbsPath, sandbox::Confinement};

/// More files are no configuration that was ever reviewed.
const MAX_FILES: usize = 256;
const MAX_FILE: u64 = 1 << 20;
/// With more refs in a repository nothing in it counts as committed.
const MAX_TIPS: usize = 10_000;

/// The repositories of a session's folders, as its first process found them.
#[derive(Debug, Default)]
pub(super) struct SessionCommits(Vec<Repository>);

#[derive(Debug)]
struct Repository {
    root: PathBuf,
    checkout: GitCheckout,
    /// What refs pointed to.
    tips: Vec<ObjectId>,
}

/// By the sessions' folders for temporary files.
static SESSIONS: Mutex<BTreeMap<PathBuf, Arc<SessionCommits>>> = Mutex::new(BTreeMap::new());

/// The commits that a session began with, noted now if they were not before.
pub(super) fn session_commits(it: &Confinement) -> Arc<SessionCommits> {
    let look = || Arc::new(SessionCommits(it.writable_folders().filter_map(Repository::around).collect()));
    let mut all = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(it.own_folders.tmp.as_path().to_owned()).or_insert_with(look).clone()
}

impl SessionCommits {
    /// Whether each of these files of one folder is in some commit, as it is now.
    pub(super) fn has(&self, files: &[PathBuf]) -> bool {
        let around = |it: &&Repository| files.iter().all(|file| file.starts_with(&it.root));
        let nearest = self.0.iter().filter(around).max_by_key(|it| it.root.as_os_str().len());
        nearest.is_some_and(|it| it.has(files).unwrap_or_default())
    }
}

impl Repository {
    fn around(root: &AbsPath) -> Option<Self> {
        let checkout = GitCheckout::around(root)?;
        Some(Self { root: root.as_path().to_owned(), tips: checkout.tips(MAX_TIPS)?, checkout })
    }

    fn has(&self, files: &[PathBuf]) -> Option<bool> {
        let mut all = Vec::new();
        for file in files {
            let is_program = fs::symlink_metadata(file).ok()?.permissions().mode() & 0o111 != 0;
            let bytes = disk::read_real_head(&AbsPath::new(file)?, MAX_FILE + 1).ok()?;
            let path = file.strip_prefix(&self.root).ok()?.as_os_str().as_bytes();
            all.push((path, Some(bytes).filter(|it| it.len() as u64 <= MAX_FILE)?, is_program));
        }
        let all: Vec<_> = all.iter().map(|(path, bytes, is_program)| (*path, &**bytes, Some(*is_program))).collect();
        Some(CommitSearch::new(&self.checkout, &self.tips).has(&all))
    }
}

/// The files that make up what is new in a place; `None`: there is something else in it, or too many. Who has another name
/// for a file may write it later on.
pub(super) fn files(path: &Path) -> Option<Vec<PathBuf>> {
    let mut res = Vec::new();
    files_below(path, &mut res)?;
    let has_one_name = |it: &PathBuf| fs::symlink_metadata(it).is_ok_and(|it| it.nlink() == 1);
    (!res.is_empty() && res.iter().all(has_one_name)).then_some(res)
}

fn files_below(path: &Path, res: &mut Vec<PathBuf>) -> Option<()> {
    let there = fs::symlink_metadata(path).ok()?.file_type();
    if there.is_file() && res.len() < MAX_FILES {
        res.push(path.to_owned());
        return Some(());
    }
    let mut entries = fs::read_dir(path).ok().filter(|_| there.is_dir())?;
    entries.try_for_each(|it| files_below(&it.ok()?.path(), res))
}
