//! Memory files: what the user and the project want a model to know in every session.

use std::{fmt::Write, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::path::AbsPath;

/// One file, as it was read; imports are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFile {
    pub path: AbsPath,
    pub tier: Tier,
    pub text: String,
}

/// Whose file it is. Where they contradict each other, later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The user's own, for all projects.
    Global,
    Project,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Project => "project",
        }
    }
}

/// All files of a session, and what a model is told of them: made once, since prompt caches need the same bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    files: Arc<[MemoryFile]>,
    text: Option<Arc<str>>,
}

impl Memory {
    /// General files first, those that are nearest to the work last.
    pub fn new(files: impl Into<Arc<[MemoryFile]>>) -> Self {
        let files = files.into();
        let text = (!files.is_empty()).then(|| text_of(&files).into());
        Self { files, text }
    }

    pub fn files(&self) -> &[MemoryFile] {
        &self.files
    }

    /// For the system instruction; `None`: there is nothing to tell.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

fn text_of(files: &[MemoryFile]) -> String {
    let mut res =
        "# What user and project want you to know\nFrom their memory files. Later files win over earlier ones, \
                   and what the user says now wins over all of them."
            .to_owned();
    for MemoryFile { path, tier, text } in files {
        let tier = tier.as_str();
        _ = write!(res, "\n\n--- Context from: {path} ({tier}) ---\n{text}\n--- End of Context from: {path} ---");
    }
    res
}
