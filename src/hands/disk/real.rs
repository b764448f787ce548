//! Files opened by their real path: a symlink that is swapped in after the policy decision is not followed.
//!
//! Every folder on the way is opened as what it is: a link is an error, not followed. New content goes to a file beside
//! the old one and takes its name in one step, through the same open folder.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Permissions},
    io::{self, ErrorKind, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
};

use nix::{
    errno::Errno,
    fcntl::{self, AtFlags, OFlag},
    sys::stat::{self, Mode, SFlag},
    unistd::{self, UnlinkatFlags},
};

use super::lasting::{sync_dir, sync_file};
use castor_base::path::AbsPath;

/// Opens a regular file to read.
pub fn open(real: &AbsPath) -> io::Result<File> {
    let (dir, name) = split(real)?;
    // A pipe would block: it is seen to be one only when it is open.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = match open_whole(real, flags) {
        Some(it) => File::from(it?),
        None => File::from(step(&open_dir(&dir)?, name, flags)?),
    };
    super::must_be_file(file.metadata()?)?;
    Ok(file)
}

/// Replaces or creates a file in one step, parents included; it keeps owner, permissions, access list and the user's
/// attributes, and other names of the old file (hard links) keep the old content. The rights of its owner for whoever
/// runs it (setuid) end with the content that they were for, as they do when a program writes to it.
pub fn write(real: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    stage(real, bytes)?.link_as(split(real)?.1)
}

/// The first half of [`write()`]: all but the name. The bytes are on the disk itself then: no name comes to stand for torn
/// ones.
pub fn stage(real: &AbsPath, bytes: &[u8]) -> io::Result<UnnamedFile> {
    let (parent, name) = split(real)?;
    let dir = match open_dir(&parent) {
        Err(it) if it.kind() == ErrorKind::NotFound => make_dir(&parent)?,
        other => other?,
    };
    let old = old_file(&dir, name)?;
    let new = UnnamedFile::create(dir)?;
    let mut file = &new.file;
    file.write_all(bytes)?;
    if let Some(it) = &old {
        let meta = it.metadata()?;
        super::keep_owner(file, &meta)?;
        file.set_permissions(Permissions::from_mode(meta.permissions().mode() & 0o1777))?;
        #[cfg(target_os = "linux")]
        super::attributes::keep_attributes(file, it)?;
    }
    sync_file(file)?;
    Ok(new)
}

/// Takes a file's name away: unless it gets one again, the file is gone with what is returned.
pub fn set_aside(real: &AbsPath) -> io::Result<UnnamedFile> {
    let (parent, name) = split(real)?;
    let dir = open_dir(&parent)?;
    let file = old_file(&dir, name)?.ok_or(ErrorKind::NotFound)?;
    let aside = new_name();
    fcntl::renameat(&dir, name, &dir, &*aside)?;
    Ok(UnnamedFile { dir, file, name: Some(aside) })
}

/// Whether the way to a folder, and the folder, are what they seem.
pub fn check_dir(real: &AbsPath) -> io::Result<()> {
    open_dir(real).map(drop)
}

/// Tells whether no link is on the way, as far as there is a way: then the path is its own real one. Most are, and to
/// ask so takes one call, where each name by itself takes one, and all of them again where the end is missing. `false`:
/// perhaps.
pub fn is_free_of_links(path: &AbsPath) -> bool {
    match open_whole(path, PLACE) {
        Some(Ok(_)) => true,
        Some(Err(it)) => matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        None => false,
    }
}

fn split(real: &AbsPath) -> io::Result<(AbsPath, &OsStr)> {
    let dir = real.parent().ok_or(ErrorKind::IsADirectory)?;
    let name = real.as_path().file_name().ok_or(ErrorKind::IsADirectory)?;
    Ok((dir, name))
}

/// What is to be replaced. To put another file in its place only asks the folder: without opening it, read-only files
/// would be replaced.
fn old_file(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    let kind = match stat::fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(it) => SFlag::from_bits_truncate(it.st_mode & SFlag::S_IFMT.bits()),
        Err(Errno::ENOENT) => return Ok(None),
        Err(it) => return Err(it.into()),
    };
    match kind {
        SFlag::S_IFREG => (),
        SFlag::S_IFDIR => return Err(ErrorKind::IsADirectory.into()),
        SFlag::S_IFLNK => return Err(link_error()),
        _ => return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
    let file = File::from(step(dir, name, OFlag::O_WRONLY | OFlag::O_NONBLOCK)?);
    super::must_be_file(file.metadata()?)?;
    Ok(Some(file))
}

