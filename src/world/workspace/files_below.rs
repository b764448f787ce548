//! Files of a folder and those below it, by the end of their names.

use std::{collections::BTreeMap, io};

use crate::{
    base::path::AbsPath,
    world::disk::{self, TreeBounds, TreeFile},
};

/// More files of one kind count as unreadable, all that is over.
pub const MAX_FILES: usize = 200;

/// Looks that belong together: in a folder that is not there, none of them looks. Nearly all places where something could be
/// lie in a few folders that few users have.
#[derive(Default)]
pub struct SharedLook {
    folders: BTreeMap<AbsPath, bool>,
}

impl SharedLook {
    /// Whether the folder of this path is there.
    pub fn may_have(&mut self, path: &AbsPath) -> bool {
        let Some(folder) = path.parent() else { return true };
        *self.folders.entry(folder).or_insert_with_key(|it| disk::metadata(it).is_ok_and(|it| it.is_dir))
    }

    /// Those that can be read.
    pub fn files_below(&mut self, folder: &AbsPath, end: &str, depth: usize) -> Vec<AbsPath> {
        let all = if self.may_have(folder) { files_below(folder, end, depth) } else { Vec::new() };
        all.into_iter().flatten().collect()
    }
}

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
