//! New files of one of castor's folders: they get their names together, once their bytes are on the disk itself.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{sync_dir, sync_file, sync_many};
use crate::disk::{
    dirfd::{self, DirFd},
    fault,
};

/// Files without a name that lasts, each with the key that its name is made of.
#[derive(Default)]
pub struct NewFiles<K> {
    next: AtomicU64,
    unnamed: Mutex<BTreeMap<K, u64>>,
}

/// One of them, which goes unless it is kept.
pub struct NewFile<'a> {
    dir: &'a DirFd,
    pub file: File,
    n: Option<u64>,
}

impl<K: Ord + Sync> NewFiles<K> {
    /// A file to write. What a process that is no more left under its name goes.
    pub fn create<'a>(&self, dir: &'a DirFd) -> io::Result<NewFile<'a>> {
        let n = self.next.fetch_add(1, Relaxed);
        fault::step("new file: create")?;
        let file = dirfd::create(dir.fd(), &temp_name(n), 0o600)?;
        fault::step("new file: write")?;
        Ok(NewFile { dir, file, n: Some(n) })
    }

    /// It is whole, and is to get a name.
    pub fn keep(&self, key: K, mut new: NewFile) {
        self.unnamed().extend(new.n.take().map(|n| (key, n)));
    }

    pub fn has(&self, key: &K) -> bool {
        self.unnamed().contains_key(key)
    }

    /// Names all that were added.
    pub fn settle(&self, dir: &DirFd, name: impl Fn(&K) -> String) -> io::Result<()> {
        let new: Vec<(K, u64)> = std::mem::take(&mut *self.unnamed()).into_iter().collect();
        if new.is_empty() {
            return Ok(());
        }
        fault::step("new files: sync")?;
        sync_many(dir.fd(), &new, |it| sync_file(&dir.open_file(&temp_name(it.1))?))?;
        for (key, n) in &new {
            fault::step("new file: rename")?;
            dirfd::rename((dir.fd(), &temp_name(*n)), (dir.fd(), name(key).as_bytes()))?;
        }
        sync_dir(dir.fd())
    }

    fn unnamed(&self) -> MutexGuard<'_, BTreeMap<K, u64>> {
        self.unnamed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // What stays is swept.
        _ = self.n.map(|it| dirfd::remove(self.dir.fd(), &temp_name(it)));
    }
}

fn temp_name(n: u64) -> Vec<u8> {
    format!("t{}-{n}", std::process::id()).into_bytes()
}
