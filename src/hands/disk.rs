//! File access: blocking calls, and `DiskFs` behind the trait `Fs`.
#![allow(clippy::disallowed_methods)]

#[cfg(target_os = "linux")]
mod attributes;
mod batch;
mod digest;
#[cfg(unix)]
pub mod dirfd;
#[cfg(unix)]
pub mod disk_mark;
mod equal_names;
#[cfg(unix)]
pub mod fault;
pub mod frame;
#[cfg(unix)]
pub mod git_commits;
pub mod git_index;
pub mod git_objects;
#[cfg(unix)]
pub mod lasting;
mod names;
mod on_thread;
#[cfg(unix)]
mod own_files;
pub mod parallel;
mod private;
#[cfg(unix)]
mod real;
#[cfg(unix)]
pub mod root_files;
mod tree;
mod worktrees;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Component, Path, PathBuf},
    time::UNIX_EPOCH,
};

use castor_base::{
    fs::{BoxFuture, ChangeError, Fs, FsError, PlannedChange},
    path::AbsPath,
    path_text,
};

use on_thread::{fs_error, on_thread};

pub use digest::*;
pub use equal_names::*;
pub use names::*;
#[cfg(unix)]
pub use own_files::{try_lock, wait_for_lock};
pub use private::*;
pub use tree::*;
pub use worktrees::*;

/// Most that is read of one file for a tool, in bytes.
const MAX_WHOLE: u64 = 64 << 20;
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
    /// In the text of a path.
    pub name: String,
    pub is_dir: bool,
    pub len: u64,
}

/// Where `path` really is. What does not exist yet is put below the real place of its nearest existing ancestor.
///
/// # Errors
/// Loops of links, and folders that may not be searched.
pub fn real_path(path: &AbsPath) -> io::Result<AbsPath> {
    #[cfg(unix)]
    if real::is_free_of_links(path) {
        return Ok(path.clone());
    }
    resolve_path(path.as_path())
}

/// The same for an absolute path with dots in it, which lead to the parent of what is really in front of them.
pub fn resolve_path(path: &Path) -> io::Result<AbsPath> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match existing_part(&path)? {
            Existing::Real(it) => return AbsPath::new(it).ok_or_else(|| ErrorKind::InvalidData.into()),
            Existing::DanglingLink(it) => path = it,
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

enum Existing {
    Real(PathBuf),
    /// A link that points to nothing is on the way: look there instead.
    DanglingLink(PathBuf),
}

/// Walks up from the end of `path` to what is there. A link's target is not normalized before it is resolved: in
/// `link/..` the dots lead to the parent of what the link points to.
fn existing_part(path: &Path) -> io::Result<Existing> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let with = |start: PathBuf, missing: &[&OsStr]| missing.iter().rev().fold(start, |it, name| it.join(name));
    for head in path.ancestors() {
        match fs::canonicalize(head) {
            Ok(real) => return Ok(Existing::Real(with(real, &missing))),
            Err(it) if !matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Err(it),
            Err(_) => (),
        }
        // A dangling link does not exist for canonicalize, yet a write would go through it.
        if let (Ok(target), Some(parent)) = (fs::read_link(head), head.parent()) {
            return Ok(Existing::DanglingLink(with(parent.join(target), &missing)));
        }
        missing.extend(head.components().next_back().map(Component::as_os_str));
    }
    Ok(Existing::Real(path.to_path_buf()))
}

pub fn metadata(path: &AbsPath) -> io::Result<Meta> {
    Ok(meta_of(&fs::metadata(path)?))
}

fn meta_of(it: &Metadata) -> Meta {
    let modified = it.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    Meta { is_dir: it.is_dir(), len: it.len(), modified_ms: modified.map_or(0, |it| it.as_millis() as u64) }
}

/// Tells whether only root can change it. Unknown outside of Unix.
pub fn only_root_can_write(path: &AbsPath) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
    }
    #[cfg(not(unix))]
    {
        _ = path;
        false
    }
}

/// The entries of a folder, in the disk's order. Links count as what they point to.
pub fn read_dir(path: &AbsPath) -> io::Result<Vec<DirEntry>> {
    let mut res = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let meta = fs::metadata(entry.path()).or_else(|_| entry.metadata());
        let (is_dir, len) = meta.map_or((false, 0), |it| (it.is_dir(), it.len()));
        res.push(DirEntry { name: path_text::to_text(entry.file_name().as_ref()).into_owned(), is_dir, len });
    }
    Ok(res)
}

