//! The store of one root: its lock, its manifest, and the log of what changed in it.
//!
//! `index` is a manifest as of one delta; `log` has that delta and all others, each in a frame with a checksum. A torn
//! frame at its end was never acknowledged, and is written over.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, openat},
    io::Errno,
};

use super::{
    Cancel, Failure, Limits,
    beneath::Beneath,
    blobs::{Blobs, hash_of},
    codec::{Call, Cause, Change, Delta, Reader, Writer, frame, unframe},
    fault,
    manifest::Manifest,
    node::{self, Mark, RelPath, Why},
    place,
    rules::Rules,
    sessions::{self, Register},
    walk::{Look, Seen, Totals},
};
use crate::base::{
    ids::{CheckpointId, SessionId},
    path::AbsPath,
};

/// The store of a root, as one session has it open.
pub struct Store {
    pub path: AbsPath,
    pub root: Beneath,
    pub dir: Beneath,
    pub blobs: Blobs,
    pub manifest: Manifest,
    pub session: SessionId,
    limits: Limits,
    home: Option<(u64, u64)>,
    rules: Rules,
    register: Option<Register>,
    log: Log,
    /// What calls of this session changed that are running still, whoever looked.
    recent: Vec<Delta>,
}

#[derive(Default)]
struct Log {
    file: Option<File>,
    ino: u64,
    /// Whole frames, in bytes.
    len: u64,
    /// Of the last delta.
    seq: u64,
    /// Of the last delta in `index`, and how many bytes of deltas came after it.
    has_index: bool,
    beyond: u64,
    /// Entries whose marks alone changed since.
    n_marks: usize,
}

/// Holds the root's lock.
pub struct Lock {
    _file: File,
}

/// What a look found, before it is known whose it is.
#[derive(Default)]
pub struct Capture {
    pub changes: Vec<Change>,
    /// Nobody's: what is held was decided anew.
    rules: Vec<Change>,
    seen: Vec<Seen>,
}

const LOG: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// How long to wait for another castor, where nobody cancels.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(3);
/// A new manifest is written when this many bytes of deltas, or entries, are not in the old one.
const MAX_BEYOND: u64 = 1 << 20;
const MAX_MARKS: usize = 500;

pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

impl Lock {
    /// `None`: the store was removed meanwhile.
    fn take(dir: &Beneath, path: &AbsPath, cancel: Cancel) -> Result<Option<Self>, Failure> {
        let failed = || Failure::io("the lock of the checkpoints");
        let file = File::from(openat(dir.fd(), "lock", LOG, PRIVATE).map_err(io::Error::from).map_err(failed())?);
        let mut waited = Duration::ZERO;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) => (),
                Err(it) => return Err(failed()(it.into())),
            }
            if cancel() {
                return Err(Failure::Cancelled);
            }
            if waited >= PATIENCE {
                return Err(Failure::Busy { root: path.clone() });
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        let has_name = file.metadata().is_ok_and(|it| it.nlink() > 0);
        Ok(has_name.then_some(Self { _file: file }))
    }
}

impl Store {
    /// Opens the store of a root, makes it where there is none, and takes its lock. The session is not in it yet.
    pub fn open(
        home: &AbsPath,
        root: &AbsPath,
        session: &SessionId,
        limits: Limits,
        cancel: Cancel,
    ) -> Result<(Self, Lock), Failure> {
        let failed = || Failure::io(format!("the checkpoints of {root}"));
        let own = Beneath::open_real(root).map_err(failed())?;
        loop {
            let dir = place::make(home, root).map_err(failed())?;
            let Some(lock) = Lock::take(&dir, root, cancel)? else { continue };
            let res = Self {
                path: root.clone(),
                root: own,
                blobs: Blobs::open(&dir).map_err(failed())?,
                dir,
                manifest: Manifest::default(),
                session: session.clone(),
                limits,
                home: place::identity(home),
                rules: Rules::default(),
                register: None,
                log: Log::default(),
                recent: Vec::new(),
            };
            return Ok((res, lock));
        }
    }

