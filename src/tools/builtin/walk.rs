//! Directory walk: sorted, with ignore files, and without following symlinks.

use std::{borrow::Cow, io, path::Path};

use ignore::{
    Walk, WalkBuilder,
    gitignore::{Gitignore, GitignoreBuilder},
};

use tokio_util::sync::CancellationToken;

use crate::builtin::{
    ToolContext, ToolSettings,
    params::{CallArguments, invalid},
    skipped::{SkipReason, SkippedFiles},
};
use castor_base::{guarded_names::SECRETS, path::AbsPath, path_text, tool::ToolError};
use castor_hands::disk;

/// Signs of a pattern.
pub const META: &[char] = &['*', '?', '[', '{', '\\'];
/// For the agent alone; the later one is stronger.
const OWN_IGNORE: &[&str] = &[".geminiignore", ".castorignore"];
/// Longer ignore files are not read: they take seconds for each call.
const MAX_IGNORE: u64 = 512 << 10;
const EXCLUDE: &str = ".git/info/exclude";
/// Folders that hold no sources of the user.
const CORE_DIRS: &[&str] = &["node_modules", ".git", "bower_components", ".svn", ".hg"];
/// Folders that a text search leaves out as well.
const SEARCH_DIRS: &[&str] = &[".vscode", ".idea", "dist", "build", "coverage", "__pycache__"];

/// Ignore files in order: git's, then those for the agent, then the user's own, which are the strongest.
#[derive(Clone, Debug, PartialEq)]
pub struct IgnoreRules {
    pub git: bool,
    pub gemini: bool,
    pub custom: Vec<String>,
}

impl IgnoreRules {
    pub fn of(ctx: &ToolContext) -> Self {
        Self::of_settings(&ctx.settings)
    }

    pub fn of_settings(settings: &ToolSettings) -> Self {
        let custom = settings.ignore_files.clone();
        Self { git: settings.respect_git_ignore, gemini: settings.respect_gemini_ignore, custom }
    }

    /// Names of ignore files that are not git's, weakest first.
    fn names(&self) -> impl Iterator<Item = &str> {
        let own = OWN_IGNORE.iter().filter(|_| self.gemini).copied();
        own.chain(self.custom.iter().map(String::as_str))
    }

    /// As a call wants it, where it says so.
    pub fn with_arguments(self, params: CallArguments<'_>) -> Result<Self, ToolError> {
        let git = params.flag("respect_git_ignore")?.unwrap_or(self.git);
        let gemini = params.flag("respect_gemini_ignore")?.unwrap_or(self.gemini);
        Ok(Self { git, gemini, ..self })
    }
}

/// # Errors
/// Once the search is cancelled.
pub fn check_cancelled(cancel: &CancellationToken) -> Result<(), ToolError> {
    match cancel.is_cancelled() {
        true => Err(ToolError::new("cancelled", "The search was cancelled.")),
        false => Ok(()),
    }
}

/// Blocks.
///
/// # Errors
/// The ignore files hide it.
pub fn check_ignored(path: &AbsPath, real: &AbsPath, ctx: &ToolContext) -> Result<(), ToolError> {
    let top = root_of(real, &ctx.roots);
    match top.is_some_and(|top| is_ignored(&top, real, false, &IgnoreRules::of(ctx))) {
        true => Err(invalid(format!("File path '{path}' is ignored by configured ignore patterns."))),
        false => Ok(()),
    }
}

/// Names that are left out, at any depth below the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Excludes {
    None,
    Core,
    Search,
}

/// The start and scope of a walk.
#[derive(Clone, Debug)]
pub struct WalkPlan {
    /// As the call names it.
    pub shown: AbsPath,
    /// Its real place: links are followed once, here, as policy saw them.
    pub start: AbsPath,
    /// Where ignore files begin to count: the root that holds `start`. Above it they are not ours: a `*` in the
    /// `.gitignore` of a home folder would hide every project.
    top: AbsPath,
    rules: IgnoreRules,
    pub is_dir: bool,
    /// The start is a place of secrets: policy asked about all of it.
    is_approved_secret: bool,
    /// Folders and files below the start that commands do not see.
    masked: Vec<AbsPath>,
    /// By this walk, and by those who look at what it finds.
    pub skipped: SkippedFiles,
}

