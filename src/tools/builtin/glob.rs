//! The tool `glob`: finds files by a path pattern, recently changed ones first.

use std::{fmt::Write, path::Path, time::SystemTime};

use globset::{GlobBuilder, GlobSet};
use serde_json::{Value, json};

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid, not_empty},
    paths,
    schema::{self, flag, text},
    walk::{self, Excludes, IgnoreRules, META, WalkPlan},
};
use castor_base::{
    path::AbsPath,
    tool::{Access, BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk;

const RECENT_MS: u64 = 24 * 60 * 60 * 1000;
/// More are not even looked at.
const MAX_FILES: usize = 100_000;
const MAX_TEXT_BYTES: usize = 200 * 1024;

const HOW_TO_FIND_ALL: &str = "To look there, name the folder as dir_path, or set respect_git_ignore to false.";

pub struct Glob;

struct Call {
    pattern: String,
    /// Folders to search, and what their files' paths must look like from there.
    places: Vec<(AbsPath, String)>,
    case_sensitive: bool,
    rules: IgnoreRules,
    within: String,
}

impl Call {
    fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let pattern = not_empty("pattern", params.text("pattern")?.trim().replace('\0', ""))?;
        let dir = params.opt_path("dir_path", ctx)?;
        let case_sensitive = params.flag("case_sensitive")?.unwrap_or(false);
        let rules = IgnoreRules::of(ctx).with_arguments(params)?;
        let within = match &dir {
            None if ctx.roots.len() > 1 => format!("across {} workspace directories", ctx.roots.len()),
            _ => format!("within {}", dir.as_ref().unwrap_or(&ctx.cwd)),
        };
        let dirs = match dir {
            Some(it) => vec![it],
            None => [&ctx.cwd].into_iter().chain(ctx.roots.get(1..).unwrap_or_default()).cloned().collect(),
        };
        let mut places: Vec<_> = dirs.iter().map(|it| split(it, &pattern)).collect();
        places.dedup();
        Ok(Self { pattern, places, case_sensitive, rules, within })
    }

    fn matcher(&self, dir: &AbsPath, pattern: &str) -> Result<GlobSet, ToolError> {
        // `[id].tsx` is a file that frameworks like.
        let named = disk::existing_path(dir.join(pattern));
        let literal = pattern.contains(META) && disk::metadata(&named).is_ok();
        let pattern = disk::composed(pattern);
        // `escape` leaves the backslash, which is a sign of patterns, too.
        let pattern = if literal { globset::escape(&pattern).replace('\\', "\\\\") } else { pattern.into_owned() };
        let mut builder = GlobBuilder::new(&pattern);
        let glob = builder.literal_separator(true).case_insensitive(!self.case_sensitive).build();
        // As a set of one: a matcher of its own panics on a pattern that is too large.
        let set = glob.and_then(|it| GlobSet::builder().add(it).build());
        set.map_err(|it| invalid(format!("Invalid glob pattern: {it}")))
    }
}

/// A pattern that leads out of `dir` takes the folder along with it: that is what policy must see.
fn split(dir: &AbsPath, pattern: &str) -> (AbsPath, String) {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if !pattern.starts_with('/') && !pattern.split('/').any(|it| it == "..") {
        return (dir.clone(), pattern.to_owned());
    }
    let mut at = 0;
    for part in pattern.split_inclusive('/') {
        if part.contains(META) || !part.ends_with('/') {
            break;
        }
        at += part.len();
    }
    let (fixed, rest) = pattern.split_at_checked(at).unwrap_or_default();
    (dir.join(fixed), rest.to_owned())
}

impl Builtin for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "glob".into(),
            title: "FindFiles".into(),
            description: "Finds files by path pattern, such as src/**/*.ts. Files changed in the last 24 hours come \
                          first, newest first, then the others by path."
                .into(),
            kind: ToolKind::Search,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(
                &["pattern"],
                [
                    ("pattern", text("Glob, relative to dir_path.")),
                    ("dir_path", text("Folder to search (default: the workspace).")),
                    ("case_sensitive", flag("Default false.")),
                    ("respect_git_ignore", flag("Default true.")),
                    ("respect_gemini_ignore", flag("Default true.")),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
            let mut res = Targets { title: format!("'{}'", call.pattern), ..Targets::default() };
            if let Some(dir) = CallArguments::of(args)?.opt_path("dir_path", ctx)? {
                _ = write!(res.title, " within {}", dir.relative_to(&ctx.cwd));
            }
            for (dir, _) in &call.places {
                res.paths.push(paths::resolve_target(ctx, dir, Access::Read, None).await?);
            }
            Ok(res)
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let (call, ctx) = (Call::parse(args, ctx)?, ctx.clone());
            paths::run_blocking(move || find(&call, &ctx)).await?
        })
    }
}