    /// Takes the lock again, and sees what others did meanwhile.
    pub fn lock(&mut self, cancel: Cancel) -> Result<Lock, Failure> {
        let lock = Lock::take(&self.dir, &self.path, cancel)?;
        let lock = lock.ok_or_else(|| self.failed(io::ErrorKind::NotFound.into()))?;
        // The folder may be another one by now.
        self.root = Beneath::open_real(&self.path).map_err(|it| self.failed(it))?;
        self.load()?;
        Ok(lock)
    }

    pub fn failed(&self, source: io::Error) -> Failure {
        Failure::Io { what: format!("the checkpoints of {}", self.path), source }
    }

    /// Puts the session into the store; the calls that a killed castor of its left running.
    pub fn register(&mut self) -> Result<Vec<Call>, Failure> {
        let found = Register::open(&self.dir, &self.session).map_err(|it| self.failed(it))?;
        let (register, left) = found.ok_or_else(|| Failure::Busy { root: self.path.clone() })?;
        self.register = Some(register);
        Ok(left)
    }

    /// Uses what other sessions decided; with none of them, the first look decides.
    pub fn choose_rules(&mut self) -> Result<bool, Failure> {
        let others = sessions::others(&self.dir, Some(&self.session)).map_err(|it| self.failed(it))?;
        let decided = self.dir.read(b"rules").map_err(|it| self.failed(it))?;
        let decided = decided.as_deref().and_then(unframe).and_then(|it| Rules::decode(it.0));
        // Calls of those that are gone are asked about again.
        self.rules = decided.filter(|_| others.others).unwrap_or_default();
        Ok(others.others)
    }

    /// What git ignores from now on is what it ignores now.
    pub fn decide_rules(&mut self) -> Result<(), Failure> {
        let mut lists = BTreeMap::new();
        let paths = self.manifest.iter().filter(|it| Rules::is_list(it.0));
        for (path, hash) in paths.filter_map(|(path, it)| Some((path, it.hash()?))) {
            // What cannot be read ignores nothing.
            if let Ok(bytes) = self.blobs.read(hash) {
                lists.insert(path.clone(), Rules::digest(path, bytes));
            }
        }
        let bytes = frame(&Rules::encode(&lists));
        self.dir.replace(b"rules", &bytes, false).map_err(|it| self.failed(it))?;
        self.rules = Rules::decided(lists);
        Ok(())
    }

    /// Reads what the store has, or what it has since.
    pub fn load(&mut self) -> Result<(), Failure> {
        self.load_log().map_err(|it| self.failed(it))
    }

    fn load_log(&mut self) -> io::Result<()> {
        let file = File::from(openat(self.dir.fd(), "log", LOG, PRIVATE)?);
        let meta = file.metadata()?;
        if self.log.file.is_none() || meta.ino() != self.log.ino || meta.len() < self.log.len {
            self.recent.clear();
            self.log = Log { ino: meta.ino(), ..Log::default() };
            let index = self.dir.read(b"index")?;
            let index = index.as_deref().and_then(unframe).and_then(|it| Manifest::decode(it.0));
            self.log.has_index = index.is_some();
            (self.manifest, self.log.seq) = index.unwrap_or_default();
        }
        self.log.file = Some(file);
        if meta.len() > self.log.len {
            self.read_tail()?;
        }
        Ok(())
    }

    fn read_tail(&mut self) -> io::Result<()> {
        let at = self.log.seq;
        for delta in read_from(self.log.file.as_ref(), &mut self.log.len)? {
            let own =
                |it: &Call| it.session == self.session && self.register.as_ref().is_some_and(|all| all.has(&it.id));
            if delta.calls().iter().any(own) {
                self.recent.push(delta.clone());
            }
            if delta.seq <= at {
                continue;
            }
            self.log.seq = delta.seq;
            for change in delta.changes {
                self.manifest.set(&change.path, change.new);
            }
        }
        Ok(())
    }

    /// All deltas that the log has, in order.
    pub fn history(&self) -> Result<Vec<Delta>, Failure> {
        read_from(self.log.file.as_ref(), &mut 0).map_err(|it| self.failed(it))
    }

