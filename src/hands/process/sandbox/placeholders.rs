//! Placeholders: files and folders at paths of absent git configuration, because only an existing path can be
//! mounted read-only.
//!
//! They exist while a confined command runs, and each user of one holds a shared lock on it, so that the last one
//! removes it, also among several castors. What a kill -9 leaves, `placeholder_records` lead to.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, PipeWriter, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use nix::poll::{PollFd, PollFlags, poll};

use super::{
    Quarantine,
    placeholder_files::{
        create, current_place, is_ours, is_placeholder, lock_placeholders, number_of, open_folder, open_quietly,
        remove, unmark,
    },
    placeholder_records as records,
    quarantine::GitHead,
    running::RunningProcess,
    views,
};
use crate::{
    door::{OpenDoor, SharedRecord},
    process::{command_group::CommandGroup, record::SandboxRecord},
};
use castor_base::sandbox::Placeholder;

/// Another castor may remove it between making and locking it, but not for ever.
const TRIES: usize = 1000;

/// What is in use by a confined process: placeholders, its first process, its temporary files. Dropping it removes the
/// placeholders without another user, and ends the processes left in the sandbox.
#[derive(Debug, Default)]
pub struct Placeholders {
    standing: Vec<OpenPlaceholder>,
    /// Its other end is with the sandbox's first process, which ends with all others when this one closes: also when
    /// castor is killed.
    pub(super) life: Option<PipeWriter>,
    pub(super) running: Option<Arc<RunningProcess>>,
    pub(super) record: Option<Arc<SandboxRecord>>,
    /// The kernel's group of the process and its children.
    pub(in crate::process) group: Option<Arc<CommandGroup>>,
    /// The way out, as long as anybody is there to take it.
    pub(super) door: Option<OpenDoor>,
    quarantine: Arc<Quarantine>,
    heads: Vec<GitHead>,
    pub(super) tmp: Option<PathBuf>,
    /// Where it is written down what stands.
    records: PathBuf,
}

/// A placeholder, open and locked.
#[derive(Debug)]
struct OpenPlaceholder {
    path: PathBuf,
    there: File,
    what: Placeholder,
    /// Device and number.
    number: (u64, u64),
    /// By us: where disks keep no marks, nothing else says that it is castor's.
    made: bool,
}

impl Placeholders {
    pub(super) fn new(records: &Path) -> Self {
        let mut res = Self::default();
        records.clone_into(&mut res.records);
        res
    }

