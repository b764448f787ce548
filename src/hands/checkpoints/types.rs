//! Types of the checkpoint room: orders, plans, outcomes and failures.

use std::{collections::BTreeMap, io, path::PathBuf, time::SystemTime};

use castor_base::{
    checkpoint::{ChangeKind, CheckpointResult, RestoreResult},
    ids::CheckpointId,
    path::AbsPath,
};

/// Limits of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of one root.
    pub root_bytes: u64,
    /// Files and folders of one root.
    pub root_files: usize,
    /// Bytes of all stores together.
    pub store: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 100 << 20, root_bytes: 2 << 30, root_files: 200_000, store: 4 << 30 }
    }
}

/// What could not be read or written, where nothing nearer is known.
const NOWHERE: &str = "the checkpoints";

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reason why there is no checkpoint, or no restore.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it was cancelled")]
    Cancelled,
    #[error("the store of checkpoints is full ({limit} bytes); free some of it: castor clean")]
    Full { limit: u64 },
    #[error("another castor is busy with the checkpoints of {root}")]
    Busy { root: AbsPath },
    #[error("castor has no checkpoint of what changed")]
    Gone,
    #[error("checkpoint {id} is not known")]
    Unknown { id: CheckpointId },
    /// What is held is not what was put there: nothing is restored from it.
    #[error("the held content of {path} is damaged or gone; nothing was restored")]
    Damaged { path: PathBuf },
    /// A restore went wrong and could not be taken back at once.
    #[error("the restore stopped half way ({source}); castor doctor, or the next session here, finishes it")]
    Half { source: io::Error },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

impl Failure {
    /// Says what could not be read or written, where nothing nearer did.
    pub(super) fn at(self, place: impl FnOnce() -> String) -> Self {
        match self {
            Self::Io { what, source } if what == NOWHERE => Self::Io { what: place(), source },
            it => it,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self::Io { what: NOWHERE.to_owned(), source }
    }
}

/// The result of a session's first walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstWalk {
    /// For people: what was finished or taken back.
    pub notices: Vec<String>,
    /// Roots of which not all is held, because they have too much.
    pub full: Vec<AbsPath>,
    pub held: CheckpointResult,
}

/// Unsaved buffers of a connected client, by real path, read just now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers(pub BTreeMap<AbsPath, Vec<u8>>);

/// The plan of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// Sorted by path; conflicts among them.
    pub paths: Vec<PlannedPath>,
    /// The files that it is about, whatever became of them since: a client may have them.
    pub files: Vec<AbsPath>,
    /// What the calls changed or removed, and nobody holds.
    pub not_kept: Vec<PathBuf>,
    /// For people: what is not restored, and why.
    pub notes: Vec<String>,
}

/// One path of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPath {
    pub path: PathBuf,
    /// What would become of it.
    pub change: ChangeKind,
    /// Why it is not restored unless it is asked for.
    pub conflict: Option<String>,
    /// The file that it would be, by hash, in the store of that root.
    pub(super) file: Option<(AbsPath, [u8; 32])>,
}

/// The outcome of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreOutcome {
    pub restored: RestoreResult,
    /// What the client is to write: files that are open there.
    pub to_client: Vec<(AbsPath, Vec<u8>)>,
    /// For people: what is not restored, and why.
    pub notes: Vec<String>,
}

/// The change of one path by calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub path: PathBuf,
    pub change: ChangeKind,
    /// A file's bytes, or where a link leads; `None`: it was not there, is a folder, or is too long to show.
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// Too long to show: then there are no bytes of it.
    pub too_long: bool,
}

/// Rules for what the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of all stores together.
    pub store: u64,
    /// A root that was not used since is walked anew.
    pub used_since: SystemTime,
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    pub n_sessions: usize,
    pub bytes: u64,
}