impl WalkPlan {
    /// Blocks. What the user names is searched even when it is ignored. `start` is where `shown` really is.
    pub fn new(shown: AbsPath, start: AbsPath, ctx: &ToolContext, rules: IgnoreRules) -> Result<Self, ToolError> {
        let missing = |_| ToolError::new("search_path_not_found", format!("Path does not exist: {shown}"));
        let is_dir = disk::metadata(&start).map_err(missing)?.is_dir;
        let top = root_of(&start, &ctx.roots).filter(|it| !is_ignored(it, &start, is_dir, &rules));
        let top = top.unwrap_or_else(|| start.clone());
        // All on the way: the walk goes through them, wherever it is to begin.
        let mut way = start.as_path().ancestors().take_while(|it| it.starts_with(&top)).filter_map(AbsPath::new);
        if let Some(it) = way.find_map(|it| unreadable(&it, &rules)) {
            let why =
                format!("{it} cannot be read as an ignore file: it is no plain file of at most {MAX_IGNORE} bytes");
            return Err(ToolError::new("search_path_not_readable", why));
        }
        let asked = SECRETS.find(start.as_path()).is_some();
        let below = ctx.known.protected.masked.iter().filter(|it| it.is_within(&start) && **it != start);
        let masked = below.cloned().collect();
        let skipped = SkippedFiles::default();
        Ok(Self { shown, start, top, rules, is_dir, is_approved_secret: asked, masked, skipped })
    }

    /// All of a folder, by its real path, for a list of its files. No call asks for it, and so for nothing secret.
    pub fn of_folder(start: AbsPath, rules: IgnoreRules) -> Self {
        let (shown, top) = (start.clone(), start.clone());
        let (masked, skipped) = (Vec::new(), SkippedFiles::default());
        Self { shown, start, top, rules, is_dir: true, is_approved_secret: false, masked, skipped }
    }

    /// Everything below `start/prefix`, parents before children, siblings by name.
    pub fn walk(&self, prefix: &str, excludes: Excludes) -> Walk {
        let start = self.start.clone();
        let goal = self.start.join(prefix);
        let mut builder = WalkBuilder::new(&self.top);
        builder
            .follow_links(false)
            .hidden(false)
            .parents(false)
            .require_git(false)
            .git_global(false)
            .ignore(false)
            .git_ignore(self.rules.git)
            .git_exclude(self.rules.git)
            .sort_by_file_name(|a, b| a.cmp(b));
        for name in self.rules.names() {
            builder.add_custom_ignore_filename(name);
        }
        let (rules, skipped) = (self.rules.clone(), self.skipped.clone());
        builder.filter_entry(move |entry| {
            let path = entry.path();
            let is_dir = entry.file_type().is_some_and(|it| it.is_dir());
            match start.as_path().starts_with(path) {
                true => true,
                false if !path.starts_with(&goal) && !goal.as_path().starts_with(path) => false,
                // The walk would read whatever is there, and wait for a pipe for ever.
                false if is_dir && AbsPath::new(path).is_none_or(|it| unreadable(&it, &rules).is_some()) => false,
                false if is_excluded(path, is_dir, excludes) => {
                    skipped.add_folder(path, !is_excluded(path, is_dir, Excludes::Core));
                    false
                }
                false => true,
            }
        });
        builder.build()
    }

    /// What this walk and the search in it passed over, as [`SkippedFiles::note`] says it. Blocks.
    pub fn skipped_note(&self, is_miss: bool, how: &str) -> String {
        let of_git = self.rules.git.then_some(".gitignore");
        let obeyed = of_git.into_iter().chain(self.rules.names()).filter(|_| is_miss && self.is_dir);
        for name in obeyed {
            if [&self.top, &self.start].iter().any(|it| disk::path_exists(&it.join(name))) {
                self.skipped.add(SkipReason::Ignored { by: name.to_owned() });
            }
        }
        self.skipped.note(is_miss, how)
    }

    /// A path of this walk as patterns see it: names that look the same match the same.
    pub fn pattern_form<'a>(&self, real: &'a Path) -> Cow<'a, Path> {
        let below = real.strip_prefix(&self.start).unwrap_or(real);
        match below.to_str() {
            Some(it) if it.is_ascii() => real.into(),
            Some(it) => self.start.as_path().join(&*disk::composed(it)).into(),
            None => self.start.as_path().join(&*path_text::to_text(below)).into(),
        }
    }

    /// Tells whether a path of this walk is one of secrets that nobody named: such files are not read and not told. Of
    /// a start that is one itself, and was asked about as such, only what is named below it; else the start's own name
    /// may be the first part of what is secret, as in `.docker/config.json`.
    pub fn is_secret(&self, real: &Path) -> bool {
        let judged = if self.is_approved_secret { real.strip_prefix(&self.start).ok() } else { Some(real) };
        judged.is_some_and(|it| SECRETS.find(it).is_some()) || self.masked.iter().any(|it| real.starts_with(it))
    }

    /// `real`, a path of this walk, under the name the call gave to its start.
    pub fn shown(&self, real: &Path) -> AbsPath {
        match real.strip_prefix(&self.start) {
            Ok(rest) if rest.as_os_str().is_empty() => self.shown.clone(),
            Ok(rest) => self.shown.join(rest),
            Err(_) => self.shown.join(real),
        }
    }
}

