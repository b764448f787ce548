//! The change summary of `castor run`: changed files, and how to undo.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::changed_files::EditChanges;
use crate::cli::{render::words::count, terminal_text::clean_line};
use castor_base::{checkpoint::ChangeKind, path::AbsPath};
use castor_hands::disk;
use castor_wire::acp::own::rewind::ListedFile;

/// Changed files that other programs run or obey outside of the sandbox: review these first.
const OBEYED: &[&str] = &[
    ".envrc",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    "CMakeLists.txt",
    "Dockerfile",
    "Gruntfile.js",
    "Justfile",
    "Makefile",
    "Rakefile",
    "build.gradle",
    "build.gradle.kts",
    "build.rs",
    "compose.yaml",
    "conftest.py",
    "docker-compose.yml",
    "gulpfile.js",
    "justfile",
    "noxfile.py",
    "package.json",
    "pom.xml",
    "setup.py",
    "tox.ini",
];
const WORKFLOWS: &str = ".github/workflows";
/// Of them so many are named, and so much of a name.
const NAMED: usize = 3;
const MAX_NAME: usize = 60;

/// The answer to `_castor/session/checkpoints`.
#[derive(Deserialize)]
pub struct CheckpointList {
    pub checkpoints: Vec<ListedCheckpoint>,
}

#[derive(Deserialize)]
pub struct ListedCheckpoint {
    pub id: String,
    pub files: Vec<ListedFile>,
}

/// Changes so far.
#[derive(Debug, Default)]
pub struct ChangeSummary {
    /// The agent lists its checkpoints.
    pub is_listed: bool,
    known: BTreeSet<String>,
    /// The session's folders: new names at the top of them that begin with a dot are named.
    pub roots: Vec<PathBuf>,
    pub counted: Option<CountedChanges>,
    /// What edits show, where the agent keeps no checkpoints.
    pub edits: EditChanges,
}

impl ChangeSummary {
    /// A session that goes on has checkpoints of its own already.
    pub fn note_known(&mut self, listing: &Value) {
        self.known = checkpoint_ids(listing);
    }

    pub fn summarize(&mut self, listing: &Value) {
        self.counted = count_changes(listing, &self.known, &self.roots);
    }
}

/// What changed, in words.
#[derive(Debug, PartialEq, Eq)]
pub struct CountedChanges {
    /// How many files and lines.
    pub counts: String,
    /// The same with what to look at, and how to undo it.
    pub words: String,
    /// Files that other programs obey are among them.
    pub warning: Option<String>,
}

/// The checkpoints that there are before the prompt.
fn checkpoint_ids(listing: &Value) -> BTreeSet<String> {
    let read = CheckpointList::deserialize(listing).map(|it| it.checkpoints).unwrap_or_default();
    read.into_iter().map(|it| it.id).collect()
}

/// `None`: nothing was changed since.
fn count_changes(listing: &Value, known: &BTreeSet<String>, roots: &[PathBuf]) -> Option<CountedChanges> {
    let mut files: BTreeMap<&Path, (u64, u64)> = BTreeMap::new();
    let (mut dotted, mut unseen) = (BTreeSet::new(), BTreeSet::new());
    let listing = CheckpointList::deserialize(listing).ok()?;
    for it in listing.checkpoints.iter().filter(|it| !known.contains(&it.id)).flat_map(|it| &it.files) {
        let change = &it.change;
        if change.change == ChangeKind::Added && is_dotted_at_top(&change.path, roots) {
            dotted.insert(name(&change.path));
        }
        let (added, removed) = files.entry(&change.path).or_default();
        (*added, *removed) = (*added + change.added, *removed + change.removed);
        unseen.extend(it.unseen.then_some(&change.path));
    }
    if files.is_empty() {
        return None;
    }
    let n = files.keys().filter(|it| is_file(it, &files)).count();
    let (added, removed) = files.values().fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
    let obeyed: Vec<String> = files.keys().filter(|it| is_obeyed(it)).take(NAMED).map(|it| name(it)).collect();
    let warning = match obeyed.as_slice() {
        [] => None,
        [one] => Some(format!("{one} changed: other programs run it, outside the sandbox")),
        more => Some(format!("{} changed: other programs run them, outside the sandbox", more.join(", "))),
    };
    let what = match n {
        0 => "folders or the repository changed".to_owned(),
        n if added + removed == 0 => format!("{} changed", count(n as u64, "file", "files")),
        n => format!("{} +{added} −{removed}", count(n as u64, "file", "files")),
    };
    let new = match dotted.len().saturating_sub(NAMED) {
        _ if dotted.is_empty() => String::new(),
        0 => format!(", new: {}", first_of(&dotted)),
        more => format!(", new: {} and {more} more names with a dot", first_of(&dotted)),
    };
    let unseen = match unseen.iter().filter(|it| is_file(it, &files)).count() {
        0 => String::new(),
        n => format!("; {n} not looked at: castor diff"),
    };
    let words = format!("{what}{new}{unseen} (castor undo takes it back)");
    Some(CountedChanges { counts: what, words, warning })
}

