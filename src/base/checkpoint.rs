//! Checkpoints: the state of files before a tool call, what the call changed, and the results of a restore.
//!
//! The engine decides when one is taken and what a restore is about; it knows paths and counts, never a file's bytes.

use std::{collections::BTreeSet, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ids::CheckpointId, path::AbsPath, path_text};

/// The paths that a call may write, and so those of its checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything below the session's roots: commands, MCP tools, hooks, foreign agents.
    Roots,
    /// These files alone, by their real paths: castor's own file tools.
    Files(Vec<AbsPath>),
}

/// What became of a path between the two ends of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Changed,
    Removed,
}

/// One changed path, for people and clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    #[serde(serialize_with = "path_text::serialize", deserialize_with = "path_text::deserialize")]
    pub path: PathBuf,
    pub change: ChangeKind,
    /// Lines; 0 where the content is no text.
    pub added: u64,
    pub removed: u64,
}

/// The files that a checkpoint covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointResult {
    /// What lies below the roots and cannot be given back: read-only in mode `auto`.
    pub not_kept: Vec<PathBuf>,
}

/// Most changed paths that a log entry names, and so does the wire; `n_files` counts them all.
pub const MAX_CHANGES: usize = 200;

/// What a call changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The first [`MAX_CHANGES`], sorted by path.
    pub files: Vec<FileChange>,
    pub n_files: u64,
    /// Lines, of all of them.
    pub added: u64,
    pub removed: u64,
    /// What was changed and is not held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "path_text::all::serialize", deserialize_with = "path_text::all::deserialize")]
    pub not_kept: Vec<PathBuf>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.n_files == 0 && self.not_kept.is_empty()
    }
}

/// What to do about a file that somebody else changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Nothing at all is restored.
    #[default]
    Fail,
    /// The file stays as it is; the rest is restored.
    Keep,
    /// The file is restored all the same; as it is now, it is kept by the restore's own checkpoint.
    Restore,
}

/// What goes back when a session is rewound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rewinds {
    #[default]
    Both,
    Files,
    Conversation,
}

impl Rewinds {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "both" => Some(Self::Both),
            "files" => Some(Self::Files),
            "conversation" => Some(Self::Conversation),
            _ => None,
        }
    }

    pub fn has_files(self) -> bool {
        self != Self::Conversation
    }

    pub fn has_conversation(self) -> bool {
        self != Self::Files
    }
}

/// The user's word on files that somebody else changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictChoice {
    Keep,
    Restore,
    ShowDiff,
    Stop,
}

impl ConflictChoice {
    /// The field of the question.
    pub const FIELD: &str = "restore_conflicts";
    pub const ALL: &[Self] = &[Self::Keep, Self::Restore, Self::Stop, Self::ShowDiff];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep_mine",
            Self::Restore => "restore",
            Self::ShowDiff => "show_diff",
            Self::Stop => "restore_nothing",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Keep => "Keep these as they are, restore the rest",
            Self::Restore => "Restore these as well",
            Self::ShowDiff => "Show what would be lost",
            Self::Stop => "Change nothing",
        }
    }
}

/// A restore to the state before all of these calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreOrder {
    /// The restore is a checkpoint itself: undoing this one is the redo.
    pub id: CheckpointId,
    /// Checkpoints of calls, or of restores, to be taken back. In the order in which they were taken.
    pub undo: Vec<CheckpointId>,
    pub on_conflict: OnConflict,
    /// Only these, and what is below them; `None`: all.
    pub paths: Option<Vec<PathBuf>>,
}

impl RestoreOrder {
    /// Tells whether nothing was done, as something stands in the way.
    pub fn is_refused(&self, files: &RestoreResult) -> bool {
        self.on_conflict == OnConflict::Fail && files.restored.is_empty() && !files.conflicts.is_empty()
    }
}

/// A path that was not restored because it is not as the agent's last call left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    #[serde(serialize_with = "path_text::serialize", deserialize_with = "path_text::deserialize")]
    pub path: PathBuf,
    /// In words, for people.
    pub reason: String,
}

/// What a restore came to. With `OnConflict::Fail` and any conflict nothing was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Restored")]
pub struct RestoreResult {
    #[serde(serialize_with = "path_text::all::serialize", deserialize_with = "path_text::all::deserialize")]
    pub restored: Vec<PathBuf>,
    /// Those of `restored` that are gone again. The log does without.
    #[serde(skip)]
    pub removed: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// What the calls changed or removed, and nobody holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "path_text::all::serialize", deserialize_with = "path_text::all::deserialize")]
    pub not_kept: Vec<PathBuf>,
}

impl RestoreResult {
    /// A path that is as it was; one that several calls changed comes once.
    pub fn add(&mut self, path: PathBuf, is_removed: bool) {
        if self.restored.last() != Some(&path) {
            self.removed.extend(is_removed.then(|| path.clone()));
            self.restored.push(path);
        }
    }

    /// What is there again, and what is gone again.
    pub fn present_and_removed(&self) -> (Vec<&PathBuf>, Vec<&PathBuf>) {
        let removed: BTreeSet<&PathBuf> = self.removed.iter().collect();
        self.restored.iter().partition(|it| !removed.contains(it))
    }
}
