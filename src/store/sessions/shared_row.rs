//! A row of the session list of a shared store.

use castor_base::ids::SessionId;

/// Of a session in a shared store.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedRow {
    pub id: SessionId,
    pub len: u64,
    /// Unix time in milliseconds.
    pub changed_ms: u64,
    pub metadata: Option<String>,
    /// Somebody may be at work in it.
    pub is_at_work: bool,
}

impl SharedRow {
    /// What of it says that its log is another one.
    pub fn key(&self) -> (u64, u64) {
        (self.changed_ms, self.len)
    }
}
