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
    codec::{Reader, Writer},
    git,
    node::{self, RelPath},
};

/// Names of folders that programs build, and can build again.
const BUILT: &[&[u8]] = &[
    b".angular",
    b".cache",
    b".dart_tool",
    b".eggs",
    b".gradle",
    b".mypy_cache",
    b".next",
    b".nox",
    b".nuxt",
    b".output",
    b".parcel-cache",
    b".pytest_cache",
    b".ruff_cache",
    b".svelte-kit",
    b".terraform",
    b".tox",
    b".turbo",
    b".venv",
    b"DerivedData",
    b"__pycache__",
    b"_build",
    b"bower_components",
    b"build",
    b"dist",
    b"env",
    b"node_modules",
    b"out",
    b"target",
    b"venv",
    b"zig-cache",
    b"zig-out",
];
/// Longest list of ignored names that is read, in bytes.
const MAX_IGNORES: usize = 1 << 20;

/// The lists as they stood when the first of the sessions that are open began.
#[derive(Default)]
pub struct Rules {
    /// The bytes of lists, by their paths. `None`: nothing is decided yet, so they are read where they are needed.
    lists: Option<BTreeMap<RelPath, Vec<u8>>>,
    /// Folders that hold tracked files, though they are ignored.
    tracked: Mutex<HashMap<RelPath, Arc<Vec<Vec<u8>>>>>,
    read: Mutex<HashMap<RelPath, Option<Arc<Gitignore>>>>,
}

impl Rules {
    pub fn decided(lists: BTreeMap<RelPath, Vec<u8>>) -> Self {
        Self { lists: Some(lists), ..Self::default() }
    }

    /// Whether a path is a list that counts.
    pub fn is_list(path: &[u8]) -> bool {
        node::split(path).is_some_and(|it| it.1 == b".gitignore")
            || path == b".git/info/exclude"
            || path.ends_with(b"/.git/info/exclude")
            // Of an index only the folders count that it has files in.
            || path == b".git/index"
            || path.ends_with(b"/.git/index")
    }

    /// What is kept of a list.
    pub fn digest(path: &[u8], bytes: Vec<u8>) -> Vec<u8> {
        if !path.ends_with(b".git/index") {
            return bytes;
        }
        let has_built = |it: &&Vec<u8>| it.split(|it| *it == b'/').any(|it| BUILT.contains(&it));
        git::tracked(&bytes).iter().filter(has_built).fold(Vec::new(), |mut res, it| {
            res.extend_from_slice(it);
            res.push(0);
            res
        })
    }

    /// Whether a folder with this path is not held.
    pub fn is_exempt(&self, root: &Beneath, path: &[u8]) -> bool {
        let Some((parent, name)) = node::split(path) else { return false };
        if !BUILT.contains(&name) || git::git_path(path).is_some() {
            return false;
        }
        let mut below = path;
        for dir in std::iter::once(parent).chain(node::ancestors(parent)) {
            match self.matches(root, dir, &node::join(dir, b".gitignore"), path) {
                Some(res) => return res && !self.has_tracked(root, below, path),
                None => below = dir,
            }
            // What lies above a repository is not asked, but for its own list.
            let exclude = node::join(dir, b".git/info/exclude");
            if let Some(res) = self.matches(root, dir, &exclude, path) {
                return res && !self.has_tracked(root, below, path);
            }
        }
        false
    }

    fn matches(&self, root: &Beneath, dir: &[u8], list: &[u8], path: &[u8]) -> Option<bool> {
        let matcher = self.matcher(root, list)?;
        let below = path.get(dir.len()..).unwrap_or_default();
        let below = below.strip_prefix(b"/").unwrap_or(below);
        match matcher.matched_path_or_any_parents(Path::new(OsStr::from_bytes(below)), true) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }

    fn matcher(&self, root: &Beneath, list: &[u8]) -> Option<Arc<Gitignore>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = read.get(list) {
            return it.clone();
        }
        let res = self.bytes(root, list).and_then(|it| matcher(&it)).map(Arc::new);
        read.insert(list.into(), res.clone());
        res
    }

    fn bytes(&self, root: &Beneath, list: &[u8]) -> Option<Vec<u8>> {
        match &self.lists {
            Some(it) => it.get(list).cloned(),
            None => root.read(list).ok().flatten().map(|it| Self::digest(list, it)),
        }
    }

    /// Whether the repository of `path` has files in it all the same.
    fn has_tracked(&self, root: &Beneath, from: &[u8], path: &[u8]) -> bool {
        let above = std::iter::once(from).chain(node::ancestors(from));
        for dir in above {
            let list = node::join(dir, b".git/index");
            let names = self.tracked_of(root, &list);
            if names.is_empty() {
                continue;
            }
            let below = path.get(dir.len()..).unwrap_or_default();
            let below = below.strip_prefix(b"/").unwrap_or(below);
            return names.iter().any(|it| node::is_within(it, below));
        }
        false
    }

    fn tracked_of(&self, root: &Beneath, list: &[u8]) -> Arc<Vec<Vec<u8>>> {
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = tracked.get(list) {
            return Arc::clone(it);
        }
        let bytes = self.bytes(root, list).unwrap_or_default();
        let names = bytes.split(|it| *it == 0).filter(|it| !it.is_empty()).map(<[u8]>::to_vec);
        let res = Arc::new(names.collect::<Vec<_>>());
        tracked.insert(list.into(), Arc::clone(&res));
        res
    }

    pub fn encode(lists: &BTreeMap<RelPath, Vec<u8>>) -> Vec<u8> {
        let mut out = Writer::default();
        for (path, bytes) in lists {
            out.bytes(path);
            out.bytes(bytes);
        }
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut input, mut lists) = (Reader(bytes), BTreeMap::new());
        while !input.0.is_empty() {
            lists.insert(input.bytes()?.into(), input.bytes()?.to_vec());
        }
        Some(Self::decided(lists))
    }
}

fn matcher(bytes: &[u8]) -> Option<Gitignore> {
    let text = String::from_utf8_lossy(bytes.get(..MAX_IGNORES).unwrap_or(bytes));
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern ignores nothing.
        _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|it| !it.is_empty())
}