    /// Looks at the whole root, or at some paths of it.
    pub fn look(&mut self, paths: Option<&[RelPath]>, cancel: Cancel) -> Result<Capture, Failure> {
        let (used, limit) = (place::used(&self.dir).map_err(|it| self.failed(it))?, self.limits.store);
        let left = i64::try_from(limit).unwrap_or(i64::MAX).saturating_sub(i64::try_from(used).unwrap_or(i64::MAX));
        self.blobs.set_budget(left, limit);
        self.manifest.begin();
        let look = Look {
            root: &self.root,
            manifest: &self.manifest,
            rules: &self.rules,
            blobs: &self.blobs,
            limits: &self.limits,
            home: self.home,
            now: now(),
            cancel,
            totals: Totals::default(),
        };
        let seen = match paths {
            Some(it) => look.look_at(it),
            None => look.walk(),
        };
        let added = self.blobs.take_added();
        place::add_used(&self.dir, added.cast_signed()).map_err(|it| self.failed(it))?;
        Ok(self.compare(seen?))
    }

    fn compare(&self, seen: Vec<Seen>) -> Capture {
        let mut res = Capture::default();
        let mut anew: Option<RelPath> = None;
        for (path, new) in &seen {
            let old = self.manifest.get(path);
            if node::is_same(old, new.as_ref()) {
                continue;
            }
            let is_exempt = |it: Option<&node::Node>| it.and_then(node::Node::why) == Some(Why::Exempt);
            let is_below = anew.as_ref().is_some_and(|it| node::is_within(path, it));
            let both = old.zip(new.as_ref());
            let turned = both.is_some_and(|(a, b)| a.why().is_some() != b.why().is_some());
            let stayed = both.is_some_and(|(a, b)| a.mark.is_same_content(&b.mark));
            if turned && (is_exempt(old) || is_exempt(new.as_ref())) {
                anew = Some(path.clone());
            }
            let change = Change { path: path.clone(), old: old.cloned(), new: new.clone() };
            match is_below || (turned && (stayed || anew.as_ref() == Some(path))) {
                true => res.rules.push(change),
                false => res.changes.push(change),
            }
        }
        res.seen = seen;
        res
    }

    /// Writes down what a look found, and whose it is.
    pub fn commit(&mut self, capture: Capture, cause: Cause) -> Result<(), Failure> {
        self.append(Cause::Rules, capture.rules)?;
        self.append(cause, capture.changes)?;
        for (path, node) in capture.seen {
            self.log.n_marks += 1;
            self.manifest.set(&path, node);
        }
        Ok(())
    }

