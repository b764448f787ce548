//! Errors of appends to a session log, with what the user can do.

use std::io;

/// Why facts did not get into a log.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// Another castor took the session over, or deleted it: this one can write nothing more of it.
    #[error("{0}")]
    Lost(String),
    /// Nobody knows what became of it; the log has it, or not.
    #[error("the session store {0}")]
    Unreachable(String),
}

impl AppendError {
    /// What the user can do.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Disk(_) => "Make room on the disk or make the log writable, then try again.",
            Self::Lost(_) => "The session is closed here. Load it again to continue it.",
            Self::Unreachable(_) => "The session is closed here. Load it again when the store answers.",
        }
    }
}

impl From<AppendError> for io::Error {
    fn from(it: AppendError) -> Self {
        match it {
            AppendError::Disk(it) => it,
            AppendError::Lost(_) | AppendError::Unreachable(_) => Self::other(it),
        }
    }
}