    /// Makes a placeholder at a free path; false if nothing can be made there.
    pub(super) fn make(&mut self, path: &Path, what: Placeholder) -> io::Result<bool> {
        use io::ErrorKind::{AlreadyExists, InvalidInput, NotFound, PermissionDenied, ReadOnlyFilesystem};
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(InvalidInput.into()) };
        self.note(path, what);
        for _ in 0..TRIES {
            let made = open_folder(above).and_then(|it| match create(&it, name, what) {
                Ok(()) => Ok((it, true)),
                Err(why) if why.kind() == AlreadyExists => Ok((it, false)),
                Err(why) => Err(why),
            });
            let (folder, made) = match made {
                Ok(it) => it,
                Err(it) if matches!(it.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem) => return Ok(false),
                Err(it) => return Err(it),
            };
            let Ok(there) = open_quietly(Some(&folder), Path::new(name)) else { continue };
            let stands = made || is_placeholder(&there, path);
            if stands && there.try_lock_shared().is_err() {
                // Another castor removes it.
                thread::yield_now();
                continue;
            }
            // It may be another one by now, or another folder.
            let Some(number) = number_of(&there, path) else {
                _ = made && remove(&folder, name, &there, what.text());
                continue;
            };
            // Else the user was faster.
            if stands {
                self.standing.push(OpenPlaceholder { path: path.to_owned(), there, what, number, made });
            }
            return Ok(true);
        }
        Err(io::Error::other(format!("nothing can be put at {}", path.display())))
    }

    /// Where they are.
    pub(super) fn paths(&self) -> BTreeSet<&Path> {
        self.standing.iter().map(|it| it.path.as_path()).collect()
    }

    fn note(&self, path: &Path, what: Placeholder) {
        records::record_placeholder(&self.records, path, what, self.standing.is_empty());
    }

    /// A repository whose configuration is protected, and its head.
    pub(super) fn add_guarded(&mut self, git: &Path) {
        self.heads.push(GitHead::of(git));
    }

    /// `before`: what lies in the folders that may be written. `absent`: what git would obey and is not there.
    pub(super) fn set_quarantine(&mut self, before: Quarantine, absent: Vec<PathBuf>, open: &[PathBuf]) {
        let standing = self.standing.iter().map(|it| (it.path.clone(), it.number)).collect();
        let heads = std::mem::take(&mut self.heads);
        let before = before.with(standing, absent, heads, open);
        self.quarantine = before.with_record(&self.records).watched();
    }

    /// What goes with castor: what was mounted on what is hidden. Temporary files are the session's.
    pub fn temporary(&self) -> Option<PathBuf> {
        self.tmp.as_deref().map(views::view_folder)
    }

    /// The folder for temporary files.
    pub fn tmp(&self) -> Option<&Path> {
        self.tmp.as_deref()
    }

    /// Where it is written down what stands.
    pub fn records(&self) -> Option<PathBuf> {
        (!self.standing.is_empty()).then(|| self.records.clone())
    }

    /// What comes by the door.
    pub fn network_record(&self) -> SharedRecord {
        self.door.as_ref().map(|it| it.record.clone()).unwrap_or_default()
    }

    /// What was there before the command.
    pub fn quarantine(&self) -> Arc<Quarantine> {
        self.quarantine.clone()
    }

    /// What was refused in the sandbox.
    pub fn record(&self) -> Option<Arc<SandboxRecord>> {
        self.record.clone()
    }

    /// Ends the processes left in the sandbox, and removes placeholders without another user.
    pub fn release(&mut self) -> RemovedPlaceholders {
        self.life.take().iter().for_each(end_sandbox);
        self.door = None;
        self.quarantine.finish();
        let _alone = lock_placeholders();
        RemovedPlaceholders(self.standing.drain(..).map(OpenPlaceholder::remove_if_last).collect())
    }

    /// Whether the sandbox is empty: its first process has the other end, and goes last.
    pub fn is_sandbox_empty(&self) -> bool {
        self.life.as_ref().is_some_and(|it| waits_for_end(it, 0))
    }

    /// Keeps what is there from being removed by another user of it, if it is a placeholder.
    pub(super) fn share(&mut self, path: &Path, what: Placeholder) {
        let Ok(there) = open_quietly(None, path) else { return };
        // Another's, or a killed castor's, without a record that would lead to it.
        if !is_placeholder(&there, path) {
            return;
        }
        // Its maker's record may end before us.
        self.note(path, what);
        // Who holds it against us is no castor, or removes it: nobody waits for those.
        if there.try_lock_shared().is_ok()
            && let Some(number) = number_of(&there, path)
        {
            self.standing.push(OpenPlaceholder { path: path.to_owned(), there, what, number, made: false });
        }
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        drop(self.release());
    }
}

