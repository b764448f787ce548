//! An open session log, in a file or in a shared store. Only its holder appends.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom},
};

use super::{
    Append, AppendError, LogDamage,
    chain::{LineSum, seal},
    log_end,
    postgres::{AppendOrder, SharedLog},
    rewind,
    session_lock::LockNote,
};
use castor_base::{
    log::{Entry, Fact, VERSION},
    path::AbsPath,
};
use castor_hands::disk;

/// An open log. Only its holder appends.
#[derive(Debug)]
pub struct SessionLog {
    pub(super) place: LogPlace,
    /// Whole lines so far, in bytes.
    pub(super) len: u64,
    /// Its lines are of an older version so far.
    pub(super) is_older: bool,
    /// Ends that a crash left out, for the next write.
    pub(super) endings: Vec<Entry>,
    /// The sum of its last line.
    pub(super) sum: LineSum,
    /// The damage that was found when it was opened.
    pub(super) damage: LogDamage,
    /// Something was written since it was opened.
    has_grown: bool,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum LogPlace {
    File(FileLog),
    Shared(SharedLog),
}

/// A log in a file. Bytes beyond its whole lines are a torn line, and are cut off before the next write.
#[derive(Debug)]
pub(super) struct FileLog {
    pub path: AbsPath,
    pub file: File,
    pub has_torn_line: bool,
    pub write: Append,
    pub note: LockNote,
    /// Says how long the log is.
    pub end_note: AbsPath,
}

impl SessionLog {
    pub(super) fn new(place: LogPlace) -> Self {
        let (sum, damage) = (LineSum::default(), LogDamage::default());
        Self { place, len: 0, is_older: false, endings: Vec::new(), sum, damage, has_grown: false, buffer: Vec::new() }
    }

    /// Appends facts with one write; first, to an older log, the version that it has from here on, and what a crash left
    /// out. On an error nothing of them stays in a file.
    ///
    /// # Errors
    /// When the disk does not take them: full, gone, read-only; when the shared store does not.
    pub fn append<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> io::Result<()> {
        let mut orders = Vec::new();
        self.begin_append(entries, &mut orders)?;
        match (&self.place, orders.is_empty()) {
            (LogPlace::Shared(log), false) => match log.start(orders).wait().pop() {
                Some((_, why)) => Err(why.into()),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// As [`Self::append`], without waiting for a shared store: what that is to take is added to `orders`. After a failure
    /// there the log takes nothing more.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn begin_append<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        orders: &mut Vec<AppendOrder>,
    ) -> Result<(), AppendError> {
        let sum = self.sum;
        // What was not written is no part of the chain.
        self.write_lines(entries, orders).inspect_err(|_| self.sum = sum)
    }

    fn write_lines<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        orders: &mut Vec<AppendOrder>,
    ) -> Result<(), AppendError> {
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
        let added = self.buffer.len() as u64;
        match &mut self.place {
            LogPlace::File(log) => log.write(self.len, &self.buffer)?,
            LogPlace::Shared(log) => orders.push(log.order(self.len, std::mem::take(&mut self.buffer))?),
        }
        self.len += added;
        self.has_grown = true;
        self.is_older = false;
        self.endings.clear();
        Ok(())
    }

    /// Writes the bytes that come before the next write's own.
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
        let start = self.buffer.len();
        serde_json::to_writer(&mut self.buffer, entry)?;
        self.sum = seal(&mut self.buffer, start, self.sum);
        self.buffer.push(b'\n');
        Ok(())
    }

    /// Lines as they are, to an empty log.
    pub(super) fn append_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        match &mut self.place {
            LogPlace::File(log) => log.write(self.len, lines)?,
            LogPlace::Shared(log) => {
                let order = log.order(self.len, lines.to_vec())?;
                if let Some((_, why)) = log.start(vec![order]).wait().pop() {
                    return Err(why.into());
                }
            }
        }
        self.len += lines.len() as u64;
        self.has_grown = true;
        Ok(())
    }

