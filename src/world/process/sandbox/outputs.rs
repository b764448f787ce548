//! Files outside that a command's output goes to, as its line says and the user allowed. Only what is there can be opened by
//! itself: so what is not is made as the shell would make it, and goes with the command where nothing came.
//!
//! By its time it is known again: nobody else gives a file such a one, and whoever empties, writes or touches it takes it
//! away. There is no lock on it, as the command may lock it itself.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::geteuid,
};

use super::{
    going,
    held::{open_folder, same},
    records,
};

/// Of what castor made and nobody wrote yet.
const TIME: SystemTime = SystemTime::UNIX_EPOCH;

/// A file that was made for a command.
#[derive(Debug)]
pub(super) struct Made {
    path: PathBuf,
    there: File,
    /// As its disk keeps it.
    time: SystemTime,
}

impl Made {
    /// `None`: it is there, or nobody can make it.
    pub fn make(path: &Path, records: &Path) -> Option<Self> {
        match path.symlink_metadata() {
            Ok(_) => {
                adopt(path);
                return None;
            }
            Err(why) if why.kind() != io::ErrorKind::NotFound => return None,
            Err(_) => (),
        }
        records::note_output(records, path);
        let said = |why: &io::Error| tracing::debug!("{} cannot be made: {why}", path.display());
        let there = put(path).inspect_err(said).ok()?;
        let time = there.set_modified(TIME).and_then(|()| there.metadata()?.modified()).ok()?;
        Some(Self { path: path.to_owned(), there, time })
    }

    /// Removes it, if nothing happened to it.
    pub fn let_go(self) {
        let is_untouched = self.there.metadata().and_then(|it| it.modified()).is_ok_and(|it| it == self.time);
        if is_untouched && same(&self.there, &self.path) {
            remove(&self.path, &self.there);
        }
    }
}

/// Another command waits for its output there: it stays, whatever becomes of that.
fn adopt(path: &Path) {
    let folder = path.parent().map(open_folder);
    let (Some(Ok(folder)), Some(name)) = (folder, path.file_name()) else { return };
    if let Ok(there) = going::open_quietly(Some(&folder), Path::new(name))
        && is_untouched(&there)
    {
        _ = there.set_modified(SystemTime::now());
    }
}

fn put(path: &Path) -> io::Result<File> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder: OwnedFd = open_folder(above)?;
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    Ok(File::from(openat(&folder, name, flags, Mode::from_bits_truncate(0o666))?))
}

fn remove(path: &Path, there: &File) -> bool {
    let (Some(Ok(folder)), Some(name)) = (path.parent().map(open_folder), path.file_name()) else { return false };
    going::remove(&folder, name, there, Some(""))
}

/// Empty, the user's, and not written since castor made it.
fn is_untouched(there: &File) -> bool {
    there.metadata().is_ok_and(|it| {
        it.is_file() && it.len() == 0 && it.uid() == geteuid().as_raw() && it.modified().is_ok_and(|it| it == TIME)
    })
}

/// What a castor that was killed made, and nothing came to; whether it was removed.
pub(super) fn sweep(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    // A kill may have come between its two names.
    [path.to_owned(), path.with_file_name(going::going(name))].iter().fold(false, |res, it| {
        let there = it.parent().map(open_folder).and_then(Result::ok);
        let there = there.and_then(|folder| going::open_quietly(Some(&folder), Path::new(it.file_name()?)).ok());
        res | there.is_some_and(|there| is_untouched(&there) && remove(it, &there))
    })
}

/// Whether it may be opened: a file of the user's, which has no other name, and lies where it was said to.
pub(super) fn is_own(path: &Path) -> bool {
    let is_there = path.canonicalize().is_ok_and(|it| it == path);
    is_there
        && fs::symlink_metadata(path).is_ok_and(|it| {
            let runs_as = it.permissions().mode() & 0o6000;
            it.is_file() && it.uid() == geteuid().as_raw() && it.nlink() == 1 && runs_as == 0
        })
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        path::Path,
        time::SystemTime,
    };

    use super::{Made, is_own, sweep};

    fn is_there(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    #[test]
    fn what_nothing_came_to_goes_and_all_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, records) = (root.join("x"), root.join("records"));
        let check = |stays: bool, meanwhile: &dyn Fn()| {
            let made = Made::make(&path, &records).unwrap();
            assert!(is_own(&path));
            meanwhile();
            made.let_go();
            assert_eq!(is_there(&path), stays);
            _ = fs::remove_file(&path);
        };
        check(false, &|| ());
        check(true, &|| fs::write(&path, "x").unwrap());
        check(true, &|| _ = File::create(&path).unwrap());
        check(true, &|| File::open(&path).unwrap().set_modified(SystemTime::now()).unwrap());
        check(false, &|| fs::remove_file(&path).unwrap());
        check(true, &|| {
            fs::write(root.join("y"), "").unwrap();
            fs::rename(root.join("y"), &path).unwrap();
        });
        // Of two that wait for it the one that ends first leaves it to the other.
        check(true, &|| assert!(Made::make(&path, &records).is_none()));
    }

    #[test]
    fn nothing_is_made_where_something_is_or_a_link_leads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (there, records) = (root.join("there"), root.join("records"));
        fs::create_dir(&there).unwrap();
        fs::write(there.join("own"), "").unwrap();
        symlink(&there, root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        fs::hard_link(there.join("own"), there.join("second")).unwrap();
        fs::write(there.join("alone"), "").unwrap();
        assert!(is_own(&there.join("alone")));
        for it in ["link/new", "dangling", "there/own", "no/folder"] {
            assert!(Made::make(&root.join(it), &records).is_none(), "{it}");
        }
        assert_eq!(fs::read_dir(&there).unwrap().count(), 3);
        for it in ["link/alone", "link/own", "dangling", "there", "there/own", "there/new"] {
            assert!(!is_own(&root.join(it)), "{it}");
        }
    }

    #[test]
    fn what_the_dead_made_goes_if_nothing_came() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let records = root.join("records");
        let paths = ["empty", "written", "emptied", "own"].map(|it| root.join(it));
        let made: Vec<Made> = paths.iter().take(3).map(|it| Made::make(it, &records).unwrap()).collect();
        fs::write(&paths[1], "x").unwrap();
        _ = File::create(&paths[2]).unwrap();
        fs::write(&paths[3], "").unwrap();
        // Half gone.
        fs::rename(&paths[0], root.join("empty.castor-going")).unwrap();
        let gone: Vec<bool> = paths.iter().map(|it| sweep(it)).collect();
        assert_eq!(gone, [true, false, false, false]);
        assert!(!root.join("empty.castor-going").exists() && paths[1..].iter().all(|it| it.exists()));
        drop(made);
    }
}
