//! The session store: one JSON Lines log for each session, appended by one process at a time.

mod details;
pub mod import;
mod list;
mod metadata;
mod read;
mod remove;
mod repair;
mod scan;
mod session_lock;
mod state;

pub use details::{LogExtent, SessionDetails};
pub use list::{ListCache, SessionSummary};
pub use remove::{SessionRetention, SessionSweep};
pub use repair::{DroppedLine, RepairReport};
pub use scan::LogHead;
pub use session_lock::LockHolder;
pub use state::{StateError, read_state, save_state};

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
};

use crate::{
    base::{
        endings::missing_endings,
        ids::SessionId,
        log::{self, Entry, Fact, VERSION},
        path::AbsPath,
    },
    world::disk,
};
use session_lock::LockNote;

/// The folder of all sessions. Making one touches nothing.
#[derive(Clone, Debug)]
pub struct SessionStore {
    home: AbsPath,
    /// Whom this process serves, for others that want one of its sessions.
    client: Option<String>,
    write: Append,
}

/// How bytes get into a log. A disk that fails is another way.
pub type Append = fn(&mut File, &[u8]) -> io::Result<()>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("session {id} was not found")]
    NotFound { id: SessionId },
    #[error("session {id} is open in another castor process{}; close it there first", in_brackets(.holder))]
    Locked { id: SessionId, holder: Option<LockHolder> },
    #[error("the log of session {id} was written by a newer castor (version {version}); this one knows {VERSION}")]
    Newer { id: SessionId, version: u32 },
    #[error("the log of session {id} cannot be repaired: {why}")]
    Unrepairable { id: SessionId, why: String },
    #[error("{place} is a file, where castor has its folder")]
    NotAFolder { place: AbsPath },
    #[error("the log of session {id}: {source}")]
    Io { id: SessionId, source: io::Error },
    #[error("the sessions in {folder}: {source}")]
    Folder { folder: AbsPath, source: io::Error },
}

/// An open log. Only its holder appends.
#[derive(Debug)]
pub struct SessionLog {
    path: AbsPath,
    file: File,
    /// Whole lines so far, in bytes; what lies beyond is a torn line, and is cut off before the next write.
    len: u64,
    has_torn_line: bool,
    /// Its lines are of an older version so far.
    is_older: bool,
    /// What a crash left out, for the next write.
    endings: Vec<Entry>,
    buffer: Vec<u8>,
    write: Append,
    note: LockNote,
}

impl SessionStore {
    /// `home` is castor's own folder.
    pub fn new(home: AbsPath) -> Self {
        Self::with_append(home, |file, bytes| file.write_all(bytes))
    }

    /// As [`Store::new`], on another disk.
    pub fn with_append(home: AbsPath, write: Append) -> Self {
        Self { home, client: None, write }
    }

    /// Says whom this process serves; for the sessions that it opens from now on.
    pub fn set_client(&mut self, client: &str) {
        self.client = Some(client.to_owned()).filter(|it| !it.is_empty());
    }

    pub fn home(&self) -> &AbsPath {
        &self.home
    }

