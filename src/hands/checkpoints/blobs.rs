//! Blob store: file contents under their hash. A blob is whole or absent, also after a power cut.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write},
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rustix::fs::{self as at, AtFlags, SeekFrom};

use super::{DirFd, Failure, Hash, NewFiles, dirfd, fault, hash_of, hash_of_file, lasting};

pub struct Blobs {
    dir: DirFd,
    new: NewFiles<Hash>,
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
        Ok(Self { dir, new: NewFiles::default(), left: u64::MAX, limit: 0, added: AtomicU64::new(0) })
    }

    /// The bytes that came in since this was asked last.
    pub fn take_added(&self) -> u64 {
        self.added.swap(0, Relaxed)
    }

    /// The name of a content, or of a link to an object of git's.
    pub fn name(hash: &Hash, is_object: bool) -> String {
        crate::disk::hex(hash) + if is_object { ".git" } else { "" }
    }

    pub fn put(&self, bytes: &[u8]) -> Result<Hash, Failure> {
        let hash = hash_of(bytes);
        if self.is_new(&hash, bytes.len() as u64)? {
            let mut new = self.new.create(&self.dir)?;
            new.file.write_all(bytes)?;
            self.new.keep(hash, new);
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
        let new = self.new.create(&self.dir)?;
        // The disk shares the blocks where it can.
        let len = io::copy(&mut file.take(max.saturating_add(1)), &mut &new.file)?;
        if len > max {
            return Ok(None);
        }
        at::seek(&new.file, SeekFrom::Start(0)).map_err(io::Error::from)?;
        let hash = hash_of_file(&new.file)?;
        if self.is_new(&hash, len)? {
            self.new.keep(hash, new);
        }
        Ok(Some(hash))
    }

    /// An object of git's. A large one is a hard link, and read-only to commands: whoever has the repository could write
    /// through it, so it stands for no other file.
    pub fn put_object(&self, dir: BorrowedFd, name: &[u8], file: &File, len: u64) -> Result<Option<Hash>, Failure> {
        fault::step("blob: link")?;
        if len > COPIED {
            let hash = hash_of_file(file)?;
            let linked = at::linkat(dir, name, self.dir.fd(), Self::name(&hash, true), AtFlags::empty());
            if linked.is_ok() || self.is_sound(&hash) {
                lasting::sync_file(file)?;
                lasting::sync_dir(self.dir.fd())?;
                return Ok(Some(hash));
            }
            at::seek(file, SeekFrom::Start(0)).map_err(io::Error::from)?;
        }
        self.put_file(file, len, u64::MAX)
    }

    /// What came in is on the disk itself, and has its names.
    pub fn settle(&self) -> io::Result<()> {
        self.new.settle(&self.dir, |it| Self::name(it, false))
    }

    pub fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = self.dir.read(Self::name(hash, false).as_bytes())?.ok_or(io::ErrorKind::NotFound)?;
        if hash_of(&bytes) == *hash { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Tells whether the content is there and is what its name says.
    pub fn is_sound(&self, hash: &Hash) -> bool {
        self.open_any(hash).and_then(|it| hash_of_file(&it)).is_ok_and(|it| it == *hash)
    }

    /// Copies a content into an open, empty file.
    pub fn copy_to(&self, hash: &Hash, mut out: &File) -> io::Result<()> {
        io::copy(&mut self.open_any(hash)?, &mut out).map(drop)
    }

    /// A content, or the object of git's that it is.
    fn open_any(&self, hash: &Hash) -> io::Result<File> {
        let open = |is_object| self.dir.open_file(Self::name(hash, is_object).as_bytes());
        open(false).or_else(|_| open(true))
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

    /// Whether a content is to be taken in; then it is counted. One of another length is a torn one of an older castor, from
    /// a machine that lost its power.
    fn is_new(&self, hash: &Hash, len: u64) -> Result<bool, Failure> {
        let found = dirfd::stat(self.dir.fd(), Self::name(hash, false).as_bytes())?;
        if self.new.has(hash) || found.is_some_and(|it| u64::try_from(it.st_size) == Ok(len)) {
            return Ok(false);
        }
        if self.added.fetch_add(len, Relaxed).saturating_add(len) > self.left {
            self.added.fetch_sub(len, Relaxed);
            return Err(Failure::Full { limit: self.limit });
        }
        Ok(true)
    }
}
