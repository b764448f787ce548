//! Blocking work on a file, done on a thread of its own; and its errors in the words of `Fs`.

use std::io::{self, ErrorKind};

use castor_base::{fs::FsError, path::AbsPath};

pub async fn on_thread<T: Send + 'static>(
    path: &AbsPath,
    act: impl FnOnce(&AbsPath) -> io::Result<T> + Send + 'static,
) -> Result<T, FsError> {
    let owned = path.clone();
    match tokio::task::spawn_blocking(move || act(&owned)).await {
        Ok(res) => res.map_err(|it| fs_error(path, &it)),
        Err(it) => Err(FsError::Other { path: path.clone(), message: it.to_string() }),
    }
}

pub fn fs_error(path: &AbsPath, error: &io::Error) -> FsError {
    let path = path.clone();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => FsError::NotFound(path),
        ErrorKind::IsADirectory => FsError::IsDirectory(path),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => FsError::Denied(path),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FsError::NoSpace(path),
        _ => FsError::Other { path, message: error.to_string() },
    }
}
