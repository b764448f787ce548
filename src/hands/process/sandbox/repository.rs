//! Git folders outside of a root: of linked worktrees, submodules and enclosing repositories.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;

use crate::disk;
use castor_base::path::AbsPath;

/// Longer files say nothing about where a repository is.
const MAX: u64 = 4096;

/// What commands in `root` must write for git to work there; `None`: it is in the root, is another's, or does not know of
/// this root.
pub fn outside_root(root: &AbsPath) -> Option<AbsPath> {
    let real = root.as_path().canonicalize().ok()?;
    let res = real.ancestors().find_map(|folder| found(folder, &real))??;
    let is_ours = fs::symlink_metadata(&res).is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw());
    (is_ours && is_repository(&res) && !res.starts_with(&real)).then(|| AbsPath::new(res)).flatten()
}

/// The git folder of the repository around `dir`.
pub fn around(dir: &AbsPath) -> Option<AbsPath> {
    let git = dir.as_path().ancestors().find_map(|folder| git_folder_of(folder).filter(|it| is_repository(it)))?;
    AbsPath::new(git.canonicalize().ok()?)
}

/// Whether git takes the folder itself for a repository, whose configuration it obeys, where it finds no other.
pub(super) fn is_repository(folder: &Path) -> bool {
    let is_there = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    // As a folder it is a placeholder, at which git fails.
    let is_linked = || fs::metadata(folder.join("commondir")).is_ok_and(|it| it.is_file());
    is_there("HEAD") && (is_there("objects") && is_there("refs") || is_linked())
}

/// The repository that a folder says is its own.
pub(super) fn git_folder_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let there = fs::symlink_metadata(&git).ok()?;
    if there.is_file() { linked_git_folder(&git) } else { Some(git) }
}

/// A folder's answer: nothing, so that the one above is asked; the repository's place; or that it is unknown.
fn found(folder: &Path, root: &Path) -> Option<Option<PathBuf>> {
    let git = folder.join(".git");
    let there = fs::symlink_metadata(&git).ok()?;
    if there.is_file() {
        return Some(linked_git_folder(&git));
    }
    // An empty folder is none to git either.
    if there.is_dir() && !is_repository(&git) {
        return None;
    }
    // The root's own needs nothing, and a link is not followed.
    Some(Some(git).filter(|_| there.is_dir() && folder != root))
}

/// Where a `.git` file leads. Any program can write such a file, so the other end must know of it.
fn linked_git_folder(git: &Path) -> Option<PathBuf> {
    let folder = git.parent()?;
    let inner = folder.join(read(git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let Some(common) = read(&inner.join("commondir")) else {
        let is_submodule = |it: &Path| inner.starts_with(it.join(".git/modules"));
        return folder.ancestors().skip(1).any(is_submodule).then_some(inner);
    };
    let common = inner.join(common.trim_end()).canonicalize().ok()?;
    let back = inner.join(read(&inner.join("gitdir"))?.trim_end()).canonicalize().ok()?;
    (inner.parent() == Some(&common.join("worktrees")) && back == git).then_some(common)
}

pub(super) fn read(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(|it| it.is_file() && it.len() <= MAX)?;
    String::from_utf8(disk::read_head(&AbsPath::new(path)?, MAX).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::outside_root;
    use castor_base::path::AbsPath;

    #[test]
    fn the_repository_of_a_root_is_found_where_it_knows_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let write = |path: &str, text: &str| {
            let path = top.join(path);
            fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
            fs::write(path.as_path(), text).unwrap();
        };
        for it in ["main/.git", "main/.git/modules/sub"] {
            write(&format!("{it}/HEAD"), "ref: refs/heads/main\n");
            fs::create_dir_all(top.join(it).join("objects").as_path()).unwrap();
            fs::create_dir_all(top.join(it).join("refs").as_path()).unwrap();
        }
        write("main/.git/worktrees/tree/commondir", "../..\n");
        write("main/.git/worktrees/tree/gitdir", &format!("{top}/tree/.git\n"));
        write("tree/.git", &format!("gitdir: {top}/main/.git/worktrees/tree\n"));
        write("tree/deep/a", "");
        // Nobody in the repository knows of these.
        write("forged/.git", &format!("gitdir: {top}/main/.git/worktrees/tree\n"));
        write("outright/.git", &format!("gitdir: {top}/main/.git\n"));
        write("alien/.git", &format!("gitdir: {top}/main/.git/modules/sub\n"));
        write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        write("main/src/.git/empty", "");
        write("lone/a", "");
        for (root, want) in [
            ("main", None),
            ("main/src", Some("main/.git")),
            ("main/sub", Some("main/.git/modules/sub")),
            ("tree", Some("main/.git")),
            ("tree/deep", Some("main/.git")),
            ("forged", None),
            ("outright", None),
            ("alien", None),
            ("lone", None),
        ] {
            assert_eq!(outside_root(&top.join(root)), want.map(|it| top.join(it)), "{root}");
        }
    }
}
