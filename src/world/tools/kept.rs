//! Where the roots keep secrets, by name: for commands that would come upon them, and for files that are the same under
//! another name.

use ignore::WalkBuilder;

use crate::{
    base::{guarded::SECRETS, path::AbsPath},
    world::disk::{self, FileId},
};

/// Entries that are looked at. Behind these a file of secrets is guarded under its own name only.
const MAX_ENTRIES: usize = 5_000;
const MAX_FOUND: usize = 200;
const SKIPPED: &[&str] = &["node_modules", ".git", "target", ".venv", "dist", "build", "__pycache__"];

/// Files of secrets below the roots. Names are looked at, and no content. Blocks.
pub fn secrets(roots: &[AbsPath]) -> Vec<AbsPath> {
    let mut res = Vec::new();
    for root in roots {
        let mut builder = WalkBuilder::new(root);
        builder.standard_filters(false).follow_links(false).filter_entry(|it| {
            !it.file_type().is_some_and(|it| it.is_dir())
                || it.file_name().to_str().is_none_or(|it| !SKIPPED.contains(&it))
        });
        let files =
            builder.build().take(MAX_ENTRIES).flatten().filter(|it| it.file_type().is_some_and(|it| it.is_file()));
        let kept = files.filter(|it| it.path().strip_prefix(root).is_ok_and(|it| SECRETS.find(it).is_some()));
        res.extend(kept.filter_map(|it| AbsPath::new(it.into_path())).take(MAX_FOUND));
    }
    res
}

/// A hard link is no link that could be followed: the file has two names, and only one of them says what it is.
pub struct Aliases {
    kept: Vec<(FileId, AbsPath)>,
}

impl Aliases {
    /// Blocks.
    pub fn look(roots: &[AbsPath]) -> Self {
        let shared = |it: AbsPath| Some((disk::shared_id(&it)?, it));
        Self { kept: secrets(roots).into_iter().filter_map(shared).collect() }
    }

    /// The file of secrets that `path` is another name of. Blocks.
    pub fn secret_of(&self, path: &AbsPath) -> Option<&AbsPath> {
        let id = disk::shared_id(path)?;
        self.kept.iter().find(|(it, _)| *it == id).map(|(_, it)| it).filter(|it| *it != path)
    }
}
