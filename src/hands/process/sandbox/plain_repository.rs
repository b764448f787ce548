//! The test of plainness: whether a repository is as `git init`, `clone`, `worktree add` or `submodule add` leave it.
//!
//! A list of what may be there, never of what may not. No git is started: it would obey what is looked at. What is half
//! made passes, as long as all that is there so far may be there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    committed,
    git_config::settings,
    git_config_paths::{paths_in, text_of},
    repository::{is_repository, read},
    submodules,
};
use crate::disk;
use castor_base::sandbox::SELF_COMMONDIR;

type Shape = fn(&str) -> bool;

/// Sections, keys in them, and how their values look.
const PLAIN: &[(&str, &[&str], Shape)] = &[
    ("core", &["filemode", "bare", "symlinks", "ignorecase", "precomposeunicode"], is_bool),
    ("core", &["repositoryformatversion", "sparsecheckout", "sparsecheckoutcone"], is_bool),
    ("core", &["logallrefupdates", "autocrlf", "safecrlf", "eol"], is_word),
    // Its folder says that it is its own.
    ("core", &["worktree"], is_text),
    ("extensions", &["worktreeconfig", "relativeworktrees"], is_bool),
    ("extensions", &["objectformat", "refstorage", "partialclone"], is_word),
    ("index", &["sparse"], is_bool),
    ("remote", &["url", "pushurl"], is_url),
    ("remote", &["fetch"], is_refspec),
    ("remote", &["mirror", "promisor"], is_bool),
    ("remote", &["tagopt"], |it| matches!(it, "--tags" | "--no-tags")),
    ("remote", &["partialclonefilter"], is_refspec),
    // A remote may also be an address, by which programs are started.
    ("branch", &["remote", "rebase", "vscode-merge-base"], is_word),
    ("branch", &["merge"], is_refspec),
    ("submodule", &["active"], is_text),
    ("submodule", &["url"], is_url),
    ("submodule", &["update"], |it| matches!(it, "checkout" | "rebase" | "merge" | "none")),
    ("user", &["email", "name"], is_text),
    ("init", &["defaultbranch"], is_word),
    ("commit", &["gpgsign"], |it| it == "false"),
    ("tag", &["gpgsign"], |it| it == "false"),
    ("gc", &["auto"], is_word),
    ("pull", &["rebase", "ff"], is_word),
];
/// Others are programs of their own: `git-remote-SCHEME`.
const SCHEMES: &str = "https http ssh git file git+ssh ssh+git";
/// From these alone objects may come that are not there yet, at any look at them.
const PROMISED: &str = "https://";
const INFO: &[&str] = &["exclude", "refs", "sparse-checkout"];
/// What git obeys in a folder, beside hooks.
const OBEYED: &[&str] = &[
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/http-alternates",
];
/// What `git worktree add` has made when it has not written yet to which repository an entry belongs.
const BEGUN: &[&str] = &["HEAD", "commondir", "gitdir", "locked", "refs"];
/// By which git finds it, where it has another name than `.git`.
const KEYS: &[&str] = &["HEAD", "commondir", "config.worktree", "gitdir"];

/// The judge of one repository.
pub(super) struct Plainness<'a> {
    /// Whether a folder was there before, as it is.
    pub is_known: &'a dyn Fn(&Path) -> bool,
    /// Whether a folder is judged by itself whenever something changed it.
    pub is_seen: &'a dyn Fn(&Path) -> bool,
    /// Whoever makes it is still at work: one end of a worktree comes before the other.
    pub running: bool,
}

/// Whether a folder has git run and obey nothing.
pub fn is_plain(git: &Path) -> bool {
    let judge = Plainness { is_known: &|_| false, is_seen: &|_| false, running: false };
    fs::symlink_metadata(git).is_ok_and(|it| it.is_dir()) && judge.judge(git)
}

/// What makes a repository of what git finds there: these names go where it is not plain.
pub(super) fn keys_of(place: &Path) -> Vec<PathBuf> {
    if place.ends_with(".git") {
        return vec![place.to_owned()];
    }
    KEYS.iter().map(|it| place.join(it)).filter(|it| it.symlink_metadata().is_ok()).collect()
}

