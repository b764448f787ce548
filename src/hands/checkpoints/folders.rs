//! Folders of the checkpoint stores: their place, their size and their locks.
//!
//! Each session has a file in the root's store, locked while it lives: a process that was killed leaves it unlocked.
//! Only the holder of the root's lock reads and changes the files.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
};

use rustix::{
    fs::{CWD, FlockOperation, OFlags, flock},
    io::pwrite,
};

use super::{
    AbsPath, Call, CheckpointId, DirFd, SessionId, dirfd, dirfd::if_exists, frame::frame, frame::unframe, lasting,
    node, try_lock,
};
use crate::disk::hash;

pub fn folder(home: &AbsPath) -> AbsPath {
    home.join("checkpoints")
}

/// The store of a root, made where there is none.
pub fn make(home: &AbsPath, root: &AbsPath) -> io::Result<DirFd> {
    let path = root.as_path().as_os_str().as_bytes();
    let all = folder(home);
    for dir in [home, &all] {
        dirfd::make_dir(CWD, dir.as_path(), 0o700)?;
    }
    let res = DirFd::open(all.as_path())?.open_or_create(hash(path).split_at(32).0.as_bytes())?;
    if res.stat(b"root")?.is_none() {
        res.replace(b"root", path, true)?;
        [all.as_path(), home.as_path()].iter().try_for_each(|it| lasting::sync_dir(DirFd::open(it)?.fd()))?;
    }
    Ok(res)
}

/// The stores that there are, by name, and the roots that they are for; `None`: that is no folder any more.
pub fn all_stores(home: &AbsPath) -> io::Result<Vec<(String, Option<AbsPath>)>> {
    let Some(dir) = if_exists(DirFd::open(folder(home).as_path()))? else { return Ok(Vec::new()) };
    let names = dir.list(b"")?.into_iter().filter_map(|it| String::from_utf8(it).ok());
    names.map(|it| Ok((it.clone(), root_of(&dir, &it)?))).collect()
}

pub fn root_of(all: &DirFd, name: &str) -> io::Result<Option<AbsPath>> {
    let root = all.read(format!("{name}/root").as_bytes())?.and_then(|it| AbsPath::new(OsStr::from_bytes(&it)));
    Ok(root.filter(|it| it.as_path().is_dir()))
}

/// The bytes in all stores, as their notes say.
pub fn used_bytes(store: &DirFd) -> io::Result<u64> {
    let all = store.parent()?;
    all.list(b"")?.into_iter().map(|it| read_size(&all, &node::join(&it, b"size"))).sum()
}

/// What came into one store, or went.
pub fn add_used(store: &DirFd, bytes: i64) -> io::Result<()> {
    if bytes != 0 {
        let size = read_size(store, b"size")?.saturating_add_signed(bytes);
        // In place: it is a note, and to replace a file makes some disks write at once.
        pwrite(store.open_own(b"size", OFlags::CREATE)?, format!("{size:020}").as_bytes(), 0)?;
    }
    Ok(())
}

pub fn read_size(dir: &DirFd, path: &[u8]) -> io::Result<u64> {
    Ok(dir.read(path)?.and_then(|it| str::from_utf8(&it).ok()?.parse().ok()).unwrap_or_default())
}

/// A session's own file.
pub struct SessionRegister {
    file: File,
    calls: Vec<OpenCall>,
}

/// And whether it may write anything below the roots.
type OpenCall = (Call, bool);

/// The calls of others.
#[derive(Default)]
pub struct OpenCalls {
    /// They may write anything.
    pub live: Vec<Call>,
    /// Their castor is gone.
    pub stopped: Vec<Call>,
    /// Another session has the root open, whatever it does.
    pub others: bool,
}

impl SessionRegister {
    /// Locks the session's file; the calls that a killed castor left in it. `None`: another thread has it, or a child that
    /// one has just started.
    pub fn open(store: &DirFd, session: &SessionId) -> io::Result<Option<(Self, Vec<Call>)>> {
        let folder = store.open_or_create(b"sessions")?;
        let mut file = folder.open_own(session.as_str().as_bytes(), OFlags::CREATE)?;
        if !try_lock(&file)? {
            return Ok(None);
        }
        let left = read(&mut file)?.into_iter().map(|it| it.0).collect();
        let res = Self { file, calls: Vec::new() };
        res.write()?;
        lasting::sync_dir(folder.fd())?;
        Ok(Some((res, left)))
    }

    pub fn add(&mut self, call: Call, wide: bool) -> io::Result<()> {
        self.calls.push((call, wide));
        self.write()?;
        // What a command leaves when the power fails in the middle of it is the command's.
        if wide { lasting::sync_file(&self.file) } else { Ok(()) }
    }

    pub fn remove(&mut self, id: &CheckpointId) -> io::Result<()> {
        self.calls.retain(|it| it.0.id != *id);
        self.write()
    }

    pub fn has(&self, call: &Call) -> bool {
        self.calls.iter().any(|it| it.0 == *call)
    }

    /// The session's own calls that may write anything.
    pub fn wide(&self) -> impl Iterator<Item = Call> {
        self.calls.iter().filter(|it| it.1).map(|it| it.0.clone())
    }

    /// In one piece: the frame says where it ends, whatever follows it.
    fn write(&self) -> io::Result<()> {
        let bytes = frame(&self.calls)?;
        if pwrite(&self.file, &bytes, 0)? == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// The session ends: nothing of its file stays.
    pub fn close(self, store: &DirFd, session: &SessionId) -> io::Result<()> {
        dirfd::remove(store.open_or_create(b"sessions")?.fd(), session.as_str().as_bytes())
    }
}

impl Drop for SessionRegister {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread starts has the file open until it is its own program.
        _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The calls of all sessions but one. Files of sessions whose castor is gone are removed.
pub fn other_calls(store: &DirFd, own: &SessionId) -> io::Result<OpenCalls> {
    let (folder, mut res) = (store.open_or_create(b"sessions")?, OpenCalls::default());
    for name in folder.list(b"")?.into_iter().filter(|it| it != own.as_str().as_bytes()) {
        let mut file = folder.open_own(&name, OFlags::empty())?;
        let calls = read(&mut file)?.into_iter();
        if try_lock(&file)? {
            dirfd::remove(folder.fd(), &name)?;
            res.stopped.extend(calls.map(|it| it.0));
        } else {
            res.others = true;
            res.live.extend(calls.filter(|it| it.1).map(|it| it.0));
        }
    }
    Ok(res)
}

/// The calls in a session's file. A torn one counts for nothing.
fn read(file: &mut File) -> io::Result<Vec<OpenCall>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(unframe(&bytes).map(|it| it.0).unwrap_or_default())
}
