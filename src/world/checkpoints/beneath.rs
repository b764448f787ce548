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
    path::Arg,
};
use serde::de::DeserializeOwned;

use super::{
    fault,
    node::{split, type_of},
    record::unframe,
};
use crate::base::path::AbsPath;

/// A folder to go on from: what stands at its path by then does not matter.
pub struct Beneath(OwnedFd);

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OWN: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether an error says only that the thing is not there, or is another thing by now.
pub fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}

/// `None`: it is not there.
pub fn if_there<T>(res: io::Result<T>) -> io::Result<Option<T>> {
    match res {
        Err(it) if is_gone(&it) => Ok(None),
        it => it.map(Some),
    }
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

    /// A folder of castor's own, made where it is missing.
    pub fn make(&self, name: &[u8]) -> io::Result<Self> {
        make_dir(self.fd(), name, 0o700)?;
        Ok(Self(self.dir(name)?))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if !path.is_empty() {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.0, path, DIR, Mode::empty(), resolve) {
                // The kernel does not know it, or a sandbox keeps it from us.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => (),
                it => return Ok(it?),
            }
        }
        let mut fd = at::openat(&self.0, ".", DIR, Mode::empty())?;
        for name in path.split(|it| *it == b'/').filter(|it| !it.is_empty()) {
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
        Ok(if_there(self.parent(path).and_then(|(dir, name)| stat(dir.as_fd(), name)))?.flatten())
    }

    /// A regular file, to read.
    pub fn file(&self, path: &[u8]) -> io::Result<File> {
        let (dir, name) = self.parent(path)?;
        file(dir.as_fd(), name)
    }

    /// All bytes of a regular file; `None`: there is none.
    pub fn read(&self, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut res = Vec::new();
        let found = if_there(self.file(path).and_then(|mut it| it.read_to_end(&mut res)))?;
        Ok(found.map(|_| res))
    }

    /// What one of castor's own files holds; one that is torn is none.
    pub fn read_frame<T: DeserializeOwned>(&self, name: &[u8]) -> io::Result<Option<T>> {
        Ok(self.read(name)?.and_then(|it| Some(unframe(&it)?.0)))
    }

    /// One of castor's own files, to read and write.
    pub fn own(&self, name: &[u8], flags: OFlags) -> io::Result<File> {
        Ok(File::from(at::openat(&self.0, name, OWN | flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Replaces one of castor's own files in one step. With `sync` it is on the disk itself when this returns.
    pub fn replace(&self, name: &[u8], bytes: &[u8], sync: bool) -> io::Result<()> {
        let temp = [name, b".new"].concat();
        fault::step("replace: temp")?;
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
        let Some(dir) = if_there(self.dir(name))?.map(Self) else { return Ok(()) };
        for (name, is_dir) in dir.list(b"")? {
            if is_dir { dir.remove_tree(&name)? } else { remove(dir.fd(), &name)? }
        }
        Ok(at::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// The names in a folder, sorted, and whether each is a folder.
    pub fn list(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let Some(dir) = if_there(self.dir(path))? else { return Ok(Vec::new()) };
        let mut res = Vec::new();
        for name in names(&dir)? {
            let is_dir = stat(dir.as_fd(), &name)?.is_some_and(|it| type_of(&it).is_dir());
            res.push((name, is_dir));
        }
        res.sort();
        Ok(res)
    }
}

/// The names in an open folder, in the disk's order.
pub fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let names = at::Dir::read_from(dir)?.map(|it| Ok(it?.file_name().to_bytes().to_vec()));
    names.filter(|it| !matches!(it.as_deref(), Ok(b"." | b".."))).collect()
}

pub fn stat(dir: BorrowedFd, name: &[u8]) -> io::Result<Option<Stat>> {
    if_there(at::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from))
}

/// A regular file, to read. What takes its place meanwhile keeps nobody waiting.
pub fn file(dir: BorrowedFd, name: &[u8]) -> io::Result<File> {
    let file = File::from(at::openat(dir, name, READ, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::NOENT.into()) }
}

/// A new file, to write. What was left under its name by a process that is no more goes.
pub fn create(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<File> {
    remove(dir, name)?;
    create_new(dir, name, mode)
}

/// A new file, to write; an error where there is one.
pub fn create_new(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<File> {
    Ok(File::from(at::openat(dir, name, CREATE, Mode::from_raw_mode(mode as _))?))
}

/// A folder, where there is none yet.
pub fn make_dir(dir: BorrowedFd, name: impl Arg, mode: u32) -> io::Result<()> {
    match at::mkdirat(dir, name, Mode::from_raw_mode(mode as _)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(it) => Err(it.into()),
    }
}

/// Removes what is no folder, if it is there.
pub fn remove(dir: BorrowedFd, name: &[u8]) -> io::Result<()> {
    if_there(at::unlinkat(dir, name, AtFlags::empty()).map_err(io::Error::from)).map(drop)
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