    /// A new, empty log, held by us: 0600 in a folder of 0700.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(&self, id: &SessionId) -> Result<SessionLog, StoreError> {
        let path = self.log_path(id)?;
        // Here "not found" speaks of castor's own folder, not of the session.
        let file = disk::create_append_private(&path).map_err(|source| match disk::blocking_file(&path) {
            Some(place) => StoreError::NotAFolder { place },
            None => StoreError::Io { id: id.clone(), source },
        })?;
        disk::make_private(&self.folder());
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        let note = self.write_note(id, 0);
        Ok(self.log(path, file, note))
    }

    /// A whole log, which nobody holds.
    ///
    /// # Errors
    /// When it cannot be written; then there is none.
    pub fn create_with(&self, id: &SessionId, entries: &[Entry]) -> Result<(), StoreError> {
        let mut log = self.create(id)?;
        let done = log.append(entries).map_err(|it| io_error(id, it));
        drop(log);
        done.inspect_err(|_| _ = self.delete(id))
    }

    /// The facts of a log, with the ends of what a crash cut off, and the log itself, held by us. Writes nothing to it.
    ///
    /// # Errors
    /// When there is no such session, another process holds it, or a newer castor wrote it.
    pub fn open(&self, id: &SessionId) -> Result<(Vec<Entry>, SessionLog), StoreError> {
        let path = self.log_path(id)?;
        let file = disk::open_append(&path).map_err(|it| io_error(id, it))?;
        disk::make_private(&self.folder());
        disk::make_private(&path);
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        let mut log = self.log(path, file, self.write_note(id, 0));
        let mut read = read::read_log(&mut log.file).map_err(|it| io_error(id, it))?;
        if read.entries.is_empty() {
            return Err(StoreError::NotFound { id: id.clone() });
        }
        let version = check_version(id, &read.entries)?;
        log.is_older = version < VERSION;
        (log.len, log.has_torn_line) = (read.whole_len, read.has_torn_line);
        log.endings = self.endings(id, &read.entries);
        log.note.set_quiet(log.len);
        read.entries.extend_from_slice(&log.endings);
        Ok((read.entries, log))
    }

    /// The facts of a log, whoever holds it. Where nobody is at work in it, what a crash cut off has its end. Needs no
    /// right to write.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn read(&self, id: &SessionId) -> Result<Vec<Entry>, StoreError> {
        let path = self.log_path(id)?;
        let mut file = disk::open_read(&path).map_err(|it| io_error(id, it))?;
        let mut read = read::read_log(&mut file).map_err(|it| io_error(id, it))?;
        if !session_lock::is_at_work(&file, &self.note_path(id), read.whole_len) {
            read.entries.extend(self.endings(id, &read.entries));
        }
        Ok(read.entries)
    }

    /// The facts in these bytes of a log, as far as its lines are whole, and where the next ones begin.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn read_part(&self, id: &SessionId, part: Range<u64>) -> Result<(Vec<Entry>, u64), StoreError> {
        let mut file = disk::open_read(&self.log_path(id)?).map_err(|it| io_error(id, it))?;
        let (entries, len) = read::read_part(&mut file, &part).map_err(|it| io_error(id, it))?;
        Ok((entries, part.start + len))
    }

    /// Whether somebody may be at work in a session.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn is_at_work(&self, id: &SessionId) -> Result<bool, StoreError> {
        let file = disk::open_read(&self.log_path(id)?).map_err(|it| io_error(id, it))?;
        let len = file.metadata().map_err(|it| io_error(id, it))?.len();
        Ok(session_lock::is_at_work(&file, &self.note_path(id), len))
    }

    /// What was under way in a log that we hold is over. Returns the ends of it, which the next write has first, and which
    /// were not known before.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn end_open(&self, id: &SessionId, log: &mut SessionLog) -> Result<Vec<Entry>, StoreError> {
        let mut file = disk::open_read(&log.path).map_err(|it| io_error(id, it))?;
        let read = read::read_log(&mut file).map_err(|it| io_error(id, it))?;
        let endings = self.endings(id, &read.entries);
        log.note.set_quiet(read.whole_len);
        let is_known = endings == log.endings;
        log.endings.clone_from(&endings);
        Ok(if is_known { Vec::new() } else { endings })
    }

    /// As late as the last that there is of the session and its sub-agents.
    fn endings(&self, id: &SessionId, entries: &[Entry]) -> Vec<Entry> {
        let mut res = missing_endings(entries, 0);
        if res.is_empty() {
            return res;
        }
        let last = |entries: &[Entry]| entries.iter().map(|it| it.at).max().unwrap_or_default();
        let last_below = |it: &SessionId| {
            let mut file = disk::open_read(&self.log_path(it).ok()?).ok()?;
            Some(last(&read::read_log(&mut file).ok()?.entries))
        };
        let below = if id.is_child() { Vec::new() } else { self.children(id) };
        let at = below.iter().filter_map(last_below).max().unwrap_or_default().max(last(entries));
        for entry in &mut res {
            entry.at = at;
            if let Fact::Event { event } = &mut entry.fact {
                event.timestamp = at;
            }
        }
        res
    }

    /// The sessions of the sub-agents below a session, by name.
    pub fn children(&self, id: &SessionId) -> Vec<SessionId> {
        let files = disk::read_dir(&self.folder().join(id.as_str())).unwrap_or_default();
        let child = |name: &str| Some(id.child(name.strip_suffix(".jsonl")?)).filter(SessionId::is_log_name);
        let mut res: Vec<SessionId> = files.iter().filter_map(|it| child(&it.name)).collect();
        res.sort();
        res
    }

    /// All sessions of a folder (of all folders without one), newest first. A log that cannot be read is left out.
    ///
    /// # Errors
    /// When their folder cannot be read.
    pub fn list(&self, cwd: Option<&AbsPath>) -> Result<Vec<SessionSummary>, StoreError> {
        list::list_logs(&self.folder(), cwd, &mut ListCache::default())
    }

    /// As [`Store::list`]; logs that did not change since `cache` was filled are not read again.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_cached(&self, cwd: Option<&AbsPath>, cache: &mut ListCache) -> Result<Vec<SessionSummary>, StoreError> {
        list::list_logs(&self.folder(), cwd, cache)
    }

    /// Model, cost and prompts of a session, without a replay of its log.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn details(&self, id: &SessionId, extent: LogExtent) -> Result<SessionDetails, StoreError> {
        details::read_details(&self.log_path(id)?, extent).map_err(|it| io_error(id, it))
    }

    /// Whether there is a session with this id.
    pub fn has(&self, id: &SessionId) -> bool {
        self.log_file(id).is_some_and(|it| disk::metadata(&it).is_ok())
    }

    /// Where the log of a session lies; `None` for what can be no session's id.
    pub fn log_file(&self, id: &SessionId) -> Option<AbsPath> {
        self.log_path(id).ok()
    }

    fn log(&self, path: AbsPath, file: File, note: LockNote) -> SessionLog {
        let (buffer, write) = (Vec::new(), self.write);
        SessionLog {
            path,
            file,
            len: 0,
            has_torn_line: false,
            is_older: false,
            endings: Vec::new(),
            buffer,
            write,
            note,
        }
    }

    fn write_note(&self, id: &SessionId, quiet_len: u64) -> LockNote {
        let holder = LockHolder { pid: std::process::id(), client: self.client.clone(), quiet_len };
        LockNote::write(self.note_path(id), holder)
    }

    fn note_path(&self, id: &SessionId) -> AbsPath {
        self.folder().join(format!("{id}.lock"))
    }

    fn folder(&self) -> AbsPath {
        self.home.join("sessions")
    }

    /// Ids come from clients: one that is no plain name names no session.
    fn log_path(&self, id: &SessionId) -> Result<AbsPath, StoreError> {
        match id.is_log_name() {
            true => Ok(self.folder().join(format!("{id}.jsonl"))),
            false => Err(StoreError::NotFound { id: id.clone() }),
        }
    }
}