    /// Makes it durable, and waits for that.
    pub(super) fn sync(&self) -> io::Result<()> {
        match &self.place {
            LogPlace::File(log) => disk::sync_data(&log.file),
            LogPlace::Shared(_) => Ok(()),
        }
    }

    /// Nothing is under way in it.
    pub(super) fn set_quiet(&mut self, len: u64) {
        match &mut self.place {
            LogPlace::File(log) => log.note.set_quiet(len),
            LogPlace::Shared(log) => log.set_quiet(len),
        }
    }

    /// The damage that was found when it was opened.
    pub fn damage(&self) -> &LogDamage {
        &self.damage
    }

    /// Tells whether nothing was ever written to it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tells whether it takes nothing more: another castor has it, or the shared store did not answer.
    pub fn is_lost(&self) -> bool {
        matches!(&self.place, LogPlace::Shared(log) if log.is_lost())
    }

    /// The last holder, if that is another machine or a castor that died: a process, or a machine's name.
    pub fn moved_from(&self) -> Option<&str> {
        if let LogPlace::Shared(log) = &self.place { log.moved_from() } else { None }
    }

    /// It takes nothing more.
    pub fn set_lost(&mut self) {
        if let LogPlace::Shared(log) = &mut self.place {
            log.set_lost();
        }
    }

    /// For fdatasync on another thread; a shared store has made durable what it took.
    ///
    /// # Errors
    /// When there is no descriptor, or it cannot be duplicated.
    pub fn sync_handle(&self) -> io::Result<File> {
        match &self.place {
            LogPlace::File(log) => log.file.try_clone(),
            LogPlace::Shared(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl FileLog {
    fn write(&mut self, len: u64, lines: &[u8]) -> io::Result<()> {
        if !disk::is_linked(&self.file) {
            self.restore_file(len)?;
        }
        if self.has_torn_line {
            self.file.set_len(len)?;
            self.has_torn_line = false;
        }
        if let Err(it) = (self.write)(&mut self.file, lines) {
            // Half a line must not be followed by a whole one; if even this fails, the next write tries again.
            self.has_torn_line = self.file.set_len(len).is_err();
            return Err(it);
        }
        Ok(())
    }

    /// Keeps the torn line that the next write cuts off, in a file beside the log.
    pub(super) fn keep_torn_line(&mut self, len: u64, torn_len: u64) -> Option<AbsPath> {
        if torn_len == 0 {
            return None;
        }
        let mut bytes = Vec::new();
        let read =
            self.file.seek(SeekFrom::Start(len)).and_then(|_| (&self.file).take(torn_len).read_to_end(&mut bytes));
        let kept = read.and_then(|_| keep_damaged(&self.path, &bytes));
        kept.inspect_err(|it| tracing::warn!("the damaged end of {} could not be kept: {it}", self.path)).ok()
    }

    /// Somebody removed the file while we hold it: what was shown comes back under its name. castor's own delete asks
    /// for the lock first.
    fn restore_file(&mut self, len: u64) -> io::Result<()> {
        let mut file = disk::create_append_private(&self.path)?;
        let copied = rewind(&mut self.file).and_then(|()| io::copy(&mut (&self.file).take(len), &mut file));
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
}

/// Under the first name that is free, unless they are there.
fn keep_damaged(log: &AbsPath, bytes: &[u8]) -> io::Result<AbsPath> {
    let folder = log.parent().ok_or(io::ErrorKind::NotFound)?;
    let name = log.as_path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut n = 1;
    loop {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let path = folder.join(format!("{name}.damaged{suffix}"));
        match disk::create_private(&path, bytes) {
            Err(it) if it.kind() == io::ErrorKind::AlreadyExists && disk::read(&path)? != bytes => n += 1,
            Err(it) if it.kind() != io::ErrorKind::AlreadyExists => return Err(it),
            _ => return Ok(path),
        }
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        if let LogPlace::File(log) = &self.place
            && self.has_grown
            && disk::is_linked(&log.file)
        {
            log_end::write(&log.end_note, self.len);
        }
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.note.remove();
        // Handles for syncing share the lock and may live longer.
        _ = self.file.unlock();
    }
}