/// Places that a git folder has within it: of linked worktrees and of submodules.
pub(super) fn places_within(git: &Path) -> impl Iterator<Item = PathBuf> {
    let is_own = fs::symlink_metadata(git).is_ok_and(|it| it.is_dir());
    let trees = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
    trees.chain(submodules::of(&git.join("modules"))).filter(move |_| is_own)
}

/// The hash of all that git obeys in a place. A placeholder counts for nothing.
pub(super) fn obeyed_hash(place: &Path) -> String {
    let hooks = entries(&place.join("hooks")).into_iter().flatten().filter(|it| !it.ends_with(".sample"));
    let names = OBEYED.iter().map(ToString::to_string).chain(hooks.map(|it| format!("hooks/{it}")));
    let paths = names.map(|it| place.join(it)).chain([place.to_owned()]);
    let texts = paths.map(|it| (text_of(&it).unwrap_or_default(), it));
    let texts =
        texts.filter(|(text, path)| !text.is_empty() && (!path.ends_with("commondir") || !is_own_commondir(text)));
    disk::hash(texts.map(|(text, path)| format!("{}\0{text}\0", path.display())).collect::<String>().as_bytes())
}

fn is_own_commondir(text: &str) -> bool {
    SELF_COMMONDIR.text() == Some(text)
}

/// Names in a folder; `None`: it is a link, or cannot be read.
fn entries(folder: &Path) -> Option<Vec<String>> {
    match fs::symlink_metadata(folder) {
        Err(_) => Some(Vec::new()),
        Ok(it) if !it.is_dir() => None,
        Ok(_) => {
            let names = fs::read_dir(folder).ok()?;
            names.map(|it| Some(it.ok()?.file_name().to_string_lossy().into_owned())).collect()
        }
    }
}