impl SessionLog {
    /// Appends facts with one write; first, to an older log, the version that it has from here on, and what a crash left
    /// out. On an error nothing of them stays in the file.
    ///
    /// # Errors
    /// When the disk does not take them: full, gone, read-only.
    pub fn append<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> io::Result<()> {
        self.buffer.clear();
        for entry in entries {
            if self.buffer.is_empty() {
                self.push_head(entry.at)?;
            }
            self.push_line(entry)?;
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        if !disk::is_linked(&self.file) {
            self.restore_file()?;
        }
        if self.has_torn_line {
            self.file.set_len(self.len)?;
            self.has_torn_line = false;
        }
        if let Err(it) = (self.write)(&mut self.file, &self.buffer) {
            // Half a line must not be followed by a whole one; if even this fails, the next write tries again.
            self.has_torn_line = self.file.set_len(self.len).is_err();
            return Err(it);
        }
        self.len += self.buffer.len() as u64;
        self.is_older = false;
        self.endings.clear();
        Ok(())
    }

    /// What the next write has first.
    fn push_head(&mut self, at: u64) -> io::Result<()> {
        if self.is_older {
            let fact = Fact::Version { version: VERSION, castor: env!("CARGO_PKG_VERSION").to_owned() };
            self.push_line(&Entry { at, fact })?;
        }
        let endings = std::mem::take(&mut self.endings);
        let done = endings.iter().try_for_each(|it| self.push_line(it));
        // They stay until they are written.
        self.endings = endings;
        done
    }

    fn push_line(&mut self, entry: &Entry) -> io::Result<()> {
        serde_json::to_writer(&mut self.buffer, entry)?;
        self.buffer.push(b'\n');
        Ok(())
    }

    /// Somebody removed the file while we hold it: what was shown comes back under its name. castor's own delete asks
    /// for the lock first.
    fn restore_file(&mut self) -> io::Result<()> {
        let mut file = disk::create_append_private(&self.path)?;
        let copied = rewind(&mut self.file).and_then(|()| io::copy(&mut (&self.file).take(self.len), &mut file));
        let locked = copied.and_then(|_| match file.try_lock() {
            Err(TryLockError::Error(it)) if it.kind() != io::ErrorKind::Unsupported => Err(it),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        });
        // Half a log under this name would stand in the way of the next try.
        locked.inspect_err(|_| _ = disk::remove_file(&self.path))?;
        tracing::warn!("{} had been removed and was written again", self.path);
        (self.file, self.has_torn_line) = (file, false);
        Ok(())
    }

    /// Whether nothing was ever written to it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// For fdatasync on another thread.
    ///
    /// # Errors
    /// When the descriptor cannot be duplicated.
    pub fn sync_handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        self.note.remove();
        // Handles for syncing share the lock and may live longer.
        _ = self.file.unlock();
    }
}

/// The version of a log that is to be written.
fn check_version(id: &SessionId, entries: &[Entry]) -> Result<u32, StoreError> {
    match log::newest_version(entries) {
        version @ ..=VERSION => Ok(version),
        version => Err(StoreError::Newer { id: id.clone(), version }),
    }
}

fn in_brackets(holder: &Option<LockHolder>) -> String {
    holder.as_ref().map(|it| format!(" ({it})")).unwrap_or_default()
}

fn io_error(id: &SessionId, source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
        _ => StoreError::Io { id: id.clone(), source },
    }
}

fn rewind(file: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(0)).map(|_| ())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_agents;
#[cfg(test)]
mod tests_endings;
#[cfg(test)]
mod tests_versions;
