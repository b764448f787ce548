//! Errors of MCP servers, each as the end of a sentence about one.

/// Why a server does not come up.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum StartError {
    /// castor does not try: its settings cannot be used, or its files are not those that were trusted.
    #[error("{0}")]
    Refused(String),
    #[error("{command} could not be started: {why}")]
    Absent { command: String, why: String },
    /// It ended, or the way to it broke.
    #[error("{0}")]
    Gone(String),
    /// It speaks, but no MCP.
    #[error("{0}")]
    Broken(&'static str),
    #[error("it answered with HTTP status {0}")]
    Status(u16),
    #[error("it did not answer within {0} s")]
    Silent(f64),
}

/// Why a call has nobody to go to.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("its server is gone: {0}")]
    Gone(String),
    #[error("its server is gone: {why}; started again, it is not ready after {seconds} s")]
    NotReady { why: String, seconds: u64 },
    #[error("the call was cancelled")]
    Cancelled,
}
