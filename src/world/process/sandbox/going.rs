//! The end of a stand-in: it goes, and nothing that somebody put in its place, or into it.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{AT_FDCWD, OFlag, openat, renameat},
    sys::stat::Mode,
    unistd::{LinkatFlags, UnlinkatFlags, geteuid, linkat, unlinkat},
};

use super::held::same;

/// The mark of what castor made: on a folder it is without effect where only its owner writes, on a file without any.
pub(super) const MARK: u32 = 0o1000;
/// What is put behind the name of a file that goes.
const GOING: &str = ".castor-going";

/// Removes what is open there under that name; false: it stays, or is gone.
pub(super) fn remove(folder: &OwnedFd, name: &OsStr, there: &File, text: Option<&str>) -> bool {
    let Some(text) = text else {
        // With something in it, it does not go.
        return lies(folder, name, there) && unlinkat(folder, name, UnlinkatFlags::RemoveDir).is_ok();
    };
    if !lies(folder, name, there) || !reads(there, text) {
        return false;
    }
    take(folder, name, there, text)
}

/// Git replaces files by a rename, and may do so after any look: what is removed is looked at where nobody else comes by.
fn take(folder: &OwnedFd, name: &OsStr, there: &File, text: &str) -> bool {
    let going = going(name);
    if renameat(folder, name, folder, going.as_os_str()).is_err() {
        return false;
    }
    if lies(folder, &going, there) && reads(there, text) {
        return unlinkat(folder, going.as_os_str(), UnlinkatFlags::NoRemoveDir).is_ok();
    }
    // The user's: back, unless there is a newer one by now. A link replaces nothing.
    match linkat(folder, going.as_os_str(), folder, name, LinkatFlags::empty()) {
        Ok(()) => _ = unlinkat(folder, going.as_os_str(), UnlinkatFlags::NoRemoveDir),
        Err(it) => tracing::warn!("{} has another name now, {}: {it}", name.display(), going.display()),
    }
    false
}

/// Under which name a file may have been left that was to go.
pub(super) fn going(name: &OsStr) -> OsString {
    let mut res = name.to_owned();
    res.push(GOING);
    res
}

fn lies(folder: &OwnedFd, name: &OsStr, there: &File) -> bool {
    let number = |it: &File| it.metadata().map(|it| (it.dev(), it.ino())).ok();
    let found = open_quietly(Some(folder), Path::new(name)).ok().and_then(|it| number(&it));
    found.is_some() && found == number(there)
}

/// Where it lies now: the user may have renamed a folder above it.
pub(super) fn place(there: &File, path: &Path) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    if same(there, path) {
        return Some(path.to_owned());
    }
    let moved = fs::read_link(format!("/proc/self/fd/{}", there.as_raw_fd())).ok()?;
    (moved.file_name() == path.file_name() && same(there, &moved)).then_some(moved)
}

/// Takes the mark from what is there still: it is the user's by now.
pub(super) fn unmark(there: &File) {
    let Ok(it) = there.metadata() else { return };
    if it.nlink() > 0 && it.mode() & MARK != 0 {
        _ = there.set_permissions(fs::Permissions::from_mode(it.mode() & 0o7777 & !MARK));
    }
}

/// Whether it looks like a stand-in: of that kind, ours, marked, and with nothing else in it. Whether a folder is empty its
/// removal finds out.
pub(super) fn is_ours(there: &File, text: Option<&str>) -> bool {
    let Ok(it) = there.metadata() else { return false };
    let is_marked = it.mode() & MARK != 0 && it.uid() == geteuid().as_raw();
    match text {
        None => is_marked && it.is_dir(),
        Some(text) => is_marked && it.is_file() && reads(there, text),
    }
}

fn reads(there: &File, text: &str) -> bool {
    let mut found = vec![0; text.len() + 1];
    there.read_at(&mut found, 0).is_ok_and(|it| found.get(..it) == Some(text.as_bytes()))
}

/// A pipe of that name would never open, and a link leads elsewhere.
pub(super) fn open_quietly(folder: Option<&OwnedFd>, name: &Path) -> nix::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match folder {
        Some(it) => openat(it, name, flags, Mode::empty()),
        None => openat(AT_FDCWD, name, flags, Mode::empty()),
    }
    .map(File::from)
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        fs::{self, File},
    };

    use super::{super::held::open_folder, remove, take};

    /// What is there was looked at, and then replaced.
    #[test]
    fn a_file_that_came_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (folder, name) = (open_folder(&root).unwrap(), OsStr::new("config.worktree"));
        let path = root.join(name);
        let read = || fs::read_to_string(&path).unwrap();
        let there = File::create_new(&path).map(|_| File::open(&path).unwrap()).unwrap();
        fs::write(root.join("lock"), "mine").unwrap();
        fs::rename(root.join("lock"), &path).unwrap();
        assert!(!take(&folder, name, &there, "") && !remove(&folder, name, &there, Some("")), "replaced");
        assert_eq!(read(), "mine");
        let there = File::open(&path).unwrap();
        assert!(!take(&folder, name, &there, ""), "written");
        assert_eq!(read(), "mine");
        assert!(remove(&folder, name, &there, Some("mine")));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }
}
