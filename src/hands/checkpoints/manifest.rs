//! The manifest of a root: every entry as the last walk saw it.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::atomic::{AtomicU32, Ordering},
};

use serde::{Deserialize, Serialize};

use super::{Kind, Node, RelPath, git, node};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the last delta that is in it.
    pub seq: u64,
    entries: BTreeMap<RelPath, Entry>,
    /// Of all files but git's objects.
    pub bytes: u64,
    #[serde(skip)]
    walk: u32,
    #[serde(skip)]
    nothing: Node,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    node: Node,
    /// The number of the walk that saw it last.
    #[serde(skip)]
    seen: AtomicU32,
}

impl Manifest {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, path: &[u8]) -> &Node {
        self.entries.get(path).map_or(&self.nothing, |it| &it.node)
    }

    /// Tells whether it lies in a folder that is not held, and so is held by itself if it is held.
    pub fn is_single(&self, path: &[u8]) -> bool {
        node::ancestors(path).any(|it| self.get(it).is_passed_over())
    }

    /// All that is below a folder, sorted by bytes.
    pub fn below(&self, dir: &[u8]) -> impl Iterator<Item = (&RelPath, &Node)> {
        self.range(dir).map(|(path, it)| (path, &it.node))
    }

    fn range(&self, dir: &[u8]) -> impl Iterator<Item = (&RelPath, &Entry)> {
        // `0` follows `/`.
        let (start, end) = ([dir, b"/"].concat(), [dir, b"0"].concat());
        let range = match dir.is_empty() {
            true => (Bound::Unbounded, Bound::Unbounded),
            false => (Bound::Excluded(&*start), Bound::Excluded(&*end)),
        };
        self.entries.range::<[u8], _>(range).filter(|it| !it.0.is_empty())
    }

    /// A walk begins: nothing is seen yet.
    pub fn begin(&mut self) {
        self.walk += 1;
    }

    /// As `get`; it is there still.
    pub fn mark_seen(&self, path: &[u8]) -> &Node {
        let entry = self.entries.get(path).inspect(|it| it.seen.store(self.walk, Ordering::Relaxed));
        entry.map_or(&self.nothing, |it| &it.node)
    }

    pub fn mark_seen_below(&self, dir: &[u8]) {
        self.range(dir).for_each(|it| it.1.seen.store(self.walk, Ordering::Relaxed));
    }

    /// What the walk did not see.
    pub fn unseen(&self) -> impl Iterator<Item = &RelPath> {
        self.entries.iter().filter(|it| it.1.seen.load(Ordering::Relaxed) != self.walk).map(|it| it.0)
    }

    pub fn set(&mut self, path: &[u8], node: Node) {
        let counted = |it: &Node| match it.kind {
            Kind::File(_) if !git::is_object(path) => it.mark.size,
            _ => 0,
        };
        self.bytes += counted(&node);
        let old = match node.is_absent() {
            true => self.entries.remove(path),
            false => self.entries.insert(path.into(), Entry { node, seen: AtomicU32::new(self.walk) }),
        };
        self.bytes = self.bytes.saturating_sub(old.map_or(0, |it| counted(&it.node)));
    }
}