/// Tools look for their settings there. What is quarantined is said already.
fn is_dotted_at_top(path: &Path, roots: &[PathBuf]) -> bool {
    let name = name(path);
    let is_at_top = path.parent().is_some_and(|it| roots.iter().any(|root| root == it));
    is_at_top && name.starts_with('.') && name != ".git" && !name.contains(".castor-aside")
}

fn first_of(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().take(NAMED).map(|it| clean_line(it, MAX_NAME)).collect();
    names.join(", ")
}

/// And no folder, nor a repository as a whole.
fn is_file(path: &Path, all: &BTreeMap<&Path, (u64, u64)>) -> bool {
    let next = all.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded)).next();
    let is_above = next.is_some_and(|it| it.0.starts_with(path));
    let is_folder = || AbsPath::new(path).is_some_and(|it| disk::metadata(&it).is_ok_and(|it| it.is_dir));
    !is_above && name(path) != ".git" && !is_folder()
}

fn is_obeyed(path: &Path) -> bool {
    OBEYED.contains(&name(path).as_str()) || path.parent().is_some_and(|it| it.ends_with(WORKFLOWS))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{checkpoint_ids, count_changes};

    #[test]
    fn what_changed_is_one_line() {
        let file = |path: &str, added: u64| json!({"path": path, "change": "changed", "added": added, "removed": 1});
        let listing = json!({"checkpoints": [
            {"id": "k1", "files": [file("/w/old", 9)]},
            {"id": "k2", "files": [file("/w/a", 1), file("/w/package.json", 2)]},
            {"id": "k3", "files": [file("/w/a", 3)]},
        ]});
        let before = checkpoint_ids(&json!({"checkpoints": [{"id": "k1", "files": []}]}));
        let counted = count_changes(&listing, &before, &[]).unwrap();
        assert_eq!(counted.words, "2 files +6 −3 (castor undo takes it back)");
        let same = json!({"checkpoints": [{"id": "k", "files": [{"path": "/w/run", "change": "changed", "added": 0, "removed": 0}]}]});
        let counted = count_changes(&same, &before, &[]).unwrap();
        assert_eq!(counted.words, "1 file changed (castor undo takes it back)");
        let counted = count_changes(&listing, &before, &[]).unwrap();
        let warned = "package.json changed: other programs run it, outside the sandbox";
        assert_eq!(counted.warning.as_deref(), Some(warned));
        assert_eq!(count_changes(&listing, &checkpoint_ids(&listing), &[]), None);
        let more = json!({"checkpoints": [
            {"id": "k", "files": [file("/w/.git", 0), file("/w/new", 0), file("/w/new-er", 1), file("/w/new/a", 1)]},
        ]});
        let all = |listing| count_changes(&listing, &checkpoint_ids(&json!(null)), &["/w".into()]).unwrap();
        assert!(all(more).words.starts_with("2 files +"));
        let repository = json!({"checkpoints": [{"id": "k", "files": [file("/w/.git", 0)]}]});
        assert_eq!(all(repository).words, "folders or the repository changed (castor undo takes it back)");
        let hidden = json!({"checkpoints": [{"id": "k", "files": [file("/w/.github/workflows/ci.yml", 1)]}]});
        let hidden = all(hidden);
        assert!(hidden.words.starts_with("1 file +1 −1"), "{hidden:?}");
        assert!(hidden.warning.unwrap().starts_with("ci.yml changed: other programs run it"));
    }
    #[test]
    fn new_names_with_a_dot_at_the_top_are_named() {
        let file = |path: &str, change: &str| json!({"path": path, "change": change, "added": 0, "removed": 0});
        let words = |files: &[Value]| {
            let listing = json!({"checkpoints": [{"id": "k", "files": files}]});
            count_changes(&listing, &BTreeSet::new(), &["/w".into()]).unwrap().words
        };
        let mut files = vec![file("/w/.tool", "added"), file("/w/.tool/mcp.json", "added"), file("/w/a/.b", "added")];
        files.extend([
            file("/w/.old", "changed"),
            file("/w/.gone", "removed"),
            file("/w/.npmrc.castor-aside", "added"),
        ]);
        assert!(words(&files).ends_with(", new: .tool (castor undo takes it back)"), "{}", words(&files));
        files.extend([".a", ".b", ".c\u{202e}"].map(|it| file(&format!("/w/{it}"), "added")));
        assert!(words(&files).contains(", new: .a, .b, .c"), "{}", words(&files));
        assert!(words(&files).contains("and 1 more names with a dot") && !words(&files).contains('\u{202e}'));
    }
}
