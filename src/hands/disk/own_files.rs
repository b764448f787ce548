//! castor's own files in one of its folders: each write is whole or has no effect.

use std::{
    fs::File,
    io::{self, Write},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock, renameat},
    io::Errno,
};
use serde::de::DeserializeOwned;

use super::{
    dirfd::{self, DirFd},
    fault,
    frame::unframe,
    lasting::{sync_dir, sync_file},
};

impl DirFd {
    /// What a file holds; one that is torn is none.
    pub fn read_frame<T: DeserializeOwned>(&self, name: &[u8]) -> io::Result<Option<T>> {
        Ok(self.read(name)?.and_then(|it| Some(unframe(&it)?.0)))
    }

    /// Replaces a file in one step. With `sync` it is on the disk itself when this returns.
    pub fn replace(&self, name: &[u8], bytes: &[u8], sync: bool) -> io::Result<()> {
        let temp = [name, b".new"].concat();
        fault::step("replace: temp")?;
        let mut new = dirfd::create(self.fd(), &temp, 0o600)?;
        fault::step("replace: write")?;
        new.write_all(bytes)?;
        sync.then(|| sync_file(&new)).transpose()?;
        fault::step("replace: rename")?;
        renameat(self.fd(), &*temp, self.fd(), name)?;
        sync.then(|| sync_dir(self.fd())).transpose()?;
        fault::step("replace: done")
    }
}

/// Whether the lock was free. Some network folders know no locks: a checkpoint is worth more than the lock.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(it) => Err(it.into()),
    }
}

const PAUSE: Duration = Duration::from_millis(3);

/// Waits for a lock that another castor has; `false`: it was not free for so long, or the caller gave up.
pub fn wait_for_lock(file: &File, patience: Duration, gives_up: &dyn Fn() -> bool) -> io::Result<bool> {
    let mut waited = Duration::ZERO;
    while !try_lock(file)? {
        if waited >= patience || gives_up() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
    Ok(true)
}