/// Names in a folder, `max` at most. `None`: there are more.
pub fn names(path: &Path, max: usize) -> io::Result<Option<Vec<String>>> {
    let mut res = Vec::new();
    for entry in fs::read_dir(path)? {
        if res.len() == max {
            return Ok(None);
        }
        res.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(Some(res))
}

/// Names in a folder with what they are, links as links, sorted; `max` at most. Of one that cannot be read, nothing.
pub fn entries(path: &AbsPath, max: usize) -> Vec<(OsString, FileType)> {
    let found = fs::read_dir(path).into_iter().flatten().take(max).flatten();
    let mut res: Vec<_> = found.filter_map(|it| Some((it.file_name(), it.file_type().ok()?))).collect();
    res.sort_by(|a, b| a.0.cmp(&b.0));
    res
}

/// As [`read_dir`] by a real path: a link in its place is an error.
pub fn read_real_dir(real: &AbsPath) -> io::Result<Vec<DirEntry>> {
    // What is listed by its path is the folder that was opened, unless both were swapped and swapped back in between:
    // then only names are told, and their sizes.
    #[cfg(unix)]
    real::check_dir(real)?;
    let res = read_dir(real)?;
    #[cfg(unix)]
    real::check_dir(real)?;
    Ok(res)
}

/// A regular file's bytes.
pub fn read(path: &AbsPath) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    open_read(path)?.read_to_end(&mut res)?;
    Ok(res)
}

/// Opens what is a regular file, also where something else takes its place meanwhile: opening a pipe would block.
fn open_file(path: &AbsPath, options: &mut OpenOptions) -> io::Result<File> {
    must_be_file(fs::metadata(path)?)?;
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, nix::fcntl::OFlag::O_NONBLOCK.bits());
    let file = options.open(path)?;
    must_be_file(file.metadata()?)?;
    Ok(file)
}

/// A pipe or a device would block or never end, and must not be replaced by a file.
fn must_be_file(meta: Metadata) -> io::Result<Metadata> {
    match meta.file_type() {
        it if it.is_file() => Ok(meta),
        it if it.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Replaces or creates a file in one step, keeping its permissions; a link stays, its target is written.
pub fn write_atomic(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    let path = real_path(path)?;
    let parent = path.parent().ok_or(ErrorKind::IsADirectory)?;
    let old = match fs::metadata(&path) {
        Ok(meta) => Some(must_be_file(meta)?),
        Err(it) if it.kind() == ErrorKind::NotFound => None,
        Err(it) => return Err(it),
    };
    match old {
        // To put another file in its place only asks the folder: without this, read-only files would be replaced.
        Some(_) => drop(OpenOptions::new().write(true).open(&path)?),
        None => fs::create_dir_all(&parent)?,
    }
    let mut file = new_file(&parent)?;
    file.write_all(bytes)?;
    if let Some(it) = old {
        keep_owner(file.as_file(), &it)?;
        file.as_file().set_permissions(it.permissions())?;
    }
    file.persist(&path)?;
    Ok(())
}

/// Root edits other people's files, which stay theirs. Others may not give files away: then the new file is ours.
fn keep_owner(_file: &File, _old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = _file.metadata()?;
        if (new.uid(), new.gid()) != (_old.uid(), _old.gid()) {
            _ = fchown(_file, Some(_old.uid()), Some(_old.gid()));
        }
    }
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

/// Opens a regular file by its real path; where a link stands on the way now, it is an error.
pub fn open_real(real: &AbsPath) -> io::Result<File> {
    #[cfg(unix)]
    return real::open(real);
    #[cfg(not(unix))]
    open_read(real)
}

/// As [`write_atomic`] by a real path: a link is an error.
fn write_real(real: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    return real::write(real, bytes);
    #[cfg(not(unix))]
    write_atomic(real, bytes)
}

/// Some of the kernel's files say that they are empty, and never end; others grow while they are read.
fn read_real(real: &AbsPath) -> io::Result<Vec<u8>> {
    let res = read_real_head(real, MAX_WHOLE + 1)?;
    match res.len() as u64 > MAX_WHOLE {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, "it has more than is read at once")),
        false => Ok(res),
    }
}

/// As [`read_head`] by a real path: a link is an error.
pub fn read_real_head(real: &AbsPath, max: u64) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    open_real(real)?.take(max).read_to_end(&mut res)?;
    Ok(res)
}

/// The first bytes of a regular file, `max` at most.
pub fn read_head(path: &AbsPath, max: u64) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    open_read(path)?.take(max).read_to_end(&mut res)?;
    Ok(res)
}

/// Permissions, as the bits of chmod.
pub fn permissions(path: &AbsPath) -> io::Result<u32> {
    Ok(permission_bits(&fs::metadata(path)?) & 0o777)
}

/// Permission bits; elsewhere than on Unix files are private by their folder.
fn permission_bits(_meta: &Metadata) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&_meta.permissions());
    #[cfg(not(unix))]
    0o600
}

/// Removes a file; whether it was there.
pub fn remove(path: &AbsPath) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(it) if it.kind() == ErrorKind::NotFound => Ok(false),
        Err(it) => Err(it),
    }
}

/// Opens an existing regular file for reading and appending.
pub fn open_append(path: &AbsPath) -> io::Result<File> {
    open_file(path, OpenOptions::new().append(true).read(true))
}

/// Opens an existing regular file to read only: for what may not be ours to write.
pub fn open_read(path: &AbsPath) -> io::Result<File> {
    open_file(path, OpenOptions::new().read(true))
}

pub fn remove_file(path: &AbsPath) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes a folder with all that is in it; links in it go, what they point to stays.
pub fn remove_tree(path: &AbsPath) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// Tells whether an open file still has a name: somebody may have removed or replaced it since it was opened.
pub fn is_linked(_file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        _file.metadata().is_ok_and(|it| it.nlink() > 0)
    }
    #[cfg(not(unix))]
    true
}

