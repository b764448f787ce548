//! Contents by their hash. A content is whole under its name, or is not there.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use ring::digest::{Context, SHA256, digest};
use rustix::fs::{self as at, AtFlags};

use super::{
    Failure,
    beneath::{self, Beneath, is_gone},
    fault,
    node::Hash,
};

pub struct Blobs {
    dir: Beneath,
    next: AtomicU64,
    /// Bytes that the store may still take.
    left: AtomicI64,
    limit: u64,
    added: AtomicU64,
    /// The disk does not share blocks between files.
    copies: AtomicBool,
}

const CHUNK: usize = 256 << 10;

pub fn hash_of(bytes: &[u8]) -> Hash {
    finish(digest(&SHA256, bytes).as_ref())
}

/// The hash of what is left to read of a file.
pub fn hash_of_file(file: &File) -> io::Result<Hash> {
    let (mut input, mut context, mut buffer) = (file, Context::new(&SHA256), vec![0; CHUNK]);
    loop {
        let n = input.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..n).filter(|it| !it.is_empty()) else { break };
        context.update(bytes);
    }
    Ok(finish(context.finish().as_ref()))
}

fn finish(it: &[u8]) -> Hash {
    it.try_into().unwrap_or_default()
}

/// Under the first two digits, the rest.
fn names(hash: &Hash) -> (String, String) {
    let text: String = hash.iter().map(|it| format!("{it:02x}")).collect();
    let (dir, name) = text.split_at(2);
    (dir.to_owned(), format!("{dir}/{name}"))
}

fn failed(source: io::Error) -> Failure {
    Failure::Io { what: "the store of checkpoints".to_owned(), source }
}

impl Blobs {
    pub fn open(store: &Beneath) -> io::Result<Self> {
        match at::mkdirat(store.fd(), "blobs", at::Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => (),
            Err(it) => return Err(it.into()),
        }
        Ok(Self {
            dir: Beneath::from(store.dir(b"blobs")?),
            next: AtomicU64::new(0),
            left: AtomicI64::new(i64::MAX),
            limit: 0,
            added: AtomicU64::new(0),
            copies: AtomicBool::new(false),
        })
    }

    /// From now on the store takes only so many bytes more.
    pub fn set_budget(&mut self, left: i64, limit: u64) {
        (*self.left.get_mut(), self.limit) = (left, limit);
    }

    /// The bytes that came in since this was asked last.
    pub fn take_added(&self) -> u64 {
        self.added.swap(0, Ordering::Relaxed)
    }

    /// A content of another length is a torn one, from a machine that lost its power.
    pub fn has(&self, hash: &Hash, len: u64) -> io::Result<bool> {
        let found = self.dir.stat(names(hash).1.as_bytes())?;
        Ok(found.is_some_and(|it| u64::try_from(it.st_size) == Ok(len)))
    }

    pub fn put(&self, bytes: &[u8]) -> Result<Hash, Failure> {
        let hash = hash_of(bytes);
        if self.has(&hash, bytes.len() as u64).map_err(failed)? {
            return Ok(hash);
        }
        self.charge(bytes.len() as u64)?;
        let (mut file, temp) = self.temp().map_err(failed)?;
        let written = fault::step("blob: write").and_then(|()| file.write_all(bytes));
        written.and_then(|()| self.name_it(&temp, &hash)).map_err(failed)?;
        Ok(hash)
    }

    /// The content of an open file; its hash and its length. `max` bytes at most.
    pub fn put_file(&self, file: &File, max: u64) -> Result<(Hash, u64), Failure> {
        let (mut out, temp) = self.temp().map_err(failed)?;
        let shared = self.share(&out, file);
        let mut input: &File = if shared { &out } else { file };
        let (mut context, mut len, mut buffer) = (Context::new(&SHA256), 0, vec![0; CHUNK]);
        loop {
            let n = input.read(&mut buffer).map_err(failed)?;
            let Some(bytes) = buffer.get(..n).filter(|it| !it.is_empty()) else { break };
            len += n as u64;
            if len > max {
                beneath::remove(self.dir.fd(), &temp).map_err(failed)?;
                return Err(failed(io::ErrorKind::FileTooLarge.into()));
            }
            context.update(bytes);
            if !shared {
                fault::step("blob: chunk").and_then(|()| (&out).write_all(bytes)).map_err(failed)?;
            }
        }
        out.flush().map_err(failed)?;
        let hash = finish(context.finish().as_ref());
        if self.has(&hash, len).map_err(failed)? {
            beneath::remove(self.dir.fd(), &temp).map_err(failed)?;
            return Ok((hash, len));
        }
        if let Err(it) = self.charge(len) {
            beneath::remove(self.dir.fd(), &temp).map_err(failed)?;
            return Err(it);
        }
        self.name_it(&temp, &hash).map_err(failed)?;
        Ok((hash, len))
    }

