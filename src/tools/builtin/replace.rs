//! The tool `replace`: replaces text in a file by the rule of `edit_rule`.

mod arguments;
mod nearest;
mod refusals;

use std::fmt::Write;

use serde_json::{Value, json};

use self::arguments::ReplaceCall;
use crate::builtin::{
    Builtin, Task, ToolContext, paths,
    schema::{self, flag, text},
    texts::{
        change::TextChange,
        edit_rule::{self, Lines, Match, Replacement},
        text_file::{self, LoadedFile, TextFile},
    },
};
use castor_base::{
    path::AbsPath,
    tool::{Access, BaseHash, Preview, REPLACE, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub struct Replace;

impl Builtin for Replace {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REPLACE.into(),
            title: "Edit".into(),
            description: "Replaces text in a file. old_string must name one place: give a few lines of context, \
                          exactly as in the file. An empty old_string creates a file."
                .into(),
            kind: ToolKind::Edit,
            traits: ToolTraits::EDITS,
            parameters: schema::object(
                &["file_path"],
                [
                    ("file_path", text("Path of the file.")),
                    ("instruction", text("What the change is for.")),
                    ("old_string", text("Literal text to replace, unescaped.")),
                    ("new_string", text("Literal text to put there, complete.")),
                    ("allow_multiple", flag("Replace every occurrence.")),
                    ("edits", edits_schema()),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = ReplaceCall::parse(args, ctx)?;
            let paths = paths::content_targets(ctx, &call.path, Access::Write, None).await?;
            Ok(Targets { title: call.title(&ctx.cwd), paths, ..Targets::default() })
        })
    }

    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async move { Ok(plan(args, None, ctx).await?.0.preview()) })
    }

    fn run<'a>(&'a self, args: &'a Value, base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let (change, done) = plan(args, base, ctx).await?;
            change.write(ctx, done).await
        })
    }
}

fn edits_schema() -> Value {
    let item = schema::object(
        &["old_string", "new_string"],
        ["old_string", "new_string"].map(|it| (it, json!({"type": "string"}))),
    );
    json!({
        "type": "array",
        "items": *item,
        "description": "Several edits in order, all or none, instead of old_string and new_string.",
    })
}

/// The change, and what to say once it is made.
async fn plan(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<(TextChange, String), ToolError> {
    let call = ReplaceCall::parse(args, ctx)?;
    let loaded = text_file::load(ctx, &call.path).await?;
    text_file::check_base(&call.path, base, &loaded)?;
    let path = &call.path;
    if let Some(content) = call.creation() {
        return creation(path, content, loaded);
    }
    if loaded.bytes.is_none() {
        let (path, ctx) = (call.path.clone(), ctx.clone());
        let mut error = paths::run_blocking(move || paths::not_found_error(&path, &ctx)).await?;
        let advice = " Cannot apply edit. Use an empty old_string to create a new file.";
        error.for_model = Some(error.message.clone() + advice);
        return Err(error);
    }
    // Large files take a while.
    let (change, done, by) = paths::run_blocking(move || edit(&call, &loaded)).await??;
    // For telemetry: the span of the call, where it is one.
    tracing::Span::current().record("castor.edit.strategy", strategy(by));
    Ok((change, done))
}

fn creation(path: &AbsPath, content: &str, loaded: LoadedFile) -> Result<(TextChange, String), ToolError> {
    if loaded.bytes.is_some() {
        let for_model = format!("Failed to edit. Attempted to create a file that already exists: {path}");
        let for_person = format!("The file exists already: {path}");
        return Err(ToolError::new("attempt_to_create_existing_file", for_person).with_model_text(for_model));
    }
    let done = format!("Created new file: {path} with provided content.");
    let change = TextChange {
        path: path.clone(),
        real: loaded.real,
        before: None,
        after: content.into(),
        bytes: content.as_bytes().to_vec(),
        base: BaseHash(None),
        unsaved: false,
        is_partial: false,
        note: None,
    };
    Ok((change.check_marks()?, done))
}

fn edit(call: &ReplaceCall, loaded: &LoadedFile) -> Result<(TextChange, String, Match), ToolError> {
    let path = &call.path;
    let unfit = |why: &str| ToolError::new("edit_preparation_failure", format!("Failed to edit {path}: {why}."));
    let file = loaded.bytes.as_deref().and_then(text_file::decode).ok_or_else(|| unfit("it is a binary file"))?;
    if file.lossy {
        return Err(unfit("it has bytes that are not text, which an edit would destroy"));
    }
    let mut made = EditsMade { text: file.text.clone(), count: 0, by: Match::Exact, lines: Vec::new() };
    for (n, it) in call.replacements().enumerate() {
        made.add(path, it).map_err(|it| refusals::of_several(it, n + 1, call.edits.len()))?;
    }
    let after = made.text.as_str();
    if after == file.text {
        return Err(refusals::no_change(path, "The new content is identical to the current content in"));
    }
    let mut done = format!("Successfully modified file: {path} ({} replacements).", made.count);
    let note = made.note();
    if let Some(it) = &note {
        _ = write!(done, " {it}");
    }
    let new: String = call.edits.iter().map(|it| it.new.as_str()).collect();
    let bytes = file.encode(after, &new).map_err(|it| unfit(&it.to_string()))?;
    let (base, real, unsaved) = (text_file::hash(loaded), loaded.real.clone(), loaded.unsaved);
    let (after, by) = (after.into(), made.by);
    let TextFile { text: before, .. } = file;
    let (path, before) = (path.clone(), Some(before.into()));
    let change = TextChange { path, real, before, after, bytes, base, unsaved, is_partial: true, note };
    Ok((change.check_marks()?, done, by))
}

/// The text of a file, with the edits up to now made.
struct EditsMade {
    text: String,
    count: usize,
    /// The widest step beyond what was written exactly.
    by: Match,
    /// Where it was taken, from 1.
    lines: Vec<usize>,
}

impl EditsMade {
    fn add(&mut self, path: &AbsPath, asked: Replacement<'_>) -> Result<(), ToolError> {
        if asked.old == asked.new {
            return Err(refusals::no_change(path, "The old_string and new_string are identical in"));
        }
        let text = text_file::to_lf(&self.text);
        let lines = Lines::new(&text);
        let found = edit_rule::find(&lines, asked).map_err(|it| refusals::refused(path, &lines, asked, &it))?;
        if found.by != Match::Exact {
            self.lines.extend(found.edits.iter().map(|it| lines.number(it.range.start)));
        }
        self.by = self.by.max(found.by);
        self.count += found.edits.len();
        let after = edit_rule::apply(&self.text, &found.edits);
        self.text = after;
        Ok(())
    }

    /// What was done beyond the exact: one sentence for model and person.
    fn note(&self) -> Option<String> {
        let what = match self.by {
            Match::Exact => return None,
            Match::TrailingBlanks => "old_string was found but for blanks at line ends; new_string stands as written",
            Match::Indentation => "old_string was indented otherwise; new_string got the file's indentation",
            Match::Spacing => "old_string was spaced otherwise; lines that stay are as the file had them",
            Match::Slips => "old_string had slips of the pen in lines that went; lines that stay are the file's",
        };
        Some(format!("At line {}, {what}.", refusals::named(&self.lines)))
    }
}

/// As telemetry calls it.
fn strategy(by: Match) -> &'static str {
    match by {
        Match::Exact => "exact",
        Match::TrailingBlanks | Match::Indentation => "flexible",
        Match::Spacing => "tokens",
        Match::Slips => "fuzzy",
    }
}

#[cfg(test)]
mod tests;
