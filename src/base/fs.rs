//! The trait `Fs`: files as tools read and write them, on disk or in an editor's buffers.

use std::{future::Future, pin::Pin};

use crate::base::path::AbsPath;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whole files by their real path, which no link leads elsewhere: where one does by now, reading and writing fail.
pub trait Fs: Send + Sync {
    /// The bytes of a file, as the user sees them now (an editor's unsaved text counts).
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>>;

    /// Whether it may know text that is not on disk.
    fn has_buffers(&self) -> bool {
        false
    }

    /// Replaces or creates a file whole, parents included; never leaves half of it behind.
    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>>;
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
