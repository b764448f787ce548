//! Guarded file names: secrets such as `.env` and keys, and configuration that makes programs run things.
//!
//! Data, for all who need it: policy asks about them, searches skip secrets, a sandbox keeps writers out. Memory files
//! (`GEMINI.md`) are not here: they are read as advice, change in plain sight, and models are told to keep them up;
//! nor are build files (`Makefile`, `package.json`), which are the user's sources, nor what only names a version
//! (`.tool-versions`, `.nvmrc`), nor `.jj` as a whole, in which every command of jj writes.

mod home;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;

pub use home::{
    CACHE_VARIABLES, CREDENTIALS_OF_TOOLS, SYSTEM_SECRETS, TOKEN_FILES, TOOL_CACHES, TOOL_FOLDERS, credentials,
    home_config,
};

/// Names of one kind. Case does not count: some disks do not tell it. All in lower case.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardedNames {
    /// Whole names of files and folders; all that is below them counts. Sorted.
    #[serde(borrow)]
    pub names: Vec<&'static str>,
    /// Beginnings of names.
    #[serde(borrow)]
    pub starts: Vec<&'static str>,
    /// Ends of names.
    #[serde(borrow)]
    pub ends: Vec<&'static str>,
    /// Names that follow each other, such as `.github/workflows`; `*` is any one name. Those with a `/` in front count
    /// from the top of the disk only.
    #[serde(borrow)]
    pub paths: Vec<&'static str>,
    /// Copies count, too: files that were copied before they were changed.
    pub copies: bool,
}

/// The beginning of the question about files that may hold secrets.
pub const SECRET_RULE: &str = "secrets may be kept there";

/// The lists as `names.toml` has them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    #[serde(borrow)]
    home_config: Vec<&'static str>,
    secrets: GuardedNames,
    config: GuardedNames,
    tools: GuardedNames,
    home: HomeNames,
}

/// The names of a home folder that commands see.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeNames {
    #[serde(borrow)]
    folders: Vec<&'static str>,
    #[serde(borrow)]
    caches: Vec<&'static str>,
    #[serde(borrow)]
    variables: Vec<&'static str>,
}

// A file that does not load guards nothing; a test sees to it that it does.
static LISTS: LazyLock<Lists> = LazyLock::new(|| toml::from_str(FILE).unwrap_or_default());
const FILE: &str = include_str!("guarded_names/names.toml");

/// The places of secrets: castor asks in every mode before one is read or changed.
pub static SECRETS: LazyLock<&GuardedNames> = LazyLock::new(|| &LISTS.secrets);

/// Configuration that castor, editors, shells, version control or build servers obey: writing it runs things.
pub static CONFIG: LazyLock<&GuardedNames> = LazyLock::new(|| &LISTS.config);

/// Programs and settings of a home folder that its user's tools run or obey. Commands name them all day to use them
/// (`. ~/.cargo/env`), so nobody is asked about the names: a sandbox holds them.
pub static TOOLS: LazyLock<&GuardedNames> = LazyLock::new(|| &LISTS.tools);

/// The endings of files that people publish in place of a secret one.
const TEMPLATES: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults", ".schema", ".pub"];
/// The same in front of `.env`; and what code reads variables from (`process.env`, `import.meta.env`).
const NO_ENV: &[&str] = &["example", "sample", "template", "process", "meta"];

