//! Names apart from what they lead to: links, and files that have several.
#![allow(clippy::disallowed_methods)]

use std::fs;

use crate::base::path::AbsPath;

/// Whether something has that name, also a link that leads nowhere.
pub fn is_there(path: &AbsPath) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What a file is, whatever its names: device and number.
pub type FileId = (u64, u64);

/// Of a regular file that has more than one name. Elsewhere than on Unix nobody knows.
pub fn shared_id(path: &AbsPath) -> Option<FileId> {
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
