//! Memory files of subfolders, read when the work reaches them.

use std::collections::BTreeSet;

use super::{FoundFiles, FoundMemory, MemoryRoot, MemorySearch, folders_down, memory_roots};
use crate::workspace::{Reader, castor_home, gemini_home, trust};
use castor_base::{memory::Tier, path::AbsPath, trust::Trust};
use castor_hands::disk;

/// More folders are not looked at for one answer of the model.
const MAX_FOLDERS: usize = 64;
/// What lies in such folders nobody of the project wrote.
const SKIPPED_FOLDERS: &[&str] = &[".git", "node_modules"];

/// Those from below a trusted root down to each of the places, files or folders. What [`read`](super::read) reads is not
/// among them, under whatever name.
pub fn read_nested(wanted: &MemorySearch, places: &[AbsPath]) -> FoundFiles {
    let grounds = memory_roots(wanted);
    let mut found = FoundMemory::of(wanted);
    for home in [gemini_home(&wanted.env), castor_home(&wanted.env)].into_iter().flatten() {
        found.mark_read(&home);
    }
    for MemoryRoot { root, top } in &grounds {
        folders_down(top, root).iter().for_each(|it| found.mark_read(it));
    }
    let mut seen = BTreeSet::new();
    for place in places {
        let Some((ground, folder)) = folder_of(place, &grounds) else { continue };
        for folder in below(&ground.root, &folder) {
            if seen.contains(&folder) {
                continue;
            }
            if seen.len() >= MAX_FOLDERS || is_untrusted(wanted, &folder) {
                break;
            }
            found.take(&folder, Tier::Project, Some(&ground.top));
            seen.insert(folder);
        }
    }
    found.found
}

/// The folder of a place where that really is, and the root it lies in: the nearest.
fn folder_of<'g>(place: &AbsPath, grounds: &'g [MemoryRoot]) -> Option<(&'g MemoryRoot, AbsPath)> {
    let real = disk::real_path(place).ok()?;
    let folder = if disk::metadata(&real).ok()?.is_dir { real } else { real.parent()? };
    let around = grounds.iter().filter(|it| folder.is_within(&it.root));
    around.max_by_key(|it| it.root.as_path().components().count()).map(|it| (it, folder))
}

fn below(root: &AbsPath, folder: &AbsPath) -> impl Iterator<Item = AbsPath> {
    folders_down(root, folder).into_iter().skip(1)
}

/// A no to a folder within a trusted one counts for what is in it, too.
fn is_untrusted(wanted: &MemorySearch, folder: &AbsPath) -> bool {
    let name = folder.as_path().file_name().and_then(|it| it.to_str());
    let is_foreign = name.is_some_and(|it| SKIPPED_FOLDERS.contains(&it));
    is_foreign || matches!(trust::read(&wanted.env, folder, Reader::disk()).0, Trust::Untrusted(_))
}

impl FoundMemory<'_> {
    /// What is there was read before.
    fn mark_read(&mut self, folder: &AbsPath) {
        let real = self.names.iter().filter_map(|it| disk::real_path(&folder.join(it)).ok());
        self.seen.extend(real);
    }
}
