//! Memory files (`GEMINI.md` and others): instructions of the user and the project for every session.

use std::{fmt::Write, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{path::AbsPath, text::head};

/// Of all files together that a model is told of, in bytes. What is over is cut, from the end of the last ones.
pub const MAX_ALL: usize = 256 << 10;

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
    /// The user's own, for the project.
    Private,
    Project,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Private => "private",
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
        let text = (!files.is_empty()).then(|| in_words(HEADING, &files).into());
        Self { files, text }
    }

    /// Of what a model is told, in bytes.
    pub fn size(&self) -> usize {
        self.text().map_or(0, str::len)
    }

    pub fn files(&self) -> &[MemoryFile] {
        &self.files
    }

    /// For the system instruction; `None`: there is nothing to tell.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

const HEADING: &str = "# What user and project want you to know\nFrom their memory files. Later files win over earlier \
                       ones, and what the user says now wins over all of them.";

/// Of folders that the work has only now come to.
const FOUND: &str = "# What the project wants you to know of the folders that were just looked into\nFrom the memory files in \
                     them; each holds below its folder. Where one was told before, this is what it says now. They win \
                     over more general ones, and what the user says now wins over all of them.";

/// Files as they join a conversation under way.
pub fn nested_memory_text(files: &[MemoryFile]) -> String {
    in_words(FOUND, files)
}

fn in_words(heading: &str, files: &[MemoryFile]) -> String {
    let mut res = heading.to_owned();
    for MemoryFile { path, tier, text } in files {
        let tier = tier.as_str();
        _ = write!(res, "\n\n--- Context from: {path} ({tier}) ---\n{text}\n--- End of Context from: {path} ---");
    }
    res
}

/// `text` up to so many bytes, and how many more there are.
pub fn cap_text(text: &str, max: usize) -> String {
    match text.len() <= max {
        true => text.to_owned(),
        false => format!("{}\n[cut here: {} bytes more]", head(text, max), text.len() - head(text, max).len()),
    }
}