/// Waits until what was written is on the disk itself.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Files on disk, by their real paths.
pub struct DiskFs;

impl DiskFs {
    /// As `read`; blocks.
    pub fn read_now(&self, path: &AbsPath) -> Result<Vec<u8>, FsError> {
        read_real(path).map_err(|it| fs_error(path, &it))
    }
}

impl Fs for DiskFs {
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        Box::pin(on_thread(path, read_real))
    }

    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        Box::pin(on_thread(path, move |path| write_real(path, &bytes)))
    }

    fn change(&self, changes: Vec<PlannedChange>) -> BoxFuture<'_, Result<(), ChangeError>> {
        Box::pin(batch::change_files(changes))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use super::{DiskFs, Fs, FsError, open_append, read, read_dir, read_head, real_path, resolve_path, write_atomic};
    use castor_base::path::AbsPath;

    /// By its real path: the system's own folder for temporary files may be behind a link.
    fn folder() -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let path = real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    fn writes_whole_files_and_keeps_their_mode() {
        let (_keep, dir) = folder();
        let file = dir.join("a/b/c.txt");
        write_atomic(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        write_atomic(&file, b"two").unwrap();
        assert_eq!(read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(read_dir(&dir.join("a/b")).unwrap().len(), 1, "nothing is left behind");
        assert!(write_atomic(&dir.join("a"), b"").is_err());
        assert!(write_atomic(&file.join("x"), b"").is_err());
    }

    #[test]
    fn devices_are_no_files() {
        let (zero, null) = (AbsPath::new("/dev/zero").unwrap(), AbsPath::new("/dev/null").unwrap());
        assert!(read(&zero).is_err());
        assert!(read_head(&zero, 9).is_err());
        assert!(open_append(&zero).is_err());
        assert!(write_atomic(&null, b"").is_err());
        assert!(!null.as_path().is_file());
    }

    #[test]
    fn read_only_files_stay_as_they_are() {
        let (_keep, dir) = folder();
        let file = dir.join("f");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        // Root may write anything.
        let may_write = fs::OpenOptions::new().write(true).open(&file).is_ok();
        assert_eq!(write_atomic(&file, b"two").is_ok(), may_write);
    }

    #[test]
    fn writes_through_links() {
        let (_keep, dir) = folder();
        symlink("real.txt", dir.join("link")).unwrap();
        symlink("link", dir.join("link2")).unwrap();
        write_atomic(&dir.join("link2"), b"one").unwrap();
        write_atomic(&dir.join("link2"), b"two").unwrap();
        assert_eq!(read(&dir.join("real.txt")).unwrap(), b"two");
        assert!(fs::symlink_metadata(dir.join("link2")).unwrap().is_symlink());
        symlink("loop", dir.join("loop")).unwrap();
        assert!(write_atomic(&dir.join("loop"), b"").is_err());
    }

    #[test]
    fn finds_where_a_path_really_is() {
        let (_keep, dir) = folder();
        fs::create_dir_all(dir.join("real/deep")).unwrap();
        fs::create_dir_all(dir.join("other/place")).unwrap();
        fs::write(dir.join("real/file"), "").unwrap();
        symlink("real", dir.join("link")).unwrap();
        symlink("/nowhere/at/all", dir.join("dangling")).unwrap();
        symlink("real/deep/../../gone/x", dir.join("relative")).unwrap();
        symlink("../other/place", dir.join("real/hop")).unwrap();
        symlink("real/hop/../gone", dir.join("dots")).unwrap();
        symlink("loop", dir.join("loop")).unwrap();
        let check = |from: &str, to: &str| {
            assert_eq!(real_path(&dir.join(from)).unwrap(), dir.join(to), "{from}");
            assert_eq!(resolve_path(dir.join(from).as_path()).unwrap(), dir.join(to), "{from}, name by name");
        };
        check("real/file", "real/file");
        check("link/file", "real/file");
        check("link/new/er", "real/new/er");
        check("link/file/below", "real/file/below");
        check("dangling", "/nowhere/at/all");
        check("dangling/y", "/nowhere/at/all/y");
        check("relative/y", "gone/x/y");
        check("dots/y", "other/gone/y");
        check("new/er", "new/er");
        check("real/file/below", "real/file/below");
        assert!(real_path(&dir.join("loop/x")).is_err());
    }

    #[test]
    fn the_trait_names_the_failures() {
        let (_keep, dir) = folder();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let file = dir.join("x/f");
            assert_eq!(DiskFs.read(&file).await, Err(FsError::NotFound(file.clone())));
            assert_eq!(DiskFs.read(&dir).await, Err(FsError::IsDirectory(dir.clone())));
            assert_eq!(DiskFs.write(&dir, vec![]).await, Err(FsError::IsDirectory(dir.clone())));
            assert_eq!(DiskFs.write(&file, b"a".to_vec()).await, Ok(()));
            assert_eq!(DiskFs.read(&file).await, Ok(b"a".to_vec()));
        });
    }
}
