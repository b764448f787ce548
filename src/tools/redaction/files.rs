//! Secret files of a workspace, found by name.

use std::collections::{BTreeSet, VecDeque};

use super::values;
use castor_base::{guarded_names::SECRETS, path::AbsPath};
use castor_hands::disk;

/// Entries that are looked at in a root, those that lie higher first.
const MAX_ENTRIES: usize = 5000;
const MAX_FOUND: usize = 200;
/// Entries of a folder in the home folder, and those of the home folder are asked for by name.
const MAX_OF_FOLDER: usize = 50;
/// Of a file, in bytes. Larger ones are stores of programs.
const MAX_BYTES: u64 = 256 << 10;
/// Folders with too much in them.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", ".git", "target", ".venv", "dist", "build", "__pycache__"];
/// What is published in the place of a file of secrets.
const TEMPLATES: &[&str] = &["example", "sample", "template", "dist"];

#[derive(Default)]
pub struct Files {
    since_s: i64,
    /// Real paths.
    pub secrets: BTreeSet<AbsPath>,
    /// Values in templates, which hold no secrets.
    pub template_values: BTreeSet<String>,
}

/// Names are looked at, and what is in templates. Blocks. `since_s`: templates that changed since then (Unix, seconds) may have been made by a command of the session.
pub fn find(roots: &[AbsPath], home: Option<&AbsPath>, since_s: i64) -> Files {
    let mut res = Files { since_s, ..Files::default() };
    roots.iter().for_each(|it| res.walk(it));
    home.into_iter().for_each(|it| res.scan_home(it));
    res
}

/// The values in a file. Blocks.
pub fn read(path: &AbsPath) -> BTreeSet<String> {
    text_of(path).map(|it| values::secrets(&it)).unwrap_or_default()
}

/// `None`: it is no text, or too much of it.
fn text_of(path: &AbsPath) -> Option<String> {
    let bytes = disk::read_real_head(path, MAX_BYTES + 1).ok().filter(|it| it.len() as u64 <= MAX_BYTES)?;
    String::from_utf8(bytes).ok()
}

impl Files {
    fn walk(&mut self, root: &AbsPath) {
        let (mut folders, mut n) = (VecDeque::from([root.clone()]), 0);
        while let Some(folder) = folders.pop_front().filter(|_| n < MAX_ENTRIES) {
            for (name, kind) in disk::entries(&folder, MAX_ENTRIES - n) {
                n += 1;
                let path = folder.join(&name);
                let name = name.to_string_lossy();
                match kind.is_dir() {
                    true if SKIPPED_FOLDERS.contains(&&*name) => (),
                    true => folders.push_back(path),
                    false if is_template(&name) => self.take_template(&path),
                    false => self.take(root, &path, kind.is_symlink()),
                }
            }
        }
    }

    /// A link with such a name leads to a file of secrets whatever that is called, unless it leads out of the root.
    fn take(&mut self, root: &AbsPath, path: &AbsPath, is_link: bool) {
        let Ok(below) = path.as_path().strip_prefix(root.as_path()) else { return };
        if self.secrets.len() >= MAX_FOUND || SECRETS.find(below).is_none() || is_history(path) {
            return;
        }
        let real =
            if is_link { disk::real_path(path).ok().filter(|it| it.is_within(root)) } else { Some(path.clone()) };
        self.secrets.extend(real);
    }

    fn take_template(&mut self, path: &AbsPath) {
        if disk::read_stamp(path).is_none_or(|it| it.changed_s >= self.since_s) {
            return;
        }
        self.template_values.extend(text_of(path).iter().flat_map(|it| values::template_values(it)));
    }

    /// The home folder is not walked: the names are known.
    fn scan_home(&mut self, home: &AbsPath) {
        let paths = SECRETS.paths.iter().filter(|it| !it.starts_with('/'));
        for path in SECRETS.names.iter().chain(paths).map(|it| home.join(it)).filter(|it| !is_history(it)) {
            match disk::metadata(&path) {
                Ok(it) if it.is_dir => {
                    let entries = disk::entries(&path, MAX_OF_FOLDER).into_iter().filter(|it| it.1.is_file());
                    entries.for_each(|(name, _)| self.take(home, &path.join(name), false));
                }
                Ok(_) => self.take(home, &path, true),
                Err(_) => (),
            }
        }
    }
}

/// What was typed, and what browsers keep: mostly no secrets, and no such form.
fn is_history(path: &AbsPath) -> bool {
    let name = path.as_path().file_name().unwrap_or_default().to_string_lossy();
    ["history", "hst", "sessions", "known_hosts", ".pub"].iter().any(|it| name.contains(it))
}

fn is_template(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("env") && TEMPLATES.iter().any(|it| name.split(['.', '-', '_']).any(|part| part == *it))
}