impl Plainness<'_> {
    pub fn judge(&self, place: &Path) -> bool {
        match fs::symlink_metadata(place) {
            Ok(it) if it.is_dir() => self.is_plain_folder(place),
            Ok(it) => it.is_file() && self.leads_to_plain(place),
            Err(_) => true,
        }
    }

    /// A `.git` file: what it leads to belongs to it, or is plain by itself.
    fn leads_to_plain(&self, file: &Path) -> bool {
        // Git reads nothing by it, and writes it a moment after it made it.
        if self.running && is_empty(file) {
            return true;
        }
        let Some(target) = target_of(file, "gitdir:") else { return false };
        let is_module = target.ancestors().any(|it| it.ends_with(".git/modules"));
        match target.parent().is_some_and(|it| it.ends_with("worktrees")) {
            true => self.is_plain_worktree(&target, Some(file)),
            false if is_module && (self.is_known)(&target) => true,
            false => (is_module || (self.is_seen)(&target)) && self.is_plain_folder(&target),
        }
    }

    /// An entry of a repository for a worktree, and the other end of it.
    fn is_plain_worktree(&self, entry: &Path, file: Option<&Path>) -> bool {
        let git = entry.parent().and_then(Path::parent);
        let common = target_of(&entry.join("commondir"), "");
        let is_begun = self.running
            && is_empty(&entry.join("commondir"))
            && entries(entry).is_some_and(|it| it.iter().all(|it| BEGUN.contains(&it.as_str())));
        let is_whole = is_repository(entry) && !is_begun;
        let leads_home = common.as_deref() == git && git.is_some();
        let back = target_of(&entry.join("gitdir"), "");
        let leads_back = match (&back, file) {
            (Some(back), Some(file)) => file.canonicalize().is_ok_and(|it| it == *back),
            (Some(back), None) => {
                self.running && is_empty(back)
                    || target_of(back, "gitdir:").as_deref() == entry.canonicalize().ok().as_deref()
            }
            (None, _) => self.running,
        };
        let top = file.and_then(Path::parent).filter(|_| is_whole);
        let is_safe = top.zip(git).is_none_or(|(top, git)| match (self.is_known)(git) {
            true => is_as_at_home(git, top),
            false => self.is_plain_folder(git),
        });
        (leads_home || self.running && !is_whole)
            && leads_back
            && is_safe
            && is_plain_config(&entry.join("config.worktree"))
    }

    fn is_plain_folder(&self, git: &Path) -> bool {
        if git.parent().is_some_and(|it| it.ends_with(".git/worktrees")) {
            return self.is_plain_worktree(git, None);
        }
        entries(git).is_some_and(|it| it.iter().all(|name| self.is_plain_part(git, name)))
    }

    /// One name in a git folder.
    fn is_plain_part(&self, git: &Path, name: &str) -> bool {
        let path = git.join(name);
        let within = |name: &str, wants: &dyn Fn(&str) -> bool| {
            entries(&git.join(name)).is_some_and(|it| it.iter().all(|it| wants(it)))
        };
        // Another folder or file in the place of its own.
        if let Ok(target) = fs::read_link(&path) {
            return is_probe(name, &target);
        }
        match name {
            "config" | "config.worktree" => is_plain_config(&path),
            "hooks" => within("hooks", &|it| it.ends_with(".sample")),
            "info" => within("info", &|it| INFO.contains(&it)),
            "branches" | "remotes" => within(name, &|_| false),
            "objects" => within("objects/info", &|it| match it {
                "alternates" => self.has_plain_alternates(&path),
                _ => it != "http-alternates",
            }),
            "commondir" => text_of(&path).is_ok_and(|it| is_own_commondir(&it)),
            "modules" => self.has_plain_modules(&path, 0),
            "worktrees" => within(name, &|it| self.is_plain_worktree(&path.join(it), None)),
            _ => true,
        }
    }

    /// Whether objects of others are those of repositories that are judged by themselves, as `clone -s` leaves it.
    fn has_plain_alternates(&self, objects: &Path) -> bool {
        let is_judged = |line: &str| {
            let git = objects.join(line).canonicalize().ok().filter(|it| it.ends_with("objects"));
            let git = git.as_deref().and_then(Path::parent);
            git.is_some_and(|it| is_repository(it) && ((self.is_known)(it) || (self.is_seen)(it)))
        };
        text_of(&objects.join("info/alternates")).is_ok_and(|it| it.lines().all(is_judged))
    }

    /// Names of submodules may have slashes in them.
    fn has_plain_modules(&self, folder: &Path, depth: usize) -> bool {
        let is_git = |it: &Path| KEYS.iter().chain(&["config", "objects"]).any(|name| it.join(name).exists());
        let is_plain = |name: String| {
            let path = folder.join(name);
            match is_git(&path) {
                true => self.is_plain_folder(&path),
                false => !path.is_symlink() && path.is_dir() && self.has_plain_modules(&path, depth + 1),
            }
        };
        // Modules have modules.
        let level = depth + folder.iter().filter(|it| *it == "modules").count();
        level < MODULE_DEPTH && entries(folder).is_some_and(|it| it.into_iter().all(is_plain))
    }
}

fn is_empty(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|it| it.is_file() && it.len() == 0)
}

/// What `git init` makes for a moment, to find out whether the disk has links. Git reads nothing of that name.
fn is_probe(name: &str, target: &Path) -> bool {
    name.len() == 7 && name.starts_with('t') && target == Path::new("testing")
}

/// Tops of a repository's linked worktrees.
pub(super) fn worktree_tops(git: &Path) -> impl Iterator<Item = PathBuf> {
    places_within(git).filter_map(|it| Some(target_of(&it.join("gitdir"), "")?.parent()?.to_owned()))
}

/// Whether all that settings name relative to a worktree is in it as in the repository's own: git would run it.
fn is_as_at_home(git: &Path, top: &Path) -> bool {
    let (Some(home), Ok(named)) = (git.parent(), paths_in(git)) else { return false };
    let places = named.iter().filter(|it| it.path.is_relative() && !it.path.starts_with("~"));
    let mut places =
        places.map(|it| (top.join(&it.path), it.is_whole)).filter(|it| it.1 && it.0.exists() || it.0.is_file());
    let is_same = |file: &PathBuf| {
        let at_home = file.strip_prefix(top).ok().and_then(|it| fs::read(home.join(it)).ok());
        at_home.is_some() && fs::read(file).ok() == at_home
    };
    places.all(|it| committed::files(&it.0).is_some_and(|it| it.iter().all(is_same)))
}

