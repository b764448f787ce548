//! The tool `list_directory`: lists one folder.

use std::fmt::Write;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Value, json};

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths,
    schema::{self, text},
    walk::{self, IgnoreRules, Matcher},
};
use castor_base::{
    path::AbsPath,
    path_text,
    tool::{Access, BaseHash, LIST_DIRECTORY, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk::{self, DirEntry};

const MAX_ENTRIES: usize = 2000;

pub struct ListDirectory;

struct Call {
    dir: AbsPath,
    ignore: GlobSet,
    rules: IgnoreRules,
}

impl Call {
    fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let mut ignore = GlobSetBuilder::new();
        for pattern in params.texts("ignore")? {
            ignore.add(Glob::new(pattern).map_err(|it| invalid(format!("Invalid glob in 'ignore': {it}")))?);
        }
        let ignore = ignore.build().map_err(|it| invalid(it.to_string()))?;
        let rules = match params.object("file_filtering_options")? {
            Some(it) => IgnoreRules::of(ctx).with_arguments(it)?,
            None => IgnoreRules::of(ctx),
        };
        Ok(Self { dir: params.path("dir_path", ctx)?, ignore, rules })
    }
}

impl Builtin for ListDirectory {
    fn spec(&self) -> ToolSpec {
        let names =
            json!({"type": "array", "items": {"type": "string"}, "description": "Globs of names to leave out."});
        let options = json!({
            "type": "object",
            "description": "Whether ignore files count (default true).",
            "properties": {
                "respect_git_ignore": {"type": "boolean"},
                "respect_gemini_ignore": {"type": "boolean"},
            },
        });
        ToolSpec {
            name: LIST_DIRECTORY.into(),
            title: "ReadFolder".into(),
            description: "Lists the files and folders directly in a folder.".into(),
            kind: ToolKind::Search,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(
                &["dir_path"],
                [("dir_path", text("Path of the folder.")), ("ignore", names), ("file_filtering_options", options)],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
            let target = paths::resolve_target(ctx, &call.dir, Access::Read, None).await?;
            Ok(Targets { title: call.dir.relative_to(&ctx.cwd), paths: vec![target], ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let (call, ctx) = (Call::parse(args, ctx)?, ctx.clone());
            paths::run_blocking(move || list(&call, &ctx.roots, paths::call_real_path_now(&ctx, &call.dir)?)).await?
        })
    }
}

fn list(call: &Call, roots: &[AbsPath], real: AbsPath) -> Result<ToolOutput, ToolError> {
    let dir = &call.dir;
    let missing = |_| ToolError::new("file_not_found", format!("Error: Directory not found: {dir}"));
    if !disk::metadata(&real).map_err(missing)?.is_dir {
        return Err(ToolError::new("path_is_not_a_directory", format!("Error: Path is not a directory: {dir}")));
    }
    let failed = |it| ToolError::new("ls_execution_error", format!("Error listing directory: {dir}: {it}"));
    let mut entries = disk::read_real_dir(&real).map_err(failed)?;
    if entries.is_empty() {
        let text = format!("Directory {dir} is empty.");
        return Ok(ToolOutput { summary: Some("Directory is empty.".to_owned()), ..ToolOutput::text(text) });
    }
    let matcher = walk::root_of(&real, roots).map(|top| Matcher::new(&top, &real, &call.rules));
    let before = entries.len();
    entries.retain(|it| {
        let ignored = matcher
            .as_ref()
            .is_some_and(|matcher| matcher.is_ignored(&real.join(path_text::from_text(&it.name)), it.is_dir));
        !ignored && !call.ignore.is_match(&it.name)
    });
    entries.sort_by(|a, b| b.is_dir.cmp(&a.is_dir).then_with(|| a.name.cmp(&b.name)));
    Ok(report(dir, &entries, before - entries.len()))
}

fn report(dir: &AbsPath, entries: &[DirEntry], ignored: usize) -> ToolOutput {
    let mut text = format!("Directory listing for {dir}:");
    for it in entries.iter().take(MAX_ENTRIES) {
        _ = match it.is_dir {
            true => write!(text, "\n[DIR] {}", it.name),
            false => write!(text, "\n{} ({} bytes)", it.name, it.len),
        };
    }
    if let Some(more @ 1..) = entries.len().checked_sub(MAX_ENTRIES) {
        _ = write!(text, "\n({more} more entries not shown)");
    }
    let mut summary = format!("{} {}", entries.len(), if entries.len() == 1 { "entry" } else { "entries" });
    if ignored > 0 {
        _ = write!(text, "\n\n({ignored} ignored)");
        _ = write!(summary, " ({ignored} ignored)");
    }
    ToolOutput { summary: Some(summary), ..ToolOutput::text(text) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ListDirectory;
    use crate::builtin::testing::ToolFixture;

    #[test]
    fn lists() {
        let ground = ToolFixture::new(&[
            (".gitignore", "*.o\nout/"),
            ("b.txt", "four"),
            ("a.o", ""),
            ("out/x", ""),
            ("src/x", ""),
            ("z/.keep", ""),
        ]);
        let check = |args, expected: &str| assert_eq!(ground.result_text(&ListDirectory, &args), expected, "{args}");
        check(
            json!({"dir_path": "."}),
            "Directory listing for $W:\n[DIR] src\n[DIR] z\n.gitignore (8 bytes)\nb.txt (4 bytes)\n\n(2 ignored)",
        );
        check(
            json!({"dir_path": "", "ignore": []}),
            "invalid_tool_params: The 'dir_path' parameter must be non-empty.",
        );
        check(
            json!({"dir_path": ".", "ignore": ["*.txt", "z"], "file_filtering_options": {"respect_git_ignore": false}}),
            "Directory listing for $W:\n[DIR] out\n[DIR] src\n.gitignore (8 bytes)\na.o (0 bytes)\n\n(2 ignored)",
        );
        check(json!({"dir_path": "nope"}), "file_not_found: Error: Directory not found: $W/nope");
        check(json!({"dir_path": "b.txt"}), "path_is_not_a_directory: Error: Path is not a directory: $W/b.txt");
        assert_eq!(ground.title(&ListDirectory, &json!({"dir_path": "src"})), "src");
    }

    #[test]
    fn is_bounded() {
        let ground = ToolFixture::new(&[]);
        assert_eq!(ground.result_text(&ListDirectory, &json!({"dir_path": "."})), "Directory $W is empty.");
        (0..2005).for_each(|it| ground.write(&it.to_string(), b""));
        assert!(
            ground.result_text(&ListDirectory, &json!({"dir_path": "."})).ends_with("\n(5 more entries not shown)")
        );
    }
}
