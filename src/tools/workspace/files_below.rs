//! Files of a folder and those below it, by the end of their names.

use std::io;

use castor_base::path::AbsPath;
use castor_hands::disk::{self, TreeBounds, TreeFile};

/// More files of one kind count as unreadable, all that is over.
pub const MAX_FILES: usize = 200;

/// What git, programs and users put beside files of configuration. It is no part of a yes to them.
const SKIPPED: &[&str] = &[".DS_Store", ".env", ".git", ".venv", "__pycache__"];

/// The files of a tree that a yes to it covers.
///
/// # Errors
/// As [`disk::list_tree`].
pub fn covered_files(folder: &AbsPath, bounds: TreeBounds) -> io::Result<Vec<TreeFile>> {
    disk::list_tree(folder, &|name| SKIPPED.contains(&name), bounds)
}

/// Files whose name ends with `end`, in folders at most `depth` deep, by name; as errors, folders that cannot be read.
pub fn files_below(folder: &AbsPath, end: &str, depth: usize) -> Vec<Result<AbsPath, AbsPath>> {
    let mut entries = match disk::read_dir(folder) {
        Ok(it) => it,
        Err(it) if matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Vec::new(),
        Err(_) => return vec![Err(folder.clone())],
    };
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut res = Vec::new();
    for it in entries {
        let path = folder.join(&it.name);
        match it.is_dir {
            true if depth > 0 && res.len() <= MAX_FILES => res.extend(files_below(&path, end, depth - 1)),
            false if it.name.ends_with(end) => res.push(Ok(path)),
            _ => (),
        }
        if res.len() > MAX_FILES {
            break;
        }
    }
    res
}
