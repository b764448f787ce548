//! The files of a patch, worked out before any is written.

use sha2::{Digest, Sha256};

use super::hunks::{self, HunkError};
use crate::builtin::{
    ToolContext, paths,
    texts::{
        change::PARTED,
        placeholder,
        text_file::{self, LoadedFile, TextFile},
    },
};
use castor_base::{
    fs::{ChangeError, PlannedChange},
    patch::{FilePatch, Hunk, LineKind, PatchAction},
    path::AbsPath,
    secret,
    tool::{BaseHash, Display, FileDiff, FileKnowledge, Preview, ToolError, ToolOutput},
};
use castor_hands::disk::FileId;

/// All files that a patch names, as they are and as they will be.
pub struct PatchPlan {
    files: Vec<PlannedFile>,
    base: BaseHash,
    /// What is to be said of how it fitted.
    notes: Vec<String>,
}

struct PlannedFile {
    /// As the patch names it first.
    path: AbsPath,
    found: LoadedFile,
    /// `None`: there is no file.
    now: Option<Vec<u8>>,
    moved_from: Option<AbsPath>,
    /// Only parts of it were replaced.
    is_partial: bool,
}

impl PatchPlan {
    /// # Errors
    /// What of the patch does not fit; or, with a `base`, that a file is not as it was then.
    pub async fn new(files: Vec<FilePatch>, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<Self, ToolError> {
        let mut found = Vec::new();
        for call in files.iter().flat_map(FilePatch::calls) {
            let path = ctx.resolve_path(&call.path);
            let file = text_file::load(ctx, &path).await?;
            if !found.iter().any(|it: &PlannedFile| it.found.real == file.real) {
                let now = file.bytes.clone();
                found.push(PlannedFile { path, found: file, now, moved_from: None, is_partial: false });
            }
        }
        let now = combined_hash(&found);
        if base.is_some_and(|it| *it != now) {
            let names: Vec<String> = found.iter().map(|it| it.path.relative_to(&ctx.cwd).to_string()).collect();
            let names = names.join(", ");
            let what = format!("One of {names} changed after this patch was prepared; nothing was written.");
            let for_model = format!("{what} Read them again.");
            return Err(ToolError::new("file_changed", what).with_model_text(for_model));
        }
        let ctx = ctx.clone();
        // A search in large files may take a while.
        paths::run_blocking(move || {
            let mut res = Self { files: found, base: now, notes: Vec::new() };
            for (nth, file) in files.iter().enumerate() {
                if ctx.cancel.is_cancelled() {
                    return Err(ToolError::new("cancelled", "The patch was cancelled; nothing was written."));
                }
                res.take(file, &ctx).map_err(|it| if nth == 0 && files.len() == 1 { it } else { nothing_done(it) })?;
            }
            if res.changed().next().is_none() {
                return Err(ToolError::new("edit_no_change", "The patch would change nothing."));
            }
            Ok(res)
        })
        .await?
    }

    fn take(&mut self, file: &FilePatch, ctx: &ToolContext) -> Result<(), ToolError> {
        let path = ctx.resolve_path(&file.path);
        match &file.action {
            PatchAction::Add { content } => self.add(&path, content, ctx),
            PatchAction::Delete => self.remove(&path, ctx).map(drop),
            PatchAction::Update { move_to, hunks } => {
                let bytes = self.update(&path, hunks, ctx)?;
                let Some(to) = move_to.as_ref().map(|it| ctx.resolve_path(it)) else {
                    let file = self.file(&path, ctx)?;
                    (file.now, file.is_partial) = (Some(bytes), true);
                    return Ok(());
                };
                let from = self.remove(&path, ctx)?;
                let file = self.file(&to, ctx)?;
                if from != file.found.real {
                    text_file::check_seen(&to, &ctx.known.seen, &file.found)?;
                }
                // A file that moves to itself stays.
                file.moved_from = Some(from).filter(|it| *it != file.found.real && file.found.bytes.is_none());
                file.now = Some(bytes);
                Ok(())
            }
        }
    }

    /// By any of its names.
    fn file(&mut self, path: &AbsPath, ctx: &ToolContext) -> Result<&mut PlannedFile, ToolError> {
        let real = paths::call_real_path_now(ctx, path)?;
        let unknown = || ToolError::new("policy_violation", format!("Nothing was decided about {path}."));
        self.files.iter_mut().find(|it| it.found.real == real).ok_or_else(unknown)
    }

    fn add(&mut self, path: &AbsPath, content: &str, ctx: &ToolContext) -> Result<(), ToolError> {
        let file = self.file(path, ctx)?;
        text_file::check_seen(path, &ctx.known.seen, &file.found)?;
        check_new_text(path, content, "")?;
        let old = file.now.as_deref().and_then(text_file::decode).unwrap_or_else(|| TextFile::new_utf8(String::new()));
        check_marks(path, content, &old.text)?;
        let text = if old.is_crlf() { text_file::to_crlf(content) } else { content.to_owned() };
        let bytes = old.encode(&text, content).map_err(|it| unfit(path, &it.to_string()))?;
        (file.now, file.is_partial) = (Some(bytes), false);
        Ok(())
    }

    /// Where it really was.
    fn remove(&mut self, path: &AbsPath, ctx: &ToolContext) -> Result<AbsPath, ToolError> {
        let file = self.file(path, ctx)?;
        if file.now.take().is_none() {
            return Err(paths::not_found_error(path, ctx));
        }
        // The link would go, or what it leads to: nobody said which.
        let folder = path.parent().and_then(|it| paths::real_path(ctx, &it).ok());
        let own = folder.zip(path.as_path().file_name()).map(|(folder, name)| folder.join(name));
        match own.is_none_or(|it| it == file.found.real) {
            true => Ok(file.found.real.clone()),
            false => Err(unfit(path, "it is a link. Name the file that it leads to, or remove the link by a command")),
        }
    }

    /// The bytes with the hunks.
    fn update(&mut self, path: &AbsPath, hunks: &[Hunk], ctx: &ToolContext) -> Result<Vec<u8>, ToolError> {
        let file = self.file(path, ctx)?;
        let Some(bytes) = &file.now else {
            let error = paths::not_found_error(path, ctx);
            let advice = format!("{} To create it, use '*** Add File: '.", error.message);
            return Err(error.with_model_text(advice));
        };
        if hunks.is_empty() {
            return Ok(bytes.clone());
        }
        let text = text_file::decode(bytes).ok_or_else(|| unfit(path, "it is a binary file"))?;
        if text.lossy {
            return Err(unfit(path, "it has bytes that are not text, which an edit would destroy"));
        }
        let (new, old) = (lines_of(hunks, LineKind::Add), lines_of(hunks, LineKind::Remove));
        check_new_text(path, &new, &old)?;
        let patched = hunks::apply(&text.text, text.is_crlf(), hunks).map_err(|it| misfit(path, &it, &ctx.cwd))?;
        check_marks(path, &patched.text, &text.text)?;
        let bytes = text.encode(&patched.text, &new).map_err(|it| unfit(path, &it.to_string()))?;
        let name = path.relative_to(&ctx.cwd).to_string();
        self.notes.extend(patched.notes.iter().map(|it| format!("In {name} {it}.")));
        Ok(bytes)
    }

    fn changed(&self) -> impl Iterator<Item = &PlannedFile> {
        self.files.iter().filter(|it| it.now != it.found.bytes)
    }

    pub fn preview(self) -> Preview {
        Preview { display: Some(self.display()), base: Some(self.base) }
    }

    fn display(&self) -> Display {
        // A binary file has no text to show.
        let text = |it: &Option<Vec<u8>>| {
            it.as_deref().map(|it| text_file::decode(it).map_or_else(|| "".into(), |it| it.text.into()))
        };
        let diff =
            |it: &PlannedFile| FileDiff { path: it.path.clone(), before: text(&it.found.bytes), after: text(&it.now) };
        let mut files: Vec<FileDiff> = self.changed().map(diff).collect();
        match files.as_mut_slice() {
            [FileDiff { path, before, after: Some(after) }] => {
                Display::Diff { path: path.clone(), before: before.take(), after: after.clone() }
            }
            _ => Display::Diffs { files },
        }
    }

    /// Writes all of it and says so.
    pub async fn write(self, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if ctx.cancel.is_cancelled() {
            return Err(ToolError::new("cancelled", "The patch was cancelled; nothing was written."));
        }
        let change = |it: &PlannedFile| PlannedChange {
            path: it.found.real.clone(),
            before: it.found.bytes.clone(),
            after: it.now.clone(),
            moved_from: it.moved_from.clone(),
        };
        let shared = self.hard_links().await?;
        ctx.fs.change(self.changed().map(change).collect()).await.map_err(|it| not_written(&it))?;
        let still_shared = self.hard_links().await?;
        let parted = shared.iter().filter(|it| !still_shared.contains(it));
        let parted = parted.map(|(path, _)| format!("{}:{PARTED}", path.relative_to(&ctx.cwd)));
        let mut done = "Success. Updated the following files:".to_owned();
        for it in self.changed() {
            done.push_str(&format!("\n{} {}", it.letter(), it.path.relative_to(&ctx.cwd)));
        }
        let unsaved = self.changed().filter(|it| it.found.unsaved && it.now.is_some());
        let unsaved = unsaved.map(|it| {
            let name = it.path.relative_to(&ctx.cwd);
            format!(
                "The editor had unsaved changes of {name}: the patch was made to them; the file on disk was different."
            )
        });
        let notes: Vec<String> = self.notes.iter().cloned().chain(unsaved).chain(parted).collect();
        let count = self.changed().count();
        let what = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let summary = [format!("Patched {what}.")].into_iter().chain(notes.clone()).collect::<Vec<_>>().join(" ");
        let text = [done].into_iter().chain(notes).collect::<Vec<_>>().join("\n");
        Ok(ToolOutput {
            display: Some(self.display()),
            summary: Some(summary),
            file_knowledge: self.knowledge(),
            ..ToolOutput::text(text)
        })
    }

    /// Files that stay, and have other names.
    async fn hard_links(&self) -> Result<Vec<(AbsPath, FileId)>, ToolError> {
        let mut res = Vec::new();
        for it in self.changed().filter(|it| it.found.bytes.is_some() && it.now.is_some()) {
            res.extend(paths::hard_link_id(&it.found.real).await?.map(|id| (it.path.clone(), id)));
        }
        Ok(res)
    }

    /// What the model knows of the files then.
    fn knowledge(&self) -> Option<Box<FileKnowledge>> {
        let known = |it: &PlannedFile| {
            let written = LoadedFile { real: it.found.real.clone(), bytes: it.now.clone(), unsaved: false };
            let before = it.is_partial.then(|| text_file::hash(&it.found).to_hex()).flatten();
            Some(FileKnowledge { before, ..*text_file::file_knowledge(&written)? })
        };
        let mut all = self.changed().filter(|it| it.moved_from.is_none()).filter_map(known);
        let first = all.next()?;
        Some(Box::new(FileKnowledge { others: all.collect(), ..first }))
    }
}

impl PlannedFile {
    /// As the field's patches say it.
    fn letter(&self) -> char {
        match (&self.found.bytes, &self.now) {
            (_, None) => 'D',
            (None, _) => 'A',
            (Some(_), Some(_)) => 'M',
        }
    }
}

/// Of all files and their places, those that are not there included.
fn combined_hash(files: &[PlannedFile]) -> BaseHash {
    let add = |hasher: Sha256, it: &PlannedFile| {
        let path = it.found.real.as_path().as_os_str().as_encoded_bytes();
        let hasher = hasher.chain_update((path.len() as u64).to_be_bytes()).chain_update(path);
        match text_file::hash(&it.found).0 {
            Some(it) => hasher.chain_update([1]).chain_update(it),
            None => hasher.chain_update([0]),
        }
    };
    BaseHash(Some(files.iter().fold(Sha256::new(), add).finalize().into()))
}

fn lines_of(hunks: &[Hunk], kind: LineKind) -> String {
    let lines = hunks.iter().flat_map(|it| &it.lines).filter(|it| it.kind == kind);
    lines.map(|it| format!("{}\n", it.text)).collect()
}

fn check_new_text(path: &AbsPath, new: &str, old: &str) -> Result<(), ToolError> {
    let why = "it gets an omission placeholder (for example 'rest of methods ...'). Give exact literal text";
    if placeholder::has_placeholder(new, old) { Err(unfit(path, why)) } else { Ok(()) }
}

/// What the model was not shown cannot be written by it.
fn check_marks(path: &AbsPath, new: &str, old: &str) -> Result<(), ToolError> {
    let Some(mark) = secret::find_new_mark(new, old) else { return Ok(()) };
    let message = format!(
        "{path} was not written: {mark} stands for a value that you were not shown, and the value would be lost. Leave \
         its line out of the patch, or name the variable instead of its value."
    );
    Err(ToolError::new("secret_mark", message))
}

fn unfit(path: &AbsPath, why: &str) -> ToolError {
    ToolError::new("edit_preparation_failure", format!("Failed to patch {path}: {why}."))
}

fn misfit(path: &AbsPath, (line, why): &(usize, HunkError), cwd: &AbsPath) -> ToolError {
    let name = path.relative_to(cwd);
    let what = format!("The hunk at line {line} of the patch does not fit {name}: {why}.");
    let for_model = format!("{what} {}", why.advice());
    ToolError::new("edit_no_occurrence_found", what).with_model_text(for_model)
}

/// A patch of several files says that none was touched.
fn nothing_done(error: ToolError) -> ToolError {
    let end = "No file of the patch was changed.";
    let for_model = error.for_model.as_ref().map(|it| format!("{it}\n{end}"));
    ToolError { message: format!("{} {end}", error.message), for_model, ..error }
}

fn not_written(it: &ChangeError) -> ToolError {
    let error = paths::fs_error(&it.error, "file_write_failure");
    let left: Vec<String> = it.left.iter().map(ToString::to_string).collect();
    match left.is_empty() {
        true => nothing_done(error),
        false => {
            let what =
                format!("{} These files were changed and could not be put back: {}.", error.message, left.join(", "));
            ToolError { message: what, ..error }
        }
    }
}
