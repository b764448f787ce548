//! The lock on a session log, with a note that names its holder.

use std::{
    fmt,
    fs::{File, TryLockError},
    io,
};

use serde::{Deserialize, Serialize};

use crate::{
    base::{ids::SessionId, path::AbsPath},
    world::{disk, store::StoreError},
};

/// The process that has a session open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    /// The client that it serves, as that calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.client {
            Some(client) => write!(f, "process {} for {client}", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// The note of a lock that is ours; goes with the lock.
#[derive(Debug)]
pub(super) struct LockNote(AbsPath);

impl LockNote {
    /// A note that cannot be written costs others the name only.
    pub fn write(path: AbsPath, holder: &LockHolder) -> Self {
        let text = serde_json::to_vec(holder).unwrap_or_default();
        if let Err(it) = disk::write_private_note(&path, &text) {
            tracing::debug!("{path}: {it}");
        }
        Self(path)
    }

    pub fn remove(&self) {
        // Where it could not be written there is none.
        _ = disk::remove_file(&self.0);
    }
}

/// Locks a log for this process.
pub(super) fn lock_file(id: &SessionId, file: &File, note: &AbsPath) -> Result<(), StoreError> {
    match file.try_lock() {
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

/// What the note says; it may be missing for a moment, or half written.
fn read_holder(note: &AbsPath) -> Option<LockHolder> {
    serde_json::from_slice(&disk::read(note).ok()?).ok()
}
