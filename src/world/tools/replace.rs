//! The tool `replace`: replaces text in a file, exactly or by a lenient strategy.

mod fuzzy;
mod lines;
mod nearest;
mod query;
mod strategies;

use std::fmt::Write;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    base::{
        path::AbsPath,
        text::first_line,
        tool::{Access, BaseHash, Preview, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
    },
    world::tools::{
        Builtin, Task, ToolContext,
        change::TextChange,
        params::{CallArguments, invalid},
        paths, placeholder,
        replace::{lines::Edit, query::ReplaceQuery, strategies::STRATEGIES},
        schema::{self, flag, text},
        text_file::{self, LoadedFile, TextFile},
    },
};

const TITLE_CHARS: usize = 30;
/// How many places of an ambiguous text are named.
const MAX_PLACES: usize = 20;

pub struct Replace;

#[derive(Clone)]
struct Call {
    path: AbsPath,
    /// With LF only, as everything that is compared.
    old: String,
    new: String,
    all: bool,
}

impl Call {
    fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let path = params.path("file_path", ctx)?;
        let (old, new) = (params.text("old_string")?, params.text("new_string")?);
        params.opt_text("instruction")?;
        let all = params.flag("allow_multiple")?.unwrap_or(false);
        if placeholder::has_placeholder(new, old) {
            return Err(invalid(
                "`new_string` contains an omission placeholder (for example 'rest of methods ...'). Provide exact \
                 literal replacement text.",
            ));
        }
        Ok(Self { path, old: text_file::to_lf(old).into_owned(), new: text_file::to_lf(new).into_owned(), all })
    }

    fn title(&self, cwd: &AbsPath) -> String {
        let path = self.path.relative_to(cwd);
        match self.old.is_empty() {
            true => format!("Create {path}"),
            false => {
                format!("{path}: {} => {}", first_line(&self.old, TITLE_CHARS), first_line(&self.new, TITLE_CHARS))
            }
        }
    }
}

