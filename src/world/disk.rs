//! The hand that touches files: blocking calls, and `DiskFs`, which puts them behind the trait `Fs`.
#![allow(clippy::disallowed_methods)]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::Path,
    time::UNIX_EPOCH,
};

use crate::base::{
    fs::{BoxFuture, Fs, FsError},
    path::AbsPath,
};

/// How many links a path may have on its way before it counts as a loop.
const MAX_LINKS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub is_dir: bool,
    pub len: u64,
    pub modified_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: String,
    pub is_dir: bool,
    pub len: u64,
}

/// Where `path` really is. What does not exist yet is put below the real place of its nearest existing ancestor.
pub fn real_path(path: &AbsPath) -> io::Result<AbsPath> {
    real_path_within(path, MAX_LINKS)
}

fn real_path_within(path: &AbsPath, links: usize) -> io::Result<AbsPath> {
    match fs::canonicalize(path) {
        Ok(it) => return AbsPath::new(it).ok_or_else(|| ErrorKind::InvalidData.into()),
        Err(it) if !matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Err(it),
        Err(_) => (),
    }
    let (Some(parent), Some(name)) = (path.parent(), path.as_path().file_name()) else { return Ok(path.clone()) };
    // A dangling link does not exist for canonicalize, yet a write would go through it.
    if let Ok(target) = fs::read_link(path) {
        let links = links.checked_sub(1).ok_or_else(|| io::Error::other("too many levels of symbolic links"))?;
        return real_path_within(&real_path_within(&parent, links)?.join(target), links);
    }
    Ok(real_path_within(&parent, links)?.join(name))
}

pub fn metadata(path: &AbsPath) -> io::Result<Meta> {
    let it = fs::metadata(path)?;
    let modified = it.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    Ok(Meta { is_dir: it.is_dir(), len: it.len(), modified_ms: modified.map_or(0, |it| it.as_millis() as u64) })
}

/// The entries of a folder, in the disk's order. Links count as what they point to.
pub fn read_dir(path: &AbsPath) -> io::Result<Vec<DirEntry>> {
    let mut res = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let meta = fs::metadata(entry.path()).or_else(|_| entry.metadata());
        let (is_dir, len) = meta.map_or((false, 0), |it| (it.is_dir(), it.len()));
        res.push(DirEntry { name: entry.file_name().to_string_lossy().into_owned(), is_dir, len });
    }
    Ok(res)
}

/// A regular file's bytes. A pipe or a device would block or never end.
pub fn read(path: &AbsPath) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    fs::read(path)
}

/// Replaces or creates a file in one step, keeping its permissions; a link stays, its target is written.
pub fn write_atomic(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    let path = real_path(path)?;
    let parent = path.parent().ok_or(ErrorKind::IsADirectory)?;
    fs::create_dir_all(&parent)?;
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|it| it.is_dir()) {
        return Err(ErrorKind::IsADirectory.into());
    }
    let mut file = new_file(&parent)?;
    file.write_all(bytes)?;
    if let Some(it) = old {
        fs::set_permissions(file.path(), it.permissions())?;
    }
    file.persist(&path)?;
    Ok(())
}

fn new_file(parent: &AbsPath) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".castor-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Tempfile's own default is 0600; the umask takes away from this what the user wants taken away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(parent.as_path() as &Path)
}

/// The first bytes of a file, `max` at most.
pub fn read_head(path: &AbsPath, max: u64) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    fs::File::open(path)?.take(max).read_to_end(&mut res)?;
    Ok(res)
}

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

/// Opens an existing file for reading and appending.
pub fn open_append(path: &AbsPath) -> io::Result<File> {
    OpenOptions::new().append(true).read(true).open(path)
}

/// Waits until what was written is on the disk itself.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Files on disk.
pub struct DiskFs;

impl Fs for DiskFs {
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        Box::pin(on_thread(path, read))
    }

    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        Box::pin(on_thread(path, move |path| write_atomic(path, &bytes)))
    }
}

async fn on_thread<T: Send + 'static>(
    path: &AbsPath,
    act: impl FnOnce(&AbsPath) -> io::Result<T> + Send + 'static,
) -> Result<T, FsError> {
    let owned = path.clone();
    match tokio::task::spawn_blocking(move || act(&owned)).await {
        Ok(res) => res.map_err(|it| fs_error(path, &it)),
        Err(it) => Err(FsError::Other { path: path.clone(), message: it.to_string() }),
    }
}

fn fs_error(path: &AbsPath, error: &io::Error) -> FsError {
    let path = path.clone();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => FsError::NotFound(path),
        ErrorKind::IsADirectory => FsError::IsDirectory(path),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => FsError::Denied(path),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FsError::NoSpace(path),
        _ => FsError::Other { path, message: error.to_string() },
    }
}
