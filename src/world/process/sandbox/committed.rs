//! Files that a commit from before the session holds: checking them out creates no new configuration.
//!
//! No git is started for that. What the refs pointed to is noted when the session's first process is confined. From there
//! on commits and trees are read in git's own files. Commands write those, and so each object is checked by its hash: that
//! one is merely there says nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::BufRead,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::repository;
use crate::{
    base::{path::AbsPath, sandbox::Confinement},
    world::disk::{
        self,
        git_objects::{ObjectId, ObjectKind, Objects, entries, hash},
    },
};

/// More files are no configuration that was ever reviewed.
const MAX_FILES: usize = 256;
const MAX_FILE: u64 = 1 << 20;
/// Refs that are files of their own; what git packed of them beyond that is not read.
const MAX_REFS: usize = 10_000;
const MAX_PACKED: u64 = 16 << 20;

/// The repositories of a session's folders, as its first process found them.
#[derive(Debug, Default)]
pub(super) struct SessionCommits(Vec<Repository>);

#[derive(Debug)]
struct Repository {
    top: PathBuf,
    git: PathBuf,
    /// What refs pointed to.
    tips: Vec<ObjectId>,
}

/// By the sessions' folders for temporary files.
static SESSIONS: Mutex<BTreeMap<PathBuf, Arc<SessionCommits>>> = Mutex::new(BTreeMap::new());

/// The commits that a session began with, noted now if they were not before.
pub(super) fn session_commits(it: &Confinement) -> Arc<SessionCommits> {
    let look =
        || Arc::new(SessionCommits(it.writable_folders().filter_map(|it| Repository::around(it.as_path())).collect()));
    let mut all = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(it.own_folders.tmp.as_path().to_owned()).or_insert_with(look).clone()
}

impl SessionCommits {
    /// Whether each of these files of one folder is in some commit, as it is now.
    pub(super) fn has(&self, files: &[PathBuf]) -> bool {
        let around = |it: &&Repository| files.iter().all(|file| file.starts_with(&it.top));
        let nearest = self.0.iter().filter(around).max_by_key(|it| it.top.as_os_str().len());
        nearest.is_some_and(|it| it.has(files).unwrap_or_default())
    }
}

impl Repository {
    fn around(root: &Path) -> Option<Self> {
        let top = root.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())?;
        let git = repository::git_folder_of(top)?;
        let mut refs = vec![git.join("HEAD"), git.join("packed-refs")];
        let trees = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(Result::ok);
        refs.extend(trees.map(|it| it.path().join("HEAD")));
        _ = files_below(&git.join("refs"), MAX_REFS, &mut refs);
        let mut tips = Vec::new();
        for text in refs.iter().filter_map(|it| read(it, MAX_PACKED)) {
            let words = text.split(|it| it.is_ascii_whitespace()).map(|it| it.strip_prefix(b"^").unwrap_or(it));
            tips.extend(words.filter_map(ObjectId::from_hex));
        }
        Some(Self { top: top.to_owned(), git, tips })
    }

    fn has(&self, files: &[PathBuf]) -> Option<bool> {
        let mut left = BTreeMap::new();
        for file in files {
            let is_program = fs::symlink_metadata(file).ok()?.permissions().mode() & 0o111 != 0;
            let id = hash(ObjectKind::Blob, &read(file, MAX_FILE)?);
            left.insert(file.strip_prefix(&self.top).ok()?, (is_program, id));
        }
        let objects = Objects::open(&self.git);
        // What git never stored is in no commit.
        if left.values().any(|(_, id)| objects.read(*id).is_none()) {
            return Some(false);
        }
        let mut waiting = std::collections::VecDeque::from(self.tips.clone());
        let mut met = BTreeSet::new();
        while let Some(id) = waiting.pop_front().filter(|_| !left.is_empty()) {
            // A tag leads to its commit as a commit does to those before it.
            let new = Some(id).filter(|it| met.insert(*it));
            let Some((ObjectKind::Commit | ObjectKind::Tag, text)) = new.and_then(|it| objects.read(it)) else {
                continue;
            };
            for (word, id) in text.lines().map_while(Result::ok).map_while(|it| leads_to(&it)) {
                match word {
                    HeaderLink::Tree if met.insert(id) => {
                        left.retain(|path, want| find(&objects, id, path) != Some(*want))
                    }
                    HeaderLink::Tree => (),
                    HeaderLink::Parent => waiting.push_back(id),
                }
            }
        }
        Some(left.is_empty())
    }
}

enum HeaderLink {
    Tree,
    Parent,
}

/// What a line in the head of a commit or of a tag leads to; `None`: there are no more of them.
fn leads_to(line: &str) -> Option<(HeaderLink, ObjectId)> {
    let (word, id) = line.split_once(' ')?;
    let word = match word {
        "tree" => HeaderLink::Tree,
        "parent" | "object" => HeaderLink::Parent,
        _ => return None,
    };
    Some((word, ObjectId::from_hex(id.as_bytes())?))
}

/// What a tree has in a place: whether it is a program, and which bytes.
fn find(objects: &Objects, tree: ObjectId, path: &Path) -> Option<(bool, ObjectId)> {
    let mut found = (false, tree);
    for part in path {
        let (ObjectKind::Tree, bytes) = objects.read(found.1)? else { return None };
        let (mode, _, id) = entries(&bytes).find(|it| it.1 == part.as_encoded_bytes())?;
        found = (mode == b"100755", id);
    }
    Some(found)
}

/// The files that make up what is new in a place; `None`: there is something else in it, or too many. Who has another name
/// for a file may write it later on.
pub(super) fn files(path: &Path) -> Option<Vec<PathBuf>> {
    let mut res = Vec::new();
    files_below(path, MAX_FILES, &mut res)?;
    let has_one_name = |it: &PathBuf| fs::symlink_metadata(it).is_ok_and(|it| it.nlink() == 1);
    (!res.is_empty() && res.iter().all(has_one_name)).then_some(res)
}

fn files_below(path: &Path, max: usize, res: &mut Vec<PathBuf>) -> Option<()> {
    let there = fs::symlink_metadata(path).ok()?.file_type();
    if there.is_file() && res.len() < max {
        res.push(path.to_owned());
        return Some(());
    }
    let mut entries = fs::read_dir(path).ok().filter(|_| there.is_dir())?;
    entries.try_for_each(|it| files_below(&it.ok()?.path(), max, res))
}

/// All of a file, through no link.
fn read(path: &Path, max: u64) -> Option<Vec<u8>> {
    let bytes = disk::read_real_head(&AbsPath::new(path)?, max + 1).ok()?;
    (bytes.len() as u64 <= max).then_some(bytes)
}
