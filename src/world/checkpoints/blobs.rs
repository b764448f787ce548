//! Blob store: file contents under their hash. A blob is whole or absent.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write},
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rustix::fs::{self as at, AtFlags, SeekFrom};

use super::{DirFd, Failure, Hash, dirfd, fault, hash_of, hash_of_file};

pub struct Blobs {
    dir: DirFd,
    next: AtomicU64,
    /// Bytes that the store may still take.
    pub left: u64,
    pub limit: u64,
    added: AtomicU64,
}

/// Files up to this size are read at once.
const SMALL: u64 = 1 << 20;
/// Objects of git's up to this size are copied.
const COPIED: u64 = 100 << 20;

impl Blobs {
    pub fn open(store: &DirFd) -> io::Result<Self> {
        let dir = store.open_or_create(b"blobs")?;
        Ok(Self { dir, next: AtomicU64::new(0), left: u64::MAX, limit: 0, added: AtomicU64::new(0) })
    }

    /// The bytes that came in since this was asked last.
    pub fn take_added(&self) -> u64 {
        self.added.swap(0, Relaxed)
    }

    /// The name of a content. An object of git's may be changed in place by whoever has the
    /// repository, so it stands for no other file.
    pub fn name(hash: &Hash, is_object: bool) -> String {
        crate::world::disk::hex(hash) + if is_object { ".git" } else { "" }
    }

    pub fn put(&self, bytes: &[u8]) -> Result<Hash, Failure> {
        let hash = hash_of(bytes);
        if self.is_new(&hash, bytes.len() as u64)? {
            let (mut file, temp) = self.temp()?;
            file.write_all(bytes)?;
            self.name_it(&temp, &hash)?;
        }
        Ok(hash)
    }

    /// The content of an open file that seems to have `len` bytes; `None`: it has more than `max`.
    pub fn put_file(&self, file: &File, len: u64, max: u64) -> Result<Option<Hash>, Failure> {
        if len <= SMALL {
            let mut bytes = Vec::with_capacity(len as usize + 1);
            file.take(SMALL + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 <= SMALL {
                return self.put(&bytes).map(Some);
            }
            // It grew meanwhile.
            at::seek(file, SeekFrom::Start(0)).map_err(io::Error::from)?;
        }
        let (out, temp) = self.temp()?;
        // The disk shares the blocks where it can.
        let len = io::copy(&mut file.take(max.saturating_add(1)), &mut &out)?;
        at::seek(&out, SeekFrom::Start(0)).map_err(io::Error::from)?;
        let hash = hash_of_file(&out)?;
        let is_new = if len > max { Ok(false) } else { self.is_new(&hash, len) };
        match is_new {
            Ok(true) => self.name_it(&temp, &hash)?,
            _ => dirfd::remove(self.dir.fd(), &temp)?,
        }
        is_new.map(|_| (len <= max).then_some(hash))
    }

    /// A copy of an object of git's. A large one is a hard link, and read-only to commands: whoever has the repository
    /// could write through it.
    pub fn put_object(&self, dir: BorrowedFd, name: &[u8], file: &File, len: u64) -> Result<Hash, Failure> {
        let hash = hash_of_file(file)?;
        fault::step("blob: link")?;
        let own = Self::name(&hash, true);
        let link = |dir, name: &[u8]| Ok::<_, io::Error>(at::linkat(dir, name, self.dir.fd(), &own, AtFlags::empty())?);
        if (len <= COPIED || link(dir, name).is_err()) && !self.is_sound(&own) {
            at::seek(file, SeekFrom::Start(0)).map_err(io::Error::from)?;
            self.put_file(file, len, u64::MAX)?;
            dirfd::remove(self.dir.fd(), own.as_bytes())?;
            link(self.dir.fd(), Self::name(&hash, false).as_bytes())?;
        }
        Ok(hash)
    }

    pub fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = self.dir.read(Self::name(hash, false).as_bytes())?.ok_or(io::ErrorKind::NotFound)?;
        if hash_of(&bytes) == *hash { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Whether the content is there and is what its name says.
    pub fn is_sound(&self, name: &str) -> bool {
        let found = self.dir.open_file(name.as_bytes()).and_then(|it| hash_of_file(&it));
        found.is_ok_and(|it| name.starts_with(&Self::name(&it, false)))
    }

    /// Copies a content into an open, empty file.
    pub fn copy_to(&self, name: &str, mut out: &File) -> io::Result<()> {
        io::copy(&mut self.dir.open_file(name.as_bytes())?, &mut out).map(drop)
    }

    /// Removes what is not in `live`; how many bytes went.
    pub fn collect(&self, live: &HashSet<Hash>) -> io::Result<u64> {
        let live: HashSet<Vec<u8>> =
            live.iter().flat_map(|it| [false, true].map(|git| Self::name(it, git).into_bytes())).collect();
        let mut freed = 0;
        for name in self.dir.list(b"")?.into_iter().filter(|it| !live.contains(it)) {
            fault::step("blob: collect")?;
            let len = dirfd::stat(self.dir.fd(), &name)?.map_or(0, |it| it.st_size);
            dirfd::remove(self.dir.fd(), &name)?;
            // What is linked, or has no name yet, was never counted.
            freed += if name.len() == 64 { u64::try_from(len).unwrap_or_default() } else { 0 };
        }
        Ok(freed)
    }

    /// Whether a content is to be taken in; then it is counted. One of another length is a torn one, from a machine that
    /// lost its power.
    fn is_new(&self, hash: &Hash, len: u64) -> Result<bool, Failure> {
        let found = dirfd::stat(self.dir.fd(), Self::name(hash, false).as_bytes())?;
        if found.is_some_and(|it| u64::try_from(it.st_size) == Ok(len)) {
            return Ok(false);
        }
        if self.added.fetch_add(len, Relaxed).saturating_add(len) > self.left {
            self.added.fetch_sub(len, Relaxed);
            return Err(Failure::Full { limit: self.limit });
        }
        Ok(true)
    }

    /// Blobs without a reference are removed when the store is swept.
    fn temp(&self) -> io::Result<(File, Vec<u8>)> {
        let name = format!("t{}-{}", std::process::id(), self.next.fetch_add(1, Relaxed)).into_bytes();
        fault::step("blob: temp")?;
        let file = dirfd::create(self.dir.fd(), &name, 0o600)?;
        fault::step("blob: write")?;
        Ok((file, name))
    }

    fn name_it(&self, temp: &[u8], hash: &Hash) -> io::Result<()> {
        fault::step("blob: rename")?;
        Ok(at::renameat(self.dir.fd(), temp, self.dir.fd(), Self::name(hash, false))?)
    }
}
