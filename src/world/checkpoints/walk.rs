//! Looks at a root: every entry by lstat, and into those files that may have changed.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use rustix::fs::{Stat, fstat};

use super::{
    Cancel, Failure,
    beneath::{self, if_there, is_gone},
    fault,
    git::{self, Part},
    node::{self, Kind, Mark, Node, RelPath, Why},
    store::Store,
};

/// One look, as of `now` in seconds since 1970.
pub struct Look<'a> {
    pub store: &'a Store,
    pub now: i64,
    pub cancel: Cancel<'a>,
    /// What the root has so far.
    pub bytes: AtomicU64,
    pub n: AtomicUsize,
}

/// Paths that are not as the manifest has them.
pub type Seen = BTreeMap<RelPath, Option<Node>>;

/// An entry of an open folder.
struct Entry<'a> {
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    path: &'a [u8],
    part: Option<Part>,
}

/// What was found in one folder.
#[derive(Default)]
struct Found {
    seen: Seen,
    dirs: Vec<RelPath>,
}

const MAX_THREADS: usize = 4;

/// What `act` makes of each, in any order, by as many threads as there are cores.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Tests end a thread at one of its steps.
    let n = if cfg!(test) { 1 } else { cores.min(MAX_THREADS).min(items.len()) };
    let next = AtomicUsize::new(0);
    let work = || {
        let items = std::iter::from_fn(|| items.get(next.fetch_add(1, Relaxed)));
        items.map(&act).collect::<Vec<R>>()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..n).map(|_| scope.spawn(work)).collect();
        let mut res = work();
        for it in threads {
            res.extend(it.join().unwrap_or_else(|it| std::panic::resume_unwind(it)));
        }
        res
    })
}

