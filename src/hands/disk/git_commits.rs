//! Commits of a repository, read without git: what its refs point to, its log of `HEAD`, and files of commits.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsStr,
    fs,
    io::BufRead,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::git_objects::{ObjectId, ObjectKind, Objects, entries, hash};
use crate::disk;
use castor_base::path::AbsPath;

const MAX_FILE: u64 = 16 << 20;
/// Commits that are looked through.
const MAX_COMMITS: usize = 20_000;

/// A checkout, as it is found around a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GitCheckout {
    /// git's folder of this checkout.
    git: PathBuf,
    /// That of all checkouts.
    common: PathBuf,
    /// The folder below the top of the checkout.
    prefix: PathBuf,
}

/// A line of the log of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflogLine {
    pub old: ObjectId,
    pub new: ObjectId,
    pub what: String,
}

impl GitCheckout {
    /// `None`: there is none, or it cannot be read.
    pub fn around(root: &AbsPath) -> Option<Self> {
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

    /// What refs point to, and the heads of all its checkouts; `None`: there are more than that, or they cannot be read.
    pub fn tips(&self, max: usize) -> Option<Vec<ObjectId>> {
        let mut files = vec![self.git.join("HEAD"), self.common.join("HEAD"), self.common.join("packed-refs")];
        let trees = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().filter_map(Result::ok);
        files.extend(trees.map(|it| it.path().join("HEAD")));
        let mut folders = vec![self.common.join("refs")];
        while let Some(folder) = folders.pop() {
            for it in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
                let is_dir = it.file_type().ok()?.is_dir();
                if is_dir {
                    folders.push(it.path())
                } else {
                    files.push(it.path())
                }
                if files.len() + folders.len() > max {
                    return None;
                }
            }
        }
        let mut res = BTreeSet::new();
        for text in files.iter().filter_map(|it| read(it)) {
            let words = text.split(|it| it.is_ascii_whitespace()).map(|it| it.strip_prefix(b"^").unwrap_or(it));
            res.extend(words.filter_map(ObjectId::from_hex));
        }
        (res.len() <= max).then(|| res.into_iter().collect())
    }

    pub fn reflog_len(&self) -> u64 {
        self.git.join("logs/HEAD").symlink_metadata().map_or(0, |it| it.len())
    }

    /// What was added to the log of `HEAD` behind so many bytes.
    pub fn reflog_since(&self, len: u64) -> Vec<ReflogLine> {
        let bytes = read(&self.git.join("logs/HEAD")).unwrap_or_default();
        let new = usize::try_from(len).ok().and_then(|it| bytes.get(it..)).unwrap_or_default();
        let line = |line: String| {
            let (head, what) = line.split_once('\t')?;
            let mut words = head.split(' ').map(|it| ObjectId::from_hex(it.as_bytes()));
            Some(ReflogLine { old: words.next()??, new: words.next()??, what: what.to_owned() })
        };
        new.lines().map_while(Result::ok).filter_map(line).collect()
    }

    pub fn objects(&self) -> Objects {
        Objects::open(&self.common)
    }

    /// The file that a tree has at a path of the folder, and whether it is a program.
    pub fn find(&self, objects: &Objects, tree: ObjectId, path: &[u8]) -> Option<(ObjectId, bool)> {
        self.prefix.join(OsStr::from_bytes(path)).iter().try_fold((tree, false), |(tree, _), part| {
            let (ObjectKind::Tree, bytes) = objects.read(tree)? else { return None };
            let (mode, _, id) = entries(&bytes).find(|it| it.1 == part.as_encoded_bytes())?;
            Some((id, mode == b"100755"))
        })
    }
}

/// Commits that refs pointed to at some time, with all before them.
pub struct CommitSearch<'a> {
    checkout: &'a GitCheckout,
    tips: &'a [ObjectId],
    objects: Objects,
}

/// A file below a checkout's folder: its path, its bytes, and whether it has to be a program.
pub type FileContent<'a> = (&'a [u8], &'a [u8], Option<bool>);

impl<'a> CommitSearch<'a> {
    pub fn new(checkout: &'a GitCheckout, tips: &'a [ObjectId]) -> Self {
        Self { checkout, tips, objects: checkout.objects() }
    }

    /// Tells whether each of these files is in some commit.
    pub fn has(&self, files: &[FileContent]) -> bool {
        let mut left: Vec<_> = files.iter().map(|it| (it.0, hash(ObjectKind::Blob, it.1), it.2)).collect();
        // What git never stored is in no commit.
        if !left.iter().all(|it| self.objects.read(it.1).is_some()) {
            return false;
        }
        let (mut waiting, mut met) = (VecDeque::from(self.tips.to_vec()), BTreeSet::new());
        while let Some(id) = waiting.pop_front().filter(|_| !left.is_empty() && met.len() < MAX_COMMITS) {
            let commit = Some(id).filter(|it| met.insert(*it)).and_then(|it| read_commit(&self.objects, it));
            let Some((tree, parents)) = commit else { continue };
            left.retain(|(path, id, is_program)| {
                let found = self.checkout.find(&self.objects, tree, path);
                !found.is_some_and(|it| it.0 == *id && is_program.is_none_or(|want| it.1 == want))
            });
            waiting.extend(parents);
        }
        left.is_empty()
    }
}

/// The tree and the parents of a commit; of a tag, what it names is the parent.
pub fn read_commit(objects: &Objects, id: ObjectId) -> Option<(ObjectId, Vec<ObjectId>)> {
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

/// All of a file, through no link.
fn read(path: &Path) -> Option<Vec<u8>> {
    let bytes = disk::read_real_head(&AbsPath::new(path)?, MAX_FILE + 1).ok()?;
    (bytes.len() as u64 <= MAX_FILE).then_some(bytes)
}
