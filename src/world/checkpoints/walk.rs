//! Looks at a root: every entry by lstat, and into those files that may have changed.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use rustix::fs::{Stat, fstat};

use super::{
    Cancel, Failure, Limits,
    beneath::{self, Beneath, is_gone},
    blobs::Blobs,
    fault,
    git::{self, Part},
    manifest::Manifest,
    node::{self, Kind, Mark, Node, RelPath, Why},
    rules::Rules,
};

/// What a look needs to know.
pub struct Look<'a> {
    pub root: &'a Beneath,
    pub manifest: &'a Manifest,
    pub rules: &'a Rules,
    pub blobs: &'a Blobs,
    pub limits: &'a Limits,
    /// castor's own folder, by device and inode: never looked into.
    pub home: Option<(u64, u64)>,
    /// Seconds since 1970.
    pub now: i64,
    pub cancel: Cancel<'a>,
    pub totals: Totals,
}

/// What the root has so far.
#[derive(Default)]
pub struct Totals {
    bytes: AtomicU64,
    n: AtomicUsize,
}

/// A path that is not as the manifest has it.
pub type Seen = (RelPath, Option<Node>);

/// Files up to this size are read at once.
const SMALL: u64 = 1 << 20;
/// How often something that changes under our eyes is looked at.
const TRIES: usize = 3;
const MAX_THREADS: usize = 4;

#[derive(Default)]
struct Queue {
    dirs: Vec<RelPath>,
    /// Folders that somebody is in: more may come.
    n_open: usize,
    failure: Option<Failure>,
}

