//! Commits from before a session, whose bytes are nobody's, and commits of a person's, which are a look. git is not run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::{ContentHash, PathBytes};
use crate::{
    base::path::AbsPath,
    world::disk::{
        git_commits::{GitCheckout, read_commit},
        git_objects::{ObjectId, ObjectKind, Objects, hash},
    },
};

/// Sessions whose first commits are known.
const MAX_ERAS: usize = 8;
/// Commits that are looked through.
const MAX_COMMITS: usize = 2_000;
/// Commits of a person's between two sessions.
const MAX_NEW: usize = 200;
/// What git notes of a commit that somebody wrote there and then, in its log of `HEAD`.
const WRITTEN: [&str; 4] = ["commit:", "commit (initial):", "commit (amend):", "commit (merge):"];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commits {
    /// By number, what refs pointed to when a session began.
    eras: BTreeMap<u32, Vec<ObjectId>>,
    last: u32,
    quiet: Option<Quiet>,
    repository: Option<GitCheckout>,
}

/// No session has the root open since then.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Quiet {
    tips: Vec<ObjectId>,
    /// The length of the log of `HEAD`.
    reflog: u64,
}

impl Commits {
    /// A session begins, and no other has the root open.
    pub fn begin(&mut self, root: &AbsPath) {
        self.repository = GitCheckout::around(root);
        (self.quiet, self.last) = (None, self.last + 1);
        let tips = self.repository.as_ref().and_then(GitCheckout::tips).unwrap_or_default();
        self.eras.insert(self.last, tips);
        while self.eras.len() > MAX_ERAS {
            self.eras.pop_first();
        }
    }

    /// The last session that had the root open is over.
    pub fn end(&mut self, root: &AbsPath) {
        self.repository = GitCheckout::around(root);
        let quiet = |it: &GitCheckout| Some(Quiet { tips: it.tips()?, reflog: it.reflog_len() });
        self.quiet = self.repository.as_ref().and_then(quiet);
    }

    pub fn era(&self) -> u32 {
        self.last
    }

    /// `None`: nothing is known of commits from before.
    pub fn search(&self, era: u32) -> Option<CommitSearch<'_>> {
        let tips = self.eras.get(&era).filter(|it| !it.is_empty())?;
        let repository = self.repository.as_ref()?;
        Some(CommitSearch { objects: repository.objects(), tips, repository })
    }

    /// The paths whose bytes a person's commit brought in, while no session had the root open.
    pub fn looked<'a>(
        &self,
        left: impl Iterator<Item = (&'a PathBytes, ContentHash)> + Clone,
        contents: &dyn Fn(&ContentHash) -> Option<Vec<u8>>,
    ) -> Vec<(PathBytes, ContentHash)> {
        let (Some(quiet), Some(repository)) = (&self.quiet, &self.repository) else { return Vec::new() };
        let (objects, mut before, mut res) = (repository.objects(), quiet.tips.clone(), Vec::new());
        let written = repository.reflog_since(quiet.reflog).into_iter();
        for commit in written.filter(|it| WRITTEN.iter().any(|word| it.what.starts_with(word))).take(MAX_NEW) {
            let Some((tree, parents)) = read_commit(&objects, commit.new) else { continue };
            before.extend(parents.into_iter().chain([commit.old]));
            let old: BTreeSet<ObjectId> = before.iter().filter_map(|it| Some(read_commit(&objects, *it)?.0)).collect();
            for (path, hashed) in left.clone() {
                let Some(id) = contents(&hashed).map(|it| hash(ObjectKind::Blob, &it)) else { continue };
                let has = |tree: ObjectId| repository.find(&objects, tree, path) == Some(id);
                res.extend((has(tree) && !old.iter().any(|it| has(*it))).then(|| (path.clone(), hashed)));
            }
        }
        res
    }
}

/// Commits from before a session.
pub struct CommitSearch<'a> {
    objects: Objects,
    tips: &'a [ObjectId],
    repository: &'a GitCheckout,
}

impl CommitSearch<'_> {
    /// Whether one of them has these bytes at a path of the root.
    pub fn has(&mut self, path: &[u8], bytes: &[u8]) -> bool {
        let id = hash(ObjectKind::Blob, bytes);
        // What git never stored is in no commit.
        if self.objects.read(id).is_none() {
            return false;
        }
        let (mut waiting, mut met) = (VecDeque::from(self.tips.to_vec()), BTreeSet::new());
        while let Some(commit) = waiting.pop_front().filter(|_| met.len() < MAX_COMMITS) {
            if !met.insert(commit) {
                continue;
            }
            let Some((tree, parents)) = read_commit(&self.objects, commit) else { continue };
            if self.repository.find(&self.objects, tree, path) == Some(id) {
                return true;
            }
            waiting.extend(parents);
        }
        false
    }
}