/// A file that has no lasting name yet; gone when it never gets one.
pub struct UnnamedFile {
    dir: OwnedFd,
    file: File,
    name: Option<OsString>,
}

fn new_name() -> OsString {
    format!(".castor-{}", uuid::Uuid::now_v7().simple()).into()
}

impl UnnamedFile {
    fn create(dir: OwnedFd) -> io::Result<Self> {
        let name = new_name();
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // The umask takes away from this what the user wants taken away.
        let file = fcntl::openat(&dir, &*name, flags, Mode::from_bits_truncate(0o666))?;
        Ok(Self { dir, file: File::from(file), name: Some(name) })
    }

    /// Gives it the permissions of another file.
    pub fn take_rights(&self, of: &AbsPath) -> io::Result<()> {
        let mode = open(of)?.metadata()?.permissions().mode();
        self.file.set_permissions(Permissions::from_mode(mode & 0o777))
    }

    pub fn link_as(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(own) = &self.name {
            // A link that stands at `name` by now is replaced, not followed.
            fcntl::renameat(&self.dir, &**own, &self.dir, name)?;
        }
        self.name = None;
        note_unsynced(sync_dir(&self.dir));
        Ok(())
    }
}

/// The change is made, and stays so unless the power fails soon.
fn note_unsynced(synced: io::Result<()>) {
    if let Err(it) = synced {
        tracing::warn!("a file's new name may not survive a power cut: {it}");
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        if let Some(it) = self.name.take() {
            _ = unistd::unlinkat(&self.dir, &*it, UnlinkatFlags::NoRemoveDir);
            note_unsynced(sync_dir(&self.dir));
        }
    }
}

const DIR: OFlag = OFlag::O_DIRECTORY;

/// Only a place to go on from: such a folder need not be readable.
#[cfg(target_os = "linux")]
const PLACE: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PLACE: OFlag = OFlag::O_RDONLY;

fn open_dir(real: &AbsPath) -> io::Result<OwnedFd> {
    if let Some(it) = open_whole(real, DIR.union(PLACE)) {
        return it;
    }
    let flags = DIR.union(PLACE).union(OFlag::O_CLOEXEC);
    let mut at = fcntl::open("/", flags, Mode::empty())?;
    for name in real.as_path().iter().skip(1) {
        at = step(&at, name, DIR.union(PLACE))?;
    }
    Ok(at)
}

/// As [`open_dir`], creating what is missing.
fn make_dir(real: &AbsPath) -> io::Result<OwnedFd> {
    let (parent, name) = split(real)?;
    let above = match open_dir(&parent) {
        Err(it) if it.kind() == ErrorKind::NotFound => make_dir(&parent)?,
        other => other?,
    };
    match stat::mkdirat(&above, name, Mode::from_bits_truncate(0o777)) {
        Ok(()) => note_unsynced(sync_dir(&above)),
        Err(Errno::EEXIST) => (),
        Err(it) => return Err(it.into()),
    }
    step(&above, name, DIR.union(PLACE))
}

fn step(dir: impl AsFd, name: &OsStr, flags: OFlag) -> io::Result<OwnedFd> {
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match fcntl::openat(&dir, name, flags, Mode::empty()) {
        Ok(it) => Ok(it),
        // With O_DIRECTORY a link is told as "no folder".
        Err(Errno::ENOTDIR) if is_link(&dir, name) => Err(link_error()),
        Err(it) => Err(to_io_error(it)),
    }
}

fn is_link(dir: impl AsFd, name: &OsStr) -> bool {
    stat::fstatat(&dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|it| it.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits())
}

