//! Values in tracked files: git has copies of them, so they are not secret.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;

use castor_base::path::AbsPath;
use castor_hands::disk::{
    self,
    git_index::{Entry, MODE, SIZE, entries},
};

/// Of a larger index nobody knows what is in it.
const MAX_INDEX: u64 = 16 << 20;
/// Files that are read for it: larger ones are data, and of all together no more is looked at.
const MAX_FILE: u64 = 256 << 10;
const MAX_FILES: usize = 4000;
const MAX_ALL: u64 = 24 << 20;
/// How the mode of a regular file begins, in an index.
const REGULAR: [u8; 3] = [0, 0, 0x81];

/// Those of `values` that stand in tracked files around `roots` that nobody changed since `since_s` (Unix, seconds): what
/// commands of the session put there makes nothing public. Files of secrets count, too: who commits one publishes it.
/// Blocks.
pub fn tracked_values(values: &BTreeSet<String>, roots: &[AbsPath], since_s: i64) -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    let list: Vec<&String> = values.iter().collect();
    let Ok(matcher) = AhoCorasick::new(&list) else { return res };
    let (mut n_files, mut left) = (0, MAX_ALL);
    let tops: BTreeSet<AbsPath> = roots.iter().filter_map(top_of).collect();
    for (path, len) in tops.iter().flat_map(|top| files_of(top).unwrap_or_default()) {
        if len > MAX_FILE || len > left || disk::read_stamp(&path).is_none_or(|it| it.changed_s >= since_s) {
            continue;
        }
        (n_files, left) = (n_files + 1, left - len);
        if n_files > MAX_FILES {
            break;
        }
        let bytes = disk::read_real_head(&path, MAX_FILE).unwrap_or_default();
        let found = matcher.find_overlapping_iter(&bytes).filter_map(|it| list.get(it.pattern().as_usize()));
        res.extend(found.map(|it| (*it).clone()));
    }
    res
}

/// The work tree that a folder is in.
fn top_of(folder: &AbsPath) -> Option<AbsPath> {
    std::iter::successors(Some(folder.clone()), AbsPath::parent).find(|it| disk::path_exists(&it.join(".git")))
}

fn index_of(top: &AbsPath) -> Option<AbsPath> {
    let git = top.join(".git");
    if disk::metadata(&git).ok()?.is_dir {
        return Some(git.join("index"));
    }
    // Of a work tree that was added to a repository: a file says where its own part of that is.
    let text = String::from_utf8(disk::read_head(&git, 4096).ok()?).ok()?;
    Some(top.join(text.trim().strip_prefix("gitdir:")?.trim()).join("index"))
}

/// Regular files of the index with their sizes; `None`: nobody can say.
fn files_of(top: &AbsPath) -> Option<Vec<(AbsPath, u64)>> {
    let bytes = disk::read_head(&index_of(top)?, MAX_INDEX).ok()?;
    let files = entries(&bytes)?.into_iter().filter(|it| it.0.get(MODE).is_some_and(|it| it.starts_with(&REGULAR)));
    let file = |(head, path): Entry| {
        let size = u32::from_be_bytes(head.get(SIZE)?.try_into().ok()?);
        Some((top.join(String::from_utf8_lossy(&path).as_ref()), u64::from(size)))
    };
    Some(files.filter_map(file).filter(|it| it.0.is_within(top)).collect())
}
