//! Sources that a line writes, and a tool of their language builds, tests or loads: they are read as if they were started
//! by their names.

use std::collections::HashSet;

use super::Files;
use crate::engine::policy::shell::{Command, Script, Word, base_name, interpreters};

/// By which words a source is started that ends so.
const STARTED: &[(&str, &[&str])] = &[
    ("c", &["tcc", "-run"]),
    ("cc", &["tcc", "-run"]),
    ("cjs", &["node"]),
    ("cpp", &["tcc", "-run"]),
    ("cs", &["dotnet", "script"]),
    ("cts", &["node"]),
    ("dart", &["dart", "run"]),
    ("exs", &["elixir"]),
    ("fsx", &["dotnet", "fsi"]),
    ("go", &["go", "run"]),
    ("java", &["java"]),
    ("js", &["node"]),
    ("jsx", &["node"]),
    ("kt", &["kotlinc", "-script"]),
    ("mjs", &["node"]),
    ("mts", &["node"]),
    ("nim", &["nim", "r"]),
    ("php", &["php"]),
    ("pl", &["perl"]),
    ("pm", &["perl"]),
    ("py", &["python3"]),
    ("rb", &["ruby"]),
    ("rs", &["rust-script"]),
    ("scala", &["scala"]),
    ("swift", &["swift"]),
    ("t", &["perl"]),
    ("ts", &["node"]),
    ("tsx", &["node"]),
    ("zig", &["zig", "run"]),
];
const C: &[&str] = &["c", "cc", "cpp"];
/// What comes of these is a program by itself.
const COMPILED: &[&str] = &["c", "cc", "cpp", "dart", "go", "nim", "rs", "swift", "zig"];
const DOTNET: &[&str] = &["cs", "fsx"];
const JS: &[&str] = &["cjs", "cts", "js", "jsx", "mjs", "mts", "ts", "tsx"];
const JVM: &[&str] = &["java", "kt", "scala"];
const PERL: &[&str] = &["pl", "pm", "t"];

