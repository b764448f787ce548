//! Private files for long tool outputs, which the model can read later.
// An exception to the hands: no fsync, as `hands::disk` has it, for what nobody misses after a crash.
#![allow(clippy::disallowed_methods)]

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use castor_base::path::AbsPath;

/// Creates `path` with its parents, for us alone.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a whole file for us alone; a reader sees all of it or the one before.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", uuid::Uuid::now_v7().simple()));
    let mut file = create_log(&new)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        _ = std::fs::remove_file(&new);
    }
    written
}

/// A file for us alone that was not there before.
pub fn create_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The end of a file of ours, and whether something stands before it. No link is followed.
pub fn read_tail(path: &Path, max: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path)?;
    let start = file.metadata()?.len().saturating_sub(max);
    file.seek(SeekFrom::Start(start))?;
    let mut res = Vec::new();
    file.take(max).read_to_end(&mut res)?;
    Ok((res, start > 0))
}

/// Where `path` really is, if it is a folder.
pub fn real_dir(path: &AbsPath) -> io::Result<AbsPath> {
    let real = std::fs::canonicalize(path)?;
    match std::fs::metadata(&real)?.is_dir() {
        true => AbsPath::new(real).ok_or_else(|| io::ErrorKind::NotFound.into()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}
