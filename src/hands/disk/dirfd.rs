//! Files beneath an open folder descriptor: no symlink is followed.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{self as at, AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags, Stat},
    io::Errno,
    path::Arg,
};

use castor_base::path::AbsPath;

/// A folder to go on from: what stands at its path by then does not matter.
pub struct DirFd(OwnedFd);

const BARE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const DIR: OFlags = BARE.union(OFlags::DIRECTORY);
/// Only a place to go on from: such a folder need not be readable.
#[cfg(target_os = "linux")]
const PLACE: OFlags = DIR.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = DIR;
const READ: OFlags = BARE.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const CREATE: OFlags = BARE.union(OFlags::RDWR).union(OFlags::CREATE).union(OFlags::EXCL);
const OWN: OFlags = BARE.union(OFlags::RDWR);

/// Tells whether an error says only that the thing is not there, or is another thing by now.
pub fn is_missing(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}

/// `None`: it is not there.
pub fn if_exists<T>(res: io::Result<T>) -> io::Result<Option<T>> {
    match res {
        Err(it) if is_missing(&it) => Ok(None),
        it => it.map(Some),
    }
}

impl From<OwnedFd> for DirFd {
    fn from(it: OwnedFd) -> Self {
        Self(it)
    }
}

impl DirFd {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(at::openat(CWD, path, DIR, Mode::empty())?))
    }

    /// A folder by its real path: a link on the way is an error. It need not be readable.
    pub fn open_real(path: &AbsPath) -> io::Result<Self> {
        let path = path.as_path().as_os_str().as_encoded_bytes();
        Ok(Self(Self::open(Path::new("/"))?.open_beneath(path.strip_prefix(b"/").unwrap_or(path), PLACE)?))
    }

    /// The folder that it is in.
    pub fn parent(&self) -> io::Result<Self> {
        Ok(Self(at::openat(&self.0, "..", DIR, Mode::empty())?))
    }

    /// A folder of castor's own, made where it is missing.
    pub fn open_or_create(&self, name: &[u8]) -> io::Result<Self> {
        make_dir(self.fd(), name, 0o700)?;
        Ok(Self(self.open_dir(name)?))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// A folder below, to read what is in it.
    pub fn open_dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_beneath(path, DIR)
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if !path.is_empty() {
            use rustix::fs::{ResolveFlags, openat2};
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.0, path, flags, Mode::empty(), resolve) {
                // The kernel does not know it, or a sandbox keeps it from us.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => (),
                it => return Ok(it?),
            }
        }
        let mut names = path.split(|it| *it == b'/').filter(|it| !it.is_empty());
        let top = at::openat(&self.0, ".", flags, Mode::empty())?;
        Ok(names.try_fold(top, |fd, name| at::openat(fd, name, flags, Mode::empty()))?)
    }

    /// Does something with the name of a path in its open folder; the folder itself is `.` there.
    pub fn at<T>(&self, path: &[u8], act: impl FnOnce(BorrowedFd, &[u8]) -> io::Result<T>) -> io::Result<T> {
        match split(path) {
            None => act(self.fd(), b"."),
            Some((b"", name)) => act(self.fd(), name),
            Some((dir, name)) => act(self.open_beneath(dir, PLACE)?.as_fd(), name),
        }
    }

    pub fn stat(&self, path: &[u8]) -> io::Result<Option<Stat>> {
        Ok(if_exists(self.at(path, stat))?.flatten())
    }

    /// A regular file, to read.
    pub fn open_file(&self, path: &[u8]) -> io::Result<File> {
        self.at(path, open_file)
    }

    /// All bytes of a regular file; `None`: there is none.
    pub fn read(&self, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut res = Vec::new();
        let found = if_exists(self.open_file(path).and_then(|mut it| it.read_to_end(&mut res)))?;
        Ok(found.map(|_| res))
    }

    /// One of castor's own files, to read and write.
    pub fn open_own(&self, name: &[u8], flags: OFlags) -> io::Result<File> {
        Ok(at::openat(&self.0, name, OWN | flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Removes one of castor's own files, or one of its folders with all that is in it.
    pub fn remove_tree(&self, name: &[u8]) -> io::Result<()> {
        let Some(dir) = if_exists(self.open_dir(name))?.map(Self) else { return remove(self.fd(), name) };
        dir.list(b"")?.iter().try_for_each(|it| dir.remove_tree(it))?;
        remove_dir(self.fd(), name)
    }

    /// The same for what lies below.
    pub fn remove_tree_at(&self, path: &[u8]) -> io::Result<()> {
        self.at(path, |dir, name| Self(dir.try_clone_to_owned()?).remove_tree(name))
    }

    /// Removes a folder in which no file is.
    pub fn remove_empty(&self, path: &[u8]) -> io::Result<()> {
        if !self.stat(path)?.is_some_and(|it| file_type(&it).is_dir()) {
            return Ok(());
        }
        self.list(path)?.iter().try_for_each(|it| self.remove_empty(&join(path, it)))?;
        self.at(path, remove_dir)
    }

    /// The names in a folder, sorted; none where there is no folder.
    pub fn list(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut res = if_exists(self.open_dir(path).and_then(|it| names(&it)))?.unwrap_or_default();
        res.sort();
        Ok(res)
    }
}

/// The names in an open folder, in the disk's order.
pub fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let names = at::Dir::read_from(dir)?.map(|it| Ok(it?.file_name().to_bytes().to_vec()));
    names.filter(|it| !matches!(it.as_deref(), Ok(b"." | b".."))).collect()
}

/// The folder itself is `.`, also where nobody may look into it.
pub fn stat(dir: BorrowedFd, name: &[u8]) -> io::Result<Option<Stat>> {
    if name == b"." {
        return Ok(Some(at::fstat(dir)?));
    }
    if_exists(at::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from))
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode as RawMode)
}

