//! The tool `grep_search`: finds lines by a regular expression, with context lines.

mod report;
mod search;
mod utf8_reader;

use std::{
    cell::{Cell, OnceCell},
    path::Path,
    time::{Duration, Instant},
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    aliases::Aliases,
    grep_search::search::{SearchBound, SearchQuery},
    params::{CallArguments, invalid, not_empty},
    paths,
    schema::{self, count, flag, text},
    skipped::SkippedFiles,
    walk::{self, Excludes, IgnoreRules, WalkPlan},
};
use castor_base::{
    content::Part,
    path::AbsPath,
    tool::{Access, BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk;

const DEFAULT_MATCHES: usize = 100;
/// However many are asked for.
const MOST_MATCHES: usize = 20_000;
const MOST_CONTEXT: usize = 1000;
const TIMEOUT: Duration = Duration::from_secs(30);
const HOW_TO_SEARCH_ALL: &str = "To search there, name the file or folder as dir_path, or set no_ignore.";
/// Most matches that get context unasked, and how many lines of it.
const AUTO_CONTEXT: &[(usize, usize)] = &[(1, 50), (3, 15)];

pub struct GrepSearch;

struct Call {
    pattern: String,
    dir: AbsPath,
    /// The folder as the call has it.
    dir_shown: String,
    include: Option<String>,
    names_only: bool,
    /// No context parameter was given.
    auto_context: bool,
    no_ignore: bool,
    query: SearchQuery,
}

impl Call {
    fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let pattern = not_empty("pattern", params.text("pattern")?)?;
        let dir = params.opt_path("dir_path", ctx)?;
        let dir_shown = dir.as_ref().map_or_else(|| ".".to_owned(), |it| it.relative_to(&ctx.cwd));
        let include = params.opt_text("include_pattern")?.filter(|it| !it.is_empty()).map(str::to_owned);
        let case_sensitive = params.flag("case_sensitive")?.unwrap_or(false);
        let fixed = params.flag("fixed_strings")?.unwrap_or(false);
        let names_only = params.flag("names_only")?.unwrap_or(false);
        let exclude = params.opt_text("exclude_pattern")?.filter(|it| !it.is_empty());
        let lines = |name| params.count(name, 0).map(|it| it.map(|it| it.min(MOST_CONTEXT)));
        let (context, before, after) = (lines("context")?, lines("before")?, lines("after")?);
        let total = params.count("total_max_matches", 1)?.unwrap_or(DEFAULT_MATCHES).min(MOST_MATCHES);
        let around = |it: Option<usize>| if names_only { 0 } else { it.or(context).unwrap_or(0) };
        let query = SearchQuery {
            matcher: matcher(pattern, case_sensitive, fixed)?,
            exclude: exclude.map(|it| matcher(it, case_sensitive, false)).transpose()?,
            before: around(before),
            after: around(after),
            per_file: if names_only { 1 } else { params.count("max_matches_per_file", 1)?.unwrap_or(usize::MAX) },
            total,
            skipped: SkippedFiles::default(),
        };
        Ok(Self {
            pattern: pattern.to_owned(),
            dir: dir.unwrap_or_else(|| ctx.cwd.clone()),
            dir_shown,
            include,
            names_only,
            auto_context: !names_only && context.or(before).or(after).is_none(),
            no_ignore: params.flag("no_ignore")?.unwrap_or(false),
            query,
        })
    }

    /// What paths must look like: a glob without a slash is for names, at any depth.
    fn include(&self, start: &AbsPath) -> Result<Option<Override>, ToolError> {
        let Some(glob) = &self.include else { return Ok(None) };
        let mut builder = OverrideBuilder::new(start);
        let built = builder.add(&disk::composed(glob)).and_then(|it| it.build());
        built.map(Some).map_err(|it| invalid(format!("Invalid include_pattern: {it}")))
    }
}

fn matcher(pattern: &str, case_sensitive: bool, fixed: bool) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    // Lines are searched one by one; with `crlf`, `$` matches before a CR.
    builder.case_insensitive(!case_sensitive).fixed_strings(fixed).multi_line(true).crlf(true);
    builder.build(pattern).map_err(|it| {
        invalid(format!(
            "Invalid regular expression pattern provided: {pattern}. Error: {it}. A literal text needs \
                         fixed_strings: true."
        ))
    })
}