/// What is gone and still open: the disk forgets it when this is dropped, which takes longer than all else of its end,
/// and which needs no wait.
pub struct RemovedPlaceholders(#[expect(dead_code, reason = "only to be dropped")] Vec<File>);

impl OpenPlaceholder {
    /// Removes it, if that is the last use of it.
    fn remove_if_last(self) -> File {
        let Self { path, there, what, made, .. } = self;
        let may_go = made || is_ours(&there, what.text());
        if there.try_lock().is_err() || !may_go {
            return there;
        }
        let removed = current_place(&there, &path).is_some_and(|it| match (it.parent(), it.file_name()) {
            (Some(above), Some(name)) => open_folder(above).is_ok_and(|it| remove(&it, name, &there, what.text())),
            _ => false,
        });
        if !removed {
            // The user's by now.
            unmark(&there);
        }
        there
    }
}

/// How long the end of those who are left is waited for, in milliseconds. They are killed, and need no more.
const LAST: u8 = 200;

/// Any word ends its reader, and the last of the readers with the rest.
fn end_sandbox(mut life: &PipeWriter) {
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

#[cfg(test)]
mod tests {
    use std::{
        fs::{File, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::{super::placeholder_files::looks_like_placeholder, Placeholder, Placeholders};
    use castor_base::sandbox::SELF_COMMONDIR;

    #[test]
    fn the_last_one_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".vscode");
        let records = dir.path().join("records");
        let (mut one, mut two) = (Placeholders::new(&records), Placeholders::new(&records));
        one.make(&path, Placeholder::Folder).unwrap();
        assert!(looks_like_placeholder(&path));
        two.share(&path, Placeholder::Folder);
        drop(one);
        assert!(path.is_dir());
        drop(two);
        assert!(!path.exists());
    }

    /// Folders are opened as what they are.
    #[test]
    fn no_link_on_the_way_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.join("link")).unwrap();
        assert!(
            Placeholders::new(&root.join("records")).make(&root.join("link/.vscode"), Placeholder::Folder).is_err()
        );
        assert_eq!(std::fs::read_dir(root.join("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn what_the_user_made_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (own, filled) = (dir.path().join(".zed"), dir.path().join(".idea"));
        std::fs::create_dir(&own).unwrap();
        let mut all = Placeholders::new(&dir.path().join("records"));
        all.share(&own, Placeholder::Folder);
        all.make(&filled, Placeholder::Folder).unwrap();
        std::fs::write(filled.join("x"), "mine").unwrap();
        let mode = || std::fs::metadata(&filled).unwrap().permissions().mode() & 0o7000;
        assert_eq!(mode(), 0o1000);
        drop(all);
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
        assert!(!looks_like_placeholder(&at(".npmrc")) && !looks_like_placeholder(&at("config")));
        let mut all = Placeholders::new(&at("records"));
        all.share(&at("config"), Placeholder::File(""));
        all.share(&at(".idea"), Placeholder::Folder);
        assert!(all.make(&at(".npmrc"), Placeholder::File("")).unwrap());
        drop(locked);
        // Another castor's look locks it for a moment.
        all.share(&at(".idea"), Placeholder::Folder);
        drop(all);
        for it in [".npmrc", "config", ".idea"] {
            assert!(at(it).exists(), "{it}");
        }
    }

    /// Another program was faster than the placeholder, or moved its folder.
    #[test]
    fn what_comes_at_the_same_moment_is_the_users_and_a_moved_one_goes_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
        std::fs::create_dir_all(at("w/.git/info")).unwrap();
        std::fs::write(at("w/.git/config.worktree"), "").unwrap();
        let mut all = Placeholders::new(&at("records"));
        for (name, what) in
            [("config.worktree", Placeholder::File("")), ("info", Placeholder::Folder), ("commondir", SELF_COMMONDIR)]
        {
            assert!(all.make(&at("w/.git").join(name), what).unwrap());
        }
        std::fs::rename(at("w"), at("moved")).unwrap();
        std::fs::create_dir_all(at("w/.git")).unwrap();
        // Its folder was opened before.
        assert!(all.make(&at("w/.git/hooks"), Placeholder::Folder).unwrap() && at("w/.git/hooks").exists());
        drop(all);
        assert!(at("moved/.git/info").exists() && at("moved/.git/config.worktree").exists());
        assert!(["w/.git/hooks", "moved/.git/hooks", "moved/.git/commondir"].iter().all(|it| !at(it).exists()));
    }

    #[test]
    fn files_are_placeholders_too_and_what_a_killed_one_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, itself) = (dir.path().join("config.worktree"), dir.path().join("commondir"));
        let records = dir.path().join("records");
        let mut all = Placeholders::new(&records);
        all.make(&empty, Placeholder::File("")).unwrap();
        all.make(&itself, SELF_COMMONDIR).unwrap();
        std::fs::write(&empty, "mine").unwrap();
        drop(all);
        assert!(!itself.exists());
        assert_eq!(std::fs::read_to_string(&empty).unwrap(), "mine");
        let folder = dir.path().join(".zed");
        let check = |text: &str, mode: u32, goes: bool| {
            std::fs::write(&itself, text).unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            for it in [&itself, &folder] {
                std::fs::set_permissions(it, Permissions::from_mode(mode)).unwrap();
            }
            let mut all = Placeholders::new(&records);
            all.share(&itself, SELF_COMMONDIR);
            all.share(&folder, Placeholder::Folder);
            drop(all);
            assert_eq!((itself.exists(), folder.exists()), (!goes, mode & 0o1000 == 0), "{text} {mode:o}");
        };
        check("././.\n", 0o1755, true);
        check("././.\n", 0o755, false);
        check("../..\n", 0o1755, false);
        std::fs::create_dir_all(folder.join("mine")).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1755)).unwrap();
        let mut all = Placeholders::new(&records);
        all.share(&folder, Placeholder::Folder);
        drop(all);
        assert!(folder.join("mine").exists());
    }
}
