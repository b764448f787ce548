//! A text change to one file: computed and previewed first, then written.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::{
    ToolContext, paths,
    texts::{
        snippet,
        text_file::{self, LoadedFile},
    },
};
use castor_base::{
    path::AbsPath,
    secret,
    tool::{BaseHash, Display, FileKnowledge, Preview, ToolError, ToolOutput},
};

/// The old and the new text of a file.
pub struct TextChange {
    pub path: AbsPath,
    /// Where it is written.
    pub real: AbsPath,
    /// `None`: a new file.
    pub before: Option<Arc<str>>,
    pub after: Arc<str>,
    pub bytes: Vec<u8>,
    /// Of the bytes that this was worked out from.
    pub base: BaseHash,
    /// It was worked out from the editor's text, and the disk had another.
    pub unsaved: bool,
    /// The rest of the file stays as it is, whether the model knows it or not.
    pub is_partial: bool,
    /// What was done beyond what was asked for, in one sentence for the person.
    pub note: Option<String>,
}

const UNSAVED: &str =
    " The editor had unsaved changes of this file: the edit was made to them; the file on disk was different.";

/// A new file took the name: what is half written is never seen, and a link out of the workspace changes nothing there.
pub const PARTED: &str =
    " It was a hard link: the file's other names keep the old text. Edit them, too, if they should change.";

impl TextChange {
    pub fn display(&self) -> Display {
        Display::Diff { path: self.path.clone(), before: self.before.clone(), after: self.after.clone() }
    }

    /// What the model was not shown cannot be written by it.
    pub fn check_marks(self) -> Result<Self, ToolError> {
        let Some(mark) = secret::find_new_mark(&self.after, self.before.as_deref().unwrap_or_default()) else {
            return Ok(self);
        };
        let message = format!(
            "{} was not written: {mark} stands for a value that you were not shown, and the value would be lost. Name \
             the variable instead of its value; to change the file around the value, use replace with an old_string \
             and a new_string that leave the value out.",
            self.path
        );
        Err(ToolError::new("secret_mark", message))
    }

    pub fn preview(self) -> Preview {
        Preview { display: Some(self.display()), base: Some(self.base) }
    }

    /// Writes it and says so: `done`, and what the changed places look like now.
    pub async fn write(mut self, ctx: &ToolContext, mut done: String) -> Result<ToolOutput, ToolError> {
        if ctx.cancel.is_cancelled() {
            return Err(ToolError::new("cancelled", format!("Cancelled; {} was not written.", self.path)));
        }
        let bytes = std::mem::take(&mut self.bytes);
        let before = self.before.is_some().then(|| self.base.to_hex()).flatten().filter(|_| self.is_partial);
        let written = LoadedFile { real: self.real.clone(), bytes: Some(bytes), unsaved: false };
        let seen = text_file::file_knowledge(&written).map(|it| Box::new(FileKnowledge { before, ..*it }));
        let bytes = written.bytes.unwrap_or_default();
        if self.unsaved {
            done.push_str(UNSAVED);
        }
        let shared = paths::hard_link_id(&self.real).await?;
        let written = ctx.fs.write(&self.real, bytes).await;
        written.map_err(|it| paths::fs_error(&it, "file_write_failure"))?;
        // Asked again: an editor may have written into the file itself.
        if shared.is_some() && paths::hard_link_id(&self.real).await? != shared {
            done.push_str(PARTED);
        }
        let (before, after) = (self.before.clone(), self.after.clone());
        let text = match before {
            // The model has just written all of a new file.
            None => done.clone(),
            Some(before) => {
                let shown = paths::run_blocking(move || snippet::changed_lines(&before, &after)).await?;
                format!("{done} Here is the updated code:\n{shown}")
            }
        };
        Ok(ToolOutput {
            display: Some(self.display()),
            summary: Some(done),
            file_knowledge: seen,
            data: self.note.map_or(Value::Null, |it| json!({ "editNote": it })),
            ..ToolOutput::text(text)
        })
    }
}
