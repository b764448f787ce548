//! The checkpoint store of one root: its lock, its manifest and its log of changes.
//!
//! `index` is a manifest as of one delta; `log` has that delta and all others, each in a frame with a checksum. A torn
//! frame at its end was never acknowledged, and is written over.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    time::Duration,
};

use rustix::fs::OFlags;

use super::{
    AbsPath, Call, Cancel, Cause, Change, ChangeAuthor, CheckpointId, Delta, DirFd, DiskMark, Failure, Ledger, Limits,
    Node, RelPath, Result, SessionId, Step, blobs::Blobs, fault, folders, folders::SessionRegister, frame::frame,
    frame::unframe, lasting, manifest::Manifest, record::now, rules::IgnoreLists, rules::Lists, wait_for_lock,
};

/// The session of the checkpoints, with its limits.
#[derive(Clone)]
pub struct Session {
    /// castor's own folder.
    pub home: AbsPath,
    pub id: SessionId,
    pub limits: Limits,
}

/// The store of a root, as one session has it open.
pub struct Store {
    pub path: AbsPath,
    pub root: DirFd,
    pub dir: DirFd,
    pub blobs: Blobs,
    pub manifest: Manifest,
    pub session: Session,
    /// castor's own folder, by device and inode.
    pub home: Option<(u64, u64)>,
    pub rules: IgnoreLists,
    /// What agents left here.
    pub ledger: Ledger,
    register: Option<SessionRegister>,
    /// Calls that a killed castor of this session left running.
    stopped: Vec<Call>,
    log: LogFile,
}

#[derive(Default)]
struct LogFile {
    /// Of the file as it was read last.
    ino: u64,
    /// Whole frames, in bytes.
    len: u64,
    /// About how many bytes of what the store knows are not in `index`.
    unsaved: u64,
    /// Changes by running calls of this session, in whichever walk they were seen.
    recent: Vec<Delta>,
}

/// Bytes that a changed node adds to the log, about.
const MARK: u64 = 2 << 10;

/// Holds the root's lock.
pub type Lock = File;

/// The longest wait for another castor.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(3);
/// A new manifest is written when this many bytes are not in the old one, where a mark alone counts for so many.
const MAX_BEYOND: u64 = 1 << 20;