    pub fn append(&mut self, cause: Cause, changes: Vec<Change>) -> Result<(), Failure> {
        if changes.is_empty() {
            return Ok(());
        }
        // The first look finds everything, and is no change of anybody's.
        if !self.log.has_index && self.log.len == 0 {
            return Ok(());
        }
        let delta = Delta { seq: self.log.seq + 1, at: now(), cause, changes };
        let mut out = Writer::default();
        out.delta(&delta);
        let bytes = frame(&out.0);
        self.write(&bytes).map_err(|it| self.failed(it))?;
        self.log.seq = delta.seq;
        for change in &delta.changes {
            self.manifest.set(&change.path, change.new.clone());
        }
        if delta.calls().iter().any(|it| it.session == self.session) {
            self.recent.push(delta);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (len, file) = (self.log.len, self.log.file.as_mut().ok_or(io::ErrorKind::NotFound)?);
        file.seek(SeekFrom::Start(len))?;
        fault::step("log: append")?;
        let written =
            file.set_len(len).and_then(|()| file.write_all(bytes)).and_then(|()| fault::step("log: appended"));
        if let Err(it) = written {
            // If this fails too, the frame is torn or is seen by the next one that loads.
            _ = file.set_len(len);
            return Err(it);
        }
        self.log.len += bytes.len() as u64;
        self.log.beyond += bytes.len() as u64;
        Ok(())
    }

    /// Writes the manifest anew where the old one is missing or far behind.
    pub fn save_index(&mut self) -> Result<(), Failure> {
        let is_near = self.log.beyond < MAX_BEYOND && self.log.n_marks < MAX_MARKS;
        if self.log.has_index && is_near {
            return Ok(());
        }
        let bytes = frame(&self.manifest.encode(self.log.seq));
        self.dir.replace(b"index", &bytes, false).map_err(|it| self.failed(it))?;
        (self.log.has_index, self.log.beyond, self.log.n_marks) = (true, 0, 0);
        Ok(())
    }

    /// Whose the changes are that nobody has claimed: of all calls that may write, or the user's.
    pub fn cause_between(&mut self, left: Vec<Call>) -> Result<Cause, Failure> {
        let others = sessions::others(&self.dir, Some(&self.session)).map_err(|it| self.failed(it))?;
        let own = self.register.iter().flat_map(|it| it.wide(&self.session));
        let live: Vec<Call> = own.chain(others.live).collect();
        let stopped: Vec<Call> = left.into_iter().chain(others.stopped).collect();
        Ok(match (live.is_empty(), stopped.is_empty()) {
            (true, true) => Cause::User,
            (_, false) => Cause::Stopped(stopped.into_iter().chain(live).collect()),
            (false, true) => Cause::Calls(live),
        })
    }

    pub fn begin_call(&mut self, id: &CheckpointId, wide: bool) -> Result<(), Failure> {
        let added = self.register.as_mut().map_or(Ok(()), |it| it.add(id, wide));
        added.map_err(|it| self.failed(it))
    }

    pub fn is_open(&self, id: &CheckpointId) -> bool {
        self.register.as_ref().is_some_and(|it| it.has(id))
    }

    /// The call is over: what it changed, in order.
    pub fn end_call(&mut self, id: &CheckpointId) -> Result<Vec<Delta>, Failure> {
        let removed = self.register.as_mut().map_or(Ok(()), |it| it.remove(id));
        removed.map_err(|it| self.failed(it))?;
        let own = |it: &Delta| it.calls().iter().any(|it| it.session == self.session && it.id == *id);
        let res = self.recent.iter().filter(|it| own(it)).cloned().collect();
        if let Some(register) = &self.register {
            let runs = |it: &Call| it.session == self.session && register.has(&it.id);
            self.recent.retain(|it| it.calls().iter().any(runs));
        }
        Ok(res)
    }

    /// Writes the log anew; the manifest has all that goes.
    pub fn replace_log(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.log.has_index = false;
        self.save_index()?;
        self.dir.replace(b"log", bytes, false).map_err(|it| self.failed(it))?;
        self.log = Log::default();
        self.load()
    }

    /// When somebody used it last, in seconds since 1970.
    pub fn used_at(&self) -> io::Result<i64> {
        let newest = [b"index".as_slice(), b"log", b"rules"].into_iter().map(|it| self.dir.stat(it));
        let newest = newest.collect::<io::Result<Vec<_>>>()?;
        Ok(newest.iter().flatten().map(|it| Mark::of(it).mtime.0).max().unwrap_or_default())
    }

    pub fn close(&mut self) -> Result<(), Failure> {
        self.save_index()?;
        let closed = self.register.take().map_or(Ok(()), |it| it.close(&self.dir, &self.session));
        closed.map_err(|it| self.failed(it))
    }

    /// Content that a client gave.
    pub fn put(&mut self, bytes: &[u8]) -> Result<node::Node, Failure> {
        let hash = match bytes.len() as u64 > self.limits.file {
            true => None,
            false => Some(self.blobs.put(bytes)?),
        };
        place::add_used(&self.dir, self.blobs.take_added().cast_signed()).map_err(|it| self.failed(it))?;
        let kind = hash.map_or(node::Kind::Skipped(Why::Big), node::Kind::File);
        // The disk is asked again at the next look.
        let mark = Mark { size: bytes.len() as u64, ..Mark::default() };
        Ok(node::Node { kind, mode: 0o644, mark, young: true })
    }
}

fn read_from(file: Option<&File>, at: &mut u64) -> io::Result<Vec<Delta>> {
    let mut file = file.ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(*at))?;
    file.read_to_end(&mut bytes)?;
    let (mut rest, mut res) = (&*bytes, Vec::new());
    while let Some((payload, more)) = unframe(rest) {
        res.extend(Reader(payload).delta());
        *at += (rest.len() - more.len()) as u64;
        rest = more;
    }
    Ok(res)
}

/// The name of a root's store.
pub fn name_of(root: &AbsPath) -> String {
    use std::os::unix::ffi::OsStrExt;
    let hash = hash_of(root.as_path().as_os_str().as_bytes());
    hash.iter().take(16).map(|it| format!("{it:02x}")).collect()
}
