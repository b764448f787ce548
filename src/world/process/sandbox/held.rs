//! Stand-ins in the place of configuration that is not there: what is not there cannot be mounted read-only.
//!
//! They are there while somebody confined runs, and each user of one holds a shared lock on it, so that the last one
//! removes it, also among several castors. What a kill -9 leaves, `records` lead to.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, PipeWriter, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use nix::{
    fcntl::{OFlag, open, openat},
    poll::{PollFd, PollFlags, poll},
    sys::stat::{Mode, mkdirat},
};

use super::{Before, aside::Head, going, outputs::Made, records};
use crate::base::sandbox::{ITSELF, StandIn};

const MARK: nix::libc::mode_t = going::MARK as nix::libc::mode_t;
/// Somebody else may remove it between making and holding it, but not for ever.
const TRIES: usize = 1000;

/// Placeholders in use. Dropping it removes those that nobody else uses, and ends whoever is left in the sandbox.
#[derive(Debug, Default)]
pub struct Held {
    standing: Vec<Standing>,
    /// The folder of the last one: most stand in the same.
    folder: Option<(PathBuf, OwnedFd)>,
    /// Its other end is with the sandbox's first process, which ends with all others when this one closes: also when
    /// castor is killed.
    life: Option<PipeWriter>,
    before: Arc<Before>,
    heads: Vec<Head>,
    /// For what it prints.
    made: Vec<Made>,
    tmp: Option<PathBuf>,
    /// Where it is written down what stands.
    records: PathBuf,
}

/// A stand-in, open and locked.
#[derive(Debug)]
struct Standing {
    path: PathBuf,
    there: File,
    what: StandIn,
    /// Device and number.
    number: (u64, u64),
    /// By us: where disks keep no marks, nothing else says that it is castor's.
    made: bool,
}

impl Held {
    pub(super) fn new(records: &Path) -> Self {
        let mut res = Self::default();
        records.clone_into(&mut res.records);
        res
    }

