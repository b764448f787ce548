//! Where the roots keep secrets, by name: for commands that would come upon them, and for files that are the same under
//! another name.

use ignore::WalkBuilder;

use crate::{
    base::{guarded::SECRETS, path::AbsPath},
    world::disk::{self, FileId},
};

/// Entries that are looked at. Behind these, a file of secrets is guarded under its own name only.
const MAX_ENTRIES: usize = 5_000;
const MAX_FOUND: usize = 200;
const SKIPPED: &[&str] = &["node_modules", ".git", "target", ".venv", "dist", "build", "__pycache__"];

/// What the roots hold, by name.
#[derive(Debug, Default)]
pub struct Kept {
    /// Files of secrets.
    pub secrets: Vec<AbsPath>,
    /// Links, wherever they lead: who follows them may come upon more.
    pub links: Vec<AbsPath>,
}

/// Names are looked at, and no content. Blocks.
pub fn look(roots: &[AbsPath]) -> Kept {
    let mut res = Kept::default();
    for root in roots {
        let mut builder = WalkBuilder::new(root);
        builder.standard_filters(false).follow_links(false).filter_entry(|it| {
            !it.file_type().is_some_and(|it| it.is_dir())
                || it.file_name().to_str().is_none_or(|it| !SKIPPED.contains(&it))
        });
        let (mut n_secrets, mut n_links) = (0, 0);
        for entry in builder.build().take(MAX_ENTRIES).flatten() {
            let Some(kind) = entry.file_type() else { continue };
            let Some(path) = AbsPath::new(entry.path()) else { continue };
            let is_secret = || entry.path().strip_prefix(root).is_ok_and(|it| SECRETS.find(it).is_some());
            if kind.is_symlink() && n_links < MAX_FOUND {
                n_links += 1;
                res.links.push(path);
            } else if kind.is_file() && n_secrets < MAX_FOUND && is_secret() {
                n_secrets += 1;
                res.secrets.push(path);
            }
        }
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
        Self::of(&look(roots).secrets)
    }

    /// Of these files. Blocks.
    pub fn of(secrets: &[AbsPath]) -> Self {
        let shared = |it: &AbsPath| Some((disk::shared_id(it)?, it.clone()));
        Self { kept: secrets.iter().filter_map(shared).collect() }
    }

    /// The file of secrets that `path` is another name of. Blocks.
    pub fn secret_of(&self, path: &AbsPath) -> Option<&AbsPath> {
        let id = disk::shared_id(path)?;
        self.kept.iter().find(|(it, _)| *it == id).map(|(_, it)| it).filter(|it| *it != path)
    }
}
