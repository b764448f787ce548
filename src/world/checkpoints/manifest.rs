//! What a root held when it was looked at last.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    codec::{Reader, Writer},
    git,
    node::{Kind, Node, RelPath},
};

#[derive(Debug, Default)]
pub struct Manifest {
    entries: BTreeMap<RelPath, Entry>,
    /// What is not held, of the entries.
    skipped: BTreeSet<RelPath>,
    /// Of all files but git's objects.
    bytes: u64,
    walk: u32,
}

#[derive(Debug)]
struct Entry {
    node: Node,
    /// The number of the walk that saw it last.
    seen: AtomicU32,
}

impl Manifest {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, path: &[u8]) -> Option<&Node> {
        self.entries.get(path).map(|it| &it.node)
    }

    pub fn skipped(&self) -> impl Iterator<Item = (&RelPath, &Node)> {
        self.skipped.iter().filter_map(|it| Some((it, self.get(it)?)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, &Node)> {
        self.entries.iter().map(|(path, it)| (path, &it.node))
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
    pub fn see(&self, path: &[u8]) -> Option<&Node> {
        let entry = self.entries.get(path)?;
        entry.seen.store(self.walk, Ordering::Relaxed);
        Some(&entry.node)
    }

    pub fn see_below(&self, dir: &[u8]) {
        self.range(dir).for_each(|it| it.1.seen.store(self.walk, Ordering::Relaxed));
    }

    /// What the walk did not see.
    pub fn unseen(&self) -> Vec<RelPath> {
        let unseen = self.entries.iter().filter(|it| it.1.seen.load(Ordering::Relaxed) != self.walk);
        unseen.map(|it| it.0.clone()).collect()
    }

    /// What was there before.
    pub fn set(&mut self, path: &[u8], node: Option<Node>) -> Option<Node> {
        let counted = |path: &[u8], it: &Node| match it.kind {
            Kind::File(_) if !git::is_object(path) => it.mark.size,
            _ => 0,
        };
        self.skipped.remove(path);
        let old = match node {
            Some(node) => {
                self.bytes += counted(path, &node);
                if node.why().is_some() {
                    self.skipped.insert(path.into());
                }
                let seen = AtomicU32::new(self.walk);
                self.entries.insert(path.into(), Entry { node, seen })
            }
            None => self.entries.remove(path),
        };
        let old = old.map(|it| it.node);
        self.bytes = self.bytes.saturating_sub(old.as_ref().map_or(0, |it| counted(path, it)));
        old
    }

    pub fn encode(&self, seq: u64) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(seq);
        out.u64(self.entries.len() as u64);
        for (path, node) in self.iter() {
            out.bytes(path);
            out.node(node);
        }
        out.0
    }

    /// With the number of the last delta that is in it.
    pub fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut input = Reader(bytes);
        let (seq, n) = (input.u64()?, input.u64()?);
        let mut res = Self::default();
        for _ in 0..n {
            let path = input.bytes()?;
            res.set(path, Some(input.node()?));
        }
        Some((res, seq))
    }
}