/// A regular file, to read. What takes its place meanwhile keeps nobody waiting.
pub fn open_file(dir: BorrowedFd, name: &[u8]) -> io::Result<File> {
    let file = File::from(at::openat(dir, name, READ, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::NOENT.into()) }
}

/// As [`file`], also where its owner may not read it.
pub fn open_owner_file(dir: BorrowedFd, name: &[u8]) -> io::Result<File> {
    match open_file(dir, name) {
        Err(it) if it.kind() == io::ErrorKind::PermissionDenied => {
            let _unlocked = ModeOverride::new(dir, name)?;
            open_file(dir, name)
        }
        it => it,
    }
}

/// What is open to its owner while this lives, whatever takes its name.
pub struct ModeOverride {
    place: OwnedFd,
    mode: Mode,
}

impl ModeOverride {
    /// # Errors
    /// When it belongs to another user.
    pub fn new(dir: BorrowedFd, name: &[u8]) -> io::Result<Self> {
        let place = place(dir, name)?;
        let stat = at::fstat(&place)?;
        let is_dir = file_type(&stat).is_dir();
        let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o7777);
        set_mode(&place, mode | if is_dir { Mode::RWXU } else { Mode::RUSR })?;
        Ok(Self { place, mode })
    }
}

impl Drop for ModeOverride {
    fn drop(&mut self) {
        // Who could open it can close it.
        _ = set_mode(&self.place, self.mode);
    }
}

/// Gives what stands there another mode, whatever its own is; a link is not followed.
pub fn chmod(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<()> {
    set_mode(&place(dir, name)?, Mode::from_raw_mode(mode as _))
}

/// What needs no right to be read, and stays the same whatever takes its name.
fn place(dir: BorrowedFd, name: &[u8]) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    const HANDLE: OFlags = BARE.union(OFlags::PATH);
    #[cfg(not(target_os = "linux"))]
    const HANDLE: OFlags = READ;
    if name == b"." {
        return dir.try_clone_to_owned();
    }
    let place = at::openat(dir, name, HANDLE, Mode::empty())?;
    let is_link = file_type(&at::fstat(&place)?).is_symlink();
    if is_link { Err(Errno::LOOP.into()) } else { Ok(place) }
}

fn set_mode(place: &OwnedFd, mode: Mode) -> io::Result<()> {
    match cfg!(target_os = "linux") {
        true => Ok(at::chmodat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), mode, AtFlags::empty())?),
        false => Ok(at::fchmod(place, mode)?),
    }
}

/// Where a link leads.
pub fn read_link(dir: BorrowedFd, name: &[u8]) -> io::Result<Box<[u8]>> {
    Ok(at::readlinkat(dir, name, Vec::new())?.to_bytes().into())
}

/// A new file, to write. What was left under its name by a process that is no more goes.
pub fn create(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<File> {
    remove(dir, name)?;
    create_new(dir, name, mode)
}

/// A new file, to write; an error where there is one.
pub fn create_new(dir: BorrowedFd, name: &[u8], mode: u32) -> io::Result<File> {
    Ok(at::openat(dir, name, CREATE, Mode::from_raw_mode(mode as _))?.into())
}

/// A folder, where there is none yet.
pub fn make_dir(dir: BorrowedFd, name: impl Arg, mode: u32) -> io::Result<()> {
    match at::mkdirat(dir, name, Mode::from_raw_mode(mode as _)) {
        Err(it) if it != Errno::EXIST => Err(it.into()),
        _ => Ok(()),
    }
}

/// Removes what is no folder, if it is there.
pub fn remove(dir: BorrowedFd, name: &[u8]) -> io::Result<()> {
    if_exists(at::unlinkat(dir, name, AtFlags::empty()).map_err(io::Error::from)).map(drop)
}

/// Removes an empty folder.
pub fn remove_dir(dir: BorrowedFd, name: &[u8]) -> io::Result<()> {
    Ok(at::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

/// Moves; what stood there goes.
pub fn rename(from: (BorrowedFd, &[u8]), to: (BorrowedFd, &[u8])) -> io::Result<()> {
    Ok(at::renameat(from.0, from.1, to.0, to.1)?)
}

/// Moves what must not take the place of anything.
pub fn rename_noreplace(from: (BorrowedFd, &[u8]), to: (BorrowedFd, &[u8])) -> io::Result<()> {
    match at::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Some disks do not know it.
        Err(Errno::INVAL | Errno::NOSYS) if stat(to.0, to.1)?.is_none() => {
            Ok(at::renameat(from.0, from.1, to.0, to.1)?)
        }
        it => Ok(it?),
    }
}

/// The folder and the name of a path, its parts joined by `/`; `None` for the empty one.
pub fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    match path.iter().rposition(|it| *it == b'/') {
        Some(at) => Some((path.get(..at)?, path.get(at + 1..)?)),
        None => (!path.is_empty()).then_some((b"", path)),
    }
}

pub fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// The folders above a path, nearest first, the root last.
pub fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(split(path).map(|it| it.0), |it| split(it).map(|it| it.0))
}

/// Tells whether `path` is `dir` or below it.
pub fn is_within(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|it| it.is_empty() || it.starts_with(b"/"))
}

/// The rest of a path below a folder that it lies in.
pub fn strip_dir<'a>(path: &'a [u8], dir: &[u8]) -> &'a [u8] {
    let at = if dir.is_empty() { 0 } else { dir.len() + 1 };
    path.get(at..).unwrap_or_default()
}
