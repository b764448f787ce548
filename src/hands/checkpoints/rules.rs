//! Ignored build folders: git ignores them and their name is usual, so checkpoints skip them.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{DirFd, RelPath, git, node};

/// Names of folders that programs build, and can build again.
const BUILT: &str = ".angular .cache .dart_tool .eggs .gradle .mypy_cache .next .nox .nuxt .output .parcel-cache \
    .pytest_cache .ruff_cache .svelte-kit .terraform .tox .turbo .venv DerivedData __pycache__ _build \
    bower_components build dist env node_modules out target venv zig-cache zig-out";
/// Longest list of ignored names that is read, in bytes.
const MAX_IGNORES: usize = 1 << 20;
/// What counts in a folder.
const IGNORES: [&[u8]; 2] = [b".gitignore", b".git/info/exclude"];
const INDEX: &[u8] = b".git/index";

/// The bytes of lists, by their paths.
pub type Lists = BTreeMap<RelPath, Vec<u8>>;

/// The lists as they stood when the first of the sessions that are open began.
#[derive(Default)]
pub struct IgnoreLists {
    /// `None`: nothing is decided yet, so they are read where they are needed.
    lists: Option<Lists>,
    read: Mutex<HashMap<RelPath, Arc<List>>>,
}

struct List {
    ignores: Gitignore,
    /// Files that git has, though they may be ignored; a NUL between each two.
    tracked: Vec<u8>,
}

impl IgnoreLists {
    pub fn new(lists: Option<Lists>) -> Self {
        Self { lists, ..Self::default() }
    }

    /// Tells whether a path is a list that counts.
    pub fn is_list(path: &[u8]) -> bool {
        IGNORES.iter().chain([&INDEX]).any(|it| path.ends_with(it))
    }

    /// What is kept of a list: of an index only the files that are in such folders.
    pub fn digest(path: &[u8], bytes: Vec<u8>) -> Vec<u8> {
        if !path.ends_with(INDEX) {
            return bytes;
        }
        let staged = git::staged(&bytes).unwrap_or_default();
        let names = staged.iter().map(|it| &*it.2).filter(|it| it.split(|it| *it == b'/').any(is_built));
        names.collect::<Vec<_>>().join(&0)
    }

    /// Tells whether a folder with this path is not held.
    pub fn is_exempt(&self, root: &DirFd, path: &[u8]) -> bool {
        node::split(path).is_some_and(|it| is_built(it.1))
            && git::git_path(path).is_none()
            && self.is_ignored(root, path)
            && !self.has_tracked(root, path)
    }

    /// By the nearest list that says something.
    fn is_ignored(&self, root: &DirFd, path: &[u8]) -> bool {
        let lists = node::ancestors(path).flat_map(|dir| IGNORES.map(|it| (dir, it)));
        let mut said = lists.map(|(dir, name)| {
            let below = Path::new(OsStr::from_bytes(node::strip_dir(path, dir)));
            self.list(root, dir, name).ignores.matched_path_or_any_parents(below, true).map(drop)
        });
        said.find(|it| !it.is_none()).is_some_and(|it| it.is_ignore())
    }

    /// Tells whether the repository of `path` has files in it all the same.
    fn has_tracked(&self, root: &DirFd, path: &[u8]) -> bool {
        let mut lists = node::ancestors(path).map(|dir| (dir, self.list(root, dir, INDEX)));
        let nearest = lists.find(|it| !it.1.tracked.is_empty());
        let is_in = |dir, name: &[u8]| node::is_within(name, node::strip_dir(path, dir));
        nearest.is_some_and(|(dir, it)| it.tracked.split(|it| *it == 0).any(|it| is_in(dir, it)))
    }

    fn list(&self, root: &DirFd, dir: &[u8], name: &[u8]) -> Arc<List> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let list = read.entry(node::join(dir, name).into()).or_insert_with_key(|path| {
            let read = || root.read(path).ok().flatten().map(|it| Self::digest(path, it));
            let bytes = self.lists.as_ref().map_or_else(read, |it| it.get(path).cloned());
            Arc::new(List::new(name == INDEX, bytes.unwrap_or_default()))
        });
        Arc::clone(list)
    }
}

impl List {
    fn new(is_index: bool, bytes: Vec<u8>) -> Self {
        if is_index {
            return Self { ignores: Gitignore::empty(), tracked: bytes };
        }
        let text = String::from_utf8_lossy(bytes.get(..MAX_IGNORES).unwrap_or(&bytes));
        let mut builder = GitignoreBuilder::new("");
        // A line that is no pattern ignores nothing.
        text.trim_start_matches('\u{feff}').lines().for_each(|it| _ = builder.add_line(None, it));
        Self { ignores: builder.build().unwrap_or_else(|_| Gitignore::empty()), tracked: Vec::new() }
    }
}

fn is_built(name: &[u8]) -> bool {
    BUILT.split(' ').any(|it| it.as_bytes() == name)
}