#[derive(Default)]
struct Crew {
    queue: Mutex<Queue>,
    changed: Condvar,
    stop: AtomicBool,
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<RelPath> {
        let mut queue = self.lock();
        loop {
            if queue.failure.is_some() {
                return None;
            }
            if let Some(it) = queue.dirs.pop() {
                queue.n_open += 1;
                return Some(it);
            }
            if queue.n_open == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, found: Result<Vec<RelPath>, Failure>) {
        let mut queue = self.lock();
        queue.n_open -= 1;
        match found {
            Ok(mut it) => queue.dirs.append(&mut it),
            Err(it) => {
                self.stop.store(true, Ordering::Relaxed);
                queue.failure = queue.failure.take().or(Some(it));
            }
        }
        self.changed.notify_all();
    }
}

impl<'a> Look<'a> {
    /// Everything below the root: what is not as the manifest has it, sorted.
    pub fn walk(&self) -> Result<Vec<Seen>, Failure> {
        let crew = Crew::default();
        let mut seen = Vec::new();
        self.look_at_top(&mut seen)?;
        crew.lock().dirs.push(RelPath::default());
        let n = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        // Tests end a thread at one of its steps.
        let others = if cfg!(test) { 0 } else { n - 1 };
        std::thread::scope(|scope| {
            let work = || self.work(&crew);
            let threads: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            seen.extend(self.work(&crew));
            for it in threads {
                match it.join() {
                    Ok(more) => seen.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        if let Some(it) = crew.lock().failure.take() {
            return Err(it);
        }
        seen.extend(self.manifest.unseen().into_iter().map(|it| (it, None)));
        // What was found to be closed was taken for a folder before.
        let rank = |it: &Seen| it.1.as_ref().is_none_or(|it| it.why().is_none());
        seen.sort_by(|a, b| a.0.cmp(&b.0).then(rank(a).cmp(&rank(b))));
        seen.dedup_by(|b, a| a.0 == b.0);
        Ok(seen)
    }

    /// These paths alone, and the folders above them.
    pub fn look_at(&self, paths: &[RelPath]) -> Result<Vec<Seen>, Failure> {
        self.totals.bytes.store(self.manifest.bytes(), Ordering::Relaxed);
        self.totals.n.store(self.manifest.len(), Ordering::Relaxed);
        let mut all: Vec<&[u8]> =
            paths.iter().flat_map(|it| std::iter::once(&**it).chain(node::ancestors(it))).collect();
        all.sort_unstable();
        all.dedup();
        let (mut seen, mut buffer) = (Vec::new(), Vec::new());
        for path in all.into_iter().filter(|it| !it.is_empty()) {
            let res = match self.root.parent(path) {
                Ok((dir, name)) => self.look(dir.as_fd(), name, path, &mut buffer, &mut seen).map(drop),
                Err(it) if is_gone(&it) => {
                    self.gone(path, &mut seen);
                    Ok(())
                }
                Err(it) => Err(failed(path, it)),
            };
            res?;
        }
        Ok(seen)
    }

    fn look_at_top(&self, seen: &mut Vec<Seen>) -> Result<(), Failure> {
        let stat = fstat(self.root.fd()).map_err(|it| failed(b"", it.into()))?;
        self.keep(b"", Node::new(Kind::Dir, &stat, self.now), seen);
        Ok(())
    }

    fn work(&self, crew: &Crew) -> Vec<Seen> {
        let (mut seen, mut buffer) = (Vec::new(), Vec::new());
        while let Some(dir) = crew.next() {
            let found = self.enter(&dir, crew, &mut buffer, &mut seen);
            crew.end(found);
        }
        seen
    }

    /// One folder; the folders in it come later.
    fn enter(
        &self,
        path: &RelPath,
        crew: &Crew,
        buffer: &mut Vec<u8>,
        seen: &mut Vec<Seen>,
    ) -> Result<Vec<RelPath>, Failure> {
        fault::step("walk: folder").map_err(|it| failed(path, it))?;
        let found = self.root.dir(path).and_then(|it| Ok((beneath::names(&it)?, it)));
        let (names, dir) = match found {
            Ok(it) => it,
            Err(it) if is_gone(&it) => return Ok(Vec::new()),
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                self.closed(path, seen);
                return Ok(Vec::new());
            }
            Err(it) => return Err(failed(path, it)),
        };
        let mut dirs = Vec::new();
        let mut at = node::join(path, b"");
        if !path.is_empty() && !at.ends_with(b"/") {
            at.push(b'/');
        }
        let start = at.len();
        for name in names {
            if crew.stop.load(Ordering::Relaxed) || (self.cancel)() {
                return Err(Failure::Cancelled);
            }
            at.truncate(start);
            at.extend_from_slice(&name);
            if self.look(dir.as_fd(), &name, &at, buffer, seen)? {
                dirs.push(at.as_slice().into());
            }
        }
        Ok(dirs)
    }

    /// A folder that may not be entered: what it held is there still, as far as anybody knows.
    fn closed(&self, path: &RelPath, seen: &mut Vec<Seen>) {
        if self.manifest.below(path).next().is_some() {
            return self.manifest.see_below(path);
        }
        if let Ok(Some(stat)) = self.root.stat(path) {
            seen.push((path.clone(), Some(Node::new(Kind::Skipped(Why::Unreadable), &stat, self.now))));
        }
    }

    /// One entry; whether it is a folder to enter.
    fn look(
        &self,
        dir: BorrowedFd,
        name: &[u8],
        path: &[u8],
        buffer: &mut Vec<u8>,
        seen: &mut Vec<Seen>,
    ) -> Result<bool, Failure> {
        for last in (0..TRIES).rev() {
            let Some(stat) = beneath::stat(dir, name).map_err(|it| failed(path, it))? else { break };
            let part = git::git_path(path).map(|it| it.part());
            if part == Some(Part::Passing) || self.is_home(&stat) {
                break;
            }
            let old = self.manifest.see(path);
            let kind = match node::type_of(&stat) {
                it if it.is_dir() => return Ok(self.folder(path, part, old, &stat, seen)),
                it if it.is_symlink() => link(dir, name),
                it if it.is_file() => match self.is_as_it_was(part, old, &stat) {
                    true => return Ok(false),
                    false => self.read(dir, name, path, part, &stat, buffer)?,
                },
                _ => Some((Kind::Skipped(Why::Special), stat)),
            };
            // Something else stands there by now, or it changes all the time.
            let Some((kind, stat)) = kind else { continue };
            let mut node = Node::new(kind, &stat, self.now);
            if matches!(node.kind, Kind::File(_))
                && beneath::stat(dir, name).ok().flatten().as_ref().map(Mark::of) != Some(node.mark)
            {
                if last > 0 && part != Some(Part::Object) {
                    continue;
                }
                node.young = true;
            }
            self.keep_known(path, node, old, seen);
            return Ok(false);
        }
        self.gone(path, seen);
        Ok(false)
    }

    fn is_home(&self, stat: &Stat) -> bool {
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // The types differ between systems.
        let own = (stat.st_dev as u64, stat.st_ino as u64);
        self.home == Some(own)
    }

    fn folder(&self, path: &[u8], part: Option<Part>, old: Option<&Node>, stat: &Stat, seen: &mut Vec<Seen>) -> bool {
        let mut node = Node::new(Kind::Dir, stat, self.now);
        if self.rules.is_exempt(self.root, path) {
            node.kind = Kind::Skipped(Why::Exempt);
        } else if self.totals.n.load(Ordering::Relaxed) >= self.limits.root_files && old.is_none_or(|it| !it.is_dir()) {
            node.kind = Kind::Skipped(Why::Full);
        }
        let enters = node.is_dir();
        // Git only adds to these, and takes away.
        let is_as_it_was = old.is_some_and(|it| it.is_dir() && !it.young && it.mark == node.mark);
        let skips = part == Some(Part::ObjectDir) && is_as_it_was;
        if skips {
            self.manifest.see_below(path);
        }
        self.keep(path, node, seen);
        enters && !skips
    }

    fn is_as_it_was(&self, part: Option<Part>, old: Option<&Node>, stat: &Stat) -> bool {
        let (mark, bits) = (Mark::of(stat), (stat.st_mode & 0o777) as u16);
        let same = old.is_some_and(|it| match (&it.kind, part) {
            // To link it is to change it, for the disk.
            (Kind::File(_), Some(Part::Object)) => it.mark.is_same_content(&mark) && it.mode == bits,
            (Kind::File(_), _) => it.mark == mark && !it.young && it.mode == bits,
            _ => false,
        });
        if same && part != Some(Part::Object) {
            self.count(mark.size);
        }
        same
    }

    fn count(&self, bytes: u64) {
        self.totals.n.fetch_add(1, Ordering::Relaxed);
        self.totals.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The content of a file. `None`: look again.
    fn read(
        &self,
        dir: BorrowedFd,
        name: &[u8],
        path: &[u8],
        part: Option<Part>,
        stat: &Stat,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<(Kind, Stat)>, Failure> {
        let is_object = part == Some(Part::Object);
        let size = Mark::of(stat).size;
        let skip = |why| Ok(Some((Kind::Skipped(why), *stat)));
        if !is_object && size > self.limits.file {
            return skip(Why::Big);
        }
        if !is_object && self.is_beyond(path, size) {
            return skip(Why::Full);
        }
        fault::step("walk: file").map_err(|it| failed(path, it))?;
        let file = match beneath::file(dir, name) {
            Ok(it) => it,
            Err(it) if is_gone(&it) => return Ok(None),
            Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
                let known = self.manifest.get(path).filter(|it| it.mark.is_same_content(&Mark::of(stat)));
                let kind = known.and_then(|it| it.hash()).map(|it| Kind::File(*it));
                return Ok(Some((kind.unwrap_or(Kind::Skipped(Why::Unreadable)), *stat)));
            }
            Err(it) => return Err(failed(path, it)),
        };
        let stat = fstat(&file).map_err(|it| failed(path, it.into()))?;
        let hash = match is_object {
            true => self.hold_object(dir, name, &file, path)?,
            false => self.hold(&file, path, Mark::of(&stat).size, buffer)?,
        };
        let Some(hash) = hash else { return Ok(Some((Kind::Skipped(Why::Big), stat))) };
        if !is_object {
            self.count(size);
        }
        Ok(Some((Kind::File(hash), stat)))
    }

    /// Whether the root has too much. What is held already stays so.
    fn is_beyond(&self, path: &[u8], size: u64) -> bool {
        let held = self.manifest.get(path).and_then(|it| Some((it.hash()?, it.mark.size)));
        let bytes = self.totals.bytes.load(Ordering::Relaxed) + size;
        let n = self.totals.n.load(Ordering::Relaxed);
        bytes > self.limits.root_bytes || (n >= self.limits.root_files && held.is_none())
    }

    fn hold(&self, file: &File, path: &[u8], size: u64, buffer: &mut Vec<u8>) -> Result<Option<node::Hash>, Failure> {
        if size > SMALL {
            return self.hold_long(file, self.limits.file);
        }
        buffer.clear();
        file.take(SMALL + 1).read_to_end(buffer).map_err(|it| failed(path, it))?;
        match buffer.len() as u64 > SMALL {
            // It grew meanwhile.
            true => {
                rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).map_err(|it| failed(path, it.into()))?;
                self.hold_long(file, self.limits.file)
            }
            false => self.blobs.put(buffer).map(Some),
        }
    }

    /// `None`: it has more than may be held.
    fn hold_long(&self, file: &File, max: u64) -> Result<Option<node::Hash>, Failure> {
        match self.blobs.put_file(file, max) {
            Ok((hash, _)) => Ok(Some(hash)),
            Err(Failure::Io { source, .. }) if source.kind() == io::ErrorKind::FileTooLarge => Ok(None),
            Err(it) => Err(it),
        }
    }

    /// Another name for an object of git's; a copy where that cannot be.
    fn hold_object(
        &self,
        dir: BorrowedFd,
        name: &[u8],
        file: &File,
        path: &[u8],
    ) -> Result<Option<node::Hash>, Failure> {
        let hash = super::blobs::hash_of_file(file).map_err(|it| failed(path, it))?;
        if self.blobs.link(dir, name, &hash).map_err(|it| failed(path, it))? {
            return Ok(Some(hash));
        }
        rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0)).map_err(|it| failed(path, it.into()))?;
        self.hold_long(file, self.limits.file)
    }

    fn gone(&self, path: &[u8], seen: &mut Vec<Seen>) {
        // A walk finds out what is missing by itself.
        if self.manifest.get(path).is_some() {
            seen.push((path.into(), None));
            seen.extend(self.manifest.below(path).map(|it| (it.0.clone(), None)));
        }
    }

    fn keep(&self, path: &[u8], node: Node, seen: &mut Vec<Seen>) {
        let old = self.manifest.see(path);
        self.count(0);
        self.keep_known(path, node, old, seen);
    }

    fn keep_known(&self, path: &[u8], node: Node, old: Option<&Node>, seen: &mut Vec<Seen>) {
        let is_known = old.is_some_and(|it| it.is_same(&node) && it.mark == node.mark && it.young == node.young);
        if !is_known {
            seen.push((path.into(), Some(node)));
        }
    }
}

fn link(dir: BorrowedFd, name: &[u8]) -> Option<(Kind, Stat)> {
    let to = rustix::fs::readlinkat(dir, name, Vec::new()).ok()?;
    let stat = beneath::stat(dir, name).ok()??;
    Some((Kind::Link(to.to_bytes().into()), stat))
}

fn failed(path: &[u8], source: io::Error) -> Failure {
    let what = match path.is_empty() {
        true => "the folder".to_owned(),
        false => String::from_utf8_lossy(path).into_owned(),
    };
    Failure::Io { what, source }
}
