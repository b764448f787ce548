//! Git submodules: their folders in `.git/modules`.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use super::repository::is_repository;

/// How many of them are written, at most, and how many folders are read to find them. Each costs a dozen mounts before
/// every command; what is beyond stays read-only, and a question opens it.
const MOST: usize = 32;
const FOLDERS: usize = 200;

/// Those that are there. Links are not followed: nothing is made writable where one leads.
pub(super) fn of(modules: &Path) -> Vec<PathBuf> {
    let is_folder = |it: &Path| fs::symlink_metadata(it).is_ok_and(|it| it.is_dir());
    let mut waiting: VecDeque<PathBuf> = Some(modules.to_owned()).into_iter().filter(|it| is_folder(it)).collect();
    let mut res = Vec::new();
    for _ in 0..FOLDERS {
        let Some(folder) = waiting.pop_front().filter(|_| res.len() < MOST) else { break };
        // Those of its own are found when it is looked at.
        if folder != modules && is_repository(&folder) {
            res.push(folder);
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
        let mut folders: Vec<PathBuf> = entries.filter(|it| is_folder(it)).collect();
        folders.sort();
        waiting.extend(folders);
    }
    res
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{MOST, of};

    #[test]
    fn submodules_are_found_by_what_is_in_them_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            for it in ["objects", "refs"] {
                fs::create_dir_all(dir.path().join(name).join(it)).unwrap();
            }
            fs::write(dir.path().join(name).join("HEAD"), "ref: refs/heads/main").unwrap();
        };
        ["modules/a", "modules/vendor/b", "modules/a/modules/c", "other"].into_iter().for_each(make);
        fs::create_dir_all(dir.path().join("modules/empty")).unwrap();
        std::os::unix::fs::symlink("../other", dir.path().join("modules/link")).unwrap();
        let found = |it: &str| of(&dir.path().join(it));
        assert_eq!(found("modules"), ["modules/a", "modules/vendor/b"].map(|it| dir.path().join(it)));
        assert_eq!(found("modules/a/modules"), [dir.path().join("modules/a/modules/c")]);
        assert!(found("none").is_empty());
        std::os::unix::fs::symlink("modules", dir.path().join("led")).unwrap();
        assert!(found("led").is_empty());
        (0..MOST + 3).for_each(|it| make(&format!("many/{it}")));
        assert_eq!(found("many").len(), MOST);
    }
}
