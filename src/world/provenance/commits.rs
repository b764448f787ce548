//! Commits from before a session, whose bytes are nobody's, and commits of a person's, which are a look. git is not run.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    io::BufRead,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Hash, RelPath, book::Contents, book::Entry};
use crate::{
    base::path::AbsPath,
    world::disk::{
        self,
        git_objects::{ObjectId, ObjectKind, Objects, entries, hash},
    },
};

/// Sessions whose first commits are known.
const MAX_ERAS: usize = 8;
/// With more refs nothing is said about commits.
const MAX_TIPS: usize = 1_000;
/// Commits that are looked through.
const MAX_COMMITS: usize = 2_000;
/// Commits of a person's between two sessions.
const MAX_NEW: usize = 200;
const MAX_FILE: u64 = 16 << 20;
/// What git notes of a commit that somebody wrote there and then, in its log of `HEAD`.
const WRITTEN: [&str; 4] = ["commit:", "commit (initial):", "commit (amend):", "commit (merge):"];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commits {
    /// By number, what refs pointed to when a session began.
    eras: BTreeMap<u32, Vec<ObjectId>>,
    last: u32,
    quiet: Option<Quiet>,
    repository: Option<Repository>,
}

/// No session has the root open since then.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Quiet {
    tips: Vec<ObjectId>,
    /// The length of the log of `HEAD`.
    reflog: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Repository {
    /// Of this checkout.
    git: PathBuf,
    /// Of all checkouts.
    common: PathBuf,
    /// The root below the top of the checkout.
    prefix: PathBuf,
}

impl Commits {
    /// A session begins, and no other has the root open.
    pub fn begin(&mut self, root: &AbsPath) {
        self.repository = Repository::around(root);
        (self.quiet, self.last) = (None, self.last + 1);
        let tips = self.repository.as_ref().and_then(Repository::tips).unwrap_or_default();
        self.eras.insert(self.last, tips);
        while self.eras.len() > MAX_ERAS {
            self.eras.pop_first();
        }
    }

    /// The last session that had the root open is over.
    pub fn end(&mut self, root: &AbsPath) {
        self.repository = Repository::around(root);
        let quiet = |it: &Repository| Some(Quiet { tips: it.tips()?, reflog: it.reflog_len() });
        self.quiet = self.repository.as_ref().and_then(quiet);
    }

    pub fn era(&self) -> u32 {
        self.last
    }

    /// `None`: nothing is known of commits from before.
    pub fn search(&self, era: u32) -> Option<CommitSearch<'_>> {
        let tips = self.eras.get(&era).filter(|it| !it.is_empty())?;
        let repository = self.repository.as_ref()?;
        Some(CommitSearch { objects: Objects::open(&repository.common), tips, prefix: &repository.prefix })
    }

    /// The paths whose bytes a person's commit brought in, while no session had the root open.
    pub fn looked(&self, left: &BTreeMap<RelPath, Entry>, contents: Contents) -> Vec<(RelPath, Hash)> {
        let (Some(quiet), Some(repository)) = (&self.quiet, &self.repository) else { return Vec::new() };
        let written = repository.written_since(quiet.reflog);
        let objects = Objects::open(&repository.common);
        let mut res = Vec::new();
        let mut before: Vec<ObjectId> = quiet.tips.clone();
        for (old, new) in written {
            let Some((tree, parents)) = read_commit(&objects, new) else { continue };
            before.extend(parents.into_iter().chain([old]));
            let lacking: BTreeSet<ObjectId> =
                before.iter().filter_map(|it| Some(read_commit(&objects, *it)?.0)).collect();
            for (path, hashed) in left.iter().filter_map(|(path, it)| Some((path, it.hash()?))) {
                let Some(id) = contents(&hashed).map(|it| hash(ObjectKind::Blob, &it)) else { continue };
                let place = repository.prefix.join(as_path(path));
                let has = |tree: ObjectId| find(&objects, tree, &place) == Some(id);
                if has(tree) && !lacking.iter().any(|it| has(*it)) {
                    res.push((path.clone(), hashed));
                }
            }
        }
        res
    }
}

/// Commits from before a session.
pub struct CommitSearch<'a> {
    objects: Objects,
    tips: &'a [ObjectId],
    prefix: &'a Path,
}