/// In one call, where the kernel does that. `None`: it does not, or a sandbox keeps it from us.
#[cfg(target_os = "linux")]
fn open_whole(real: &AbsPath, flags: OFlag) -> Option<io::Result<OwnedFd>> {
    use nix::fcntl::{OpenHow, ResolveFlag};
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    match fcntl::openat2(fcntl::AT_FDCWD, real.as_path(), how) {
        Err(Errno::ENOSYS | Errno::EPERM | Errno::E2BIG) => None,
        it => Some(it.map_err(to_io_error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_whole(_real: &AbsPath, _flags: OFlag) -> Option<io::Result<OwnedFd>> {
    None
}

fn to_io_error(errno: Errno) -> io::Error {
    match errno {
        Errno::ELOOP => link_error(),
        // A pipe that nobody reads, a device without a driver.
        Errno::ENXIO => io::Error::new(ErrorKind::InvalidInput, "not a regular file"),
        it => it.into(),
    }
}

fn link_error() -> io::Error {
    io::Error::other("a symbolic link took the place of this path after it was looked at; nothing was done")
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
        sync::atomic::{AtomicBool, Ordering},
    };

    #[cfg(target_os = "linux")]
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

    use super::{
        DIR, ErrorKind, PLACE, Permissions, PermissionsExt, is_free_of_links, open, open_dir, open_whole, step, write,
    };
    use crate::disk::{DiskFs, MAX_WHOLE, read, read_head, real_path};
    use castor_base::{
        fs::{Fs, FsError},
        path::AbsPath,
    };

    fn folder() -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let path = real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_path_says_by_itself_that_no_link_is_on_its_way() {
        let (_keep, dir) = folder();
        fs::create_dir_all(dir.join("real/deep")).unwrap();
        fs::write(dir.join("real/f"), "x").unwrap();
        symlink("real", dir.join("link")).unwrap();
        symlink("gone", dir.join("dangling")).unwrap();
        // Elsewhere nobody says so.
        let can_tell = open_whole(&dir, PLACE).is_some();
        for path in ["", "real/deep", "real/f", "real/f/below", "new", "new/er"] {
            assert_eq!(is_free_of_links(&dir.join(path)), can_tell, "{path}");
        }
        for path in ["link", "link/deep", "link/new", "dangling", "dangling/x"] {
            assert!(!is_free_of_links(&dir.join(path)), "{path}");
        }
        // What changes is seen at once.
        symlink("real", dir.join("new")).unwrap();
        assert!(!is_free_of_links(&dir.join("new/er")));
    }

    #[test]
    fn links_are_refused_everywhere() {
        let (_keep, dir) = folder();
        fs::create_dir_all(dir.join("real/deep")).unwrap();
        fs::write(dir.join("real/deep/f"), "x").unwrap();
        symlink("real", dir.join("link")).unwrap();
        symlink("f", dir.join("real/deep/l")).unwrap();
        assert!(open(&dir.join("real/deep/f")).is_ok());
        for path in ["link/deep/f", "real/deep/l"] {
            let error = open(&dir.join(path)).unwrap_err().to_string();
            assert!(error.contains("a symbolic link took the place"), "{error}");
            let error = write(&dir.join(path), b"y").unwrap_err().to_string();
            assert!(error.contains("a symbolic link took the place"), "{error}");
        }
        assert!(write(&dir.join("link/new/f"), b"y").is_err());
        assert_eq!(fs::read(dir.join("real/deep/f")).unwrap(), b"x");
        assert_eq!(fs::read_dir(dir.join("real")).unwrap().count(), 1, "nothing is left behind");
        // The way by single steps says the same.
        let top = open_dir(&dir).unwrap();
        assert!(step(&top, "real".as_ref(), DIR.union(PLACE)).is_ok());
        let error = step(&top, "link".as_ref(), DIR.union(PLACE)).unwrap_err().to_string();
        assert!(error.contains("a symbolic link took the place"), "{error}");
    }

    #[test]
    fn other_names_keep_the_old_content() {
        let (_keep, dir) = folder();
        let (inside, outside) = (dir.join("in"), dir.join("out"));
        fs::write(&outside, "old").unwrap();
        fs::hard_link(&outside, &inside).unwrap();
        write(&inside, b"new").unwrap();
        assert_eq!((fs::read(&inside).unwrap(), fs::read(&outside).unwrap()), (b"new".to_vec(), b"old".to_vec()));
        assert_eq!(fs::metadata(&inside).unwrap().nlink(), 1);
    }

    /// An access list that lets one more user read, and its mask: without the list, the group could write.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_hangs_on_a_file_stays_but_for_its_owners_rights() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};
        use std::os::unix::fs::PermissionsExt;
        let (_keep, dir) = folder();
        let file = dir.join("f");
        fs::write(&file, "one").unwrap();
        let entry =
            |tag: u16, perm: u16, id: u32| [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat();
        let none = u32::MAX;
        let list =
            [entry(1, 6, none), entry(2, 4, 1), entry(4, 4, none), entry(16, 6, none), entry(32, 0, none)].concat();
        let list = [&2_u32.to_le_bytes()[..], &list].concat();
        let set = |name: &str, value: &[u8]| setxattr(file.as_path(), name, value, XattrFlags::empty());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o4751)).unwrap();
        let has_notes = set("user.note", b"mine").is_ok();
        let has_lists = set("system.posix_acl_access", &list).is_ok();
        write(&file, b"two").unwrap();
        let get = |name: &str| {
            let mut value = vec![0; 1000];
            getxattr(file.as_path(), name, value.as_mut_slice()).map(|len| value[..len].to_vec())
        };
        assert_eq!(get("user.note").ok(), has_notes.then(|| b"mine".to_vec()));
        assert_eq!(get("system.posix_acl_access").ok(), has_lists.then_some(list));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, if has_lists { 0o660 } else { 0o751 });
    }

    /// Ends the thread beside a test, also where that fails: else it would be waited for for ever.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A write keeps the file's executable bit.
    #[test]
    fn a_script_stays_one_that_can_be_run() {
        let (_keep, dir) = folder();
        let file = dir.join("run.sh");
        for mode in [0o755, 0o640, 0o600] {
            fs::write(&file, "old").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            write(&file, b"new").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"new");
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
        }
    }

    /// Nobody ever writes to it: to wait for that would be to wait for ever.
    #[test]
    fn a_pipe_is_not_opened() {
        let (_keep, dir) = folder();
        let pipe = dir.join("p");
        nix::unistd::mkfifo(pipe.as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::spawn({
            let pipe = pipe.clone();
            move || said.send(open(&pipe).map_err(|it| it.kind()))
        });
        let opened = heard.recv_timeout(std::time::Duration::from_secs(30)).expect("it waits for a writer");
        assert_eq!(opened.err(), Some(ErrorKind::InvalidInput));
        assert_eq!(write(&pipe, b"x").unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    /// A thread flips a folder and a link to elsewhere under one name: whatever is written lands in the folder.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_swapped_folder_never_leads_outside() {
        let (_keep, dir) = folder();
        let (real, aside, outside) = (dir.join("work/d"), dir.join("work/aside"), dir.join("outside"));
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        fs::write(real.join("secret"), "mine").unwrap();
        symlink(&outside, &aside).unwrap();
        let (done, flips) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
        let flip = || {
            while !done.load(Ordering::Relaxed) {
                let (from, to) = (real.as_path(), aside.as_path());
                renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_EXCHANGE).unwrap();
                flips.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (mut written, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(flip);
            let _end = Ends(&done);
            for _ in 0..10_000 {
                match write(&real.join("file"), b"x") {
                    Ok(()) => written += 1,
                    Err(_) => refused += 1,
                }
                if let Ok(file) = open(&real.join("secret")) {
                    assert_eq!(std::io::read_to_string(file).unwrap(), "mine");
                }
            }
        });
        println!("{written} written, {refused} refused, {} flips", flips.load(Ordering::Relaxed));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
        assert!(written > 0 && flips.load(Ordering::Relaxed) > 0);
    }

    /// It says that it is empty, and has a gigabyte for each of many gigabytes of addresses.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_an_end_are_not_read_to_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |it: &AbsPath| runtime.block_on(DiskFs.read(it)).map(|it| it.len());
        let endless = real_path(&AbsPath::new("/proc/self/pagemap").unwrap()).unwrap();
        assert!(matches!(read(&endless), Err(FsError::Other { .. })));
        let (_keep, dir) = folder();
        let sparse = dir.join("f");
        fs::File::create(&sparse).unwrap().set_len(MAX_WHOLE + 1).unwrap();
        let said = read(&sparse);
        assert!(
            matches!(&said, Err(FsError::Other { message, .. }) if message.contains("more than is read")),
            "{said:?}"
        );
    }

    /// A thread flips a file and a pipe that nobody writes to.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_in_the_place_of_a_file_holds_nobody_up() {
        let (_keep, dir) = folder();
        let (file, pipe) = (dir.join("f"), dir.join("p"));
        fs::write(&file, "x").unwrap();
        nix::unistd::mkfifo(pipe.as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    renameat2(AT_FDCWD, file.as_path(), AT_FDCWD, pipe.as_path(), RenameFlags::RENAME_EXCHANGE)
                        .unwrap();
                }
            });
            let _end = Ends(&done);
            for _ in 0..3_000 {
                let (whole, head) = (read(&file), read_head(&file, 9));
                assert!([whole, head].iter().flatten().all(|it| it == b"x"));
            }
        });
    }
}
