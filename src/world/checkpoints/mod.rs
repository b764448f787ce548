//! Checkpoints: what the roots hold before a call, what the call changed, and the way back.
//!
//! Each root has a store of its own below castor's home: a manifest of what lies in the root, a log of what changed and
//! by whom, and contents by their hash. All calls block; whoever calls is on a thread that may.

mod words;

pub use words::{
    Buffers, Failure, FileDiff, Limits, Opened, PlannedPath, RestoreOutcome, RestorePlan, Retention, Swept,
};

use crate::base::{
    checkpoint::{Changes, Held, RestoreOrder, Scope},
    ids::{CheckpointId, SessionId},
    path::AbsPath,
};

/// Whether the caller wants a long walk to end.
pub type Cancel<'a> = &'a (dyn Fn() -> bool + Sync);

/// The content of one file that a client holds; `None`: it is not there.
pub type Content = (AbsPath, Option<Vec<u8>>);

/// The checkpoints of one session. Making one touches nothing.
pub struct Checkpoints {
    _home: AbsPath,
}

impl Checkpoints {
    /// `home` is castor's own folder; `roots` are real paths.
    pub fn new(home: &AbsPath, _session: &SessionId, _roots: &[AbsPath], _limits: Limits) -> Self {
        Self { _home: home.clone() }
    }

    /// The first walk of the session. Finishes, or takes back, a restore that a crash interrupted.
    ///
    /// # Errors
    /// When any step fails: then the session has no checkpoints.
    pub fn open(&self, _cancel: Cancel) -> Result<Opened, Failure> {
        Err(Failure::Cancelled)
    }

    /// Holds what a call may write, before it runs.
    ///
    /// # Errors
    /// When any step fails: then there is no checkpoint.
    pub fn before(&self, _id: &CheckpointId, _scope: &Scope, _cancel: Cancel) -> Result<Held, Failure> {
        Err(Failure::Cancelled)
    }

    /// What changed since [`Checkpoints::before`] of the same checkpoint, which is the call's from now on.
    ///
    /// # Errors
    /// When the roots cannot be read, or the store cannot be written.
    pub fn after(&self, _id: &CheckpointId) -> Result<Changes, Failure> {
        Err(Failure::Cancelled)
    }

    /// As [`Checkpoints::before`] for files that a client holds: they are what the client says.
    ///
    /// # Errors
    /// As [`Checkpoints::before`].
    pub fn before_content(&self, _id: &CheckpointId, _files: &[Content]) -> Result<Held, Failure> {
        Err(Failure::Cancelled)
    }

    /// As [`Checkpoints::after`] for files that a client holds.
    ///
    /// # Errors
    /// As [`Checkpoints::after`].
    pub fn after_content(&self, _id: &CheckpointId, _files: &[Content]) -> Result<Changes, Failure> {
        Err(Failure::Cancelled)
    }

    /// What [`Checkpoints::restore`] would do now.
    ///
    /// # Errors
    /// When the roots or the store cannot be read.
    pub fn plan(&self, _order: &RestoreOrder) -> Result<RestorePlan, Failure> {
        Err(Failure::Cancelled)
    }

    /// What a planned path would hold; `None`: no file.
    ///
    /// # Errors
    /// When the store does not have it any more, or has other bytes.
    pub fn content(&self, _path: &PlannedPath) -> Result<Option<Vec<u8>>, Failure> {
        Err(Failure::Cancelled)
    }

    /// Takes calls back. Files in `buffers` are the client's: they are compared by that content, and what they become
    /// is in `to_client`; the caller has the client write it.
    ///
    /// # Errors
    /// When any step fails: then the roots are as they were, or the next [`Checkpoints::open`] makes them so.
    pub fn restore(&self, _order: &RestoreOrder, _buffers: &Buffers) -> Result<RestoreOutcome, Failure> {
        Err(Failure::Cancelled)
    }

    /// The net effect of these checkpoints, by path.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn diff(&self, _ids: &[CheckpointId]) -> Result<Vec<FileDiff>, Failure> {
        Err(Failure::Cancelled)
    }

    /// The session ends, or this castor does.
    pub fn close(&self) {}
}

/// Finishes, or takes back, what a crash left half done in a root; what there is to say about it.
///
/// # Errors
/// When the store or the root cannot be read or written.
pub fn recover(_home: &AbsPath, _root: &AbsPath) -> Result<Vec<String>, Failure> {
    Err(Failure::Cancelled)
}

/// As [`recover`], of all roots that have a store.
///
/// # Errors
/// As [`recover`].
pub fn recover_all(_home: &AbsPath) -> Result<Vec<String>, Failure> {
    Err(Failure::Cancelled)
}

/// Removes what no session needs, then the oldest closed sessions until the store fits.
///
/// # Errors
/// When the store cannot be read or written.
pub fn sweep(_home: &AbsPath, _retention: &Retention, _keep: &dyn Fn(&SessionId) -> bool) -> Result<Swept, Failure> {
    Err(Failure::Cancelled)
}

/// Removes the checkpoints of a session that is deleted.
///
/// # Errors
/// When the store cannot be read or written.
pub fn forget_session(_home: &AbsPath, _session: &SessionId) -> Result<(), Failure> {
    Err(Failure::Cancelled)
}
