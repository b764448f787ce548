//! Folders of git's worktrees: the places of one folder in all checkouts of its repository. git itself is not run.

use std::collections::BTreeSet;

use crate::disk;
use castor_base::path::AbsPath;

/// Files of git with one path in them, in bytes.
const MAX_LINK: u64 = 16 * 1024;
/// Checkouts of one repository.
const MAX_WORKTREES: usize = 256;

/// The folder by its own name and its real one, then the same place in the repository's other checkouts.
pub fn worktree_folders(folder: &AbsPath) -> BTreeSet<AbsPath> {
    let mut res = real_names(folder);
    let Ok(real) = disk::real_path(folder) else { return res };
    let found = std::iter::successors(Some(real.clone()), AbsPath::parent).find_map(|it| Some((common_dir(&it)?, it)));
    let Some((common, root)) = found else { return res };
    let place = real.as_path().strip_prefix(root.as_path()).unwrap_or(real.as_path()).to_owned();
    for checkout in checkouts(&common) {
        let there = checkout.join(&place);
        if disk::metadata(&there).is_ok_and(|it| it.is_dir) {
            res.extend(real_names(&there));
        }
    }
    res
}

/// A folder by its own name and its real one.
pub fn real_names(folder: &AbsPath) -> BTreeSet<AbsPath> {
    disk::real_path(folder).into_iter().chain([folder.clone()]).collect()
}

/// What the checkouts of a repository share, if this folder is one of them.
fn common_dir(folder: &AbsPath) -> Option<AbsPath> {
    let git = folder.join(".git");
    if disk::metadata(&git).ok()?.is_dir {
        return Some(git);
    }
    let inner = folder.join(link(&git)?.strip_prefix("gitdir:")?.trim());
    let common = inner.join(link(&inner.join("commondir"))?.trim());
    disk::real_path(&common).ok()
}

/// The checkouts that are there: the primary one, if there is one, and the linked ones.
fn checkouts(common: &AbsPath) -> Vec<AbsPath> {
    let primary = common.parent().filter(|_| common.as_path().ends_with(".git"));
    let entries = disk::read_dir(&common.join("worktrees")).unwrap_or_default();
    let linked = entries.iter().take(MAX_WORKTREES).filter_map(|it| {
        let inner = common.join("worktrees").join(&it.name);
        inner.join(link(&inner.join("gitdir"))?.trim()).parent()
    });
    primary.into_iter().chain(linked).filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir)).collect()
}

fn link(file: &AbsPath) -> Option<String> {
    // A pipe of that name would never end.
    file.as_path().is_file().then_some(())?;
    Some(String::from_utf8_lossy(&disk::read_head(file, MAX_LINK).ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{real_names, worktree_folders};
    use castor_base::path::AbsPath;

    #[test]
    fn a_folder_has_its_place_in_every_checkout() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in ["main/src", "tree/src", "bare", "alone"] {
            fs::create_dir_all(top.join(it)).unwrap();
        }
        let write = |path: &str, text: &str| {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, place) in [("tree", "tree"), ("gone", "gone")] {
            write(&format!("main/.git/worktrees/{name}/commondir"), "../..\n");
            write(&format!("main/.git/worktrees/{name}/gitdir"), &format!("{top}/{place}/.git\n"));
        }
        write("tree/.git", &format!("gitdir: {top}/main/.git/worktrees/tree\n"));
        let names =
            |it: &str| worktree_folders(&top.join(it)).iter().map(|it| it.relative_to(&top)).collect::<Vec<_>>();
        assert_eq!(names("main"), ["main", "tree"]);
        assert_eq!(names("tree"), ["main", "tree"]);
        assert_eq!(names("main/src"), ["main/src", "tree/src"]);
        // What is not in the other checkout is nowhere else.
        fs::create_dir(top.join("tree/docs")).unwrap();
        assert_eq!(names("tree/docs"), ["tree/docs"]);
        assert_eq!(names("alone"), ["alone"]);
        assert_eq!(names("nowhere"), ["nowhere"]);
        std::os::unix::fs::symlink(top.join("alone"), top.join("link")).unwrap();
        assert_eq!(real_names(&top.join("link")).len(), 2);
    }
}
