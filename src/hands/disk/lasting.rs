//! Writes that last: what makes files and their names survive a power cut. Unit tests have a disk of their own for that.

pub mod new_files;

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::fd::AsFd,
};

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

#[cfg(test)]
use super::fault;
use super::parallel::in_parallel;

/// So many files are written out one by one. More are written out with their whole disk, in one go.
const FEW: usize = 32;

/// Waits until the bytes of a file are on the disk itself.
pub fn sync_file(file: &File) -> io::Result<()> {
    #[cfg(test)]
    fault::disk::note_file(file);
    if cfg!(test) { Ok(()) } else { file.sync_data() }
}

/// Waits until the names in a folder are on the disk itself. A folder need not be open to be read; one that nobody may
/// read, or on a disk that syncs no folders, is passed over.
pub fn sync_dir(dir: impl AsFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = openat(dir, ".", flags, Mode::empty()).map_err(io::Error::from).and_then(|it| {
        let dir = File::from(it);
        #[cfg(test)]
        fault::disk::note_dir(&dir);
        if cfg!(test) { Ok(()) } else { dir.sync_all() }
    });
    match synced {
        Err(it) if matches!(it.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => Ok(()),
        other => other,
    }
}

/// Syncs many. `within` is a folder on their disk.
pub fn sync_many<T: Sync>(within: impl AsFd, all: &[T], sync: impl Fn(&T) -> io::Result<()> + Sync) -> io::Result<()> {
    if all.len() > FEW {
        return sync_disk(within);
    }
    // Waits at the same time are often one wait.
    in_parallel(all, sync).into_iter().collect()
}

/// Waits until all that the disk of a folder still has to write is on it.
pub fn sync_disk(dir: impl AsFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = match openat(dir, ".", flags, Mode::empty()) {
        // Nobody may read it, and no other way leads to its disk.
        Err(Errno::ACCESS) => return Ok(()),
        it => it?,
    };
    #[cfg(test)]
    fault::disk::note_all();
    if cfg!(test) { Ok(()) } else { sync_all_of(&dir) }
}

#[cfg(target_os = "linux")]
fn sync_all_of(dir: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(dir)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_all_of(_: impl AsFd) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}
