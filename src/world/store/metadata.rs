//! Metadata of a session beside its log: the title that a client gave, whether it is archived, and its agent.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use super::{SessionStore, StoreError, io_error, session_lock};
use crate::{
    base::{ids::SessionId, path::AbsPath},
    world::disk,
};

/// Of a log, the list reads this many bytes.
pub(super) const HEAD: u64 = 64 * 1024;
/// What follows a session's id in the name of the file.
pub(super) const METADATA_SUFFIX: &str = ".meta.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionMetadata {
    /// The list shows it in place of the log's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub archived: bool,
    /// Where the head of the log does not have the last choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<ListedAgent>,
}

/// Whose session it is; without a name castor's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedAgent {
    pub name: Option<String>,
}

impl SessionStore {
    /// The list shows this title from now on. The caller holds the session's log.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn set_title(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        self.change_metadata(id, |it| it.title = Some(title.to_owned()))
    }

    /// Hides a session from the list, or shows it again.
    ///
    /// # Errors
    /// When there is no such session, any process has it open, this one included, or the disk does not take it.
    pub fn set_archived(&self, id: &SessionId, archived: bool) -> Result<(), StoreError> {
        let log = disk::open_append(&self.log_path(id)?).map_err(|it| io_error(id, it))?;
        session_lock::lock_file(id, &log, &self.note_path(id))?;
        self.set_held_archived(id, archived)
    }

    /// As [`Self::set_archived`]; the caller holds the session's log.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn set_held_archived(&self, id: &SessionId, archived: bool) -> Result<(), StoreError> {
        self.change_metadata(id, |it| it.archived = archived)
    }

    /// The list shows this agent. The caller holds the session's log, which has the choice: in a short one the list
    /// finds it by itself.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn note_agent(&self, id: &SessionId, agent: Option<&str>) -> Result<(), StoreError> {
        let len = disk::metadata(&self.log_path(id)?).map_err(|it| io_error(id, it))?.len;
        if len < HEAD {
            return Ok(());
        }
        self.change_metadata(id, |it| it.agent = Some(ListedAgent { name: agent.map(str::to_owned) }))
    }

    fn change_metadata(&self, id: &SessionId, change: impl FnOnce(&mut SessionMetadata)) -> Result<(), StoreError> {
        let path = self.metadata_path(id);
        let before = read_metadata(&path);
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(());
        }
        let text = serde_json::to_vec(&after).unwrap_or_default();
        disk::write_private(&path, &text).map_err(|source| StoreError::Io { id: id.clone(), source })
    }

    pub(super) fn metadata_path(&self, id: &SessionId) -> AbsPath {
        self.folder().join(format!("{id}{METADATA_SUFFIX}"))
    }
}

/// A file that cannot be understood costs only what it says.
pub(super) fn read_metadata(path: &AbsPath) -> SessionMetadata {
    let parsed = match disk::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|it| it.to_string()),
        Err(it) if it.kind() == ErrorKind::NotFound => return SessionMetadata::default(),
        Err(it) => Err(it.to_string()),
    };
    parsed.unwrap_or_else(|why| {
        tracing::warn!("{path}: {why}");
        SessionMetadata::default()
    })
}
