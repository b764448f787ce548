//! A disk that keeps only what was synced: what a power cut leaves of some folders.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, FileType},
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// By device and inode.
type Id = (u64, u64);

/// What is on the disk itself.
#[derive(Default)]
struct LastingDisk {
    folders: Vec<PathBuf>,
    files: HashMap<Id, Vec<u8>>,
    dirs: HashMap<Id, Vec<(OsString, FileType, Id)>>,
    links: HashMap<Id, PathBuf>,
}

static DISK: Mutex<Option<LastingDisk>> = Mutex::new(None);
/// One test at a time has the disk.
static TURN: Mutex<()> = Mutex::new(());

/// Watches what is synced while it lives.
pub struct PowerCut(#[allow(dead_code)] MutexGuard<'static, ()>);

impl PowerCut {
    /// What is in these folders now is on the disk.
    pub fn watch(folders: &[&Path]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folders = folders.iter().map(|it| it.to_path_buf()).collect();
        *lock() = Some(LastingDisk { folders, ..LastingDisk::default() });
        note_all();
        Self(turn)
    }

    /// What a power cut leaves of a folder, put in another place. A file whose bytes were not written has zeros instead.
    pub fn rebuild(&self, folder: &Path, to: &Path) {
        let disk = lock();
        disk.as_ref().unwrap().rebuild(id(folder), to);
    }
}

impl Drop for PowerCut {
    fn drop(&mut self) {
        *lock() = None;
    }
}

impl LastingDisk {
    fn note_below(&mut self, dir: &Path) {
        let Ok(file) = File::open(dir) else { return };
        self.note_dir(&file);
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                self.note_below(&entry.path());
            } else if kind.is_file() {
                // Files of tests beside this one come and go.
                File::open(entry.path()).iter().for_each(|it| self.note_file(it));
            }
        }
    }

    fn note_file(&mut self, file: &File) {
        let meta = file.metadata().unwrap();
        let Ok(bytes) = fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())) else { return };
        self.files.insert((meta.dev(), meta.ino()), bytes);
    }

    fn note_dir(&mut self, dir: &File) {
        let meta = dir.metadata().unwrap();
        let mut names = Vec::new();
        for entry in fs::read_dir(format!("/proc/self/fd/{}", dir.as_raw_fd())).unwrap().flatten() {
            let Ok(it) = entry.metadata() else { continue };
            let own = (it.dev(), it.ino());
            names.push((entry.file_name(), it.file_type(), own));
            if let Ok(to) = fs::read_link(entry.path()) {
                self.links.insert(own, to);
            }
        }
        self.dirs.insert((meta.dev(), meta.ino()), names);
    }

    fn rebuild(&self, dir: Id, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for (name, kind, own) in self.dirs.get(&dir).into_iter().flatten() {
            let to = to.join(name);
            if kind.is_dir() {
                self.rebuild(*own, &to);
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(&self.links[own], to).unwrap();
            } else {
                fs::write(to, self.files.get(own).map_or(&[0; 7][..], Vec::as_slice)).unwrap();
            }
        }
    }
}

pub fn note_file(file: &File) {
    if let Some(it) = &mut *lock() {
        it.note_file(file);
    }
}

pub fn note_dir(dir: &File) {
    if let Some(it) = &mut *lock() {
        it.note_dir(dir);
    }
}

pub fn note_all() {
    if let Some(it) = &mut *lock() {
        std::mem::take(&mut it.folders).iter().for_each(|folder| {
            it.note_below(folder);
            it.folders.push(folder.clone());
        });
    }
}

fn lock() -> MutexGuard<'static, Option<LastingDisk>> {
    DISK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id(path: &Path) -> Id {
    let meta = fs::metadata(path).unwrap();
    (meta.dev(), meta.ino())
}