impl Builtin for GrepSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "grep_search".into(),
            title: "SearchText".into(),
            description: "Searches file contents by regular expression (Rust syntax), line by line; 100 matches at \
                          most by default. Ignored and build folders are left out."
                .into(),
            kind: ToolKind::Search,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(
                &["pattern"],
                [
                    ("pattern", text("Regular expression.")),
                    ("dir_path", text("Folder or file to search (default: .).")),
                    ("include_pattern", text("Glob of files, such as *.{ts,tsx}.")),
                    ("exclude_pattern", text("Leave out lines that match this.")),
                    ("names_only", flag("Only the paths of matching files.")),
                    ("case_sensitive", flag("Default false.")),
                    ("fixed_strings", flag("pattern is literal text.")),
                    ("context", count(0, "Lines around each match.")),
                    ("after", count(0, "Lines after each match.")),
                    ("before", count(0, "Lines before each match.")),
                    ("no_ignore", flag("Search ignored and build folders too.")),
                    ("max_matches_per_file", count(1, "Matches per file.")),
                    ("total_max_matches", count(1, "Matches in all (default 100).")),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
            let paths = paths::content_targets(ctx, &call.dir, Access::Read, None).await?;
            let include = call.include.map(|it| format!(" in {it}")).unwrap_or_default();
            let title = format!("'{}'{include} within {}", call.pattern, call.dir_shown);
            Ok(Targets { title, paths, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let (call, ctx) = (Call::parse(args, ctx)?, ctx.clone());
            paths::run_blocking(move || run(call, &ctx)).await?
        })
    }
}

fn run(mut call: Call, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let mut rules = IgnoreRules::of(ctx);
    // `.geminiignore` is what the user wants hidden: `no_ignore` is the model's wish and does not lift it.
    rules.git &= !call.no_ignore;
    let plan = WalkPlan::new(call.dir.clone(), paths::call_real_path_now(ctx, &call.dir)?, ctx, rules)?;
    call.query.skipped = plan.skipped.clone();
    let include = call.include(&plan.start)?;
    let excludes = if call.no_ignore { Excludes::None } else { Excludes::Search };
    let stop = SearchBound { cancel: ctx.cancel.clone(), at: Instant::now() + TIMEOUT };
    let secrets = Cell::new(0);
    let aliases = OnceCell::new();
    let is_alias = |it: &Path| {
        let path = AbsPath::new(it).filter(|it| plan.is_dir && disk::hard_link_id(it).is_some());
        path.is_some_and(|it| aliases.get_or_init(|| Aliases::scan(&ctx.roots)).secret_of(&it).is_some())
    };
    let is_secret = |it: &Path| (plan.is_secret(it) || is_alias(it)).then(|| secrets.set(secrets.get() + 1)).is_some();
    let files = search::files(&plan, excludes, include.as_ref(), &stop).filter(|it| !is_secret(it));
    let mut found = search::search(&call.query, files, &stop);
    if let Some((_, lines)) = AUTO_CONTEXT.iter().find(|it| (1..=it.0).contains(&found.hits) && call.auto_context) {
        (call.query.before, call.query.after) = (*lines, *lines);
        // What is skipped was counted.
        call.query.skipped = SkippedFiles::default();
        let files: Vec<_> = found.files.iter().map(|it| it.path.clone()).collect();
        found = search::SearchResult { cut: found.cut, ..search::search(&call.query, files.into_iter(), &stop) };
    }
    walk::check_cancelled(&ctx.cancel)?;
    let mut output = report::report(&call, &plan, &ctx.cwd, &found);
    let notes =
        plan.skipped_note(found.files.is_empty(), HOW_TO_SEARCH_ALL) + &paths::omitted_secrets_note(secrets.get());
    output.content.extend(Some(notes).filter(|it| !it.is_empty()).map(Part::text));
    Ok(output)
}

#[cfg(test)]
mod tests;