impl Builtin for Replace {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "replace".into(),
            title: "Edit".into(),
            description: "Replaces text in a file. old_string must name one place: give a few lines of context, \
                          exactly as in the file. An empty old_string creates a file."
                .into(),
            kind: ToolKind::Edit,
            traits: ToolTraits::EDITS,
            parameters: schema::object(
                &["file_path", "old_string", "new_string"],
                [
                    ("file_path", text("Path of the file.")),
                    ("instruction", text("What the change is for.")),
                    ("old_string", text("Literal text to replace, unescaped.")),
                    ("new_string", text("Literal text to put there, complete.")),
                    ("allow_multiple", flag("Replace every occurrence.")),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
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

/// The change, and what to say once it is made.
async fn plan(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<(TextChange, String), ToolError> {
    let call = Call::parse(args, ctx)?;
    let loaded = text_file::load(ctx, &call.path).await?;
    text_file::check_base(&call.path, base, &loaded)?;
    let path = &call.path;
    if loaded.bytes.is_none() {
        if call.old.is_empty() {
            return creation(call, loaded.real);
        }
        let (path, cwd) = (call.path.clone(), ctx.cwd.clone());
        let mut error = paths::run_blocking(move || paths::not_found_error(&path, &cwd)).await?;
        let advice = " Cannot apply edit. Use an empty old_string to create a new file.";
        error.for_model = Some(error.message.clone() + advice);
        return Err(error);
    }
    if call.old.is_empty() {
        let for_model = format!("Failed to edit. Attempted to create a file that already exists: {path}");
        let for_person = format!("The file exists already: {path}");
        return Err(ToolError::new("attempt_to_create_existing_file", for_person).with_model_text(for_model));
    }
    let cancel = ctx.cancel.clone();
    // Fuzzy matching may take a while.
    let (change, done, strategy) = paths::run_blocking(move || edit(&call, &loaded, &cancel)).await??;
    // For telemetry: the span of the call, where it is one.
    tracing::Span::current().record("castor.edit.strategy", strategy);
    Ok((change, done))
}

fn creation(call: Call, real: AbsPath) -> Result<(TextChange, String), ToolError> {
    let done = format!("Created new file: {} with provided content.", call.path);
    let (bytes, after) = (call.new.clone().into_bytes(), call.new.into());
    let base = BaseHash(None);
    let change = TextChange {
        path: call.path,
        real,
        before: None,
        after,
        bytes,
        base,
        unsaved: false,
        is_partial: false,
        fuzzy_lines: None,
    };
    Ok((change.check_marks()?, done))
}

/// The change, what to say once it is made, and how its place was found.
type FoundEdit = (TextChange, String, &'static str);

fn edit(call: &Call, loaded: &LoadedFile, cancel: &CancellationToken) -> Result<FoundEdit, ToolError> {
    let path = &call.path;
    let unfit = |why: &str| ToolError::new("edit_preparation_failure", format!("Failed to edit {path}: {why}."));
    let file = loaded.bytes.as_deref().and_then(text_file::decode).ok_or_else(|| unfit("it is a binary file"))?;
    if file.lossy {
        return Err(unfit("it has bytes that are not text, which an edit would destroy"));
    }
    if call.old == call.new {
        let why = format!("No changes to apply. The old_string and new_string are identical in file: {path}");
        return Err(no_change(path, why));
    }
    let text = text_file::to_lf(&file.text);
    let query = ReplaceQuery::new(&text, &call.old, &call.new, cancel);
    let (strategy, edits) = find(&query);
    check_count(call, &query, &edits)?;
    let after = lines::apply(&file.text, &edits, file.is_crlf());
    if after == file.text {
        let why = format!("No changes to apply. The new content is identical to the current content in file: {path}");
        return Err(no_change(path, why));
    }
    let mut done = format!("Successfully modified file: {path} ({} replacements).", edits.len());
    let fuzzy_lines = (strategy == "fuzzy").then(|| places(&query, &edits, true));
    if let Some(lines) = &fuzzy_lines {
        _ = write!(done, " Applied fuzzy match at lines {lines}.");
    }
    let bytes_after = file.encode(&after, &call.new).map_err(|it| unfit(&it.to_string()))?;
    let TextFile { text: before, .. } = file;
    let (base, real, unsaved) = (text_file::hash(loaded), loaded.real.clone(), loaded.unsaved);
    let (before, after) = (Some(before.into()), after.into());
    let change = TextChange {
        path: path.clone(),
        real,
        before,
        after,
        bytes: bytes_after,
        base,
        unsaved,
        is_partial: true,
        fuzzy_lines,
    };
    Ok((change.check_marks()?, done, strategy))
}

fn no_change(path: &AbsPath, for_model: String) -> ToolError {
    ToolError::new("edit_no_change", format!("The edit would change nothing in {path}.")).with_model_text(for_model)
}

/// What the first strategy that finds anything finds.
fn find(query: &ReplaceQuery<'_>) -> (&'static str, Vec<Edit>) {
    let mut found = STRATEGIES.iter().map(|(name, strategy)| (*name, strategy(query)));
    found.find(|it| !it.1.is_empty()).unwrap_or_default()
}

fn check_count(call: &Call, query: &ReplaceQuery<'_>, edits: &[Edit]) -> Result<(), ToolError> {
    let path = &call.path;
    match edits.len() {
        0 if query.cancel.is_cancelled() => Err(ToolError::new("cancelled", "The edit was cancelled.")),
        0 => {
            let mut for_model = format!(
                "Failed to edit, 0 occurrences found for old_string in {path}. Ensure you're not escaping content \
                 incorrectly and check whitespace, indentation, and context. Use read_file tool to verify."
            );
            for_model.push_str(&nearest::hint(query));
            let for_person = format!("The text to replace is not in {path}.");
            Err(ToolError::new("edit_no_occurrence_found", for_person).with_model_text(for_model))
        }
        1 => Ok(()),
        _ if call.all => Ok(()),
        count => {
            let for_model = format!(
                "Failed to edit, Expected 1 occurrence but found {count} for old_string in file: {path}, at lines {}. \
                 Add context that names one of them, or, to replace them all, set 'allow_multiple' to true.",
                places(query, edits, false)
            );
            let for_person = format!("The text to replace is in {path} {count} times, not once.");
            Err(ToolError::new("edit_expected_occurrence_mismatch", for_person).with_model_text(for_model))
        }
    }
}

/// Line numbers of `edits`, such as `3, 7`, or `3-4, 7-8` with ends.
fn places(query: &ReplaceQuery<'_>, edits: &[Edit], ends: bool) -> String {
    let line = |at: usize| query.lines.partition_point(|it| it.end < at) + 1;
    let place = |it: &Edit| match ends {
        true => format!("{}-{}", line(it.range.start), line(it.range.end)),
        false => line(it.range.start).to_string(),
    };
    let mut res = edits.iter().take(MAX_PLACES).map(place).collect::<Vec<_>>().join(", ");
    if edits.len() > MAX_PLACES {
        res.push_str(", …");
    }
    res
}

#[cfg(test)]
mod tests;
