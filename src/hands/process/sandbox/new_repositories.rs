//! Repositories below roots that a command made or changed: those that are not plain are put aside.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::{
    gitlinks, nested_config,
    plain_repository::{Plainness, obeyed_hash, places_within},
    repository::is_repository,
    unfinished_work::{StartedProgram, find_programs},
};

/// Repositories before a command.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KnownRepositories {
    /// With the hash of what git obeys in each. `None`: commands cannot change it.
    places: BTreeMap<PathBuf, Option<String>>,
    /// Staged in the index, and named nowhere.
    gitlinks: BTreeSet<PathBuf>,
    /// What unfinished work in them would start.
    #[serde(default)]
    programs: BTreeSet<StartedProgram>,
    /// Gitlinks that are new, and whether they were told.
    #[serde(skip)]
    new_gitlinks: Mutex<BTreeMap<PathBuf, bool>>,
}

impl KnownRepositories {
    /// What is there, as the last look at the roots found it. What changes in it counts as the user's, until it is said
    /// what is guarded.
    pub fn known(roots: &[PathBuf]) -> Self {
        let places: BTreeSet<PathBuf> = roots.iter().flat_map(|it| places(it)).collect();
        Self {
            programs: places.iter().flat_map(|it| find_programs(it)).collect(),
            places: places.into_iter().map(|it| (it, None)).collect(),
            gitlinks: roots.iter().flat_map(|it| gitlinks::unnamed(it)).collect(),
            new_gitlinks: Mutex::default(),
        }
    }

    /// The same, where only some are guarded, wherever they are: what git obeys in the others may change.
    pub fn with_guarded(mut self, guarded: &[PathBuf]) -> Self {
        for (place, hash) in &mut self.places {
            let is_guarded = guarded.iter().any(|it| place.starts_with(it));
            *hash = (!is_guarded).then(|| obeyed_hash(place));
        }
        let within = |git: &PathBuf| places_within(git).chain([git.clone()]).map(|it| (it, None)).collect::<Vec<_>>();
        guarded.iter().flat_map(within).for_each(|it| _ = self.places.entry(it.0).or_insert(it.1));
        self.programs = self.places.keys().flat_map(|it| find_programs(it)).collect();
        self
    }

    /// All that there are now, with the folders they were found in.
    pub fn find_all(&self, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        look(roots);
        let below = roots.iter().flat_map(|root| places(root).into_iter().map(move |it| (root.clone(), it)));
        // Those that lie outside of the roots.
        let guarded = self.places.keys().filter(|git| !roots.iter().any(|root| git.starts_with(root)));
        let within = |git: &PathBuf| places_within(git).chain([git.clone()]).collect::<Vec<_>>();
        let outside = guarded.flat_map(|git| within(git).into_iter().map(move |it| (git.clone(), it)));
        below.chain(outside).collect()
    }

    /// Files of unfinished work in a repository that would start what they did not before.
    pub fn find_new_programs(&self, place: &Path) -> BTreeSet<PathBuf> {
        find_programs(place).into_iter().filter(|it| !self.programs.contains(it)).map(|it| it.0).collect()
    }

    /// Whether a repository is not plain, and is new or changed.
    pub fn is_new(&self, roots: &[PathBuf], place: &Path, running: bool) -> bool {
        let is_seen = |target: &Path| {
            let below = roots.iter().filter_map(|it| target.strip_prefix(it).ok());
            below.into_iter().any(|it| it.parent().is_some_and(|it| it.iter().all(|it| it != ".git")))
        };
        let judge = Plainness { is_known: &|it| self.is_known(it), is_seen: &is_seen, running };
        !self.is_known(place) && !judge.judge(place)
    }

    /// Gitlinks that are new, and were not told yet.
    pub fn take_gitlinks(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let mut new = self.new_gitlinks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = roots.iter().flat_map(|it| gitlinks::unnamed(it)).filter(|it| !self.gitlinks.contains(it));
        now.for_each(|it| _ = new.entry(it).or_default());
        new.iter_mut().filter_map(|it| (!std::mem::replace(it.1, true)).then(|| it.0.clone())).collect()
    }

    fn is_known(&self, place: &Path) -> bool {
        self.places.get(place).is_some_and(|it| it.as_ref().is_none_or(|it| *it == obeyed_hash(place)))
    }
}

/// Looks at all folders below roots.
pub(super) fn look(roots: &[PathBuf]) {
    roots.iter().for_each(|it| drop(nested_config::protected(it)));
}

/// Where git finds a repository in or below a root.
fn places(root: &Path) -> BTreeSet<PathBuf> {
    let is_one = |it: &PathBuf| it.ends_with(".git") || is_repository(it);
    // What is staged is looked into wherever it lies.
    let staged = gitlinks::staged(root).into_iter().map(|it| it.join(".git"));
    let found = nested_config::repositories(root).into_iter().chain(staged).filter(is_one);
    found.flat_map(|it| places_within(&it).chain([it.clone()]).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::{KnownRepositories, look};

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn find_new(known: &KnownRepositories, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        known.find_all(roots).into_iter().filter(|it| known.is_new(roots, &it.1, false)).collect()
    }

    /// What is guarded may be changed by the user alone.
    #[test]
    fn new_and_changed_repositories_are_found_anywhere_and_guarded_ones_are_not_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let evil = "[core]\n\tfsmonitor = x\n";
        let old = ["a/.git", "vendor/b/.git", "vendor/c/.git"].map(|it| root.join(it));
        old.iter().for_each(|it| write(&it.join("config"), evil));
        let roots = [root.clone()];
        look(&roots);
        let known = KnownRepositories::known(&roots).with_guarded(&old[..1]);
        assert!(find_new(&known, &roots).is_empty());
        let new = ["1/2/3/4/5/6/7/8/9/.git", ".x/y/.git", "node_modules/p/q/.git", "bare.git"].map(|it| root.join(it));
        new.iter().for_each(|it| write(&it.join("config"), evil));
        ["HEAD", "objects/x", "refs/x"].iter().for_each(|it| write(&new[3].join(it), "ref: refs/heads/main"));
        write(&root.join("plain/.git/config"), "[core]\n\tbare = false\n");
        write(&old[0].join("config"), "[core]\n\tpager = x\n");
        write(&old[1].join("hooks/pre-commit"), "x");
        let mut found: Vec<_> = find_new(&known, &roots).into_iter().map(|it| it.1).collect();
        found.sort();
        let mut want = [&new[..], &old[1..2]].concat();
        want.sort();
        assert_eq!(found, want);
        // One that is there when nobody knows what is guarded is the user's.
        assert!(find_new(&KnownRepositories::known(&roots), &roots).is_empty());
    }

    /// Entries for worktrees in a repository that lies elsewhere count as those in a root.
    #[test]
    fn entries_of_a_guarded_repository_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
        write(&at("repo/.git/worktrees/old/gitdir"), "x");
        write(&at("tree/a"), "");
        let roots = [at("tree")];
        look(&roots);
        let known = KnownRepositories::known(&roots).with_guarded(&[at("repo/.git")]);
        write(&at("repo/.git/worktrees/old/gitdir"), "y");
        write(&at("repo/.git/worktrees/new/gitdir"), "x");
        assert_eq!(find_new(&known, &roots), [(at("repo/.git"), at("repo/.git/worktrees/new"))]);
    }
}
