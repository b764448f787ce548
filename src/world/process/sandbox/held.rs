//! Empty folders in the place of configuration that is not there: what is not there cannot be mounted read-only.
//!
//! They are there while somebody confined runs, and each user of one holds a shared lock on it, so that the last one
//! removes it, also among several castors. After a kill -9 empty folders may stay.

use std::{
    fs::{self, File},
    io::{self, PipeWriter},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

/// Somebody else may remove it between making and holding it, but not for ever.
const TRIES: usize = 100;

/// Placeholders in use. Dropping it removes those that nobody else uses, and ends whoever is left in the sandbox.
#[derive(Debug, Default)]
pub struct Held {
    folders: Vec<(PathBuf, File)>,
    /// Its other end is with the sandbox's first process, which ends with all others when this one closes: also when
    /// castor is killed.
    life: Option<PipeWriter>,
}

impl Held {
    /// Puts a placeholder where nothing is; false where nobody can put anything.
    pub(super) fn make(&mut self, path: &Path) -> io::Result<bool> {
        use io::ErrorKind::{AlreadyExists, NotFound, PermissionDenied, ReadOnlyFilesystem};
        for _ in 0..TRIES {
            match fs::create_dir(path) {
                Ok(()) => (),
                Err(it) if it.kind() == AlreadyExists => (),
                Err(it) if matches!(it.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem) => return Ok(false),
                Err(it) => return Err(it),
            }
            let Ok(folder) = File::open(path) else { continue };
            folder.lock_shared()?;
            if same(&folder, path) {
                self.folders.push((path.to_owned(), folder));
                return Ok(true);
            }
        }
        Err(io::Error::other(format!("{} cannot be held", path.display())))
    }

    /// What the first process of the sandbox watches.
    pub(super) fn lives(&mut self) -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        self.life = Some(writer);
        Ok(reader.into())
    }

    /// Keeps what is there from being removed by another user of it, if it is a placeholder.
    pub(super) fn share(&mut self, path: &Path) {
        if !is_placeholder(path) {
            return;
        }
        if let Ok(folder) = File::open(path)
            && folder.lock_shared().is_ok()
        {
            self.folders.push((path.to_owned(), folder));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.life = None;
        for (path, folder) in self.folders.drain(..) {
            // Not the last one, or somebody else's work by now: it stays.
            if folder.unlock().is_ok() && folder.try_lock().is_ok() && same(&folder, &path) {
                _ = fs::remove_dir(&path);
            }
        }
    }
}

/// Whether somebody holds it. A user's own empty folder is locked by nobody.
pub(super) fn is_placeholder(path: &Path) -> bool {
    // A pipe of that name would never open.
    let is_dir = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    is_dir && File::open(path).is_ok_and(|it| it.try_lock().is_err())
}

fn same(folder: &File, path: &Path) -> bool {
    let (Ok(a), Ok(b)) = (folder.metadata(), fs::symlink_metadata(path)) else { return false };
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests {
    use super::{Held, is_placeholder};

    #[test]
    fn the_last_one_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".vscode");
        let (mut one, mut two) = (Held::default(), Held::default());
        one.make(&path).unwrap();
        assert!(is_placeholder(&path));
        two.share(&path);
        drop(one);
        assert!(path.is_dir());
        drop(two);
        assert!(!path.exists());
    }

    #[test]
    fn what_the_user_made_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (own, filled) = (dir.path().join(".zed"), dir.path().join(".idea"));
        std::fs::create_dir(&own).unwrap();
        let mut held = Held::default();
        held.share(&own);
        held.make(&filled).unwrap();
        std::fs::write(filled.join("x"), "mine").unwrap();
        drop(held);
        assert!(own.is_dir() && filled.join("x").is_file());
    }
}