struct FoundFile {
    path: AbsPath,
    modified_ms: u64,
}

fn find(call: &Call, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let cancel = &ctx.cancel;
    let (mut found, mut secrets, mut skipped) = (Vec::new(), 0, String::new());
    for (dir, pattern) in &call.places {
        let plan = WalkPlan::new(dir.clone(), paths::call_real_path_now(ctx, dir)?, ctx, call.rules.clone())?;
        if !plan.is_dir {
            let message = format!("Search path is not a directory: {dir}");
            return Err(ToolError::new("search_path_not_a_directory", message));
        }
        let matcher = call.matcher(dir, pattern)?;
        let mut folder = Folder::default();
        let mut entries = plan.walk("", Excludes::Core).flatten();
        // Not a filter: the walk must end when nobody waits for it any more.
        while let Some(entry) = entries.next().filter(|_| !cancel.is_cancelled() && found.len() < MAX_FILES) {
            let real = entry.path();
            let form = plan.pattern_form(real);
            if form.strip_prefix(&plan.start).is_ok_and(|it| matcher.is_match(it)) && folder.has(real) {
                let file = regular(plan.shown(real));
                match file.is_some() && plan.is_secret(real) {
                    true => secrets += 1,
                    false => found.extend(file),
                }
            }
        }
        // Of several roots, the last one that has something to say.
        skipped =
            Some(plan.skipped_note(found.is_empty(), HOW_TO_FIND_ALL)).filter(|it| !it.is_empty()).unwrap_or(skipped);
    }
    walk::check_cancelled(cancel)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_millis() as u64);
    sort(&mut found, now);
    found.dedup_by(|a, b| a.path == b.path);
    let skipped = if found.is_empty() { skipped } else { String::new() };
    Ok(report(call, &found, &(skipped + &paths::omitted_secrets_note(secrets))))
}

/// The folder of the last entry. The walk opens folders by name, and one that was swapped for a link meanwhile would tell
/// what is elsewhere: only what the real folder has, too, is told.
#[derive(Default)]
struct Folder {
    #[cfg(unix)]
    open: Option<(std::path::PathBuf, Option<disk::dirfd::DirFd>)>,
}

#[cfg(unix)]
impl Folder {
    fn has(&mut self, real: &Path) -> bool {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { return true };
        if self.open.as_ref().is_none_or(|it| it.0 != parent) {
            let folder = AbsPath::new(parent).and_then(|it| disk::dirfd::DirFd::open_real(&it).ok());
            self.open = Some((parent.to_owned(), folder));
        }
        let folder = self.open.as_ref().and_then(|it| it.1.as_ref());
        folder.is_some_and(|it| it.stat(name.as_encoded_bytes()).is_ok_and(|it| it.is_some()))
    }
}

#[cfg(not(unix))]
impl Folder {
    fn has(&mut self, _real: &Path) -> bool {
        true
    }
}

/// Links count as what they point to.
fn regular(path: AbsPath) -> Option<FoundFile> {
    let meta = disk::metadata(&path).ok().filter(|it| !it.is_dir)?;
    Some(FoundFile { path, modified_ms: meta.modified_ms })
}

fn sort(found: &mut [FoundFile], now_ms: u64) {
    let oldest = now_ms.saturating_sub(RECENT_MS);
    found.sort_by(|a, b| {
        let recent = |it: &FoundFile| if it.modified_ms > oldest { it.modified_ms } else { 0 };
        recent(b).cmp(&recent(a)).then_with(|| a.path.cmp(&b.path))
    });
}

