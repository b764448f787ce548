//! File names apart from their contents: symlinks, hard links and stamps.
#![allow(clippy::disallowed_methods)]

use std::fs;

use crate::base::path::AbsPath;

/// Whether something has that name, also a link that leads nowhere.
pub fn path_exists(path: &AbsPath) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The identity of a file, whatever its names: device and number.
pub type FileId = (u64, u64);

/// Of a regular file that has more than one name. Elsewhere than on Unix nobody knows.
pub fn hard_link_id(path: &AbsPath) -> Option<FileId> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let it = fs::metadata(path).ok()?;
        (it.is_file() && it.nlink() > 1).then(|| (it.dev(), it.ino()))
    }
    #[cfg(not(unix))]
    {
        _ = path;
        None
    }
}

/// By what it is seen that a file is another one, or was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub len: u64,
    modified_ns: i128,
    id: FileId,
    /// When anything about it changed (Unix, seconds): nobody can set that back.
    pub changed_s: i64,
}

/// Of a regular file, and of no link to one.
pub fn read_stamp(path: &AbsPath) -> Option<Stamp> {
    let it = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let modified_ns = i128::from(it.mtime()) * 1_000_000_000 + i128::from(it.mtime_nsec());
        Some(Stamp { len: it.len(), modified_ns, id: (it.dev(), it.ino()), changed_s: it.ctime() })
    }
    #[cfg(not(unix))]
    {
        let modified = it.modified().ok().and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok())?;
        Some(Stamp { len: it.len(), modified_ns: modified.as_nanos() as i128, id: (0, 0), changed_s: i64::MAX })
    }
}
