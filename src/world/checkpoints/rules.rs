//! Which folders are built from the rest, and so are not held: git ignores them, and they are named like it.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{
    beneath::Beneath,
    git,
    node::{self, RelPath},
};

/// Names of folders that programs build, and can build again.
const BUILT: &str = ".angular .cache .dart_tool .eggs .gradle .mypy_cache .next .nox .nuxt .output .parcel-cache \
    .pytest_cache .ruff_cache .svelte-kit .terraform .tox .turbo .venv DerivedData __pycache__ _build \
    bower_components build dist env node_modules out target venv zig-cache zig-out";
/// Longest list of ignored names that is read, in bytes.
const MAX_IGNORES: usize = 1 << 20;

/// The bytes of lists, by their paths.
pub type Lists = BTreeMap<RelPath, Vec<u8>>;

/// The lists as they stood when the first of the sessions that are open began.
#[derive(Default)]
pub struct Rules {
    /// `None`: nothing is decided yet, so they are read where they are needed.
    lists: Option<Lists>,
    read: Mutex<HashMap<RelPath, Arc<List>>>,
}

struct List {
    ignores: Gitignore,
    /// Files that git has, though they may be ignored.
    tracked: Vec<Vec<u8>>,
}

impl Rules {
    pub fn new(lists: Option<Lists>) -> Self {
        Self { lists, read: Mutex::default() }
    }

    /// Whether a path is a list that counts.
    pub fn is_list(path: &[u8]) -> bool {
        let inner = git::git_path(path).map(|it| it.inner);
        inner.is_some_and(|it| matches!(it, b"info/exclude" | b"index"))
            || node::split(path).is_some_and(|it| it.1 == b".gitignore")
    }

    /// What is kept of a list: of an index only the files that are in such folders.
    pub fn digest(path: &[u8], bytes: Vec<u8>) -> Vec<u8> {
        if !path.ends_with(b".git/index") {
            return bytes;
        }
        let staged = git::staged(&bytes).unwrap_or_default();
        let names = staged.iter().map(|it| it.2).filter(|it| it.split(|it| *it == b'/').any(is_built));
        names.collect::<Vec<_>>().join(&0)
    }

    /// Whether a folder with this path is not held.
    pub fn is_exempt(&self, root: &Beneath, path: &[u8]) -> bool {
        node::split(path).is_some_and(|it| is_built(it.1))
            && git::git_path(path).is_none()
            && self.is_ignored(root, path)
            && !self.has_tracked(root, path)
    }

    /// By the nearest list that says something.
    fn is_ignored(&self, root: &Beneath, path: &[u8]) -> bool {
        for dir in node::ancestors(path) {
            let below = Path::new(OsStr::from_bytes(node::below(path, dir)));
            for name in [b".gitignore".as_slice(), b".git/info/exclude"] {
                let list = self.list(root, &node::join(dir, name));
                match list.ignores.matched_path_or_any_parents(below, true) {
                    Match::None => (),
                    it => return it.is_ignore(),
                }
            }
        }
        false
    }

    /// Whether the repository of `path` has files in it all the same.
    fn has_tracked(&self, root: &Beneath, path: &[u8]) -> bool {
        let lists = node::ancestors(path).map(|dir| (dir, self.list(root, &node::join(dir, b".git/index"))));
        let nearest = lists.into_iter().find(|it| !it.1.tracked.is_empty());
        nearest.is_some_and(|(dir, it)| it.tracked.iter().any(|it| node::is_within(it, node::below(path, dir))))
    }

    fn list(&self, root: &Beneath, path: &[u8]) -> Arc<List> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = read.get(path) {
            return Arc::clone(it);
        }
        let bytes = match &self.lists {
            Some(it) => it.get(path).cloned(),
            None => root.read(path).ok().flatten().map(|it| Self::digest(path, it)),
        };
        let res = Arc::new(List::parse(path, &bytes.unwrap_or_default()));
        read.insert(path.into(), Arc::clone(&res));
        res
    }
}

impl List {
    fn parse(path: &[u8], bytes: &[u8]) -> Self {
        if path.ends_with(b".git/index") {
            let tracked = bytes.split(|it| *it == 0).filter(|it| !it.is_empty()).map(<[u8]>::to_vec).collect();
            return Self { ignores: Gitignore::empty(), tracked };
        }
        let text = String::from_utf8_lossy(bytes.get(..MAX_IGNORES).unwrap_or(bytes));
        let mut builder = GitignoreBuilder::new("");
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern ignores nothing.
            _ = builder.add_line(None, line);
        }
        Self { ignores: builder.build().unwrap_or_else(|_| Gitignore::empty()), tracked: Vec::new() }
    }
}

fn is_built(name: &[u8]) -> bool {
    BUILT.split(' ').any(|it| it.as_bytes() == name)
}