fn report(call: &Call, found: &[FoundFile], left_out: &str) -> ToolOutput {
    if found.is_empty() {
        let text = format!("No files found matching pattern \"{}\" {}{left_out}", call.pattern, call.within);
        return ToolOutput { summary: Some("No files found".to_owned()), ..ToolOutput::text(text) };
    }
    let count = found.len();
    let mut text = format!(
        "Found {count} file(s) matching \"{}\" {}, sorted by modification time (newest first):",
        call.pattern, call.within
    );
    let mut shown = 0;
    for it in found {
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
        _ = write!(text, "\n{}", it.path);
        shown += 1;
    }
    if shown < count {
        _ = write!(text, "\n({} more files not shown; use a narrower pattern)", count - shown);
    }
    if count >= MAX_FILES {
        _ = write!(text, "\n(the search ended at {MAX_FILES} files; there may be more)");
    }
    text.push_str(left_out);
    ToolOutput {
        summary: Some(format!("Found {count} matching file(s)")),
        data: json!({"count": count}),
        ..ToolOutput::text(text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::{Value, json};

    use super::Glob;
    use crate::builtin::testing::ToolFixture;

    fn ground(files: &[&str]) -> ToolFixture {
        let ground = ToolFixture::new(&files.iter().map(|it| (*it, "")).collect::<Vec<_>>());
        files.iter().for_each(|it| age(&ground, it, 48));
        ground
    }

    #[allow(clippy::disallowed_methods)]
    fn age(ground: &ToolFixture, path: &str, hours: u64) {
        let file = std::fs::File::options().write(true).open(ground.cwd.join(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
    }

    fn check(ground: &ToolFixture, args: Value, expected: &str) {
        let said = ground.result_text(&Glob, &args);
        let files: Vec<_> = said.lines().skip(1).map(|it| it.trim_start_matches("$W/")).collect();
        assert_eq!(files.join(" "), expected, "{args}: {said}");
    }

    #[test]
    fn finds() {
        let ground = ground(&[
            ".gitignore",
            ".hidden/a.rs",
            "a.rs",
            "app/[id].tsx",
            "app/i.tsx",
            "node_modules/m/a.rs",
            "src/B.RS",
            "src/deep/c.rs",
            "target/a.rs",
        ]);
        ground.write(".gitignore", b"target/\n");
        ground.write("../outside/o.rs", b"");
        ground.link("../outside", "out");
        check(&ground, json!({"pattern": "**/*.rs"}), ".hidden/a.rs a.rs src/B.RS src/deep/c.rs");
        check(&ground, json!({"pattern": "*.rs"}), "a.rs");
        check(&ground, json!({"pattern": "**/*.rs", "case_sensitive": true}), ".hidden/a.rs a.rs src/deep/c.rs");
        check(&ground, json!({"pattern": "**/a.rs", "respect_git_ignore": false}), ".hidden/a.rs a.rs target/a.rs");
        check(&ground, json!({"pattern": "app/[id].tsx"}), "app/[id].tsx");
        check(&ground, json!({"pattern": "./src/{B,x}.rs"}), "src/B.RS");
        check(&ground, json!({"pattern": "*.rs", "dir_path": "target"}), "target/a.rs");
        check(&ground, json!({"pattern": ground.cwd.join("src/**/*.rs").to_string()}), "src/B.RS src/deep/c.rs");
        check(&ground, json!({"pattern": "../*.rs", "dir_path": "src"}), "a.rs");
    }

    /// Names that look the same, and names that are no text.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn odd_names_are_found() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        let ground = ground(&["re\u{301}sume\u{301}.txt", "a\u{e9}"]);
        std::fs::write(ground.cwd.join(OsStr::from_bytes(b"bad\xff.c")), "").unwrap();
        age(&ground, "re\u{301}sume\u{301}.txt", 48);
        check(&ground, json!({"pattern": "r\u{e9}sum\u{e9}.*"}), "re\u{301}sume\u{301}.txt");
        check(&ground, json!({"pattern": "ae\u{301}"}), "a\u{e9}");
        check(&ground, json!({"pattern": "*.c"}), "bad\\xff.c");
        check(&ground, json!({"pattern": "bad\\xff.c"}), "bad\\xff.c");
    }

    #[test]
    fn says() {
        let ground = ground(&["a.rs", "dir/b"]);
        let check = |args, expected: &str| assert_eq!(ground.result_text(&Glob, &args), expected);
        check(
            json!({"pattern": "*.rs"}),
            "Found 1 file(s) matching \"*.rs\" within $W, sorted by modification time (newest first):\n$W/a.rs",
        );
        check(json!({"pattern": "*.py"}), "No files found matching pattern \"*.py\" within $W");
        ground.write(".gitignore", b"*.py");
        ground.write("node_modules/x.py", b"");
        check(
            json!({"pattern": "**/*.py"}),
            "No files found matching pattern \"**/*.py\" within $W\n(Skipped: folders node_modules; what .gitignore \
             hides. To look there, name the folder as dir_path, or set respect_git_ignore to false.)",
        );
        check(json!({"pattern": " "}), "invalid_tool_params: The 'pattern' parameter cannot be empty.");
        check(
            json!({"pattern": format!("{}a{}", "{".repeat(500), "}".repeat(500))}),
            "invalid_tool_params: Invalid glob pattern: error parsing pattern 0",
        );
        check(json!({"pattern": "*", "dir_path": "no"}), "search_path_not_found: Path does not exist: $W/no");
        check(
            json!({"pattern": "*", "dir_path": "a.rs"}),
            "search_path_not_a_directory: Search path is not a directory: $W/a.rs",
        );
        assert_eq!(ground.title(&Glob, &json!({"pattern": "*.rs"})), "'*.rs'");
        assert_eq!(ground.title(&Glob, &json!({"pattern": "*.rs", "dir_path": "dir"})), "'*.rs' within dir");
        let ctx = ground.ctx();
        let args = json!({"pattern": "../../**/*.rs"});
        let targets = ground.block_on(crate::builtin::Builtin::targets(&Glob, &args, &ctx)).unwrap();
        assert!(targets.paths.iter().all(|it| !it.in_roots));
    }

    /// Searches leave secret files out and say how many.
    #[test]
    fn secrets_are_counted_not_told() {
        let ground = ground(&["a.txt", ".env", ".env.example", "keys/server.pem", ".aws/config"]);
        let said = ground.result_text(&Glob, &json!({"pattern": "**/*"}));
        assert!(
            said.ends_with(
                ":\n$W/.env.example\n$W/a.txt\n(3 file(s) left out: they may hold secrets. To look into one, name it.)"
            ),
            "{said}"
        );
        let said = ground.result_text(&Glob, &json!({"pattern": "*", "dir_path": ".aws"}));
        assert!(said.ends_with("\n$W/.aws/config"), "{said}");
    }

    /// A thread flips a folder and a link to elsewhere under one name: what is only there is never told.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_swapped_folder_tells_nothing_of_elsewhere() {
        use std::sync::atomic::{AtomicBool, Ordering};

        use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
        let ground = ground(&["d/mine", "../outside/theirs"]);
        (0..50).for_each(|it| ground.write(&format!("c{it}/x"), b""));
        ground.link("../outside", "aside");
        let done = AtomicBool::new(false);
        let mut told = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (from, to) = (ground.cwd.join("d"), ground.cwd.join("aside"));
                while !done.load(Ordering::Relaxed) {
                    renameat2(AT_FDCWD, from.as_path(), AT_FDCWD, to.as_path(), RenameFlags::RENAME_EXCHANGE).unwrap();
                }
            });
            for _ in 0..300 {
                let said = ground.result_text(&Glob, &json!({"pattern": "*/*"}));
                told += usize::from(said.contains("theirs"));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(told, 0);
    }

    #[test]
    fn recent_files_first() {
        let ground = ground(&["a", "b", "c", "d"]);
        age(&ground, "d", 1);
        age(&ground, "b", 23);
        age(&ground, "a", 25);
        check(&ground, json!({"pattern": "*"}), "d b a c");
    }

    #[test]
    fn is_bounded_and_cancellable() {
        let ground = ToolFixture::new(&[]);
        let long = "x".repeat(180);
        (0..1500).for_each(|it| ground.write(&format!("{it}{long}"), b""));
        let said = ground.result_text(&Glob, &json!({"pattern": "*"}));
        assert!(said.len() < 250 * 1024 && said.ends_with("more files not shown; use a narrower pattern)"));
        ground.cancel.cancel();
        assert_eq!(ground.result_text(&Glob, &json!({"pattern": "*"})), "cancelled: The search was cancelled.");
    }
}
