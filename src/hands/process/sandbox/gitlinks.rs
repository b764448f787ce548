//! Repositories staged in git's index as gitlinks: git looks into each of them at every status.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{git_config::settings, git_config_paths::text_of, plain_repository::target_of};
use crate::disk::{
    self,
    git_index::{MODE, entries},
};
use castor_base::path::AbsPath;

/// Longer indexes are not read.
const MAX: u64 = 256 << 20;
const GITLINK: [u8; 4] = 0o160_000_u32.to_be_bytes();

/// An index as it was read: number, size and time of its last change, in seconds and nanoseconds.
type Version = (u64, u64, i64, i64);

static KNOWN: Mutex<BTreeMap<PathBuf, (Version, BTreeSet<PathBuf>)>> = Mutex::new(BTreeMap::new());

/// Folders below a root that are staged as repositories. An index that did not change is not read again.
pub(super) fn staged(root: &Path) -> BTreeSet<PathBuf> {
    let Some((top, index)) = index_around(root) else { return BTreeSet::new() };
    let Ok(there) = fs::metadata(&index) else { return BTreeSet::new() };
    let version = (there.ino(), there.len(), there.ctime(), there.ctime_nsec());
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.get(&index).filter(|it| it.0 == version).map(|it| it.1.clone());
    let found = known.unwrap_or_else(|| {
        let links = [index.clone()].into_iter().chain(shared_indexes(&index)).flat_map(|it| links_in(&it));
        links.map(|it| top.join(OsStr::from_bytes(&it))).collect()
    });
    all.insert(index, (version, found.clone()));
    found.into_iter().filter(|it| it.starts_with(root)).collect()
}

/// The paths that an index has as repositories.
fn links_in(index: &Path) -> Vec<Vec<u8>> {
    let bytes = AbsPath::new(index).and_then(|it| disk::read_head(&it, MAX).ok()).unwrap_or_default();
    let links = entries(&bytes).unwrap_or_default().into_iter().filter(|it| it.0.get(MODE) == Some(&GITLINK[..]));
    links.map(|it| it.1.into_owned()).collect()
}

/// An index may be split: what is in these stands in it as well, unless it says otherwise.
fn shared_indexes(index: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = index.parent().and_then(|it| fs::read_dir(it).ok()).into_iter().flatten().filter_map(Result::ok);
    beside.filter(|it| it.file_name().as_bytes().starts_with(b"sharedindex.")).map(|it| it.path())
}

/// Those of them that `.gitmodules` does not name.
pub(super) fn unnamed(root: &Path) -> BTreeSet<PathBuf> {
    let mut res = staged(root);
    if let Some((top, _)) = index_around(root).filter(|_| !res.is_empty()) {
        let text = text_of(&top.join(".gitmodules")).unwrap_or_default();
        let named = settings(&text).into_iter().filter(|it| it.0 == "submodule" && it.1 == "path");
        named.for_each(|it| _ = res.remove(&top.join(it.2)));
    }
    res
}

/// The index of the repository around a folder, and its top.
fn index_around(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let top = root.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())?;
    let git = top.join(".git");
    let git = if git.is_file() { target_of(&git, "gitdir:")? } else { git };
    Some((top.to_owned(), git.join("index")))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{staged, unnamed};

    /// An index with two entries of that mode, as git writes it.
    fn index(mode: u32) -> Vec<u8> {
        let mut res = [&b"DIRC\0\0\0\x02"[..], &2_u32.to_be_bytes()].concat();
        for path in ["m", "sub/n"] {
            let mut entry = [vec![0; 24], mode.to_be_bytes().to_vec(), vec![0; 34], path.into()].concat();
            entry.resize((entry.len() + 8) & !7, 0);
            res.extend(entry);
        }
        res
    }

    #[test]
    fn staged_repositories_are_found_and_those_that_no_file_names_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join(".git")).unwrap();
        let found = |root: &Path| (staged(root).len(), unnamed(root).len());
        assert_eq!(found(&top), (0, 0));
        fs::write(top.join(".git/index"), index(0o160_000)).unwrap();
        assert_eq!(found(&top), (2, 2));
        assert_eq!(staged(&top.join("sub")), [top.join("sub/n")].into());
        fs::write(top.join(".gitmodules"), "[submodule \"x\"]\n\tpath = m\n\turl = ../m\n").unwrap();
        assert_eq!(unnamed(&top), [top.join("sub/n")].into());
        // A split index has the most of its entries in another file.
        fs::write(top.join(".git/sharedindex.00"), index(0o160_000)).unwrap();
        fs::write(top.join(".git/index.new"), index(0o100_644)).unwrap();
        fs::rename(top.join(".git/index.new"), top.join(".git/index")).unwrap();
        assert_eq!(found(&top), (2, 1));
        fs::remove_file(top.join(".git/sharedindex.00")).unwrap();
        fs::write(top.join(".git/index.new"), index(0o100_644)).unwrap();
        fs::rename(top.join(".git/index.new"), top.join(".git/index")).unwrap();
        assert_eq!(found(&top), (0, 0));
    }
}
