//! Which sessions have a root open, and which of their calls are running.
//!
//! Each session has a file in the root's store, locked while it lives: a process that was killed leaves it unlocked.
//! The files are looked at and changed only by whoever holds the root's lock.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, mkdirat, openat},
    io::Errno,
};

use super::{
    beneath::{self, Beneath},
    codec::{Call, Reader, Writer},
};
use crate::base::ids::{CheckpointId, SessionId};

/// A session's own file.
pub struct Register {
    file: File,
    calls: Vec<OpenCall>,
}

#[derive(Clone, Debug)]
struct OpenCall {
    id: CheckpointId,
    /// It may write anything below the roots.
    wide: bool,
}

/// The calls of others.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// They may write anything.
    pub live: Vec<Call>,
    /// Their castor is gone.
    pub stopped: Vec<Call>,
    /// Another session has the root open, whatever it does.
    pub others: bool,
}

fn folder(store: &Beneath) -> io::Result<Beneath> {
    match mkdirat(store.fd(), "sessions", Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(Beneath::from(store.dir(b"sessions")?)),
        Err(it) => Err(it.into()),
    }
}

fn open(folder: &Beneath, name: &[u8], flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder.fd(), name, flags, Mode::RUSR | Mode::WUSR)?))
}

impl Register {
    /// Locks the session's file; the calls that a killed castor left in it. `None`: another process has it.
    pub fn open(store: &Beneath, session: &SessionId) -> io::Result<Option<(Self, Vec<Call>)>> {
        let mut file = open(&folder(store)?, session.as_str().as_bytes(), OFlags::CREATE)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => (),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            // Some network folders know no locks: a checkpoint is worth more than the lock.
            Err(Errno::NOTSUP | Errno::NOLCK) => (),
            Err(it) => return Err(it.into()),
        }
        let left = read(&mut file, session)?.into_iter().map(|it| it.0).collect();
        let mut res = Self { file, calls: Vec::new() };
        res.write()?;
        Ok(Some((res, left)))
    }

    pub fn add(&mut self, id: &CheckpointId, wide: bool) -> io::Result<()> {
        self.calls.push(OpenCall { id: id.clone(), wide });
        self.write()
    }

    pub fn remove(&mut self, id: &CheckpointId) -> io::Result<()> {
        self.calls.retain(|it| it.id != *id);
        self.write()
    }

    pub fn has(&self, id: &CheckpointId) -> bool {
        self.calls.iter().any(|it| it.id == *id)
    }

    /// The session's own calls that may write anything.
    pub fn wide<'a>(&'a self, session: &'a SessionId) -> impl Iterator<Item = Call> + 'a {
        let wide = self.calls.iter().filter(|it| it.wide);
        wide.map(|it| Call { session: session.clone(), id: it.id.clone() })
    }

    fn write(&mut self) -> io::Result<()> {
        let mut out = Writer::default();
        for call in &self.calls {
            out.u8(u8::from(call.wide));
            out.bytes(call.id.as_str().as_bytes());
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)?;
        self.file.write_all(&out.0)
    }

    /// The session ends: nothing of its file stays.
    pub fn close(self, store: &Beneath, session: &SessionId) -> io::Result<()> {
        beneath::remove(folder(store)?.fd(), session.as_str().as_bytes()).map(drop)
    }
}

/// The calls of all sessions but one. Files of sessions whose castor is gone are removed.
pub fn others(store: &Beneath, own: Option<&SessionId>) -> io::Result<OpenCalls> {
    let (folder, mut res) = (folder(store)?, OpenCalls::default());
    for name in beneath::names(&folder.dir(b"")?)? {
        let Ok(session) = str::from_utf8(&name) else { continue };
        if own.is_some_and(|it| it.as_str() == session) {
            continue;
        }
        let mut file = open(&folder, &name, OFlags::empty())?;
        let calls = read(&mut file, &session.into())?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => {
                res.others = true;
                res.live.extend(calls.into_iter().filter(|it| it.1).map(|it| it.0));
            }
            _ => {
                beneath::remove(folder.fd(), &name)?;
                res.stopped.extend(calls.into_iter().map(|it| it.0));
            }
        }
    }
    Ok(res)
}

/// The calls in a session's file, and which of them may write anything. A torn one counts for nothing.
fn read(file: &mut File, session: &SessionId) -> io::Result<Vec<(Call, bool)>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (mut input, mut res) = (Reader(&bytes), Vec::new());
    while let (Some(wide), Some(id)) = (input.u8(), input.text()) {
        res.push((Call { session: session.clone(), id: id.into() }, wide != 0));
    }
    Ok(res)
}
