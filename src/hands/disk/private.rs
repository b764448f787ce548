//! Private files and folders that only their owner can read: logs, keys, notes.
#![allow(clippy::disallowed_methods)]

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::Path,
};

use super::{must_be_file, permission_bits};
use castor_base::path::AbsPath;

/// Longest file of secrets that is read, in bytes.
const MAX_PRIVATE: u64 = 1 << 20;

/// Creates a folder that only its owner may enter, with its parents.
pub fn create_private_dir(path: &AbsPath) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file to append to, creating it for its owner alone; its folder is made private too where it is missing.
pub fn open_append_private(path: &AbsPath) -> io::Result<File> {
    open_private(path, OpenOptions::new().append(true).read(true).create(true))
}

/// As [`open_append_private`], for a file that must not be there yet.
pub fn create_append_private(path: &AbsPath) -> io::Result<File> {
    open_private(path, OpenOptions::new().append(true).read(true).create_new(true))
}

/// As [`open_append_private`], refused where others can read what is there already.
pub fn open_private_log(path: &AbsPath) -> io::Result<File> {
    // Opening a pipe would block.
    if let Ok(meta) = fs::metadata(path) {
        check_private(&must_be_file(meta)?, path)?;
    }
    let file = open_append_private(path)?;
    check_private(&file.metadata()?, path)?;
    Ok(file)
}

fn check_private(meta: &Metadata, path: &AbsPath) -> io::Result<()> {
    match permission_bits(meta) & 0o077 {
        0 => Ok(()),
        _ => {
            let why = format!("others can read it; run: chmod 600 '{path}'");
            Err(io::Error::new(ErrorKind::PermissionDenied, why))
        }
    }
}

fn open_private(path: &AbsPath, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    match options.open(path) {
        Err(it) if it.kind() == ErrorKind::NotFound => {
            create_private_dir(&path.parent().ok_or(ErrorKind::NotFound)?)?;
            options.open(path)
        }
        other => other,
    }
}

/// The nearest of the folders that a path needs, where that is there and no folder.
pub fn blocking_file(path: &AbsPath) -> Option<AbsPath> {
    let nearest =
        std::iter::successors(path.parent(), AbsPath::parent).find(|it| it.as_path().symlink_metadata().is_ok());
    nearest.filter(|it| !fs::metadata(it).is_ok_and(|it| it.is_dir()))
}

/// Takes from others what an older version, a copied home or a hand left open to them. What is not ours stays as it is:
/// nobody who may not change it is hindered.
pub fn make_private(_path: &AbsPath) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let Ok(meta) = fs::metadata(_path) else { return };
        let mode = permission_bits(&meta) & 0o777;
        if mode & 0o077 != 0 {
            _ = fs::set_permissions(_path, fs::Permissions::from_mode(mode & 0o700));
        }
    }
}

/// A file that holds secrets, bounded: refused where others than its owner can read it.
pub fn read_private(path: &AbsPath) -> io::Result<Vec<u8>> {
    // Opening a pipe would block; what is looked at after that is what was opened.
    must_be_file(fs::metadata(path)?)?;
    let file = File::open(path)?;
    let meta = must_be_file(file.metadata()?)?;
    check_private(&meta, path)?;
    let mut res = Vec::new();
    file.take(MAX_PRIVATE).read_to_end(&mut res)?;
    Ok(res)
}

/// Replaces or creates a file for its owner alone, in one step and for good; a folder that is missing is made private.
/// A symlink is replaced, not followed: its target may belong to another user.
pub fn write_private(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().ok_or(ErrorKind::IsADirectory)?;
    create_private_dir(&parent)?;
    if permission_bits(&fs::metadata(&parent)?) & 0o022 != 0 {
        let why = format!("others can put their own files into this folder; run: chmod 700 '{parent}'");
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    // 0600 from the start, by tempfile's own default.
    let mut file = tempfile::Builder::new().prefix(".castor-").tempfile_in(parent.as_path() as &Path)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// As [`write_private`], but neither in one step nor for good: for notes that nobody misses.
pub fn write_private_note(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    open_private(path, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(bytes)
}

/// As [`write_private`], for a file that must not be there yet; on the disk itself when this returns.
pub fn create_private(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_private(path, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}
