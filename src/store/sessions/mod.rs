//! The session store: one JSON Lines log for each session, appended by one process at a time.

mod append_error;
mod chain;
mod chain_check;
mod details;
pub mod import;
mod list;
mod list_index;
mod log_end;
mod metadata;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "no_postgres.rs"]
mod postgres;
mod read;
mod remove;
mod repair;
mod scan;
mod session_lock;
mod session_log;
mod shared;
mod shared_row;
mod state;

pub use append_error::AppendError;
pub use chain_check::{DamagedLine, LogDamage};
pub use details::{LogExtent, SessionDetails};
pub use list::{ListCache, SessionSummary};
pub use postgres::{AppendOrder, PendingAppend};
pub use remove::{SessionRetention, SessionSweep};
pub use repair::RepairReport;
pub use scan::LogHead;
pub use session_lock::LockHolder;
pub use session_log::SessionLog;
pub use shared::{CopyOutcome, NewsMark, StoreAddress};
pub use state::{StateError, read_state, save_state};

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    ops::Range,
    sync::Arc,
};

use castor_base::{
    ids::SessionId,
    log::{Entry, Fact, VERSION},
    path::AbsPath,
};
use castor_hands::disk;
use postgres::SharedStore;
use read::{LogEnd, LogFold};
use session_lock::LockNote;
use session_log::{FileLog, LogPlace};

/// The folder of all sessions. Making one touches nothing.
#[derive(Clone, Debug)]
pub struct SessionStore {
    home: AbsPath,
    /// Whom this process serves, for others that want one of its sessions.
    client: Option<String>,
    write: Append,
    /// The shared store of the logs; `None`: they are files.
    shared: Option<Arc<SharedStore>>,
}

/// A function that appends bytes to a log. A disk that fails is another one.
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
    #[error("the session store {0}")]
    Shared(String),
}

impl SessionStore {
    /// `home` is castor's own folder.
    pub fn new(home: AbsPath) -> Self {
        Self::with_append(home, |file, bytes| file.write_all(bytes))
    }

    /// A store like that of [`Store::new`], on another disk.
    pub fn with_append(home: AbsPath, write: Append) -> Self {
        Self { home, client: None, write, shared: None }
    }

    /// Says whom this process serves; for the sessions that it opens from now on.
    pub fn set_client(&mut self, client: &str) {
        self.client = Some(client.to_owned()).filter(|it| !it.is_empty());
        if let Some(it) = &self.shared {
            it.set_client(self.client.clone());
        }
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
        if let Some(it) = &self.shared {
            return Ok(SessionLog::new(LogPlace::Shared(it.create(id)?)));
        }
        // Here "not found" speaks of castor's own folder, not of the session.
        let file = disk::create_append_private(&path).map_err(|source| match disk::blocking_file(&path) {
            Some(place) => StoreError::NotAFolder { place },
            None => StoreError::Io { id: id.clone(), source },
        })?;
        disk::make_private(&self.folder());
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        let note = self.write_note(id, 0);
        Ok(self.log(id, path, file, note))
    }