/// The root that holds `real`.
pub fn root_of(real: &AbsPath, roots: &[AbsPath]) -> Option<AbsPath> {
    roots.iter().filter(|it| real.is_within(it)).max_by_key(|it| it.as_path().components().count()).cloned()
}

/// Tells whether its name leaves it out.
pub fn is_excluded(path: &Path, is_dir: bool, excludes: Excludes) -> bool {
    let Some(name) = path.file_name().and_then(|it| it.to_str()) else { return false };
    match excludes {
        Excludes::None => false,
        Excludes::Core => is_dir && CORE_DIRS.contains(&name),
        Excludes::Search => is_dir && (CORE_DIRS.contains(&name) || SEARCH_DIRS.contains(&name)),
    }
}

/// Tells whether the ignore files between `top` and `path` hide it. Blocks.
pub fn is_ignored(top: &AbsPath, path: &AbsPath, is_dir: bool, rules: &IgnoreRules) -> bool {
    let dir = path.parent().filter(|it| it.is_within(top)).unwrap_or_else(|| top.clone());
    Matcher::new(top, &dir, rules).is_ignored(path, is_dir)
}

/// The ignore files from a top folder down to one below it.
pub struct Matcher {
    top: AbsPath,
    /// Strongest first.
    layers: Vec<Gitignore>,
}

impl Matcher {
    /// Blocks.
    pub fn new(top: &AbsPath, dir: &AbsPath, rules: &IgnoreRules) -> Self {
        let dirs = || dir.as_path().ancestors().filter(|it| it.starts_with(top));
        let mut layers = Vec::new();
        if rules.names().next().is_some() {
            layers.extend(dirs().filter_map(|it| own_files(it, rules)));
        }
        if rules.git {
            layers.extend(dirs().filter_map(|it| one_file(it, ".gitignore")));
            // It counts from the top, not from its own folder.
            layers.extend(one_file(top.as_path(), EXCLUDE));
        }
        layers.retain(|it| !it.is_empty());
        Self { top: top.clone(), layers }
    }

    pub fn is_ignored(&self, path: &AbsPath, is_dir: bool) -> bool {
        let mut steps: Vec<&Path> = path.as_path().ancestors().take_while(|it| *it != self.top.as_path()).collect();
        steps.reverse();
        // An ignored folder hides all that is in it, whatever is said further down.
        steps.iter().any(|it| self.is_hit(it, is_dir || *it != path.as_path()))
    }

    fn is_hit(&self, path: &Path, is_dir: bool) -> bool {
        let above = self.layers.iter().filter(|it| path != it.path() && path.starts_with(it.path()));
        above.map(|it| it.matched(path, is_dir)).find(|it| !it.is_none()).is_some_and(|it| it.is_ignore())
    }
}

/// The ignore files of one folder that are not git's, as one.
fn own_files(dir: &Path, rules: &IgnoreRules) -> Option<Gitignore> {
    built(dir, rules.names())
}

fn one_file(dir: &Path, name: &str) -> Option<Gitignore> {
    built(dir, [name].into_iter())
}

/// What cannot be read says nothing.
fn built<'n>(dir: &Path, names: impl Iterator<Item = &'n str>) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(dir);
    for path in names.filter_map(|it| AbsPath::new(dir.join(it))) {
        let Ok(Some(text)) = read(&path) else { continue };
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern is passed over, as git does.
            _ = builder.add_line(Some(path.as_path().to_owned()), line);
        }
    }
    builder.build().ok()
}

/// The text of an ignore file; `None`: there is none.
fn read(path: &AbsPath) -> io::Result<Option<String>> {
    match disk::read_head(path, MAX_IGNORE + 1) {
        Ok(it) if it.len() as u64 > MAX_IGNORE => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(it) => Ok(Some(String::from_utf8_lossy(&it).into_owned())),
        Err(it) if matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(it) => Err(it),
    }
}

/// An ignore file of this folder that is none.
fn unreadable(dir: &AbsPath, rules: &IgnoreRules) -> Option<AbsPath> {
    let of_git = [".gitignore", EXCLUDE].into_iter().filter(|_| rules.git);
    // Its length is asked first: most are short, and the walk reads them itself.
    let is_none = |it: &AbsPath| match disk::metadata(it) {
        Ok(meta) => meta.is_dir || meta.len > MAX_IGNORE || disk::read_head(it, 0).is_err(),
        Err(_) => false,
    };
    of_git.chain(rules.names()).map(|it| dir.join(it)).find(is_none)
}

#[cfg(test)]
mod tests {
    use super::{Excludes, IgnoreRules, WalkPlan, is_ignored};
    use crate::builtin::testing::ToolFixture;

