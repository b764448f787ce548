//! Orders about titles, the archive and the status of sessions, open or not, to a shared store.

use serde_json::value::RawValue;

use castor_base::ids::SessionId;
use castor_engine::record::Record;
use castor_store::sessions::{SessionStore, StoreError};
use castor_wire::acp::drafts::session_metadata::{
    TitleParams, read_archive, read_set_title, read_status, read_unarchive,
};

/// What a request asks of the store.
pub enum MetadataOrder {
    /// `is_open`: in this process.
    Title {
        title: String,
        is_open: bool,
        now_ms: u64,
    },
    Archived {
        archived: bool,
        is_open: bool,
    },
    /// Whether it is there.
    Present,
}

impl MetadataOrder {
    /// `None`: the request is refused. A sub-agent's session is none of the list's.
    pub fn read(method: &str, params: Option<&RawValue>, is_open: bool, now_ms: u64) -> Option<(SessionId, Self)> {
        let (id, order) = match method {
            "session/set_title" => {
                let TitleParams { session, title } = read_set_title(params).ok()?;
                (session, Self::Title { title, is_open, now_ms })
            }
            // It is closed for that.
            "session/archive" => (read_archive(params).ok()?, Self::Archived { archived: true, is_open: false }),
            "session/unarchive" => (read_unarchive(params).ok()?, Self::Archived { archived: false, is_open }),
            _ => (read_status(params).ok()?, Self::Present),
        };
        (!id.is_child()).then_some((id, order))
    }

    /// Waits for the store.
    ///
    /// # Errors
    /// When there is no such session, another castor has it open, or the store does not take it.
    pub fn carry_out(&self, store: &SessionStore, id: &SessionId) -> Result<(), StoreError> {
        match self {
            Self::Title { title, is_open: true, .. } => store.set_title(id, title),
            Self::Title { title, is_open: false, now_ms } => retitle_saved(store, id, title, *now_ms),
            Self::Archived { archived, is_open: true } => store.set_held_archived(id, *archived),
            Self::Archived { archived, is_open: false } => store.set_archived(id, *archived),
            Self::Present if store.has(id) => Ok(()),
            Self::Present => Err(StoreError::NotFound { id: id.clone() }),
        }
    }
}

/// The title stands in the log, too, so that a session that is loaded later has it.
fn retitle_saved(store: &SessionStore, id: &SessionId, title: &str, now_ms: u64) -> Result<(), StoreError> {
    let (entries, mut log) = store.open(id)?;
    let record = Record::replay(&entries).ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
    let entry = record.client_title_entry(title, now_ms);
    log.append([&entry]).map_err(|source| StoreError::Io { id: id.clone(), source })?;
    store.set_title(id, title)
}