    /// Another name for a file that nobody writes to: git's objects. Whether that was possible.
    pub fn link(&self, dir: BorrowedFd, name: &[u8], hash: &Hash) -> io::Result<bool> {
        let (folder, path) = names(hash);
        self.make(&folder)?;
        fault::step("blob: link")?;
        match at::linkat(dir, name, self.dir.fd(), &path, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    pub fn read(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let bytes = self.dir.read(names(hash).1.as_bytes())?.ok_or(io::ErrorKind::NotFound)?;
        match hash_of(&bytes) == *hash {
            true => Ok(bytes),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    pub fn open_file(&self, hash: &Hash) -> io::Result<File> {
        self.dir.file(names(hash).1.as_bytes())
    }

    /// A name of the content for `at::linkat`, beneath [`Blobs::fd`].
    pub fn name(hash: &Hash) -> String {
        names(hash).1
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.fd()
    }

    /// Whether the content is there and is what its name says.
    pub fn is_sound(&self, hash: &Hash) -> io::Result<bool> {
        match self.open_file(hash) {
            Ok(it) => Ok(hash_of_file(&it)? == *hash),
            Err(it) if is_gone(&it) => Ok(false),
            Err(it) => Err(it),
        }
    }

    /// Copies a content into an open, empty file.
    pub fn copy_to(&self, hash: &Hash, out: &File) -> io::Result<()> {
        let mut file = self.open_file(hash)?;
        if !self.share(out, &file) {
            io::copy(&mut file, &mut &*out)?;
        }
        Ok(())
    }

    /// Removes what is not in `live`; how many bytes went.
    pub fn collect(&self, live: &HashSet<Hash>) -> io::Result<u64> {
        let live: HashSet<String> = live.iter().map(|it| names(it).1).collect();
        let mut freed = 0;
        for (dir, is_dir) in self.dir.list(b"")? {
            if !is_dir {
                beneath::remove(self.dir.fd(), &dir)?;
                continue;
            }
            let fd = self.dir.dir(&dir)?;
            for name in beneath::names(&fd)? {
                let path = [&*dir, b"/", &*name].concat();
                if str::from_utf8(&path).is_ok_and(|it| live.contains(it)) {
                    continue;
                }
                fault::step("blob: collect")?;
                let len = beneath::stat(fd.as_fd(), &name)?.map_or(0, |it| it.st_size);
                beneath::remove(fd.as_fd(), &name)?;
                freed += u64::try_from(len).unwrap_or_default();
            }
        }
        Ok(freed)
    }

    fn charge(&self, len: u64) -> Result<(), Failure> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        if self.left.fetch_sub(len, Ordering::Relaxed) < len {
            self.left.fetch_add(len, Ordering::Relaxed);
            return Err(Failure::Full { limit: self.limit });
        }
        self.added.fetch_add(len.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }

    /// What nobody names is removed when the store is swept.
    fn temp(&self) -> io::Result<(File, Vec<u8>)> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}-{n}", std::process::id()).into_bytes();
        fault::step("blob: temp")?;
        // Of a process that is no more.
        beneath::remove(self.dir.fd(), &name)?;
        Ok((beneath::create(self.dir.fd(), &name, 0o600)?, name))
    }

    fn name_it(&self, temp: &[u8], hash: &Hash) -> io::Result<()> {
        let (dir, path) = names(hash);
        fault::step("blob: rename")?;
        match at::renameat(self.dir.fd(), temp, self.dir.fd(), &path) {
            Err(rustix::io::Errno::NOENT) => {
                self.make(&dir)?;
                Ok(at::renameat(self.dir.fd(), temp, self.dir.fd(), &path)?)
            }
            it => Ok(it?),
        }
    }

    fn make(&self, dir: &str) -> io::Result<()> {
        match at::mkdirat(self.dir.fd(), dir, at::Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(it) => Err(it.into()),
        }
    }

    /// Has `out` share the blocks of `file`, where the disk can.
    fn share(&self, _out: &File, _file: &File) -> bool {
        #[cfg(target_os = "linux")]
        if !self.copies.load(Ordering::Relaxed) {
            let shared = at::ioctl_ficlone(_out, _file).is_ok();
            self.copies.store(!shared, Ordering::Relaxed);
            return shared;
        }
        false
    }
}