    /// Puts a placeholder where nothing is; false where nobody can put anything.
    pub(super) fn make(&mut self, path: &Path, what: StandIn) -> io::Result<bool> {
        use io::ErrorKind::{AlreadyExists, InvalidInput, NotFound, PermissionDenied, ReadOnlyFilesystem};
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(InvalidInput.into()) };
        self.note(path, what);
        for _ in 0..TRIES {
            let opened = match self.folder.take() {
                Some((path, it)) if path == above => Ok(it),
                _ => open_folder(above),
            };
            let made = opened.and_then(|it| match put(&it, name, what) {
                Ok(()) => Ok((it, true)),
                Err(why) if why.kind() == AlreadyExists => Ok((it, false)),
                Err(why) => Err(why),
            });
            let (folder, made) = match made {
                Ok(it) => it,
                Err(it) if matches!(it.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem) => return Ok(false),
                Err(it) => return Err(it),
            };
            let Ok(there) = going::open_quietly(Some(&folder), Path::new(name)) else { continue };
            let is_held = made || is_stand_in(&there, path);
            if is_held && there.try_lock_shared().is_err() {
                // Another castor removes it.
                thread::yield_now();
                continue;
            }
            // It may be another one by now, or another folder.
            let Some(number) = number_of(&there, path) else {
                _ = made && going::remove(&folder, name, &there, what.text());
                continue;
            };
            // Else the user was faster.
            if is_held {
                self.standing.push(Standing { path: path.to_owned(), there, what, number, made });
            }
            self.folder = Some((above.to_owned(), folder));
            return Ok(true);
        }
        Err(io::Error::other(format!("{} cannot be held", path.display())))
    }

    /// Makes the file that output goes to, if nothing is there.
    pub(super) fn output(&mut self, path: &Path) {
        self.made.extend(Made::make(path, &self.records));
    }

    /// Where stand-ins of its own are.
    pub(super) fn standing(&self) -> BTreeSet<&Path> {
        self.standing.iter().map(|it| it.path.as_path()).collect()
    }

    fn note(&self, path: &Path, what: StandIn) {
        records::note(&self.records, path, what, self.standing.is_empty());
    }

    /// The head of a repository.
    pub(super) fn head(&mut self, git: &Path) {
        self.heads.extend(Head::of(git));
    }

    /// Looks at what lies in the folders that may be written, and at what mounts hold there.
    pub(super) fn remember(&mut self, folders: &[PathBuf], mounted: &[&[PathBuf]], tmp: &Path, open: &[PathBuf]) {
        // Nothing is made any more.
        self.folder = None;
        let standing = self.standing.iter().map(|it| (it.path.clone(), it.number)).collect();
        self.before =
            Arc::new(Before::look(folders, standing).but(open).with(mounted, std::mem::take(&mut self.heads)));
        self.tmp = Some(tmp.to_owned());
    }

    /// The folder for temporary files.
    pub fn tmp(&self) -> Option<PathBuf> {
        self.tmp.clone()
    }

    /// Where it is written down what stands.
    pub fn records(&self) -> Option<PathBuf> {
        (!self.standing.is_empty() || !self.made.is_empty()).then(|| self.records.clone())
    }

    /// What was there before the command.
    pub fn before(&self) -> Arc<Before> {
        self.before.clone()
    }

    /// Ends whoever is left in the sandbox, and removes the placeholders that nobody else uses.
    pub fn let_go(&mut self) -> Gone {
        self.life.take().iter().for_each(end);
        self.before.over();
        self.made.drain(..).for_each(Made::let_go);
        let _alone = alone();
        // Of the last one: most stand in the same.
        let mut folder = None;
        Gone(self.standing.drain(..).map(|it| it.let_go(&mut folder)).collect())
    }

    /// Whether nobody is left in the sandbox: its first process has the other end, and goes last.
    pub fn is_over(&self) -> bool {
        self.life.as_ref().is_some_and(|it| waits_for_end(it, 0))
    }

    /// What the first process of the sandbox watches the other end of.
    #[cfg(target_os = "linux")]
    pub(super) fn lives(&mut self, life: PipeWriter) {
        self.life = Some(life);
    }

    /// Keeps what is there from being removed by another user of it, if it is a placeholder.
    pub(super) fn share(&mut self, path: &Path, what: StandIn) {
        let Ok(there) = going::open_quietly(None, path) else { return };
        // Another's, or a killed castor's, without a record that would lead to it.
        if !is_stand_in(&there, path) {
            return;
        }
        // Its maker's record may end before us.
        self.note(path, what);
        // Who holds it against us is no castor, or removes it: nobody waits for those.
        if there.try_lock_shared().is_ok()
            && let Some(number) = number_of(&there, path)
        {
            self.standing.push(Standing { path: path.to_owned(), there, what, number, made: false });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.let_go());
    }
}

/// What is gone and still open: the disk forgets it when this is dropped, which takes longer than all else of its end,
/// and for which nobody needs to wait.
pub struct Gone(#[expect(dead_code, reason = "only to be dropped")] Vec<File>);

impl Standing {
    /// Removes it, if that is the last use of it.
    fn let_go(self, folder: &mut Option<(PathBuf, OwnedFd)>) -> File {
        let Self { path, there, what, made, .. } = self;
        let may_go = made || going::is_ours(&there, what.text());
        if there.try_lock().is_err() || !may_go {
            return there;
        }
        let place = going::place(&there, &path);
        let removed = place.is_some_and(|it| match (it.parent(), it.file_name()) {
            (Some(above), Some(name)) => {
                *folder = folder.take().filter(|it| it.0 == above);
                if folder.is_none() {
                    *folder = open_folder(above).ok().map(|it| (above.to_owned(), it));
                }
                folder.as_ref().is_some_and(|it| going::remove(&it.1, name, &there, what.text()))
            }
            _ => false,
        });
        if !removed {
            // The user's by now.
            going::unmark(&there);
        }
        there
    }
}

/// How long the end of those who are left is waited for, in milliseconds. They are killed, and need no more.
const LAST: u8 = 200;

/// Any word ends who reads it, and the last of the readers with the rest.
fn end(mut life: &PipeWriter) {
    if life.write_all(&[0]).is_ok() {
        waits_for_end(life, LAST);
    }
}

/// Whether the last of the readers is gone, at the latest after so many milliseconds.
fn waits_for_end(life: &PipeWriter, at_most: u8) -> bool {
    // An error is what the end of all readers is called.
    let mut end = [PollFd::new(life.as_fd(), PollFlags::empty())];
    poll(&mut end, at_most).is_ok_and(|it| it > 0)
}

/// Between the look at a stand-in and its lock another command's end may remove it. Among several castors it still may.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each folder on the way is opened as what it is.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    // Those on the way may be such as nobody lists.
    #[cfg(target_os = "linux")]
    let reached = OFlag::O_PATH;
    #[cfg(not(target_os = "linux"))]
    let reached = OFlag::O_RDONLY;
    let flags = reached | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut res = open("/", flags, Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(it) = part {
            res = openat(&res, it, flags, Mode::empty())?;
        }
    }
    Ok(res)
}

