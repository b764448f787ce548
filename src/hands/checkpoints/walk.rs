//! The walk over a root: every entry by lstat, and the contents of files that may have changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    sync::{Mutex, PoisonError},
};

use rustix::fs::{FileType, Stat, fstat};

use super::{
    Cancel, Cause, Change, Content, DiskMark, Failure, Kind, Node, NotHeld, Part, RelPath, Result, Store, dirfd,
    dirfd::ModeOverride, dirfd::if_exists, dirfd::is_missing, fault, folders, git, in_parallel, node, record::now,
};

/// One look, as of `now` in seconds since 1970.
pub struct WalkClock<'a> {
    store: &'a Store,
    now: i64,
    cancel: Cancel<'a>,
    /// The paths are named: however much the root has, they are held.
    is_named: bool,
    /// What the root has so far.
    bytes: AtomicU64,
    n: AtomicUsize,
    /// Folders that their owner may not look into, until the look is over.
    unlocked: Mutex<Vec<ModeOverride>>,
}

/// The scope of a walk.
pub enum WalkScope<'a> {
    Root,
    Paths(Vec<RelPath>),
    /// Files that a client has: they are what it says.
    Contents(&'a [Content]),
}

/// Paths that are not as the manifest has them.
pub type ChangedPaths = BTreeMap<RelPath, Node>;

/// An entry of an open folder.
struct Entry<'a> {
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    path: &'a [u8],
    part: Option<Part>,
}

/// What was found in one folder.
#[derive(Default)]
struct FolderListing {
    seen: ChangedPaths,
    dirs: Vec<RelPath>,
}

impl<'a> WalkClock<'a> {
    pub fn new(store: &'a Store, cancel: Cancel<'a>) -> Self {
        Self { store, now: now(), cancel, is_named: false, bytes: 0.into(), n: 0.into(), unlocked: Mutex::default() }
    }

    /// Everything below the root: what is not as the manifest has it.
    pub fn walk(self) -> Result<ChangedPaths> {
        let mut seen = ChangedPaths::new();
        self.top(&mut seen)?;
        let mut dirs = vec![RelPath::default()];
        while !dirs.is_empty() {
            let found = in_parallel(&dirs, |it| self.enter(it).map_err(|why| why.at(|| shown(it))));
            dirs.clear();
            for it in found {
                let it = it?;
                seen.extend(it.seen);
                dirs.extend(it.dirs);
            }
        }
        let (manifest, again) = (&self.store.manifest, Self::new(self.store, self.cancel));
        let (single, gone): (Vec<_>, Vec<_>) = manifest.unseen().cloned().partition(|it| manifest.is_single(it));
        seen.extend(gone.into_iter().map(|it| (it, Node::default())));
        // With the modes that folders have when nobody looks.
        drop(self);
        seen.extend(again.look_at(&single)?);
        Ok(seen)
    }

    /// These paths alone, and the folders above them.
    pub fn look_at(mut self, paths: &[RelPath]) -> Result<ChangedPaths> {
        self.is_named = true;
        self.bytes.store(self.store.manifest.bytes, Relaxed);
        self.n.store(self.store.manifest.len(), Relaxed);
        let mut found = FolderListing::default();
        self.top(&mut found.seen)?;
        let all: BTreeSet<&[u8]> = paths.iter().flat_map(|it| node::ancestors(it).chain([&**it])).collect();
        for (path, (dir, name)) in all.into_iter().filter_map(|it| Some((it, node::split(it)?))) {
            match if_exists(self.dir(dir))? {
                Some(dir) => self.look(dir.as_fd(), name, path, &mut found)?,
                None => self.note_gone(path, &mut found.seen),
            }
        }
        Ok(found.seen)
    }

    fn top(&self, seen: &mut ChangedPaths) -> io::Result<()> {
        let node = Node::new(Kind::Dir, &fstat(self.store.root.fd())?, self.now);
        self.add_node(b"", None, node, seen);
        Ok(())
    }