/// A tool, its sub-commands (none: whatever stands there), and the endings of what it builds or runs of a folder.
struct Tool(&'static str, &'static [&'static str], &'static [&'static str]);

const TOOLS: &[Tool] = &[
    Tool("accelerate", &[], &["py"]),
    Tool("ava", &[], JS),
    Tool("babel", &[], JS),
    Tool("bun", &["build", "run", "start", "test"], JS),
    Tool("cargo", &["b", "bench", "build", "nextest", "r", "run", "t", "test"], &["rs"]),
    Tool("celery", &[], &["py"]),
    Tool("coverage", &[], &["py"]),
    Tool("dart", &["run", "test"], &["dart"]),
    Tool("deno", &["run", "task", "test"], JS),
    Tool("dotnet", &["fsi", "run", "script", "test"], DOTNET),
    Tool("electron", &[], JS),
    Tool("eslint", &[], JS),
    Tool("fab", &[], &["py"]),
    Tool("flask", &[], &["py"]),
    Tool("go", &["generate", "run", "test"], &["go"]),
    Tool("gradle", &[], JVM),
    Tool("gradlew", &[], JVM),
    Tool("grunt", &[], JS),
    Tool("gulp", &[], JS),
    Tool("gunicorn", &[], &["py"]),
    Tool("invoke", &[], &["py"]),
    Tool("java", &[], JVM),
    Tool("jest", &[], JS),
    Tool("jiti", &[], JS),
    Tool("kernprof", &[], &["py"]),
    Tool("kotlin", &[], JVM),
    Tool("locust", &[], &["py"]),
    Tool("manage.py", &[], &["py"]),
    Tool("mix", &["run", "test"], &["exs"]),
    Tool("mocha", &[], JS),
    Tool("mvn", &[], JVM),
    Tool("mvnw", &[], JVM),
    Tool("nim", &[], &["nim"]),
    Tool("nodemon", &[], JS),
    Tool("nox", &[], &["py"]),
    Tool("npm", &["run", "start", "t", "test"], JS),
    Tool("phpunit", &[], &["php"]),
    Tool("playwright", &[], JS),
    Tool("pnpm", &["run", "start", "t", "test"], JS),
    Tool("prove", &[], PERL),
    Tool("py-spy", &[], &["py"]),
    Tool("pytest", &[], &["py"]),
    Tool("rake", &[], &["rb"]),
    Tool("rollup", &[], JS),
    Tool("rspec", &[], &["rb"]),
    Tool("sbt", &[], JVM),
    Tool("scala", &[], JVM),
    Tool("scons", &[], &["py"]),
    Tool("streamlit", &[], &["py"]),
    Tool("swift", &["run", "test"], &["swift"]),
    Tool("tcc", &[], C),
    Tool("torchrun", &[], &["py"]),
    Tool("tox", &[], &["py"]),
    Tool("ts-node-dev", &[], JS),
    Tool("uvicorn", &[], &["py"]),
    Tool("vite", &[], JS),
    Tool("vite-node", &[], JS),
    Tool("vitest", &[], JS),
    Tool("webpack", &[], JS),
    Tool("yarn", &["run", "start", "t", "test"], JS),
    Tool("zig", &[], &["zig"]),
];
/// Modules of Python that run what lies there.
const MODULES: &[&str] = &["build", "coverage", "nose2", "pip", "pytest", "unittest"];
/// Sources that are loaded though nobody names them.
const UNNAMED: &[&str] = &["__init__", "__main__", "index", "sitecustomize", "usercustomize"];
/// More of one line are not listed.
const MAX: usize = 32;

/// What the commands of a line run though they do not say it.
#[derive(Default)]
struct Run<'s> {
    /// All sources that end so.
    endings: HashSet<&'static str>,
    /// Sources for interpreters, where they are named without their endings.
    words: HashSet<&'s str>,
    interprets: bool,
}

/// The commands that stand for it: each source is started once, whoever runs it.
pub(super) fn started(script: &Script, files: &Files) -> Vec<(String, Vec<Word>)> {
    let mut run = Run::default();
    script.commands.iter().for_each(|it| run.add(it));
    let seen = files.iter().filter(|it| it.1.iter().all(|it| it.text.is_some())).map(|it| it.0.as_str());
    let mut names: Vec<&str> = seen.filter(|it| run.holds(it)).collect();
    // Files come in no order.
    names.sort_unstable();
    names.into_iter().filter_map(|it| Some((it.to_owned(), words(it)?))).take(MAX).collect()
}

fn words(name: &str) -> Option<Vec<Word>> {
    let (_, ending) = name.rsplit_once('.')?;
    let at = STARTED.binary_search_by_key(&ending, |it| it.0).ok()?;
    let start = STARTED.get(at)?.1.iter().copied();
    Some(start.chain([name]).map(Word::literally).collect())
}

impl<'s> Run<'s> {
    fn add(&mut self, command: &'s Command) {
        let (Some(name), args) = (command.name(), command.args()) else { return };
        let program = base_name(name);
        let first = || args.iter().find(|it| !it.text.starts_with(['-', '+'])).map_or("", |it| it.text.as_str());
        let tool = TOOLS.binary_search_by_key(&program, |it| it.0).ok().and_then(|at| TOOLS.get(at));
        if let Some(Tool(_, subs, endings)) = tool {
            let runs = subs.is_empty() || subs.contains(&first());
            return self.endings.extend(endings.iter().filter(|_| runs));
        }
        if name.contains('/') && !name.starts_with("/usr/") && !name.starts_with("/bin/") {
            self.endings.extend(COMPILED);
        }
        if !interpreters::is_one(program) {
            return;
        }
        self.interprets = true;
        let texts = || args.iter().map(|it| it.text.as_str());
        self.endings.extend(JS.iter().filter(|_| texts().any(|it| it == "--test")));
        let module = texts().zip(texts().skip(1)).any(|it| it.0 == "-m" && MODULES.contains(&it.1));
        self.endings.extend(["py"].iter().filter(|_| module));
        // `import x`, `require("./x")`, `-r./x`, `python3 -m x`, `perl -Mx`
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let said = command.code.iter().map(String::as_str).chain(texts());
        let named = said.flat_map(|it| it.split(move |it| !is_name(it))).filter(|it| !it.is_empty());
        self.words.extend(named.flat_map(|it| [Some(it), it.strip_prefix('M')]).flatten());
    }

    fn holds(&self, name: &str) -> bool {
        let (stem, ending) = name.rsplit_once('.').unwrap_or_default();
        let is_named = || UNNAMED.contains(&stem) || self.words.contains(stem);
        self.endings.contains(ending) || self.interprets && !stem.is_empty() && is_named()
    }
}

#[cfg(test)]
mod tests {
    use super::{STARTED, TOOLS};

    #[test]
    fn the_tables_are_sorted() {
        assert!(STARTED.is_sorted_by_key(|it| it.0) && TOOLS.is_sorted_by_key(|it| it.0));
    }
}
