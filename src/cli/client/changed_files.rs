//! Changed files of a prompt, and those that its edits show where a session has no checkpoints.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::render::{diff::diff, words::count};
use castor_base::checkpoint::{ChangeKind, FileChange};
use castor_wire::acp::client::CallDiff;

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedFiles {
    pub added: u64,
    pub removed: u64,
    /// Sorted by path.
    pub files: Vec<FileChange>,
    /// Of the calls that changed them, oldest first: `castor undo` takes them back. Empty where checkpoints are off: then
    /// `files` has what edits changed, and nothing of commands.
    pub checkpoints: Vec<String>,
}

/// What the edits of a prompt changed. What commands change is not in it.
#[derive(Debug, Default)]
pub struct EditChanges {
    files: BTreeMap<PathBuf, FileChange>,
}

impl EditChanges {
    /// Takes the edits of a call that is done.
    pub fn add<'d>(&mut self, diffs: impl Iterator<Item = &'d CallDiff>) {
        for change in diffs.map(read_change) {
            match self.files.get_mut(&change.path) {
                Some(earlier) => merge_change(earlier, &change),
                None => _ = self.files.insert(change.path.clone(), change),
            }
        }
    }

    /// `None`: there were no edits.
    pub fn list(&self) -> Option<ChangedFiles> {
        let files: Vec<FileChange> = self.files.values().cloned().collect();
        let (added, removed) = files.iter().fold((0, 0), |all, it| (all.0 + it.added, all.1 + it.removed));
        (!files.is_empty()).then_some(ChangedFiles { added, removed, files, checkpoints: Vec::new() })
    }

    /// For the end line.
    pub fn in_words(&self) -> Option<String> {
        let it = self.list()?;
        Some(format!("{} +{} −{}", count(it.files.len() as u64, "file", "files"), it.added, it.removed))
    }
}

fn read_change(it: &CallDiff) -> FileChange {
    let (old, new) = (it.old_text.as_deref(), it.new_text.as_deref().unwrap_or_default());
    let counted = diff(&it.path, old, new, Some(0), usize::MAX);
    FileChange {
        path: it.path.clone().into(),
        change: if old.is_none() { ChangeKind::Added } else { ChangeKind::Changed },
        added: counted.added as u64,
        removed: counted.removed as u64,
    }
}

/// Two changes of one file are one: what was added and is gone again is removed, and what was there before is changed.
pub fn merge_change(earlier: &mut FileChange, later: &FileChange) {
    earlier.added += later.added;
    earlier.removed += later.removed;
    earlier.change = match (earlier.change, later.change) {
        (ChangeKind::Added, ChangeKind::Changed) => ChangeKind::Added,
        (ChangeKind::Removed, ChangeKind::Added) => ChangeKind::Changed,
        (_, later) => later,
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::EditChanges;
    use castor_wire::acp::client::CallDiff;

    #[test]
    fn edits_of_one_file_are_one_change() {
        let mut edits = EditChanges::default();
        assert!(edits.list().is_none() && edits.in_words().is_none());
        for (path, old, new) in
            [("/w/a", None, "1\n2\n"), ("/w/a", Some("1\n2\n"), "1\n3\n"), ("/w/b", Some("x\n"), "")]
        {
            let (old_text, new_text) = (old.map(str::to_owned), Some(new.to_owned()));
            edits.add([CallDiff { path: path.to_owned(), old_text, new_text, ..CallDiff::default() }].iter());
        }
        let listed = serde_json::to_value(edits.list().unwrap()).unwrap();
        assert_eq!(
            listed,
            json!({"added": 3, "removed": 2, "checkpoints": [], "files": [
                {"path": "/w/a", "change": "added", "added": 3, "removed": 1},
                {"path": "/w/b", "change": "changed", "added": 0, "removed": 1},
            ]})
        );
        assert_eq!(edits.in_words().unwrap(), "2 files +3 −2");
    }
}