    /// One folder; the folders in it come later.
    fn enter(&self, path: &RelPath) -> Result<FolderListing> {
        fault::step("walk: folder")?;
        let mut found = FolderListing::default();
        let (names, dir) = match self.dir(path).and_then(|it| Ok((dirfd::names(&it)?, it))) {
            Ok(it) => it,
            Err(it) if is_missing(&it) => return Ok(found),
            // Somebody else's: what it held is not held any more.
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                let node = |it| Node::new(Kind::Skipped(NotHeld::Unreadable), &it, self.now);
                found.seen.extend(self.store.root.stat(path)?.map(|it| (path.clone(), node(it))));
                return Ok(found);
            }
            Err(it) => return Err(it.into()),
        };
        for name in names {
            if (self.cancel)() {
                return Err(Failure::Cancelled);
            }
            self.look(dir.as_fd(), &name, &node::join(path, &name), &mut found)?;
        }
        Ok(found)
    }

    /// A folder to look into; its owner opens it.
    fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        // Names alone can be read where nothing behind them can.
        let open = || self.store.root.open_dir(path).and_then(|it| dirfd::stat(it.as_fd(), b"./.").map(|_| it));
        match open() {
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                let unlocked = self.store.root.at(path, ModeOverride::new)?;
                self.unlocked.lock().unwrap_or_else(PoisonError::into_inner).push(unlocked);
                open()
            }
            it => it,
        }
    }

    /// One entry, again if it changes under our eyes.
    fn look(&self, dir: BorrowedFd, name: &[u8], path: &[u8], found: &mut FolderListing) -> Result<()> {
        let at = &Entry { dir, name, path, part: git::part(path) };
        for is_last in [false, false, true] {
            let Some(stat) = dirfd::stat(at.dir, at.name)? else { break };
            if at.part == Some(Part::Temporary) || self.is_home(&stat) {
                break;
            }
            let old = self.store.manifest.mark_seen(at.path);
            let node = self.node(at, &stat, old, is_last).map_err(|it| it.at(|| shown(at.path)))?;
            let Some(node) = node else { continue };
            let is_as_it_was = old.is_dir() && !old.young && old.mark == node.mark;
            // Git only adds to these, and takes away.
            if at.part == Some(Part::ObjectDir) && is_as_it_was {
                self.store.manifest.mark_seen_below(at.path);
            } else if node.is_dir() {
                found.dirs.push(at.path.into());
            }
            self.add_node(at.path, at.part, node, &mut found.seen);
            return Ok(());
        }
        self.note_gone(at.path, &mut found.seen);
        Ok(())
    }

    /// What stands there; `None`: look again.
    fn node(&self, at: &Entry, stat: &Stat, old: &Node, is_last: bool) -> Result<Option<Node>> {
        let is_full = || match self.is_named {
            true => old.why() == Some(NotHeld::Full),
            false => self.n.load(Relaxed) >= self.store.session.limits.root_files && !old.is_dir(),
        };
        let mut stat = *stat;
        let is_exempt = || self.store.rules.is_exempt(&self.store.root, at.path);
        let kind = match node::file_type(&stat) {
            FileType::Directory if is_exempt() => Kind::Skipped(NotHeld::Exempt),
            FileType::Directory if is_full() => Kind::Skipped(NotHeld::Full),
            FileType::Directory => Kind::Dir,
            FileType::Symlink => dirfd::read_link(at.dir, at.name).map_or(Kind::Absent, Kind::Link),
            FileType::RegularFile if is_as_it_was(at.part, old, &stat) => return Ok(Some(old.clone())),
            FileType::RegularFile => self.read(at, old, &mut stat)?,
            _ => Kind::Skipped(NotHeld::Special),
        };
        // Something else stands there by now.
        if kind == Kind::Absent {
            return Ok(None);
        }
        let mut node = Node::new(kind, &stat, self.now);
        let again = || dirfd::stat(at.dir, at.name).ok().flatten();
        if matches!(node.kind, Kind::File(_) | Kind::Link(_)) && again().as_ref().map(DiskMark::of) != Some(node.mark) {
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

    /// The content of a file, and its times when it was opened. Absent: look again.
    fn read(&self, at: &Entry, old: &Node, stat: &mut Stat) -> Result<Kind> {
        let len = DiskMark::of(stat).size;
        let (is_object, limits, blobs) = (at.part == Some(Part::Object), &self.store.session.limits, &self.store.blobs);
        // What is held already stays so.
        let is_more = self.n.load(Relaxed) >= limits.root_files && old.hash().is_none();
        let is_beyond = !self.is_named && (is_more || self.bytes.load(Relaxed) + len > limits.root_bytes);
        match is_object {
            false if len > limits.file => return Ok(Kind::Skipped(NotHeld::Big)),
            false if is_beyond => return Ok(Kind::Skipped(NotHeld::Full)),
            _ => fault::step("walk: file")?,
        }
        let file = match dirfd::open_owner_file(at.dir, at.name) {
            Ok(it) => it,
            Err(it) if is_missing(&it) => return Ok(Kind::Absent),
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => return Ok(Kind::Skipped(NotHeld::Unreadable)),
            Err(it) => return Err(it.into()),
        };
        *stat = fstat(&file).map_err(io::Error::from)?;
        let hash = match is_object {
            true => blobs.put_object(at.dir, at.name, &file, len)?,
            false => blobs.put_file(&file, len, limits.file)?,
        };
        Ok(hash.map_or(Kind::Skipped(NotHeld::Big), Kind::File))
    }

    fn note_gone(&self, path: &[u8], seen: &mut ChangedPaths) {
        if !self.store.manifest.get(path).is_absent() {
            seen.insert(path.into(), Node::default());
            seen.extend(self.store.manifest.below(path).map(|it| (it.0.clone(), Node::default())));
        }
    }

    fn add_node(&self, path: &[u8], part: Option<Part>, node: Node, seen: &mut ChangedPaths) {
        if node.why().is_none() && part != Some(Part::Object) {
            self.n.fetch_add(1, Relaxed);
            self.bytes.fetch_add(node.hash().map_or(0, |_| node.mark.size), Relaxed);
        }
        let old = self.store.manifest.mark_seen(path);
        if !old.is_same(&node) || old.mark != node.mark || old.young != node.young {
            seen.insert(path.into(), node);
        }
    }
}

impl Store {
    /// Looks at a root, and writes down what changed. Without a cause it is whose it seems to be.
    pub fn look(&mut self, at: &WalkScope, cause: Option<Cause>, cancel: Cancel) -> Result<Vec<Change>> {
        self.blobs.limit = self.session.limits.store;
        self.blobs.left = self.session.limits.store.saturating_sub(folders::used_bytes(&self.dir)?);
        self.manifest.begin();
        let seen = match at {
            WalkScope::Root => WalkClock::new(self, cancel).walk(),
            WalkScope::Paths(it) => WalkClock::new(self, cancel).look_at(it),
            WalkScope::Contents(it) => self.take_contents(it),
        };
        let settled = self.blobs.settle();
        folders::add_used(&self.dir, self.blobs.take_added().cast_signed())?;
        let seen = seen?;
        settled?;
        let (rules, changes) = self.compare(&seen, cause.is_none());
        let cause = cause.map_or_else(|| self.cause_between(), Ok)?;
        self.append(Cause::Rules, rules)?;
        self.append(cause, changes.clone())?;
        for (path, node) in seen {
            self.set_node(&path, node);
        }
        Ok(changes)
    }

    /// What was changed by nobody, because what is held was decided anew; and what was changed.
    fn compare(&self, seen: &ChangedPaths, between: bool) -> (Vec<Change>, Vec<Change>) {
        let (mut rules, mut changes) = (Vec::new(), Vec::new());
        let mut anew: Option<&RelPath> = None;
        let all = seen.iter().map(|(path, new)| (path, self.manifest.get(path), new));
        for (path, old, new) in all.filter(|it| !it.1.is_same(it.2)) {
            let both = !old.is_absent() && !new.is_absent();
            let is_turned = both && old.why().is_some() != new.why().is_some();
            if is_turned && [old, new].iter().any(|it| it.why() == Some(NotHeld::Exempt)) {
                anew = Some(path);
            }
            let is_single = between && old.is_absent() && self.manifest.is_single(path);
            // That something came into such a folder is the change of that.
            let is_above = !between && old.is_passed_over() && new.is_passed_over();
            let is_anew = is_above
                || is_single
                || (is_turned && old.mark == new.mark)
                || anew.is_some_and(|it| node::is_within(path, it));
            let change = Change { path: path.clone(), old: old.clone(), new: new.clone() };
            if is_anew { rules.push(change) } else { changes.push(change) }
        }
        (rules, changes)
    }

    /// Files as a client has them.
    fn take_contents(&self, files: &[Content]) -> Result<ChangedPaths> {
        let mut seen = ChangedPaths::new();
        for (path, content) in files.iter().filter_map(|(path, it)| Some((self.relative(path)?, it.as_deref()))) {
            let old = self.manifest.get(&path);
            let kind = match content {
                Some(it) if it.len() as u64 > self.session.limits.file => Kind::Skipped(NotHeld::Big),
                Some(it) => Kind::File(self.blobs.put(it)?),
                None => Kind::Absent,
            };
            let mode = if old.is_absent() { 0o644 } else { old.mode };
            seen.insert(path, Node::unseen(kind, mode, content.map_or(0, <[u8]>::len) as u64));
        }
        Ok(seen)
    }
}

fn is_as_it_was(part: Option<Part>, old: &Node, stat: &Stat) -> bool {
    let mark = DiskMark::of(stat);
    let is_same = match part {
        // To link it is to change it, for the disk.
        Some(Part::Object) => DiskMark { ctime: mark.ctime, ..old.mark } == mark,
        _ => old.mark == mark && !old.young,
    };
    is_same && old.hash().is_some() && old.mode == node::bits(stat) & 0o777
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(if path.is_empty() { b"the folder" } else { path }).into_owned()
}