impl CommitSearch<'_> {
    /// Whether one of them has these bytes at a path of the root.
    pub fn has(&mut self, path: &[u8], bytes: &[u8]) -> bool {
        let id = hash(ObjectKind::Blob, bytes);
        // What git never stored is in no commit.
        if self.objects.read(id).is_none() {
            return false;
        }
        let place = self.prefix.join(as_path(path));
        let (mut waiting, mut met) = (VecDeque::from(self.tips.to_vec()), BTreeSet::new());
        while let Some(commit) = waiting.pop_front().filter(|_| met.len() < MAX_COMMITS) {
            if !met.insert(commit) {
                continue;
            }
            let Some((tree, parents)) = read_commit(&self.objects, commit) else { continue };
            if find(&self.objects, tree, &place) == Some(id) {
                return true;
            }
            waiting.extend(parents);
        }
        false
    }
}

impl Repository {
    fn around(root: &AbsPath) -> Option<Self> {
        let top = root.as_path().ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())?;
        let git = top.join(".git");
        let line = |file: PathBuf| Some(String::from_utf8_lossy(&read(&file)?).trim().to_owned());
        let git = match git.symlink_metadata().ok()?.is_dir() {
            true => git,
            false => top.join(line(git)?.strip_prefix("gitdir:")?.trim()),
        };
        let common = line(git.join("commondir")).map_or_else(|| git.clone(), |it| git.join(it));
        let prefix = root.as_path().strip_prefix(top).unwrap_or(Path::new("")).to_owned();
        Some(Self { git, common, prefix })
    }

    /// What refs point to; `None`: there are too many of them, or they cannot be read.
    fn tips(&self) -> Option<Vec<ObjectId>> {
        let mut files = vec![self.git.join("HEAD"), self.common.join("HEAD"), self.common.join("packed-refs")];
        let mut folders = vec![self.common.join("refs")];
        while let Some(folder) = folders.pop() {
            for it in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
                let is_dir = it.file_type().ok()?.is_dir();
                if is_dir {
                    folders.push(it.path())
                } else {
                    files.push(it.path())
                }
                if files.len() + folders.len() > MAX_TIPS {
                    return None;
                }
            }
        }
        let mut res = BTreeSet::new();
        for text in files.iter().filter_map(|it| read(it)) {
            let words = text.split(|it| it.is_ascii_whitespace()).map(|it| it.strip_prefix(b"^").unwrap_or(it));
            res.extend(words.filter_map(ObjectId::from_hex));
        }
        (res.len() <= MAX_TIPS).then(|| res.into_iter().collect())
    }

    fn reflog_len(&self) -> u64 {
        self.git.join("logs/HEAD").symlink_metadata().map_or(0, |it| it.len())
    }

    /// Old and new value of `HEAD` for each commit that somebody wrote since.
    fn written_since(&self, len: u64) -> Vec<(ObjectId, ObjectId)> {
        let bytes = read(&self.git.join("logs/HEAD")).unwrap_or_default();
        let new = usize::try_from(len).ok().and_then(|it| bytes.get(it..)).unwrap_or_default();
        let line = |line: String| {
            let (head, what) = line.split_once('\t')?;
            let mut words = head.split(' ').map(|it| ObjectId::from_hex(it.as_bytes()));
            let ids = (words.next()??, words.next()??);
            WRITTEN.iter().any(|it| what.starts_with(it)).then_some(ids)
        };
        new.lines().map_while(Result::ok).filter_map(line).take(MAX_NEW).collect()
    }
}

/// The tree and the parents of a commit; of a tag, what it names is the parent.
fn read_commit(objects: &Objects, id: ObjectId) -> Option<(ObjectId, Vec<ObjectId>)> {
    let (ObjectKind::Commit | ObjectKind::Tag, text) = objects.read(id)? else { return None };
    let (mut tree, mut parents) = (id, Vec::new());
    for line in text.lines().map_while(Result::ok).take_while(|it| !it.is_empty()) {
        match line.split_once(' ').and_then(|(word, id)| Some((word, ObjectId::from_hex(id.as_bytes())?))) {
            Some(("tree", it)) => tree = it,
            Some(("parent" | "object", it)) => parents.push(it),
            _ => (),
        }
    }
    Some((tree, parents))
}

/// The file that a tree has at a path.
fn find(objects: &Objects, tree: ObjectId, path: &Path) -> Option<ObjectId> {
    path.iter().try_fold(tree, |tree, part| {
        let (ObjectKind::Tree, bytes) = objects.read(tree)? else { return None };
        Some(entries(&bytes).find(|it| it.1 == part.as_encoded_bytes())?.2)
    })
}

fn as_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

/// All of a file, through no link.
fn read(path: &Path) -> Option<Vec<u8>> {
    let bytes = disk::read_real_head(&AbsPath::new(path)?, MAX_FILE + 1).ok()?;
    (bytes.len() as u64 <= MAX_FILE).then_some(bytes)
}