    /// As [`Self::create`], without waiting for a shared store: the first append tells whether it could be made there.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn begin(&self, id: &SessionId) -> Result<SessionLog, StoreError> {
        self.log_path(id)?;
        match &self.shared {
            Some(it) => Ok(SessionLog::new(LogPlace::Shared(it.begin(id)?))),
            None => self.create(id),
        }
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
        let mut entries = Vec::new();
        let log = self.open_with(id, |it| entries.push(it))?;
        Ok((entries, log))
    }

    /// As [`Self::open`], one fact after the other. After an error what was taken counts for nothing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(&self, id: &SessionId, mut take: impl FnMut(Entry)) -> Result<SessionLog, StoreError> {
        let mut log = self.hold(id)?;
        let mut fold = LogFold::default();
        let fact = |it: Entry| {
            fold.take(&it);
            take(it);
        };
        let end = match &mut log.place {
            LogPlace::File(it) => {
                self.check_end(id, read::fold_file(&mut it.file, fact).map_err(|it| io_error(id, it))?)
            }
            LogPlace::Shared(_) => self.fold_facts(id, fact)?,
        };
        if !end.is_log {
            return Err(no_log(id, &end));
        }
        log.is_older = check_version(id, fold.streams.version)? < VERSION;
        (log.len, log.sum, log.damage) = (end.whole_len, end.sum, end.damage);
        if let LogPlace::File(it) = &mut log.place {
            it.has_torn_line = end.torn_len > 0;
            log.damage.kept = it.keep_torn_line(log.len, end.torn_len);
        }
        log.endings = self.endings(id, fold);
        log.set_quiet(log.len);
        log.endings.iter().cloned().for_each(take);
        Ok(log)
    }

    /// The facts of a log that is open here, as [`Self::open_with`] had them.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_again(&self, id: &SessionId, log: &SessionLog, mut take: impl FnMut(Entry)) -> Result<(), StoreError> {
        self.fold_facts(id, &mut take)?;
        log.endings.iter().cloned().for_each(take);
        Ok(())
    }

    /// The log, held by us.
    fn hold(&self, id: &SessionId) -> Result<SessionLog, StoreError> {
        let path = self.log_path(id)?;
        if let Some(it) = &self.shared {
            return Ok(SessionLog::new(LogPlace::Shared(it.hold(id)?)));
        }
        let file = disk::open_append(&path).map_err(|it| io_error(id, it))?;
        disk::make_private(&self.folder());
        disk::make_private(&path);
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        Ok(self.log(id, path, file, self.write_note(id, 0)))
    }

    /// Folds the facts of a log, whoever holds it.
    fn fold_facts(&self, id: &SessionId, take: impl FnMut(Entry)) -> Result<LogEnd, StoreError> {
        let path = self.log_path(id)?;
        let end = match &self.shared {
            Some(it) => read::fold_lines(&*it.read(id, 0..u64::MAX)?, take),
            None => disk::open_read(&path).and_then(|mut it| read::fold_file(&mut it, take)),
        };
        Ok(self.check_end(id, end.map_err(|it| io_error(id, it))?))
    }

    /// Also what only the log's length tells.
    fn check_end(&self, id: &SessionId, mut end: LogEnd) -> LogEnd {
        let len = match &self.shared {
            Some(it) => it.row(id).map_or(0, |it| it.len),
            None => log_end::read(&self.end_path(id)),
        };
        end.note_len(len);
        end
    }

    /// The facts of a log, whoever holds it. Where nobody is at work in it, what a crash cut off has its end. Needs no
    /// right to write.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn read(&self, id: &SessionId) -> Result<Vec<Entry>, StoreError> {
        let path = self.log_path(id)?;
        let (mut entries, mut fold) = (Vec::new(), LogFold::default());
        let fact = |it: Entry| {
            fold.take(&it);
            entries.push(it);
        };
        let is_at_work = match &self.shared {
            // Asked first: who is at work now may have written by the time of the other question.
            Some(it) => {
                let is_at_work = it.row(id)?.is_at_work;
                self.fold_facts(id, fact)?;
                is_at_work
            }
            None => {
                let mut file = disk::open_read(&path).map_err(|it| io_error(id, it))?;
                let end = read::fold_file(&mut file, fact).map_err(|it| io_error(id, it))?;
                session_lock::is_at_work(&file, &self.note_path(id), end.whole_len)
            }
        };
        if !is_at_work {
            entries.extend(self.endings(id, fold));
        }
        Ok(entries)
    }

    /// The facts in these bytes of a log, as far as its lines are whole, and where the next ones begin.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn read_part(&self, id: &SessionId, part: Range<u64>) -> Result<(Vec<Entry>, u64), StoreError> {
        let path = self.log_path(id)?;
        if let Some(it) = &self.shared {
            let lines = it.read(id, part.clone())?;
            return Ok((read::parse_lines(&lines), part.start + lines.len() as u64));
        }
        let mut file = disk::open_read(&path).map_err(|it| io_error(id, it))?;
        let (entries, len) = read::read_part(&mut file, &part).map_err(|it| io_error(id, it))?;
        Ok((entries, part.start + len))
    }

    /// Whether somebody may be at work in a session.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn is_at_work(&self, id: &SessionId) -> Result<bool, StoreError> {
        let path = self.log_path(id)?;
        if let Some(it) = &self.shared {
            return Ok(it.row(id)?.is_at_work);
        }
        let file = disk::open_read(&path).map_err(|it| io_error(id, it))?;
        let len = file.metadata().map_err(|it| io_error(id, it))?.len();
        Ok(session_lock::is_at_work(&file, &self.note_path(id), len))
    }

    /// What was under way in a log that we hold is over. Returns the ends of it, which the next write has first, and which
    /// were not known before.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn end_open(&self, id: &SessionId, log: &mut SessionLog) -> Result<Vec<Entry>, StoreError> {
        // Its new holder says what became of it.
        if log.is_lost() {
            return Ok(Vec::new());
        }
        let mut fold = LogFold::default();
        let end = self.fold_facts(id, |it| fold.take(&it))?;
        let endings = self.endings(id, fold);
        log.set_quiet(end.whole_len);
        let is_known = endings == log.endings;
        log.endings.clone_from(&endings);
        Ok(if is_known { Vec::new() } else { endings })
    }

    /// The ends of open calls and turns, as late as the last fact of the session and its sub-agents.
    fn endings(&self, id: &SessionId, fold: LogFold) -> Vec<Entry> {
        let mut res = fold.streams.endings(0);
        if res.is_empty() {
            return res;
        }
        let last_below = |it: &SessionId| {
            let mut last = 0;
            self.fold_facts(it, |it| last = it.at.max(last)).ok().map(|_| last)
        };
        let below = if id.is_child() { Vec::new() } else { self.children(id) };
        let at = below.iter().filter_map(last_below).max().unwrap_or_default().max(fold.last_at);
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
        if let Some(it) = &self.shared {
            return it.children(id);
        }
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
        let found = self.list_cached(cwd, &mut ListCache::default())?;
        Ok(found.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// As [`Store::list`]; logs that did not change since `cache` was filled are not read again.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_cached(
        &self,
        cwd: Option<&AbsPath>,
        cache: &mut ListCache,
    ) -> Result<Vec<Arc<SessionSummary>>, StoreError> {
        match &self.shared {
            Some(it) => list::list_shared(it, cwd, cache),
            None => list::list_logs(&self.home, &self.folder(), cwd, cache),
        }
    }

    /// Model, cost and prompts of a session, without a replay of its log.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn details(&self, id: &SessionId, extent: LogExtent) -> Result<SessionDetails, StoreError> {
        let path = self.log_path(id)?;
        match &self.shared {
            Some(it) => details::read_shared(it, id, extent),
            None => details::read_details(&path, extent).map_err(|it| io_error(id, it)),
        }
    }

    /// Tells whether there is a session with this id. Where a shared store does not answer there may be one.
    pub fn has(&self, id: &SessionId) -> bool {
        let Ok(path) = self.log_path(id) else { return false };
        match &self.shared {
            Some(it) => !matches!(it.row(id), Err(StoreError::NotFound { .. })),
            None => disk::metadata(&path).is_ok(),
        }
    }

    /// The length of a session's log, in bytes; `None`: there is none.
    pub fn log_len(&self, id: &SessionId) -> Option<u64> {
        let path = self.log_path(id).ok()?;
        match &self.shared {
            Some(it) => it.row(id).ok().map(|it| it.len),
            None => disk::metadata(&path).ok().map(|it| it.len),
        }
    }

    /// The file of a session's log; `None` for what can be no session's id, and in a shared store.
    pub fn log_file(&self, id: &SessionId) -> Option<AbsPath> {
        self.log_path(id).ok().filter(|_| self.shared.is_none())
    }

    fn log(&self, id: &SessionId, path: AbsPath, file: File, note: LockNote) -> SessionLog {
        let (write, end_note) = (self.write, self.end_path(id));
        SessionLog::new(LogPlace::File(FileLog { path, file, has_torn_line: false, write, note, end_note }))
    }

    fn write_note(&self, id: &SessionId, quiet_len: u64) -> LockNote {
        let holder = LockHolder { pid: std::process::id(), host: None, client: self.client.clone(), quiet_len };
        LockNote::write(self.note_path(id), holder)
    }

    fn note_path(&self, id: &SessionId) -> AbsPath {
        self.folder().join(format!("{id}.lock"))
    }

    fn end_path(&self, id: &SessionId) -> AbsPath {
        self.home.join(log_end::FOLDER).join(format!("{id}.len"))
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

/// The version of a log that is to be written.
fn check_version(id: &SessionId, version: u32) -> Result<u32, StoreError> {
    match version {
        version @ ..=VERSION => Ok(version),
        version => Err(StoreError::Newer { id: id.clone(), version }),
    }
}

fn in_brackets(holder: &Option<LockHolder>) -> String {
    holder.as_ref().map(|it| format!(" ({it})")).unwrap_or_default()
}

/// The error of a log without its first fact, which says what session it is.
fn no_log(id: &SessionId, end: &LogEnd) -> StoreError {
    match end.whole_len + end.torn_len {
        0 => StoreError::NotFound { id: id.clone() },
        _ => {
            let why = format!("its first line is lost or damaged; run: castor sessions repair {id}");
            io_error(id, io::Error::new(io::ErrorKind::InvalidData, why))
        }
    }
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
mod tests_damage;
#[cfg(test)]
mod tests_endings;
#[cfg(test)]
mod tests_list;
#[cfg(test)]
mod tests_temporary;
#[cfg(test)]
mod tests_versions;