impl GuardedNames {
    /// The entry that covers `path`, if one does.
    pub fn find(&self, path: &Path) -> Option<&'static str> {
        let mut names = Vec::new();
        for part in path.components() {
            if let Component::Normal(it) = part {
                names.push(it.to_string_lossy());
            }
        }
        self.find_names(names.iter().map(|it| &**it), path.has_root())
    }

    /// Finds names like [`GuardedNames::find`], for a path in pieces; `from_top`: it begins at the top of the disk.
    pub fn find_names<'a>(&self, names: impl Iterator<Item = &'a str>, from_top: bool) -> Option<&'static str> {
        let names: Vec<Cow<str>> = names.map(fold_name).collect();
        (0..names.len()).find_map(|at| {
            let rest = names.get(at..)?;
            let name = rest.first()?;
            self.find_name(name).or_else(|| {
                let top = at == 0 && from_top;
                let mut paths = self.paths.iter().filter(|_| rest.len() > 1);
                paths.find(|it| begins_with(rest, it, top)).copied()
            })
        })
    }

    /// The entry that covers `path`, and not all of `root`, in which it lies: what was given away by its name is obeyed in
    /// parts only, as `config.toml` in `~/.cargo` is.
    pub fn find_below(&self, root: &Path, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(root).ok()?;
        let starts = |end: &Path| below.iter().count() >= end.iter().count() && is_same(&first_names(below, end), end);
        let tail = || self.paths_below(root).into_iter().find(|(_, end)| starts(end)).map(|it| it.0);
        self.find(below).or_else(tail)
    }

    /// The paths that names following each other would have below `root`, also those that begin with its own name.
    pub fn paths_below(&self, root: &Path) -> Vec<(&'static str, PathBuf)> {
        let mut res = Vec::new();
        for entry in self.paths.iter().filter(|it| !it.starts_with('/')) {
            let names: Vec<&str> = entry.split('/').collect();
            for at in 0..names.len() {
                let (begun, end) = names.split_at_checked(at).unwrap_or_default();
                let begun: PathBuf = begun.iter().collect();
                if is_same(&last_names(root, &begun), &begun) {
                    res.push((*entry, end.iter().collect()));
                }
            }
        }
        res
    }

    /// The entry of a name, or of the one that it is a copy of.
    fn find_name(&self, name: &str) -> Option<&'static str> {
        self.entry(name).or_else(|| self.entry(original_name(name).filter(|_| self.copies)?))
    }

    fn entry(&self, name: &str) -> Option<&'static str> {
        if let Some(it) = self.names.binary_search(&name).ok().and_then(|it| self.names.get(it)) {
            return Some(it);
        }
        let start = self.starts.iter().find(|it| name.starts_with(**it));
        let end = || self.ends.iter().find(|it| name.ends_with(**it) && name.len() > it.len());
        let found = start.or_else(end)?;
        (!TEMPLATES.iter().any(|it| name.ends_with(it)) && !is_no_env(name)).then_some(found)
    }
}

/// The name of the file that editors and people copied before they changed it: `.env~`, `#id_rsa#`, `server.key.bak`.
fn original_name(name: &str) -> Option<&str> {
    const COPIES: &[&str] = &["~", ".bak", ".old", ".orig", ".save", ".swp"];
    let behind = || COPIES.iter().find_map(|it| name.strip_suffix(it));
    name.strip_prefix('#').and_then(|it| it.strip_suffix('#')).or_else(behind).filter(|it| !it.is_empty())
}

/// `example.env`, `prod.sample.env`; and what is left out, or stands in a sentence, is `.env` alone: `:!.env`, `ignore .env`.
fn is_no_env(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".env") else { return false };
    let last = stem.rsplit('.').next().unwrap_or_default();
    NO_ENV.contains(&last) || !stem.ends_with(|it: char| it.is_alphanumeric() || "_-*?]}".contains(it))
}

/// The first names of `path`, as many as `like` has.
fn first_names(path: &Path, like: &Path) -> PathBuf {
    path.iter().take(like.iter().count()).collect()
}

/// The same from its end.
fn last_names(path: &Path, like: &Path) -> PathBuf {
    let more = path.iter().count().saturating_sub(like.iter().count());
    path.iter().skip(more).collect()
}

fn is_same(path: &Path, lower: &Path) -> bool {
    path.as_os_str().eq_ignore_ascii_case(lower)
}

fn begins_with(names: &[Cow<str>], entry: &str, at_top: bool) -> bool {
    let plain = entry.strip_prefix('/');
    // Most end here: no entry begins with a star.
    let fits = names.first().is_some_and(|it| plain.unwrap_or(entry).starts_with(&**it));
    let mut names = names.iter();
    fits && (at_top || plain.is_none())
        && plain.unwrap_or(entry).split('/').all(|want| names.next().is_some_and(|it| want == "*" || want == it))
}

/// The name as a disk may read it: case aside, without blanks and dots at its end, without the name of a stream, without
/// characters that some disks pass over.
fn fold_name(name: &str) -> Cow<'_, str> {
    let name = name.split_once(':').map_or(name, |it| it.0);
    let name = name.trim_end_matches(['.', ' ']);
    match name.bytes().all(|it| it.is_ascii() && !it.is_ascii_uppercase()) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.chars().filter(|it| !is_passed_over(*it)).flat_map(char::to_lowercase).collect()),
    }
}

/// Tells whether a file system such as HFS+ passes over a character: `.g\u{200c}it` is `.git` there.
fn is_passed_over(it: char) -> bool {
    matches!(it, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