/// Nothing is in it, if it is a folder.
fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).map_or(true, |mut it| it.next().is_none())
}

/// Whether somebody holds it. A user's own empty folder is locked by nobody, and what has something in it is no
/// stand-in, whoever locks it: a command can do that, too.
pub(super) fn is_placeholder(path: &Path) -> bool {
    going::open_quietly(None, path).is_ok_and(|it| is_stand_in(&it, path) && it.try_lock().is_err())
}

/// The same of one that nobody may hold yet, or any more: marked, and with nothing in it that somebody would obey.
pub(super) fn looks_like_placeholder(path: &Path) -> bool {
    going::open_quietly(None, path).is_ok_and(|it| is_stand_in(&it, path))
}

/// Whether it looks like one. There are disks without marks, and there its lock alone says it of a folder.
fn is_stand_in(there: &File, path: &Path) -> bool {
    let is_file = || [Some(""), ITSELF.text()].into_iter().any(|it| going::is_ours(there, it));
    let is_folder = || there.metadata().is_ok_and(|it| it.is_dir()) && is_empty(path);
    is_folder() && (going::is_ours(there, None) || there.try_lock().is_err()) || is_file()
}

fn put(folder: &OwnedFd, name: &OsStr, what: StandIn) -> io::Result<()> {
    match what {
        StandIn::Folder => Ok(mkdirat(folder, name, Mode::from_bits_truncate(0o777 | MARK))?),
        StandIn::File(text) => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            let mode = Mode::from_bits_truncate(0o666 | MARK);
            File::from(openat(folder, name, flags, mode)?).write_all(text.as_bytes())
        }
    }
}

pub(super) fn same(there: &File, path: &Path) -> bool {
    number_of(there, path).is_some()
}

