//! Files and folders beneath an open folder: no link is followed on the way, and none at its end.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{self as at, AtFlags, CWD, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};

use super::{fault, node::split};
use crate::base::path::AbsPath;

/// A folder to go on from: what stands at its path by then does not matter.
pub struct Beneath(OwnedFd);

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether an error says only that the thing is not there, or is another thing by now.
pub fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}

impl Beneath {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(at::openat(CWD, path, DIR, Mode::empty())?))
    }

    /// A folder by its real path: a link on the way is an error.
    pub fn open_real(path: &AbsPath) -> io::Result<Self> {
        let path = path.as_path().as_os_str().as_bytes();
        let top = Self::open(Path::new("/"))?;
        Ok(Self(top.dir(path.strip_prefix(b"/").unwrap_or(path))?))
    }

    /// A folder of castor's own, made private where it is missing; its parents exist.
    pub fn make_private(path: &Path) -> io::Result<Self> {
        match at::mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Self::open(path),
            Err(it) => Err(it.into()),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return Ok(at::openat(&self.0, ".", DIR, Mode::empty())?);
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.0, path, DIR, Mode::empty(), resolve) {
                // The kernel does not know it, or a sandbox keeps it from us.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => (),
                it => return Ok(it?),
            }
        }
        self.dir_by_steps(path)
    }

    fn dir_by_steps(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let mut fd = at::openat(&self.0, ".", DIR, Mode::empty())?;
        for name in path.split(|it| *it == b'/') {
            fd = at::openat(&fd, name, DIR, Mode::empty())?;
        }
        Ok(fd)
    }

    /// The open folder of a path, and its name there.
    pub fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        let (dir, name) = split(path).ok_or(io::ErrorKind::IsADirectory)?;
        Ok((self.dir(dir)?, name))
    }

    pub fn stat(&self, path: &[u8]) -> io::Result<Option<Stat>> {
        if path.is_empty() {
            return Ok(Some(at::fstat(&self.0)?));
        }
        let found = self.parent(path).and_then(|(dir, name)| stat(dir.as_fd(), name));
        match found {
            Err(it) if is_gone(&it) => Ok(None),
            it => it,
        }
    }

    /// A regular file, to read.
    pub fn file(&self, path: &[u8]) -> io::Result<File> {
        let (dir, name) = self.parent(path)?;
        file(dir.as_fd(), name)
    }

    /// All bytes of a regular file; `None`: there is none.
    pub fn read(&self, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut res = Vec::new();
        match self.file(path).and_then(|mut it| it.read_to_end(&mut res)) {
            Ok(_) => Ok(Some(res)),
            Err(it) if is_gone(&it) => Ok(None),
            Err(it) => Err(it),
        }
    }

    /// Replaces one of castor's own files in one step. With `sync` it is on the disk itself when this returns.
    pub fn replace(&self, name: &[u8], bytes: &[u8], sync: bool) -> io::Result<()> {
        let temp = [name, b".new"].concat();
        fault::step("replace: temp")?;
        _ = remove(self.fd(), &temp)?;
        let mut new = create(self.fd(), &temp, 0o600)?;
        fault::step("replace: write")?;
        new.write_all(bytes)?;
        if sync {
            new.sync_all()?;
        }
        fault::step("replace: rename")?;
        at::renameat(&self.0, &*temp, &self.0, name)?;
        if sync {
            at::fsync(&self.0)?;
        }
        fault::step("replace: done")
    }

    /// Removes one of castor's own folders with all that is in it.
    pub fn remove_tree(&self, name: &[u8]) -> io::Result<()> {
        let dir = match self.dir(name) {
            Err(it) if is_gone(&it) => return Ok(()),
            it => Self(it?),
        };
        for (name, is_dir) in dir.list(b"")? {
            match is_dir {
                true => dir.remove_tree(&name)?,
                false => _ = remove(dir.fd(), &name)?,
            }
        }
        Ok(at::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// The names in a folder, and whether each is a folder.
    pub fn list(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let dir = match self.dir(path) {
            Err(it) if is_gone(&it) => return Ok(Vec::new()),
            it => it?,
        };
        let mut res = Vec::new();
        for name in names(&dir)? {
            let is_dir = stat(dir.as_fd(), &name)?.is_some_and(|it| super::node::type_of(&it).is_dir());
            res.push((name, is_dir));
        }
        res.sort();
        Ok(res)
    }
}

/// The names in an open folder, in the disk's order.
pub fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut res = Vec::new();
    for entry in at::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            res.push(name.to_vec());
        }
    }
    Ok(res)
}

pub fn stat(dir: BorrowedFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match at::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(it) => Ok(Some(it)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(it) => Err(it.into()),
    }
}

/// A regular file, to read. What takes its place meanwhile keeps nobody waiting.
pub fn file(dir: BorrowedFd, name: &[u8]) -> io::Result<File> {
    let file = File::from(at::openat(dir, name, READ, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Errno::NOENT.into()),
    }
}

/// A new file, to write.
pub fn create(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<File> {
    Ok(File::from(at::openat(dir, name, CREATE, Mode::from_raw_mode(mode as _))?))
}

/// Removes what is no folder; whether it was there.
pub fn remove(dir: BorrowedFd, name: &[u8]) -> io::Result<bool> {
    match at::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(it) => Err(it.into()),
    }
}

/// Moves what must not take the place of anything.
pub fn rename_new(from: (BorrowedFd, &[u8]), to: (BorrowedFd, &[u8])) -> io::Result<()> {
    match at::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Some disks do not know it.
        Err(Errno::INVAL | Errno::NOSYS) if stat(to.0, to.1)?.is_none() => {
            Ok(at::renameat(from.0, from.1, to.0, to.1)?)
        }
        it => Ok(it?),
    }
}

impl From<OwnedFd> for Beneath {
    fn from(it: OwnedFd) -> Self {
        Self(it)
    }
}
