//! The tool `read_many_files`: reads the text files that paths and patterns name, one below the other.

use std::{fmt::Write, path::Path};

use globset::{GlobBuilder, GlobSet};
use serde_json::{Value, json};

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths, schema,
    texts::{file_lines::file_lines, text_file},
    walk::{self, Excludes, IgnoreRules, META, WalkPlan},
};
use castor_base::{
    content::{Part, joined_text},
    path::AbsPath,
    text,
    tool::{Access, BaseHash, TargetPath, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk;

/// More are counted.
const MAX_FILES: usize = 50;
/// Of all texts together. What is over is named; with that it is 64 KiB at most.
const MAX_TEXT: usize = 62 << 10;
const MAX_NAMES: usize = 1 << 10;
const MAX_TITLE: usize = 200;

pub struct ReadManyFiles;

struct Call {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Call {
    fn parse(args: &Value) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let texts = |name| -> Result<Vec<String>, ToolError> {
            let all = params.texts(name)?.into_iter().map(|it| it.trim().trim_start_matches("./").to_owned());
            Ok(all.filter(|it| !it.is_empty()).collect())
        };
        match texts("include")? {
            it if it.is_empty() => Err(invalid("params must have required property 'include', with one path or more")),
            include => Ok(Self { include, exclude: texts("exclude")? }),
        }
    }
}

/// What a call names.
#[derive(Default)]
struct FileSelection {
    /// Those that are named, then those that fit a pattern, by name.
    all: Vec<AbsPath>,
    n_secrets: usize,
    /// Where no pattern was looked for.
    skipped: String,
}

impl FileSelection {
    /// Blocks.
    fn of(call: &Call, ctx: &ToolContext) -> Result<Self, ToolError> {
        let (mut res, mut patterns) = (Self::default(), Vec::new());
        for it in &call.include {
            match pattern_of(it, ctx)? {
                Some(pattern) => patterns.push(pattern),
                None => res.all.push(ctx.resolve_path(it)),
            }
        }
        for it in &res.all {
            walk::check_ignored(it, &paths::real_path(ctx, it).unwrap_or_else(|_| it.clone()), ctx)?;
        }
        let (include, exclude) = (matcher(&patterns)?, matcher(&call.exclude)?);
        for root in ctx.roots.iter().filter(|_| !patterns.is_empty()) {
            res.search(root, &|below| include.is_match(below) && !exclude.is_match(below), ctx)?;
        }
        if !res.all.is_empty() {
            return Ok(res);
        }
        let left_out = res.skipped + &paths::omitted_secrets_note(res.n_secrets);
        Err(ToolError::new("file_not_found", format!("No file is named by {}.{left_out}", call.include.join(", "))))
    }

    /// Blocks.
    fn search(&mut self, root: &AbsPath, fits: &dyn Fn(&Path) -> bool, ctx: &ToolContext) -> Result<(), ToolError> {
        let plan = WalkPlan::new(root.clone(), root.clone(), ctx, IgnoreRules::of(ctx))?;
        let mut entries = plan.walk("", Excludes::Search).flatten();
        while let Some(entry) = entries.next().filter(|_| !ctx.cancel.is_cancelled()) {
            let is_file = entry.file_type().is_some_and(|it| it.is_file());
            let form = plan.pattern_form(entry.path());
            if !is_file || !fits(form.strip_prefix(root).unwrap_or(&form)) {
                continue;
            }
            match plan.is_secret(entry.path()) {
                true => self.n_secrets += 1,
                false => self.all.extend(AbsPath::new(entry.path()).filter(|it| !self.all.contains(it))),
            }
        }
        self.skipped += &plan.skipped_note(true, "To read files of such folders, name them.");
        walk::check_cancelled(&ctx.cancel)
    }
}

/// A folder and a pattern are patterns, below any root; `None`: a file's path. Blocks.
fn pattern_of(named: &str, ctx: &ToolContext) -> Result<Option<String>, ToolError> {
    let path = ctx.resolve_path(named);
    let root = walk::root_of(&path, &ctx.roots);
    match (disk::metadata(&path), root) {
        (Ok(meta), Some(root)) if meta.is_dir && path == root => Ok(Some("**".to_owned())),
        (Ok(meta), Some(root)) if meta.is_dir => Ok(Some(format!("{}/**", globset::escape(&path.relative_to(&root))))),
        // `[id].tsx` is a file that frameworks like.
        (Ok(_), _) => Ok(None),
        (Err(_), _) if !named.contains(META) => Ok(None),
        (Err(_), _) if named.starts_with(['/', '~']) || named.split('/').any(|it| it == "..") => {
            Err(invalid(format!("{named}: a pattern is relative to the workspace; name files elsewhere")))
        }
        (Err(_), _) => Ok(Some(named.to_owned())),
    }
}

fn matcher(patterns: &[String]) -> Result<GlobSet, ToolError> {
    let mut set = GlobSet::builder();
    for it in patterns {
        let glob = GlobBuilder::new(&disk::composed(it)).literal_separator(true).build();
        set.add(glob.map_err(|it| invalid(format!("Invalid glob pattern: {it}")))?);
    }
    set.build().map_err(|it| invalid(format!("Invalid glob pattern: {it}")))
}

impl Builtin for ReadManyFiles {
    fn spec(&self) -> ToolSpec {
        let texts = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
        ToolSpec {
            name: "read_many_files".into(),
            title: "ReadManyFiles".into(),
            description: "Reads several text files at once.".into(),
            kind: ToolKind::Read,
            traits: ToolTraits { returns_whole: true, ..ToolTraits::LOOKS },
            parameters: schema::object(
                &["include"],
                [("include", texts("Paths, folders or globs, such as src/**/*.ts.")), ("exclude", texts("Globs."))],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let (call, looker) = (Call::parse(args)?, ctx.clone());
            let title = text::first_line(&call.include.join(", "), MAX_TITLE);
            let look = move || -> Result<Vec<TargetPath>, ToolError> {
                let files = FileSelection::of(&call, &looker)?.all.into_iter().take(MAX_FILES);
                let found = files.map(|it| paths::content_targets_now(&looker, it, Access::Read, None));
                Ok(found.collect::<Result<Vec<_>, ToolError>>()?.concat())
            };
            Ok(Targets { title, paths: paths::run_blocking(look).await??, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let (call, looker) = (Call::parse(args)?, ctx.clone());
            let found = paths::run_blocking(move || FileSelection::of(&call, &looker)).await??;
            let (mut text, mut rest, mut n_read) = (String::new(), Vec::new(), 0);
            for (n, path) in found.all.iter().enumerate() {
                let name = path.relative_to(&ctx.cwd);
                let part = match n < MAX_FILES {
                    true => format!("--- {name} ---\n\n{}\n\n", content(path, ctx).await),
                    false => String::new(),
                };
                if part.is_empty() || n_read > 0 && text.len() + part.len() > MAX_TEXT {
                    rest.push(name);
                    continue;
                }
                text.push_str(&part);
                n_read += 1;
            }
            text.push_str("--- End of content ---");
            if !rest.is_empty() {
                let names = rest.join(", ");
                let more = if names.len() > MAX_NAMES { ", …" } else { "" };
                _ = write!(
                    text,
                    "\n({} more files are not shown: {}{more}. Read them in calls of their own, or use narrower patterns)",
                    rest.len(),
                    text::head(&names, MAX_NAMES)
                );
            }
            text.push_str(&paths::omitted_secrets_note(found.n_secrets));
            let summary = Some(format!("Read {n_read} file(s)"));
            Ok(ToolOutput { summary, data: json!({"count": n_read}), ..ToolOutput::text(text) })
        })
    }
}

/// A file's text, or why there is none.
async fn content(path: &AbsPath, ctx: &ToolContext) -> String {
    let shown = path.relative_to(&ctx.cwd);
    let read = async {
        let loaded = text_file::load(ctx, path).await?;
        match loaded.bytes.as_deref().map(text_file::decode) {
            None => Err(ToolError::new("file_not_found", "There is no such file.")),
            Some(None) => Err(ToolError::new("read_content_failure", "It is no text file.")),
            Some(Some(file)) => {
                let mut output = file_lines(&file.text, (None, None), &shown)?;
                output.content.insert(0, Part::text(file.note()));
                Ok(output)
            }
        }
    };
    match read.await {
        Ok(it) => joined_text(&it.content),
        Err(it) => format!("[{}]", it.message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ReadManyFiles;
    use crate::builtin::{Builtin, testing::ToolFixture};

    fn ground() -> ToolFixture {
        let res = ToolFixture::new(&[
            ("a.txt", "one\n"),
            ("src/a.rs", "fn a() {}"),
            ("src/deep/b.rs", "fn b() {}"),
            ("src/[id].rs", "fn id() {}"),
            (".env", "KEY=canary"),
            ("src/.env", "KEY=canary"),
            (".gitignore", "*.o"),
            ("src/x.o", "ignored"),
            ("../outside/o.txt", "outside"),
        ]);
        res.write("src/z.bin", b"\0\x01");
        res
    }

    fn check(args: Value, expected: &str) {
        assert_eq!(ground().result_text(&ReadManyFiles, &args), expected, "{args}");
    }

    #[test]
    fn paths_folders_and_patterns_name_files() {
        let (a, b) = ("--- src/a.rs ---\n\nfn a() {}\n\n", "--- src/deep/b.rs ---\n\nfn b() {}\n\n");
        let (id, end) = ("--- src/[id].rs ---\n\nfn id() {}\n\n", "--- End of content ---");
        check(json!({"include": ["src/**/*.rs"]}), &format!("{id}{a}{b}{end}"));
        check(json!({"include": ["src/**/*.rs"], "exclude": ["**/[[]*", "src/deep/**"]}), &format!("{a}{end}"));
        check(json!({"include": ["a.txt", "src/[id].rs"]}), &format!("--- a.txt ---\n\none\n\n\n{id}{end}"));
        check(
            json!({"include": ["./src"]}),
            &format!(
                "{id}{a}{b}--- src/z.bin ---\n\n[It is no text file.]\n\n{end}\n(1 file(s) left out: they may hold \
                 secrets. To look into one, name it.)"
            ),
        );
        check(json!({"include": ["none.txt"]}), &format!("--- none.txt ---\n\n[There is no such file.]\n\n{end}"));
    }

    #[test]
    fn what_is_not_read_is_said() {
        check(
            json!({"include": ["*.c"]}),
            "file_not_found: No file is named by *.c.\n(Skipped: what .gitignore hides. To read files of such folders, \
             name them.)",
        );
        check(
            json!({"include": ["../outside/*"]}),
            "invalid_tool_params: ../outside/*: a pattern is relative to the workspace; name files elsewhere",
        );
        check(
            json!({"include": []}),
            "invalid_tool_params: params must have required property 'include', with one path or more",
        );
        let ignored = ground().result_text(&ReadManyFiles, &json!({"include": ["src/x.o"]}));
        assert!(ignored.ends_with("src/x.o' is ignored by configured ignore patterns."), "{ignored}");
    }

    /// Each file is decided about by itself, and nothing else is read then.
    #[test]
    fn each_file_is_a_target() {
        let ground = ground();
        let args = json!({"include": ["src/*.rs", "../outside/o.txt", ".env"]});
        let ctx = ground.decided_ctx(&ReadManyFiles, &args);
        let targets: Vec<(String, bool)> =
            ctx.known.decided_targets.iter().map(|it| (it.path.relative_to(&ground.cwd), it.in_roots)).collect();
        let outside = ground.cwd.join("../outside/o.txt").to_string();
        let want = [(outside.as_str(), false), (".env", true), ("src/[id].rs", true), ("src/a.rs", true)];
        assert_eq!(targets, want.map(|(path, inside)| (path.to_owned(), inside)));
        ground.write("src/new.rs", b"new");
        let output = ground.block_on(ReadManyFiles.run(&args, None, &ctx)).unwrap();
        let text = castor_base::content::joined_text(&output.content);
        assert!(text.contains("fn a() {}") && !text.contains("--- src/new.rs ---\n\nnew"), "{text}");
    }

    #[test]
    fn there_is_an_end() {
        let ground = ToolFixture::new(&[]);
        (0..60).for_each(|n| ground.write(&format!("{n:02}.txt"), "x".repeat(20 << 10).as_bytes()));
        let text = ground.result_text(&ReadManyFiles, &json!({"include": ["*.txt"]}));
        assert!(text.len() <= 64 << 10 && text.ends_with("use narrower patterns)"), "{}", text.len());
        let rest = text.rsplit_once(" more files are not shown: ").unwrap().1;
        assert!((10..60).all(|n| text.contains(&format!("--- {n}.txt ---")) != rest.contains(&format!("{n}.txt"))));
        // One that is too long by itself is begun, and goes on elsewhere.
        ground.write("00.txt", "0123456789\n".repeat(1 << 20).as_bytes());
        let text = ground.result_text(&ReadManyFiles, &json!({"include": ["*.txt"]}));
        assert!(text.len() <= 64 << 10 && text.contains("use start_line: 2001."), "{}", text.len());
    }
}
