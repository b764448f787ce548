//! The lock on a session log, with a note that names its holder.

use std::{
    fmt,
    fs::{File, TryLockError},
    io,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::sessions::StoreError;
use castor_base::{ids::SessionId, path::AbsPath};
use castor_hands::disk;

/// The process that has a session open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    /// The machine that it runs on, where that may be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The client that it serves, as that calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// How long the log was, in bytes, when all that was under way in it was over: while it is no longer, nothing else is.
    #[serde(default)]
    pub quiet_len: u64,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        match &self.client {
            Some(client) => write!(f, " for {client}"),
            None => Ok(()),
        }
    }
}

/// The note of a lock that is ours; goes with the lock.
#[derive(Debug)]
pub(super) struct LockNote {
    path: AbsPath,
    holder: LockHolder,
}

impl LockNote {
    pub fn write(path: AbsPath, holder: LockHolder) -> Self {
        let res = Self { path, holder };
        res.save();
        res
    }

    /// Nothing is under way in the log, which is so long.
    pub fn set_quiet(&mut self, len: u64) {
        self.holder.quiet_len = len;
        self.save();
    }

    /// A note that cannot be written costs others only what it says.
    fn save(&self) {
        let text = serde_json::to_vec(&self.holder).unwrap_or_default();
        if let Err(it) = disk::write_private_note(&self.path, &text) {
            tracing::debug!("{}: {it}", self.path);
        }
    }

    pub fn remove(&self) {
        // Where it could not be written there is none.
        _ = disk::remove_file(&self.path);
    }
}

/// How often a lock is tried, with a pause between: who only looks whether there is one has it for a moment, and so has a
/// child that another thread starts, until it is its own program.
const N_TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(2);

/// Locks a log for this process.
pub(super) fn lock_file(id: &SessionId, file: &File, note: &AbsPath) -> Result<(), StoreError> {
    let mut tried = file.try_lock();
    for _ in 1..N_TRIES {
        if !matches!(tried, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(PAUSE);
        tried = file.try_lock();
    }
    match tried {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { id: id.clone(), holder: read_holder(note) }),
        // Some network folders know no locks: the session is worth more than the lock.
        Err(TryLockError::Error(it)) if it.kind() == io::ErrorKind::Unsupported => (),
        Err(TryLockError::Error(source)) => return Err(StoreError::Io { id: id.clone(), source }),
    }
    // Deleted or replaced between opening and locking: what is written now would be lost.
    match disk::is_linked(file) {
        true => Ok(()),
        false => Err(StoreError::NotFound { id: id.clone() }),
    }
}

/// Tells whether something may be under way in a log that is so long. Without a note nobody has it; a note may outlive
/// its writer.
pub(super) fn is_at_work(file: &File, note: &AbsPath, len: u64) -> bool {
    let is_quiet = |it: LockHolder| it.quiet_len >= len;
    if !disk::metadata(note).is_ok_and(|it| !it.is_dir) || read_holder(note).is_some_and(is_quiet) {
        return false;
    }
    // Where there are no locks nobody can tell.
    let is_locked = file.try_lock_shared().is_err();
    if !is_locked {
        _ = file.unlock();
    }
    is_locked
}

/// What the note says; it may be missing for a moment, or half written.
fn read_holder(note: &AbsPath) -> Option<LockHolder> {
    serde_json::from_slice(&disk::read(note).ok()?).ok()
}