/// Device and number of what is open, if that is what lies there.
fn number_of(there: &File, path: &Path) -> Option<(u64, u64)> {
    let (a, b) = (there.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    Some((a.dev(), a.ino())).filter(|it| *it == (b.dev(), b.ino()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{File, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::{Held, StandIn, is_placeholder};
    use crate::base::sandbox::ITSELF;

    #[test]
    fn the_last_one_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".vscode");
        let records = dir.path().join("records");
        let (mut one, mut two) = (Held::new(&records), Held::new(&records));
        one.make(&path, StandIn::Folder).unwrap();
        assert!(is_placeholder(&path));
        two.share(&path, StandIn::Folder);
        drop(one);
        assert!(path.is_dir());
        drop(two);
        assert!(!path.exists());
    }

    #[test]
    fn no_link_on_the_way_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.join("link")).unwrap();
        assert!(Held::new(&root.join("records")).make(&root.join("link/.vscode"), StandIn::Folder).is_err());
        assert_eq!(std::fs::read_dir(root.join("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn what_the_user_made_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (own, filled) = (dir.path().join(".zed"), dir.path().join(".idea"));
        std::fs::create_dir(&own).unwrap();
        let mut held = Held::new(&dir.path().join("records"));
        held.share(&own, StandIn::Folder);
        held.make(&filled, StandIn::Folder).unwrap();
        std::fs::write(filled.join("x"), "mine").unwrap();
        let mode = || std::fs::metadata(&filled).unwrap().permissions().mode() & 0o7000;
        assert_eq!(mode(), 0o1000);
        drop(held);
        assert!(own.is_dir() && filled.join("x").is_file());
        assert_eq!(mode(), 0, "nothing says that it was castor's");
    }

    /// A lock says nothing of what has something in it, and is not waited for: a command can lock what it reads.
    #[test]
    fn what_somebody_else_locks_is_none_and_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().join(it);
        std::fs::create_dir(at(".idea")).unwrap();
        for it in [".npmrc", "config"] {
            std::fs::write(at(it), "").unwrap();
        }
        let locked = [".npmrc", "config", ".idea"].map(|it| File::open(at(it)).unwrap());
        locked.iter().for_each(|it| it.lock().unwrap());
        assert!(!is_placeholder(&at(".npmrc")) && !is_placeholder(&at("config")));
        let mut held = Held::new(&at("records"));
        held.share(&at("config"), StandIn::File(""));
        held.share(&at(".idea"), StandIn::Folder);
        assert!(held.make(&at(".npmrc"), StandIn::File("")).unwrap());
        drop(locked);
        // Another castor's look locks it for a moment.
        held.share(&at(".idea"), StandIn::Folder);
        drop(held);
        for it in [".npmrc", "config", ".idea"] {
            assert!(at(it).exists(), "{it}");
        }
    }

    /// Somebody outside was faster than the stand-in, or moved what it stands in.
    #[test]
    fn what_comes_at_the_same_moment_is_the_users_and_a_moved_one_goes_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
        std::fs::create_dir_all(at("w/.git/info")).unwrap();
        std::fs::write(at("w/.git/config.worktree"), "").unwrap();
        let mut held = Held::new(&at("records"));
        for (name, what) in [("config.worktree", StandIn::File("")), ("info", StandIn::Folder), ("commondir", ITSELF)] {
            assert!(held.make(&at("w/.git").join(name), what).unwrap());
        }
        std::fs::rename(at("w"), at("moved")).unwrap();
        std::fs::create_dir_all(at("w/.git")).unwrap();
        // Its folder was opened before.
        assert!(held.make(&at("w/.git/hooks"), StandIn::Folder).unwrap() && at("w/.git/hooks").exists());
        drop(held);
        assert!(at("moved/.git/info").exists() && at("moved/.git/config.worktree").exists());
        assert!(["w/.git/hooks", "moved/.git/hooks", "moved/.git/commondir"].iter().all(|it| !at(it).exists()));
    }

    #[test]
    fn files_stand_in_too_and_what_a_killed_one_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, itself) = (dir.path().join("config.worktree"), dir.path().join("commondir"));
        let records = dir.path().join("records");
        let mut held = Held::new(&records);
        held.make(&empty, StandIn::File("")).unwrap();
        held.make(&itself, ITSELF).unwrap();
        std::fs::write(&empty, "mine").unwrap();
        drop(held);
        assert!(!itself.exists());
        assert_eq!(std::fs::read_to_string(&empty).unwrap(), "mine");
        let folder = dir.path().join(".zed");
        let check = |text: &str, mode: u32, goes: bool| {
            std::fs::write(&itself, text).unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            for it in [&itself, &folder] {
                std::fs::set_permissions(it, Permissions::from_mode(mode)).unwrap();
            }
            let mut held = Held::new(&records);
            held.share(&itself, ITSELF);
            held.share(&folder, StandIn::Folder);
            drop(held);
            assert_eq!((itself.exists(), folder.exists()), (!goes, mode & 0o1000 == 0), "{text} {mode:o}");
        };
        check("././.\n", 0o1755, true);
        check("././.\n", 0o755, false);
        check("../..\n", 0o1755, false);
        std::fs::create_dir_all(folder.join("mine")).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1755)).unwrap();
        let mut held = Held::new(&records);
        held.share(&folder, StandIn::Folder);
        drop(held);
        assert!(folder.join("mine").exists());
    }
}
