//! Where the stores lie, and how much is in them.

use std::{
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::{beneath::Beneath, store::name_of};
use crate::base::path::AbsPath;

/// castor's own folder, by device and inode.
pub fn identity(home: &AbsPath) -> Option<(u64, u64)> {
    home.as_path().symlink_metadata().ok().map(|it| (it.dev(), it.ino()))
}

pub fn folder(home: &AbsPath) -> AbsPath {
    home.join("checkpoints")
}

/// The store of a root, made where there is none.
pub fn make(home: &AbsPath, root: &AbsPath) -> io::Result<Beneath> {
    let all = folder(home);
    for dir in [home, &all] {
        match mkdirat(CWD, dir.as_path(), Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => (),
            Err(it) => return Err(it.into()),
        }
    }
    let res = Beneath::make_private(all.join(name_of(root)).as_path())?;
    if res.stat(b"root")?.is_none() {
        res.replace(b"root", root.as_path().as_os_str().as_bytes(), false)?;
    }
    Ok(res)
}

/// The stores that there are, by name, and the roots that they are for.
pub fn all(home: &AbsPath) -> io::Result<Vec<(String, Option<AbsPath>)>> {
    let dir = match Beneath::open(folder(home).as_path()) {
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        it => it?,
    };
    let mut res = Vec::new();
    for (name, is_dir) in dir.list(b"")? {
        let Some(name) = String::from_utf8(name).ok().filter(|_| is_dir) else { continue };
        let root = dir.read(format!("{name}/root").as_bytes())?;
        let root = root.and_then(|it| AbsPath::new(std::ffi::OsStr::from_bytes(&it)));
        res.push((name, root));
    }
    Ok(res)
}

/// The bytes in all stores, as their notes say.
pub fn used(store: &Beneath) -> io::Result<u64> {
    let all = Beneath::from(openat(store.fd(), "..", OFlags::DIRECTORY, Mode::empty())?);
    let mut res = 0;
    for name in super::beneath::names(&all.dir(b"")?)? {
        res += read_size(&all, &[&*name, b"/size"].concat())?;
    }
    Ok(res)
}

/// What came into one store, or went.
pub fn add_used(store: &Beneath, bytes: i64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let size = read_size(store, b"size")?.saturating_add_signed(bytes);
    // In place: it is a note, and to replace a file makes some disks write at once.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(store.fd(), "size", flags, Mode::RUSR | Mode::WUSR)?;
    rustix::io::pwrite(&file, format!("{size:020}").as_bytes(), 0)?;
    Ok(())
}

fn read_size(dir: &Beneath, path: &[u8]) -> io::Result<u64> {
    let bytes = dir.read(path)?;
    Ok(bytes.and_then(|it| str::from_utf8(&it).ok()?.parse().ok()).unwrap_or_default())
}
