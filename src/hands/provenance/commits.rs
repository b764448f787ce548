//! Commits from before a session, whose bytes are nobody's, and commits of a person's, which are a look. git is not run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ContentHash, ContentReader, PathBytes};
use crate::disk::{
    git_commits::{CommitSearch, GitCheckout, read_commit},
    git_objects::{ObjectId, ObjectKind, hash},
};
use castor_base::path::AbsPath;

/// Sessions whose first commits are known.
const MAX_ERAS: u32 = 8;
/// With more refs nothing is said.
const MAX_TIPS: usize = 1_000;
/// Commits of a person's between two sessions.
const MAX_NEW: usize = 200;
/// What git notes of a commit that somebody wrote there and then, in its log of `HEAD`.
const WRITTEN: [&str; 4] = ["commit:", "commit (initial):", "commit (amend):", "commit (merge):"];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commits {
    /// By number, what refs pointed to when a session began.
    eras: BTreeMap<u32, Vec<ObjectId>>,
    pub last: u32,
    /// What refs pointed to, and the length of the log of `HEAD`, since when no session has the root open.
    quiet: Option<(Vec<ObjectId>, u64)>,
    repository: Option<GitCheckout>,
}

impl Commits {
    /// The first session opens a root, or the last one closes it.
    pub fn open_root(&mut self, root: &AbsPath, is_open: bool) {
        self.repository = GitCheckout::around(root);
        self.quiet = self.repository.as_ref().and_then(|it| Some((it.tips(MAX_TIPS)?, it.reflog_len())));
        if is_open {
            self.last += 1;
            self.eras.insert(self.last, self.quiet.take().unwrap_or_default().0);
            self.eras.retain(|era, _| era + MAX_ERAS > self.last);
        }
    }

    /// `None`: nothing is known of commits from before.
    pub fn search(&self, era: u32) -> Option<CommitSearch<'_>> {
        let tips = self.eras.get(&era).filter(|it| !it.is_empty())?;
        Some(CommitSearch::new(self.repository.as_ref()?, tips))
    }

    /// The paths whose bytes a person's commit brought in, while no session had the root open.
    pub fn looked<'a>(
        &self,
        left: impl Iterator<Item = (&'a PathBytes, ContentHash)> + Clone,
        contents: ContentReader,
    ) -> Vec<(PathBytes, ContentHash)> {
        let (Some((tips, reflog)), Some(repository)) = (&self.quiet, &self.repository) else { return Vec::new() };
        let (objects, mut before, mut res) = (repository.objects(), tips.clone(), Vec::new());
        let written = repository.reflog_since(*reflog).into_iter();
        for commit in written.filter(|it| WRITTEN.iter().any(|word| it.what.starts_with(word))).take(MAX_NEW) {
            let Some((tree, parents)) = read_commit(&objects, commit.new) else { continue };
            before.extend(parents.into_iter().chain([commit.old]));
            let old: BTreeSet<ObjectId> = before.iter().filter_map(|it| Some(read_commit(&objects, *it)?.0)).collect();
            for (path, hashed) in left.clone() {
                let Some(id) = blob(&hashed, contents) else { continue };
                let has = |tree: ObjectId| repository.find(&objects, tree, path).is_some_and(|it| it.0 == id);
                res.extend((has(tree) && !old.iter().any(|it| has(*it))).then(|| (path.clone(), hashed)));
            }
        }
        res
    }
}

/// The object that git would make of a content.
pub fn blob(content: &ContentHash, contents: ContentReader) -> Option<ObjectId> {
    contents(content).map(|it| hash(ObjectKind::Blob, &it))
}