/// `None`: the store was removed meanwhile.
fn lock(dir: &DirFd, path: &AbsPath, cancel: Cancel) -> Result<Option<Lock>> {
    let file = match dir.open_own(b"lock", OFlags::CREATE) {
        // Nothing can be made in a folder that is gone.
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !wait_for_lock(&file, PATIENCE, cancel)? {
        return Err(if cancel() { Failure::Cancelled } else { Failure::Busy { root: path.clone() } });
    }
    Ok(file.metadata().is_ok_and(|it| it.nlink() > 0).then_some(file))
}

fn pause(waited: &mut Duration, path: &AbsPath, cancel: Cancel) -> Result<()> {
    if cancel() {
        return Err(Failure::Cancelled);
    }
    if *waited >= PATIENCE {
        return Err(Failure::Busy { root: path.clone() });
    }
    std::thread::sleep(PAUSE);
    *waited += PAUSE;
    Ok(())
}

impl Store {
    /// Opens the store of a root, makes it where there is none, and takes its lock. The session is not in it yet.
    pub fn open(session: &Session, root: &AbsPath, cancel: Cancel) -> Result<(Self, Lock)> {
        let mut tries = 0..8;
        loop {
            let at = || folders::folder(&session.home).to_string();
            let dir = match folders::make(&session.home, root) {
                // A sweep of another castor takes away what is not whole yet.
                Err(it) if it.kind() == io::ErrorKind::NotFound && tries.next().is_some() => continue,
                other => other.map_err(|it| Failure::from(it).at(at))?,
            };
            let Some(lock) = lock(&dir, root, cancel)? else { continue };
            let mut res = Self {
                path: root.clone(),
                root: DirFd::open_real(root).map_err(|it| Failure::from(it).at(|| root.to_string()))?,
                blobs: Blobs::open(&dir)?,
                dir,
                manifest: Manifest::default(),
                session: session.clone(),
                home: session.home.as_path().symlink_metadata().ok().map(|it| (it.dev(), it.ino())),
                rules: IgnoreLists::default(),
                ledger: Ledger::default(),
                register: None,
                stopped: Vec::new(),
                log: LogFile::default(),
            };
            res.load()?;
            return Ok((res, lock));
        }
    }

    /// Takes the lock again, and sees what others did meanwhile.
    pub fn lock(&mut self, cancel: Cancel) -> Result<Lock> {
        let lock = lock(&self.dir, &self.path, cancel)?.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        // The folder may be another one by now.
        self.root = DirFd::open_real(&self.path)?;
        self.load()?;
        Ok(lock)
    }

    /// Puts the session into the store. One that was closed and opened again may be in it still: it is waited for, and gets
    /// the lock that it needs to leave.
    pub fn register(&mut self, mut lock: Lock, cancel: Cancel) -> Result<Lock> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some((register, left)) = SessionRegister::open(&self.dir, &self.session.id)? {
                (self.register, self.stopped) = (Some(register), left);
                return Ok(lock);
            }
            drop(lock);
            pause(&mut waited, &self.path, cancel)?;
            lock = self.lock(cancel)?;
        }
    }

    /// The first look of a session. What other sessions decided about folders that are built counts; with none of them,
    /// what git ignores from now on is what it ignores now.
    pub fn begin(&mut self, look: impl FnOnce(&mut Self) -> Result<Vec<Change>>) -> Result<()> {
        let others = folders::other_calls(&self.dir, &self.session.id)?;
        // Calls of those that are gone are asked about.
        self.stopped.extend(others.stopped);
        if !others.others {
            self.ledger.open_root(&self.path, true, &|it| self.blobs.read(it).ok());
            self.ledger.save(&self.dir)?;
        }
        let decided = self.dir.read_frame::<Lists>(b"rules")?.filter(|_| others.others);
        self.rules = IgnoreLists::new(decided);
        look(self)?;
        if !others.others {
            let paths = self.manifest.below(b"").filter(|it| IgnoreLists::is_list(it.0));
            // What cannot be read ignores nothing.
            let read = |path: &RelPath, it: &Node| Some(IgnoreLists::digest(path, self.blobs.read(&it.hash()?).ok()?));
            let lists: Lists = paths.filter_map(|(path, it)| Some((path.clone(), read(path, it)?))).collect();
            self.dir.replace(b"rules", &frame(&lists)?, false)?;
            self.rules = IgnoreLists::new(Some(lists));
        }
        self.save_index()?;
        Ok(lasting::sync_dir(self.dir.fd())?)
    }

    /// Reads what the store has, or what it has since.
    fn load(&mut self) -> io::Result<()> {
        let meta = self.dir.open_own(b"log", OFlags::CREATE)?.metadata()?;
        if meta.ino() != self.log.ino || meta.len() < self.log.len {
            let index = self.dir.read_frame(b"index")?;
            let unsaved = if index.is_some() { 0 } else { MAX_BEYOND };
            self.log = LogFile { ino: meta.ino(), unsaved, ..LogFile::default() };
            self.manifest = index.unwrap_or_default();
        }
        self.ledger.refresh(&self.dir)?;
        if meta.len() > self.log.len {
            let (deltas, len) = self.read_from(self.log.len)?;
            self.log.len = len;
            deltas.into_iter().for_each(|it| self.add_delta(it));
        }
        self.ledger.finish(self.manifest.seq);
        self.ledger.save(&self.dir)
    }

    fn add_delta(&mut self, delta: Delta) {
        let steps: Vec<Step> = delta.changes.iter().filter(|it| !it.is_placeholder()).map(Change::step).collect();
        let author = if self.ledger.is_restore { ChangeAuthor::Person } else { delta.cause.author() };
        self.ledger.apply(delta.seq, author, &steps, &|it| self.blobs.read(it).ok());
        if delta.seq > self.manifest.seq {
            self.manifest.seq = delta.seq;
            for change in &delta.changes {
                self.manifest.set(&change.path, change.new.clone());
            }
        }
        if self.register.as_ref().is_some_and(|it| delta.calls().iter().any(|call| it.has(call))) {
            self.log.recent.push(delta);
        }
    }

    /// The deltas from there on, in order, and where the last of them ends.
    fn read_from(&self, mut at: u64) -> io::Result<(Vec<Delta>, u64)> {
        let (mut file, mut bytes) = (self.dir.open_own(b"log", OFlags::CREATE)?, Vec::new());
        file.seek(SeekFrom::Start(at))?;
        file.read_to_end(&mut bytes)?;
        let (mut rest, mut res) = (&*bytes, Vec::new());
        while let Some((delta, more)) = unframe(rest) {
            res.push(delta);
            at += (rest.len() - more.len()) as u64;
            rest = more;
        }
        Ok((res, at))
    }

    /// All deltas that the log has, in order.
    pub fn history(&self) -> io::Result<Vec<Delta>> {
        Ok(self.read_from(0)?.0)
    }

    pub fn set_node(&mut self, path: &RelPath, node: Node) {
        self.log.unsaved += MARK;
        self.manifest.set(path, node);
    }

    /// Tells whether the content that is to come is there, and is what was put there.
    pub fn has(&self, step: &Change) -> bool {
        step.new_content().is_none_or(|it| self.blobs.is_sound(&it))
    }

    /// A path below the root.
    pub fn relative(&self, path: &AbsPath) -> Option<RelPath> {
        let below = path.as_path().strip_prefix(self.path.as_path()).ok()?;
        Some(below.as_os_str().as_bytes().into()).filter(|it: &RelPath| !it.is_empty())
    }

    pub fn append(&mut self, cause: Cause, changes: Vec<Change>) -> Result<()> {
        // The first look finds everything, and is no change of anybody's.
        if changes.is_empty() || self.manifest.len() == 0 {
            return Ok(());
        }
        let delta = Delta { seq: self.manifest.seq + 1, at: now(), cause, changes };
        self.write(&frame(&delta)?)?;
        self.add_delta(delta);
        Ok(self.ledger.save(&self.dir)?)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (len, mut file) = (self.log.len, self.dir.open_own(b"log", OFlags::CREATE)?);
        file.seek(SeekFrom::Start(len))?;
        fault::step("log: append")?;
        let written =
            file.set_len(len).and_then(|()| file.write_all(bytes)).and_then(|()| fault::step("log: appended"));
        let written = written.and_then(|()| lasting::sync_file(&file));
        // If this fails too, the frame is torn or is seen by the next one that loads.
        written.inspect_err(|_| _ = file.set_len(len))?;
        self.log.len += bytes.len() as u64;
        self.log.unsaved += bytes.len() as u64;
        Ok(())
    }

    /// Writes the manifest anew where the old one is missing or far behind.
    fn save_index(&mut self) -> io::Result<()> {
        if self.log.unsaved >= MAX_BEYOND {
            self.dir.replace(b"index", &frame(&self.manifest)?, true)?;
            self.log.unsaved = 0;
        }
        Ok(())
    }

    /// The cause of unclaimed changes: all calls that may write, or the user.
    pub fn cause_between(&mut self) -> io::Result<Cause> {
        let others = folders::other_calls(&self.dir, &self.session.id)?;
        let own = self.register.iter().flat_map(SessionRegister::wide);
        let live: Vec<Call> = own.chain(others.live).collect();
        let mut stopped = std::mem::take(&mut self.stopped);
        stopped.extend(others.stopped);
        Ok(match (live.is_empty(), stopped.is_empty()) {
            (true, true) => Cause::User,
            (_, false) => Cause::Stopped(stopped.into_iter().chain(live).collect()),
            (false, true) => Cause::Calls(live),
        })
    }

    pub fn call(&self, id: &CheckpointId) -> Call {
        Call { session: self.session.id.clone(), id: id.clone() }
    }

    pub fn begin_call(&mut self, id: &CheckpointId, wide: bool) -> io::Result<()> {
        let call = self.call(id);
        if wide {
            let built = self.manifest.below(b"").filter(|it| it.1.is_passed_over());
            let by = (call.session.clone(), id.clone());
            built.for_each(|it| self.ledger.add_whole(it.0, Some(&by)));
            self.ledger.save(&self.dir)?;
        }
        self.register.as_mut().map_or(Ok(()), |it| it.add(call, wide))
    }

    pub fn is_open(&self, id: &CheckpointId) -> bool {
        self.register.as_ref().is_some_and(|it| it.has(&self.call(id)))
    }

    /// The call is over: what it changed, in order.
    pub fn end_call(&mut self, id: &CheckpointId) -> io::Result<Vec<Delta>> {
        let call = self.call(id);
        let Some(register) = &mut self.register else { return Ok(Vec::new()) };
        register.remove(id)?;
        let res = self.log.recent.iter().filter(|it| it.calls().contains(&call)).cloned().collect();
        self.log.recent.retain(|it| it.calls().iter().any(|it| register.has(it)));
        Ok(res)
    }

    /// Writes the log anew; the manifest has all that goes.
    pub fn replace_log(&mut self, history: &[Delta]) -> io::Result<()> {
        self.log.unsaved = MAX_BEYOND;
        self.save_index()?;
        let frames = history.iter().map(frame).collect::<io::Result<Vec<_>>>()?;
        self.dir.replace(b"log", &frames.concat(), true)?;
        self.log = LogFile::default();
        self.load()
    }

    /// Its last use, in seconds since 1970.
    pub fn used_at(&self) -> i64 {
        let stats = [b"index".as_slice(), b"log", b"rules"].into_iter().filter_map(|it| self.dir.stat(it).ok()?);
        stats.map(|it| DiskMark::of(&it).mtime.0).max().unwrap_or_default()
    }

    pub fn close(&mut self) -> io::Result<()> {
        self.save_index()?;
        let Some(register) = self.register.take() else { return Ok(()) };
        register.close(&self.dir, &self.session.id)?;
        if !folders::other_calls(&self.dir, &self.session.id)?.others {
            self.ledger.open_root(&self.path, false, &|it| self.blobs.read(it).ok());
        }
        self.ledger.save(&self.dir)
    }
}
