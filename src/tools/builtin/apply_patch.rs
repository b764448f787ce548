//! The tool `apply_patch`: adds, updates, moves and deletes files by one patch, all or none.

mod hunks;
mod indents;
mod plan;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::plan::PatchPlan;
use crate::builtin::{
    Builtin, Task, ToolContext,
    params::invalid,
    paths,
    schema::{self, text},
};
use castor_base::{
    patch::{self, APPLY_PATCH, FilePatch, PatchAction},
    path::AbsPath,
    tool::{Access, BaseHash, Preview, TargetPart, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub struct ApplyPatch;

/// The format, for providers that take no grammar.
const INPUT: &str = "*** Begin Patch\n[files]\n*** End Patch. A file is '*** Add File: PATH' and lines with +, or '*** \
                     Delete File: PATH', or '*** Update File: PATH', perhaps '*** Move to: PATH', and hunks: '@@' or '@@ \
                     LINE OF THE FILE BEFORE IT', then lines that begin with ' ' (stays), '-' (goes) or '+' (comes), and \
                     '*** End of File' where they are its last.";

impl Builtin for ApplyPatch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: APPLY_PATCH.into(),
            title: "Patch".into(),
            description:
                "Adds, updates, moves and deletes files by one patch, all or none. Give three lines of context \
                          around a change, exactly as in the file, and hunks in the order of the file."
                    .into(),
            kind: ToolKind::Edit,
            traits: ToolTraits { is_patch: true, ..ToolTraits::EDITS },
            parameters: schema::object(&["input"], [("input", text(INPUT))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let files = parse(args)?;
            let mut res = Targets { title: title(&files, ctx), ..Targets::default() };
            for call in files.iter().flat_map(FilePatch::calls) {
                let path = ctx.resolve_path(&call.path);
                let paths = paths::content_targets(ctx, &path, Access::Write, None).await?;
                res.paths.extend(paths.iter().filter(|it| !res.paths.contains(it)).cloned().collect::<Vec<_>>());
                let targets = Targets { title: path.relative_to(&ctx.cwd).to_string(), paths, ..Targets::default() };
                res.parts.push(TargetPart { tool: call.tool.to_owned(), args: call.args, targets });
            }
            Ok(res)
        })
    }

    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async move { Ok(PatchPlan::new(parse(args)?, None, ctx).await?.preview()) })
    }

    fn run<'a>(&'a self, args: &'a Value, base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move { PatchPlan::new(parse(args)?, base, ctx).await?.write(ctx).await })
    }
}

fn parse(args: &Value) -> Result<Vec<FilePatch>, ToolError> {
    let text = patch::text_of(args).ok_or_else(|| invalid("params must have required property 'input', a text"))?;
    patch::parse(text).map_err(|it| invalid(it.to_string()))
}

/// Each file with what becomes of it.
fn title(files: &[FilePatch], ctx: &ToolContext) -> String {
    let short = |it: &str| -> AbsPath { ctx.resolve_path(it) };
    let name = |it: &str| short(it).relative_to(&ctx.cwd).to_string();
    let describe = |it: &FilePatch| match &it.action {
        PatchAction::Add { .. } => format!("{} (new)", name(&it.path)),
        PatchAction::Delete => format!("{} (deleted)", name(&it.path)),
        PatchAction::Update { move_to: Some(to), .. } => format!("{} => {}", name(&it.path), name(to)),
        PatchAction::Update { move_to: None, .. } => name(&it.path),
    };
    format!("Patch {}", files.iter().map(describe).collect::<Vec<_>>().join(", "))
}
