//! Files and folders that a search passes over, by kind: a model that finds nothing has to know of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

const REPOSITORIES: &[&str] = &[".git", ".hg", ".svn"];

/// Files and folders that a walk and its search pass over. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct SkippedFiles(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Folders by name, and whether only searches for text pass them over.
    folders: BTreeMap<String, bool>,
    /// Files by the end of their name.
    endings: BTreeMap<&'static str, usize>,
    binary: usize,
    unreadable: usize,
    /// Names of ignore files that were obeyed.
    ignore_files: BTreeSet<String>,
    /// Not skipped, but read as what they may not be.
    of_unknown_encoding: usize,
    /// Those of them in which something was found.
    guessed_hits: usize,
}

/// The reason why something is passed over.
pub enum SkipReason {
    /// A folder's name; searches for file names look into some of them.
    Folder {
        name: String,
        only_for_text: bool,
    },
    Ending(&'static str),
    Binary,
    Unreadable,
    Ignored {
        by: String,
    },
    UnknownEncoding {
        is_hit: bool,
    },
}

impl SkippedFiles {
    pub fn add(&self, reason: SkipReason) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            SkipReason::Folder { name, only_for_text } => _ = counts.folders.insert(name, only_for_text),
            SkipReason::Ending(it) => *counts.endings.entry(it).or_default() += 1,
            SkipReason::Binary => counts.binary += 1,
            SkipReason::Unreadable => counts.unreadable += 1,
            SkipReason::Ignored { by } => _ = counts.ignore_files.insert(by),
            SkipReason::UnknownEncoding { is_hit } => {
                counts.of_unknown_encoding += 1;
                counts.guessed_hits += usize::from(is_hit);
            }
        }
    }

    /// A folder that is passed over for its name. What holds no files of anybody, as `.git`, is not worth a word.
    pub fn add_folder(&self, path: &Path, only_for_text: bool) {
        let name =
            path.file_name().map(|it| it.to_string_lossy().into_owned()).filter(|it| !REPOSITORIES.contains(&&**it));
        name.into_iter().for_each(|name| self.add(SkipReason::Folder { name, only_for_text }));
    }

    /// A line for the model; empty where there is nothing to say. Of a search that found something, only what else may
    /// well hold such text. `how` says how to look there.
    pub fn note(&self, is_miss: bool, how: &str) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut res = String::new();
        let kinds = counts.kinds(is_miss);
        if !kinds.is_empty() {
            res = format!("\n(Skipped: {}. {how})", kinds.join("; "));
        }
        let guessed = if is_miss { counts.of_unknown_encoding } else { counts.guessed_hits };
        if guessed > 0 {
            let n = files(guessed, "");
            res += &format!("\n(The encoding of {n} is unknown: the text is read as Latin-1.)");
        }
        res
    }
}

impl Counts {
    fn kinds(&self, is_miss: bool) -> Vec<String> {
        let mut res: Vec<String> = self.endings.iter().map(|(it, n)| files(*n, &format!(" *.{it}"))).collect();
        if is_miss && self.binary > 0 {
            res.push(format!("{} (binary)", files(self.binary, "")));
        }
        if is_miss && self.unreadable > 0 {
            res.push(format!("{} (not readable)", files(self.unreadable, "")));
        }
        let folders: Vec<&str> =
            self.folders.iter().filter(|(_, for_text)| is_miss || **for_text).map(|it| it.0.as_str()).collect();
        if !folders.is_empty() {
            res.push(format!("folders {}", folders.join(", ")));
        }
        if is_miss && !self.ignore_files.is_empty() {
            let names: Vec<&str> = self.ignore_files.iter().map(String::as_str).collect();
            res.push(format!("what {} hides", names.join(", ")));
        }
        res
    }
}

fn files(n: usize, what: &str) -> String {
    format!("{n} file{}{what}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{SkipReason, SkippedFiles};

    #[test]
    fn kinds_are_counted_and_named() {
        let skipped = SkippedFiles::default();
        assert_eq!(skipped.note(true, "How."), "");
        let folder = |name: &str| skipped.add_folder(Path::new(name), name == "build");
        let all = [SkipReason::Ending("log"), SkipReason::Binary, SkipReason::Unreadable, SkipReason::Ending("tmp")];
        all.into_iter().for_each(|it| skipped.add(it));
        skipped.clone().add(SkipReason::Ending("log"));
        assert_eq!(skipped.note(false, "How."), "\n(Skipped: 2 files *.log; 1 file *.tmp. How.)");
        ["a/node_modules", "build", ".git", "build"].into_iter().for_each(folder);
        skipped.add(SkipReason::Ignored { by: ".gitignore".to_owned() });
        assert_eq!(skipped.note(false, "How."), "\n(Skipped: 2 files *.log; 1 file *.tmp; folders build. How.)");
        assert_eq!(
            skipped.note(true, "How."),
            "\n(Skipped: 2 files *.log; 1 file *.tmp; 1 file (binary); 1 file (not readable); folders build, \
             node_modules; what .gitignore hides. How.)"
        );
    }

    #[test]
    fn guessed_text_is_said_where_it_matters() {
        let skipped = SkippedFiles::default();
        [false, true, false].into_iter().for_each(|is_hit| skipped.add(SkipReason::UnknownEncoding { is_hit }));
        assert_eq!(skipped.note(false, ""), "\n(The encoding of 1 file is unknown: the text is read as Latin-1.)");
        assert_eq!(skipped.note(true, ""), "\n(The encoding of 3 files is unknown: the text is read as Latin-1.)");
    }
}
