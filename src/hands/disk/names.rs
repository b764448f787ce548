//! File names apart from their contents: symlinks, hard links and stamps.
#![allow(clippy::disallowed_methods)]

use std::{borrow::Borrow, collections::HashSet, fs, io};

use super::{Meta, names, parallel::in_parallel};
use castor_base::path::AbsPath;

/// Tells whether something has that name, also a link that leads nowhere.
pub fn path_exists(path: &AbsPath) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// More names than this in a folder are not looked through.
const MAX_NAMES: usize = 4096;

/// The real paths of what may lie in a folder, which is a real one. Most of it is not there: that takes one look at the
/// folder, where each name by itself takes one.
pub fn real_paths_in<'a>(folder: &AbsPath, wanted: impl Iterator<Item: Borrow<&'a str>>) -> Vec<AbsPath> {
    let found = names(folder.as_path(), MAX_NAMES).ok().flatten();
    // A disk may find a name in any case.
    let found: Option<HashSet<String>> = found.map(|it| it.iter().map(|it| it.to_lowercase()).collect());
    let real = |name: &str| {
        let (path, first) = (folder.join(name), name.split('/').next().unwrap_or(name));
        match found.as_ref().is_none_or(|it| it.contains(&first.to_lowercase())) {
            true => super::real_path(&path).unwrap_or(path),
            false => path,
        }
    };
    wanted.map(|it| real(it.borrow())).collect()
}

/// The identity of a file, whatever its names: device and number.
pub type FileId = (u64, u64);

/// Of a regular file that has more than one name. Elsewhere than on Unix nobody knows.
pub fn hard_link_id(path: &AbsPath) -> Option<FileId> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let it = fs::metadata(path).ok()?;
        (it.is_file() && it.nlink() > 1).then(|| (it.dev(), it.ino()))
    }
    #[cfg(not(unix))]
    {
        _ = path;
        None
    }
}

/// Files of a folder whose names are wanted, in any order; links count as what they point to. For folders with thousands
/// of them: each is looked up in the open folder, by several threads.
///
/// # Errors
/// A folder that is not there or cannot be read.
pub fn stat_files(folder: &AbsPath, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<(String, Meta)>> {
    let mut wanted = names(folder.as_path(), usize::MAX)?.unwrap_or_default();
    wanted.retain(|it| is_wanted(it));
    let stat = stat_in(folder)?;
    let found = in_parallel(&wanted, |it| Some((it.clone(), stat(it)?)));
    Ok(found.into_iter().flatten().collect())
}

#[cfg(unix)]
fn stat_in(folder: &AbsPath) -> io::Result<impl Fn(&str) -> Option<Meta> + Sync> {
    use rustix::fs::{AtFlags, Mode, OFlags, open, statat};
    let folder = open(folder.as_path(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(move |name: &str| {
        let it = statat(&folder, name, AtFlags::empty()).ok()?;
        let ms = i128::from(it.st_mtime) * 1000 + i128::from(it.st_mtime_nsec) / 1_000_000;
        let is_dir = super::dirfd::file_type(&it).is_dir();
        Some(Meta { is_dir, len: it.st_size as u64, modified_ms: ms.max(0) as u64 })
    })
}

#[cfg(not(unix))]
fn stat_in(folder: &AbsPath) -> io::Result<impl Fn(&str) -> Option<Meta> + Sync> {
    let folder = folder.clone();
    Ok(move |name: &str| super::metadata(&folder.join(name)).ok())
}

/// By what it is seen that a file is another one, or was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub len: u64,
    modified_ns: i128,
    id: FileId,
    /// When anything about it changed (Unix, seconds): nobody can set that back.
    pub changed_s: i64,
}

/// Of a regular file, and of no link to one.
pub fn read_stamp(path: &AbsPath) -> Option<Stamp> {
    let it = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let modified_ns = i128::from(it.mtime()) * 1_000_000_000 + i128::from(it.mtime_nsec());
        Some(Stamp { len: it.len(), modified_ns, id: (it.dev(), it.ino()), changed_s: it.ctime() })
    }
    #[cfg(not(unix))]
    {
        let modified = it.modified().ok().and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok())?;
        Some(Stamp { len: it.len(), modified_ns: modified.as_nanos() as i128, id: (0, 0), changed_s: i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::real_paths_in;
    use castor_base::path::AbsPath;

    #[test]
    #[cfg(unix)]
    fn links_in_a_folder_are_followed() {
        let temp = tempfile::tempdir().unwrap();
        let root = super::super::real_path(&AbsPath::new(temp.path()).unwrap()).unwrap();
        std::fs::create_dir_all(root.join("there/deep")).unwrap();
        std::os::unix::fs::symlink(root.join("there"), root.join(".Linked")).unwrap();
        let wanted = [".Linked/deep", ".Linked/none", "there", "missing/deep"];
        let expected = ["there/deep", "there/none", "there", "missing/deep"].map(|it| root.join(it));
        assert_eq!(real_paths_in(&root, wanted.iter()), expected);
        let nowhere = root.join("nowhere");
        assert_eq!(real_paths_in(&nowhere, ["a"].iter()), [nowhere.join("a")]);
    }
}