    fn ground() -> ToolFixture {
        ToolFixture::new(&[
            ("../.gitignore", "*"),
            (".gitignore", "*.o\n/out/\n!keep.o\n"),
            (".geminiignore", "secret*\n"),
            (".git/info/exclude", "mine.txt\n"),
            ("sub/.gitignore", "!x.o\n"),
            ("a.o", ""),
            ("keep.o", ""),
            ("mine.txt", ""),
            ("out/a.txt", ""),
            ("secret.txt", ""),
            ("src/.dot", ""),
            ("src/main.rs", ""),
            ("sub/x.o", ""),
            ("sub/y.o", ""),
        ])
    }

    fn rules(git: bool, gemini: bool) -> IgnoreRules {
        IgnoreRules { git, gemini, custom: Vec::new() }
    }

    #[test]
    fn walk_and_single_questions_agree() {
        let ground = ground();
        ground.link("../outside", "sub/link");
        ground.write("../outside/far.txt", b"");
        let check = |start: &str, rules: IgnoreRules, expected: &str| {
            let at = ground.cwd.join(start);
            let plan = WalkPlan::new(at.clone(), at, &ground.ctx(), rules.clone()).unwrap();
            let files = plan.walk("", Excludes::Core).flatten().filter(|it| it.file_type().unwrap().is_file());
            let files: Vec<_> = files.map(|it| plan.shown(it.path())).collect();
            if start == "." {
                assert!(files.iter().all(|it| !is_ignored(&ground.cwd, it, false, &rules)));
            }
            let shown: Vec<_> = files.iter().map(|it| it.relative_to(&ground.cwd)).collect();
            assert_eq!(shown.join(" "), expected, "{start}");
        };
        check(".", rules(true, true), ".geminiignore .gitignore keep.o src/.dot src/main.rs sub/.gitignore sub/x.o");
        check("sub", rules(true, true), "sub/.gitignore sub/x.o");
        check("out", rules(true, true), "out/a.txt");
        check("src/main.rs", rules(true, true), "src/main.rs");
        let none = rules(false, false);
        check(
            ".",
            rules(true, false),
            ".geminiignore .gitignore keep.o secret.txt src/.dot src/main.rs sub/.gitignore sub/x.o",
        );
        check("sub", none, "sub/.gitignore sub/x.o sub/y.o");
        let custom = IgnoreRules { custom: vec![".aiignore".to_owned()], ..rules(true, true) };
        ground.write("src/.castorignore", b"main.*\nsub\n");
        check("src", rules(true, true), "src/.castorignore src/.dot");
        check("src", rules(true, false), "src/.castorignore src/.dot src/main.rs");
        ground.write("src/.aiignore", b"!main.rs\n.*\n");
        check("src", custom, "src/main.rs");
    }

    /// A repository brings whatever it likes under these names.
    #[test]
    fn what_is_no_ignore_file_is_not_waited_for() {
        let long = "x\n".repeat(300_000);
        for name in [".gitignore", ".castorignore", ".git/info/exclude"] {
            let ground = ToolFixture::new(&[("sub/.git/info/a", ""), (".git/info/a", ""), ("a", ""), ("sub/b", "")]);
            let walk = |from: &str| -> Result<_, castor_base::tool::ToolError> {
                let start = ground.cwd.join(from);
                let plan = WalkPlan::new(start.clone(), start, &ground.ctx(), rules(true, true))?;
                let files = plan.walk("", Excludes::Core).flatten().filter(|it| it.file_type().unwrap().is_file());
                Ok(files.map(|it| plan.shown(it.path()).relative_to(&ground.cwd)).collect::<Vec<_>>())
            };
            let pipe = |path: &str| {
                nix::unistd::mkfifo(ground.cwd.join(path).as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
            };
            pipe(&format!("sub/{name}"));
            assert!(walk("sub").unwrap_err().message.contains(name) && walk("sub/b").is_err());
            assert_eq!(walk(".").unwrap(), ["a"], "{name}");
            assert!(!is_ignored(&ground.cwd, &ground.cwd.join("sub/b"), false, &rules(true, true)));
            ground.write(name, long.as_bytes());
            assert!(walk(".").unwrap_err().message.contains(name));
            assert!(!is_ignored(&ground.cwd, &ground.cwd.join("a"), false, &rules(true, true)));
        }
    }

    #[test]
    fn answers_for_single_paths() {
        let ground = ground();
        let check = |path: &str, expected: bool| {
            assert_eq!(is_ignored(&ground.cwd, &ground.cwd.join(path), false, &rules(true, true)), expected, "{path}");
        };
        check("a.o", true);
        check("keep.o", false);
        check("mine.txt", true);
        check("out/a.txt", true);
        check("out/deep/new.txt", true);
        check("secret.txt", true);
        check("sub/x.o", false);
        check("sub/y.o", true);
        check("src/main.rs", false);
    }
}