/// More slashes are in no name.
const MODULE_DEPTH: usize = 16;

/// Where a file leads: its one line, behind a word.
pub(super) fn target_of(file: &Path, word: &str) -> Option<PathBuf> {
    let text = read(file)?;
    let rest = text.strip_prefix(word)?.trim();
    if rest.is_empty() { None } else { file.parent()?.join(rest).canonicalize().ok() }
}

/// Whether settings are regular, so that nobody reads them in another way, and all of them may be there.
fn is_plain_config(file: &Path) -> bool {
    // A pipe or a device says anything, at any time.
    let is_file = fs::symlink_metadata(file).map_or(true, |it| it.is_file());
    let Some(text) = Some(file).filter(|_| is_file).and_then(|it| text_of(it).ok()) else { return false };
    let all = settings(&text);
    let is_known = |(section, key, value): &(String, String, String)| {
        PLAIN.iter().any(|it| it.0 == section && it.1.contains(&key.as_str()) && it.2(value))
    };
    let values = |name: &str| all.iter().filter(move |it| it.1 == name).map(|it| it.2.as_str()).collect::<Vec<_>>();
    let is_promised = !values("promisor").is_empty() || !values("partialclone").is_empty();
    // What it holds is looked at where it lies below the repository's own top, and nowhere else.
    let belongs = |tree: &str| {
        let git = file.parent().unwrap_or(file);
        let top = git.ancestors().filter(|it| it.ends_with(".git")).last().and_then(Path::parent);
        let is_below = |top: &Path| git.join(tree).canonicalize().is_ok_and(|it| it.starts_with(top));
        let back = target_of(&git.join(tree).join(".git"), "gitdir:");
        top.is_some_and(is_below) && (back.is_none() || back == git.canonicalize().ok())
    };
    text.lines().all(is_regular)
        && all.iter().all(is_known)
        && values("worktree").into_iter().all(belongs)
        && (!is_promised || values("url").iter().all(|it| it.starts_with(PROMISED)))
}

/// A header, a comment, or a key with its value: each on a line of its own.
fn is_regular(line: &str) -> bool {
    let it = line.trim_matches([' ', '\t']);
    let is_header = || {
        let Some(inner) = it.strip_prefix('[').and_then(|it| it.strip_suffix(']')) else { return false };
        let (name, below) = inner.split_once(' ').unwrap_or((inner, "\"\""));
        let below = below.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        is_word(name) && below.is_some_and(|it| !it.contains(['"', '\\', '[', ']']))
    };
    let begins = it.chars().next();
    let is_known = match begins {
        None | Some('#' | ';') => true,
        Some('[') => is_header(),
        Some(first) => first.is_ascii_alphabetic() && !it.ends_with('\\'),
    };
    is_known && is_text(&it.replace('\t', ""))
}

fn is_bool(it: &str) -> bool {
    matches!(it, "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0")
}

fn is_text(it: &str) -> bool {
    !it.chars().any(char::is_control)
}

fn is_word(it: &str) -> bool {
    !it.starts_with('-') && it.chars().all(|it| it.is_alphanumeric() || "._/+@-".contains(it))
}

fn is_refspec(it: &str) -> bool {
    !it.starts_with('-') && it.chars().all(|it| it.is_alphanumeric() || "._/+@-:*^=".contains(it))
}

/// An address or a path at which git itself asks.
fn is_url(it: &str) -> bool {
    let rest = it.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || "+-.".contains(it));
    let is_known = match it.split_once("://") {
        Some((scheme, host)) => SCHEMES.split(' ').any(|it| it == scheme) && !host.starts_with('-'),
        None => true,
    };
    is_known && is_text(it) && !it.starts_with('-') && !rest.starts_with("::")
}

#[cfg(test)]
mod tests;
