//! Metadata of a session beside its log: the title that a client gave, whether it is archived, and its agent.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use super::{SessionStore, StoreError, io_error, session_lock};
use castor_base::{ids::SessionId, path::AbsPath};
use castor_hands::disk;

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
        let path = self.log_path(id)?;
        if self.shared.is_some() {
            let _log = self.hold(id)?;
            return self.set_held_archived(id, archived);
        }
        let log = disk::open_append(&path).map_err(|it| io_error(id, it))?;
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
        let len = match &self.shared {
            Some(it) => match it.row(id) {
                // Made with its first append, which says it in the log's head.
                Err(StoreError::NotFound { .. }) => return Ok(()),
                row => row?.len,
            },
            None => disk::metadata(&self.log_path(id)?).map_err(|it| io_error(id, it))?.len,
        };
        if len < HEAD {
            return Ok(());
        }
        self.change_metadata(id, |it| it.agent = Some(ListedAgent { name: agent.map(str::to_owned) }))
    }

    fn change_metadata(&self, id: &SessionId, change: impl FnOnce(&mut SessionMetadata)) -> Result<(), StoreError> {
        let path = self.metadata_path(id);
        let before = self.metadata(id)?;
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(());
        }
        let text = serde_json::to_vec(&after).unwrap_or_default();
        if let Some(it) = &self.shared {
            return it.set_metadata(id, &text);
        }
        disk::write_private(&path, &text).map_err(|source| StoreError::Io { id: id.clone(), source })
    }

    fn metadata(&self, id: &SessionId) -> Result<SessionMetadata, StoreError> {
        Ok(match &self.shared {
            Some(it) => it.row(id)?.metadata.and_then(|it| parse_metadata(it.as_bytes()).ok()).unwrap_or_default(),
            None => read_metadata(&self.metadata_path(id)),
        })
    }

    /// Another store's session gets what this one says of it.
    pub(super) fn copy_metadata(&self, target: &Self, id: &SessionId) -> Result<(), StoreError> {
        let says = self.metadata(id)?;
        target.change_metadata(id, |it| *it = says)
    }

    pub(super) fn metadata_path(&self, id: &SessionId) -> AbsPath {
        self.folder().join(format!("{id}{METADATA_SUFFIX}"))
    }
}

/// A file that cannot be understood costs only what it says.
pub(super) fn read_metadata(path: &AbsPath) -> SessionMetadata {
    let parsed = match disk::read(path) {
        Ok(bytes) => parse_metadata(&bytes).map_err(|it| it.to_string()),
        Err(it) if it.kind() == ErrorKind::NotFound => return SessionMetadata::default(),
        Err(it) => Err(it.to_string()),
    };
    parsed.unwrap_or_else(|why| {
        tracing::warn!("{path}: {why}");
        SessionMetadata::default()
    })
}

pub(super) fn parse_metadata(text: &[u8]) -> serde_json::Result<SessionMetadata> {
    serde_json::from_slice(text)
}