impl Look<'_> {
    /// Everything below the root: what is not as the manifest has it.
    pub fn walk(&self) -> Result<Seen, Failure> {
        let mut seen = Seen::new();
        let top = fstat(self.store.root.fd()).map_err(io::Error::from)?;
        self.keep(b"", None, Node::new(Kind::Dir, &top, self.now), &mut seen);
        let mut dirs = vec![RelPath::default()];
        while !dirs.is_empty() {
            let found = in_parallel(&dirs, |it| self.enter(it).map_err(|why| why.at(|| shown(it))));
            dirs.clear();
            for it in found {
                let mut it = it?;
                seen.append(&mut it.seen);
                dirs.append(&mut it.dirs);
            }
        }
        seen.extend(self.store.manifest.unseen().map(|it| (it.clone(), None)));
        Ok(seen)
    }

    /// These paths alone, and the folders above them.
    pub fn look_at(&self, paths: &[RelPath]) -> Result<Seen, Failure> {
        self.bytes.store(self.store.manifest.bytes, Relaxed);
        self.n.store(self.store.manifest.len(), Relaxed);
        let above = paths.iter().flat_map(|it| node::ancestors(it));
        let mut all: Vec<&[u8]> = paths.iter().map(|it| &**it).chain(above).filter(|it| !it.is_empty()).collect();
        all.sort_unstable();
        all.dedup();
        let mut found = Found::default();
        for path in all {
            match if_there(self.store.root.parent(path))? {
                Some((dir, name)) => self.look(&Entry::new(dir.as_fd(), name, path), &mut found)?,
                None => self.gone(path, &mut found.seen),
            }
        }
        Ok(found.seen)
    }

    /// One folder; the folders in it come later.
    fn enter(&self, path: &RelPath) -> Result<Found, Failure> {
        fault::step("walk: folder")?;
        let mut found = Found::default();
        let (names, dir) = match self.store.root.dir(path).and_then(|it| Ok((beneath::names(&it)?, it))) {
            Ok(it) => it,
            Err(it) if is_gone(&it) => return Ok(found),
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                self.closed(path, &mut found.seen);
                return Ok(found);
            }
            Err(it) => return Err(it.into()),
        };
        for name in names {
            if (self.cancel)() {
                return Err(Failure::Cancelled);
            }
            self.look(&Entry::new(dir.as_fd(), &name, &node::join(path, &name)), &mut found)?;
        }
        Ok(found)
    }

    /// A folder that may not be entered: what it held is there still, as far as anybody knows.
    fn closed(&self, path: &RelPath, seen: &mut Seen) {
        if self.store.manifest.below(path).next().is_some() {
            self.store.manifest.see_below(path);
        } else if let Ok(Some(stat)) = self.store.root.stat(path) {
            seen.insert(path.clone(), Some(Node::new(Kind::Skipped(Why::Unreadable), &stat, self.now)));
        }
    }

    /// One entry, again if it changes under our eyes.
    fn look(&self, at: &Entry, found: &mut Found) -> Result<(), Failure> {
        for is_last in [false, false, true] {
            let Some(stat) = beneath::stat(at.dir, at.name)? else { break };
            if at.part == Some(Part::Passing) || self.is_home(&stat) {
                break;
            }
            let old = self.store.manifest.see(at.path);
            let node = self.node(at, &stat, old, is_last).map_err(|it| it.at(|| shown(at.path)))?;
            let Some(node) = node else { continue };
            let is_as_it_was = old.is_some_and(|it| it.is_dir() && !it.young && it.mark == node.mark);
            // Git only adds to these, and takes away.
            if at.part == Some(Part::ObjectDir) && is_as_it_was {
                self.store.manifest.see_below(at.path);
            } else if node.is_dir() {
                found.dirs.push(at.path.into());
            }
            self.keep(at.path, at.part, node, &mut found.seen);
            return Ok(());
        }
        self.gone(at.path, &mut found.seen);
        Ok(())
    }

    /// What stands there; `None`: look again.
    fn node(&self, at: &Entry, stat: &Stat, old: Option<&Node>, is_last: bool) -> Result<Option<Node>, Failure> {
        let is_full = || self.n.load(Relaxed) >= self.store.limits.root_files && !node::is_dir(old);
        let kind = match node::type_of(stat) {
            it if it.is_dir() && self.store.rules.is_exempt(&self.store.root, at.path) => {
                Some(Kind::Skipped(Why::Exempt))
            }
            it if it.is_dir() && is_full() => Some(Kind::Skipped(Why::Full)),
            it if it.is_dir() => Some(Kind::Dir),
            it if it.is_symlink() => link(at),
            it if it.is_file() && is_as_it_was(at.part, old, stat) => return Ok(old.cloned()),
            it if it.is_file() => self.read(at, old, Mark::of(stat))?,
            _ => Some(Kind::Skipped(Why::Special)),
        };
        // Something else stands there by now.
        let Some(kind) = kind else { return Ok(None) };
        let mut node = Node::new(kind, stat, self.now);
        let again = || beneath::stat(at.dir, at.name).ok().flatten();
        if matches!(node.kind, Kind::File(_) | Kind::Link(_)) && again().as_ref().map(Mark::of) != Some(node.mark) {
            // An object has another name by now.
            if !is_last && at.part != Some(Part::Object) {
                return Ok(None);
            }
            node.young = true;
        }
        Ok(Some(node))
    }

    /// castor's own folder is never looked into.
    fn is_home(&self, stat: &Stat) -> bool {
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // The types differ between systems.
        let own = (stat.st_dev as u64, stat.st_ino as u64);
        self.store.home == Some(own)
    }

    /// The content of a file. `None`: look again.
    fn read(&self, at: &Entry, old: Option<&Node>, mark: Mark) -> Result<Option<Kind>, Failure> {
        let (is_object, limits, blobs) = (at.part == Some(Part::Object), &self.store.limits, &self.store.blobs);
        // What is held already stays so.
        let is_more = self.n.load(Relaxed) >= limits.root_files && old.and_then(Node::hash).is_none();
        let is_beyond = is_more || self.bytes.load(Relaxed) + mark.size > limits.root_bytes;
        match is_object {
            false if mark.size > limits.file => return Ok(Some(Kind::Skipped(Why::Big))),
            false if is_beyond => return Ok(Some(Kind::Skipped(Why::Full))),
            _ => fault::step("walk: file")?,
        }
        let file = match beneath::file(at.dir, at.name) {
            Ok(it) => it,
            Err(it) if is_gone(&it) => return Ok(None),
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                let known = old.filter(|it| it.mark.is_same_content(&mark)).and_then(Node::hash);
                return Ok(Some(known.map_or(Kind::Skipped(Why::Unreadable), |it| Kind::File(*it))));
            }
            Err(it) => return Err(it.into()),
        };
        let hash = match is_object {
            true => blobs.put_object(at.dir, at.name, &file, mark.size)?,
            false => blobs.put_file(&file, mark.size, limits.file)?,
        };
        Ok(Some(hash.map_or(Kind::Skipped(Why::Big), Kind::File)))
    }

    fn gone(&self, path: &[u8], seen: &mut Seen) {
        if self.store.manifest.get(path).is_some() {
            seen.insert(path.into(), None);
            seen.extend(self.store.manifest.below(path).map(|it| (it.0.clone(), None)));
        }
    }

    fn keep(&self, path: &[u8], part: Option<Part>, node: Node, seen: &mut Seen) {
        if node.why().is_none() && part != Some(Part::Object) {
            self.n.fetch_add(1, Relaxed);
            self.bytes.fetch_add(node.hash().map_or(0, |_| node.mark.size), Relaxed);
        }
        let old = self.store.manifest.see(path);
        let is_known = old.is_some_and(|it| it.is_same(&node) && it.mark == node.mark && it.young == node.young);
        if !is_known {
            seen.insert(path.into(), Some(node));
        }
    }
}

impl<'a> Entry<'a> {
    fn new(dir: BorrowedFd<'a>, name: &'a [u8], path: &'a [u8]) -> Self {
        Self { dir, name, path, part: git::part(path) }
    }
}

fn is_as_it_was(part: Option<Part>, old: Option<&Node>, stat: &Stat) -> bool {
    let (mark, bits) = (Mark::of(stat), (stat.st_mode & 0o777) as u16);
    old.filter(|it| it.hash().is_some() && it.mode == bits).is_some_and(|it| match part {
        // To link it is to change it, for the disk.
        Some(Part::Object) => it.mark.is_same_content(&mark),
        _ => it.mark == mark && !it.young,
    })
}

fn link(at: &Entry) -> Option<Kind> {
    let to = rustix::fs::readlinkat(at.dir, at.name, Vec::new()).ok()?;
    Some(Kind::Link(to.to_bytes().into()))
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(if path.is_empty() { b"the folder" } else { path }).into_owned()
}
