//! The trait `Fs`: files as tools read and write them, on disk or in an editor's buffers.

use std::{future::Future, pin::Pin};

use crate::path::AbsPath;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whole files by their real path, which no link leads elsewhere: where one does by now, reading and writing fail.
pub trait Fs: Send + Sync {
    /// The bytes of a file, as the user sees them now (an editor's unsaved text counts).
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>>;

    /// Tells whether it may know text that is not on disk.
    fn has_buffers(&self) -> bool {
        false
    }

    /// Replaces or creates a file whole, parents included; never leaves half of it behind.
    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>>;

    /// Makes all changes, or none.
    fn change(&self, changes: Vec<PlannedChange>) -> BoxFuture<'_, Result<(), ChangeError>>;
}

/// A file before and after a change; `None`: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    pub path: AbsPath,
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// The file whose permissions a new one gets: it moves.
    pub moved_from: Option<AbsPath>,
}

impl PlannedChange {
    /// What takes it back.
    pub fn inverse(&self) -> Self {
        Self { path: self.path.clone(), before: self.after.clone(), after: self.before.clone(), moved_from: None }
    }
}

/// Why changes were not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeError {
    pub error: FsError,
    /// What was changed and could not be put back. Rarely any.
    pub left: Vec<AbsPath>,
}

impl From<FsError> for ChangeError {
    fn from(error: FsError) -> Self {
        Self { error, left: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    #[error("File not found: {0}")]
    NotFound(AbsPath),
    #[error("Path is a directory, not a file: {0}")]
    IsDirectory(AbsPath),
    #[error("Permission denied: {0}")]
    Denied(AbsPath),
    #[error("No space left on device: {0}")]
    NoSpace(AbsPath),
    #[error("{path}: {message}")]
    Other { path: AbsPath, message: String },
}
