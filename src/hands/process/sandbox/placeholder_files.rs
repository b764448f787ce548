//! Placeholder files: makes, marks, recognizes and removes them, without following symlinks.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, MetadataExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use nix::{
    fcntl::{OFlag, open, openat},
    sys::stat::{Mode, mkdirat},
    unistd::{UnlinkatFlags, geteuid, unlinkat},
};

use crate::disk::dirfd::{self, DirFd};
use castor_base::{
    path::AbsPath,
    sandbox::{Placeholder, SELF_COMMONDIR},
};

/// The mark of what castor made: on a folder it is without effect where only its owner writes, on a file without any.
pub(super) const MARK: u32 = 0o1000;

/// Between the look at a placeholder and its lock another command's end may remove it. Among several castors it still may.
pub(super) fn lock_placeholders() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each folder on the way is opened as what it is, and need not be one that anybody lists.
pub(super) fn open_folder(path: &Path) -> io::Result<DirFd> {
    DirFd::open_real(&AbsPath::new(path).ok_or(io::ErrorKind::InvalidInput)?)
}

/// Nothing is in it, if it is a folder.
fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).map_or(true, |mut it| it.next().is_none())
}

/// Whether it is one that nobody may hold yet, or any more: marked, and with nothing in it that somebody would obey.
pub(super) fn looks_like_placeholder(path: &Path) -> bool {
    open_quietly(None, path).is_ok_and(|it| is_placeholder(&it, path))
}

/// Whether it looks like one. There are disks without marks, and there its lock alone says it of a folder.
pub(super) fn is_placeholder(there: &File, path: &Path) -> bool {
    let is_file = || [Some(""), SELF_COMMONDIR.text()].into_iter().any(|it| is_ours(there, it));
    let is_folder = || there.metadata().is_ok_and(|it| it.is_dir()) && is_empty(path);
    is_folder() && (is_ours(there, None) || there.try_lock().is_err()) || is_file()
}

/// Whether it is of that kind, ours, marked, and with nothing else in it. Whether a folder is empty its removal finds out.
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

pub(super) fn create(folder: &DirFd, name: &OsStr, what: Placeholder) -> io::Result<()> {
    match what {
        Placeholder::Folder => {
            Ok(mkdirat(folder.fd(), name, Mode::from_bits_truncate((0o777 | MARK) as nix::libc::mode_t))?)
        }
        Placeholder::File(text) => {
            dirfd::create_new(folder.fd(), name.as_bytes(), 0o666 | MARK)?.write_all(text.as_bytes())
        }
    }
}

/// Removes what is open there under that name; false: it stays, or is gone. A folder with something in it stays.
pub(super) fn remove(folder: &DirFd, name: &OsStr, there: &File, text: Option<&str>) -> bool {
    let number = |it: &File| it.metadata().map(|it| (it.dev(), it.ino())).ok();
    let found = open_quietly(Some(folder), Path::new(name)).ok().and_then(|it| number(&it));
    let lies = found.is_some() && found == number(there);
    let flag = if text.is_none() { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
    lies && text.is_none_or(|it| reads(there, it)) && unlinkat(folder.fd(), name, flag).is_ok()
}

/// Where it lies now: the user may have renamed a folder above it.
pub(super) fn current_place(there: &File, path: &Path) -> Option<PathBuf> {
    if is_same_file(there, path) {
        return Some(path.to_owned());
    }
    let moved = fs::read_link(format!("/proc/self/fd/{}", there.as_raw_fd())).ok()?;
    (moved.file_name() == path.file_name() && is_same_file(there, &moved)).then_some(moved)
}

/// Takes the mark from what is there still: it is the user's by now.
pub(super) fn unmark(there: &File) {
    let Ok(it) = there.metadata() else { return };
    if it.nlink() > 0 && it.mode() & MARK != 0 {
        _ = there.set_permissions(fs::Permissions::from_mode(it.mode() & 0o7777 & !MARK));
    }
}

/// A pipe of that name would never open, and a link leads elsewhere.
pub(super) fn open_quietly(folder: Option<&DirFd>, name: &Path) -> nix::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match folder {
        Some(it) => openat(it.fd(), name, flags, Mode::empty()),
        None => open(name, flags, Mode::empty()),
    }
    .map(File::from)
}

pub(super) fn is_same_file(there: &File, path: &Path) -> bool {
    number_of(there, path).is_some()
}

/// Device and number of what is open, if that is what lies there.
pub(super) fn number_of(there: &File, path: &Path) -> Option<(u64, u64)> {
    let (a, b) = (there.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    Some((a.dev(), a.ino())).filter(|it| *it == (b.dev(), b.ino()))
}
