//! Who runs a file that the line writes: by its name, behind an option, or as one of its words.

use std::borrow::Cow;

use crate::engine::policy::shell::{Command, Script, Word, base_name, interpreters, is_shell};

/// Options behind which a file with code stands.
const OPTIONS: &[&str] =
    &["-f", "--file", "--makefile", "-r", "--require", "--import", "--init-file", "--rcfile", "-S"];
/// Whose options these are, beside shells and interpreters.
const RUNNERS: &[&str] = &["awk", "gawk", "gmake", "make", "mawk", "mysql", "psql", "sed", "vim"];
/// Who reads files of these names.
const BY_NAME: &[(&str, &[&str])] = &[
    ("ant", &["build.xml"]),
    ("bundle", &["Gemfile"]),
    ("cmake", &["CMakeLists.txt"]),
    ("composer", &["composer.json"]),
    ("deno", &["deno.json", "deno.jsonc"]),
    ("doit", &["dodo.py"]),
    ("earthly", &["Earthfile"]),
    ("foreman", &["Procfile"]),
    ("gmake", MAKEFILES),
    ("gradle", GRADLE),
    ("gradlew", GRADLE),
    ("hatch", &["pyproject.toml"]),
    ("honcho", &["Procfile"]),
    ("just", &[".justfile", "Justfile", "justfile"]),
    ("make", MAKEFILES),
    ("meson", &["meson.build"]),
    ("mvn", &["pom.xml"]),
    ("mvnw", &["pom.xml"]),
    ("ninja", &["build.ninja"]),
    ("overmind", &["Procfile"]),
    ("pdm", &["pyproject.toml"]),
    ("pip", &["setup.py"]),
    ("pip3", &["setup.py"]),
    ("pipenv", &["Pipfile"]),
    ("pixi", &["pixi.toml"]),
    ("poe", &["pyproject.toml"]),
    ("rake", &["Rakefile"]),
    ("sbt", &["build.sbt"]),
    ("scons", &["SConstruct"]),
    ("snakemake", &["Snakefile"]),
    ("task", &["Taskfile.yaml", "Taskfile.yml", "taskfile.yaml", "taskfile.yml"]),
    ("thor", &["Thorfile"]),
    ("tox", &["tox.ini"]),
    ("vagrant", &["Vagrantfile"]),
];
const GRADLE: &[&str] = &["build.gradle", "build.gradle.kts", "init.gradle"];
const MAKEFILES: &[&str] = &["GNUmakefile", "Makefile", "makefile"];
/// Who runs a file among its words, beside one of these.
const AMONG: &[(&str, &[&str])] = &[
    ("ansible-playbook", &[]),
    ("ant", &["-f", "-file"]),
    ("cmake", &["-P"]),
    ("emacs", &["--batch", "--load", "--script", "-batch", "-l"]),
    ("dart", &[]),
    ("dotnet", &["fsi", "run", "script"]),
    ("expect", &[]),
    ("go", &["run"]),
    ("groovy", &[]),
    ("java", &[]),
    ("jbang", &[]),
    ("jshell", &[]),
    ("k6", &["run"]),
    ("kotlinc", &["-script"]),
    ("nim", &["r"]),
    ("powershell", &[]),
    ("pwsh", &[]),
    ("rust-script", &[]),
    ("scala", &[]),
    ("swift", &[]),
    ("tcc", &["-run"]),
    ("zig", &["run"]),
];
/// Who starts what they are told as `./x`.
const STARTERS: &[&str] = &[
    "entr",
    "flock",
    "git",
    "hyperfine",
    "perf",
    "rsync",
    "screen",
    "script",
    "ssh",
    "strace",
    "systemd-run",
    "tar",
    "tmux",
    "uv",
    "watch",
    "watchexec",
];
/// Who hands the files that it is told, or finds, to what it starts.
const FINDERS: &[&str] = &["fd", "fdfind", "find", "parallel"];

/// Whether what it is started by says what reads the file, not the file itself.
pub(super) fn is_started(command: &Command) -> bool {
    let name = command.name().map(base_name).unwrap_or_default();
    let by_table = [BY_NAME, AMONG].iter().any(|it| it.iter().any(|it| it.0 == name));
    by_table || is_shell(name) || interpreters::is_one(name) || RUNNERS.contains(&name) || is_source(name)
}

fn is_source(name: &str) -> bool {
    matches!(name, "source" | ".")
}

pub(super) fn run_by_shell(command: &Command, language: Option<&str>) -> bool {
    let name = command.name().map(base_name).unwrap_or_default();
    is_shell(name) || is_source(name) || !is_started(command) && language.is_none_or(is_shell)
}

/// Whether a program may be found where the line says.
pub(super) fn sets_path(script: &Script) -> bool {
    script.assigned.iter().any(|it| it == "PATH")
}

/// The names of the files that a command may run. `by_name`: programs also without a folder.
pub(super) fn run_by(command: &Command, by_name: bool) -> Vec<Cow<'_, str>> {
    let Some(name) = command.words.first() else { return Vec::new() };
    let (program, args) = (base_name(name.text.trim_matches('"')), command.args());
    let last = |text| Cow::Borrowed(base_name(str::trim_matches(text, ['"', '\''])));
    let mut res: Vec<Cow<'_, str>> = Vec::new();
    if by_name || name.text.contains('/') {
        res.push(Cow::Borrowed(program));
    }
    let by_name = BY_NAME.iter().find(|it| it.0 == program).map_or(&[][..], |it| it.1);
    res.extend(by_name.iter().map(|it| Cow::Borrowed(*it)));
    let runs_file = is_shell(program) || interpreters::is_one(program) || is_source(program);
    let file = if runs_file { interpreters::file(program, args) } else { None };
    res.extend(file.map(|it| last(&it.text)));
    res.extend(module(args).map(Cow::Owned));
    let has = |list: &[&str]| list.is_empty() || args.iter().any(|it| list.contains(&it.text.as_str()));
    if AMONG.iter().any(|it| it.0 == program && has(it.1)) {
        res.extend(args.iter().map(|it| last(&it.text)));
    }
    if STARTERS.contains(&program) {
        res.extend(args.iter().filter_map(told).map(Cow::Borrowed));
    }
    if FINDERS.contains(&program) && args.iter().any(|it| is_shell(base_name(&it.text))) {
        res.extend(args.iter().map(|it| last(&it.text)));
    }
    if program == "ssh" {
        res.extend(started_there(args).map(Cow::Borrowed));
    }
    if runs_file || RUNNERS.contains(&program) {
        let pairs = args.iter().zip(args.iter().skip(1));
        res.extend(pairs.filter(|it| OPTIONS.contains(&it.0.text.as_str())).map(|it| last(&it.1.text)));
        let stuck = |arg: &'_ Word, option: &&str| Some(arg.text.strip_prefix(*option)?.trim_start_matches('=').len());
        let stuck = args.iter().flat_map(|arg| OPTIONS.iter().filter_map(move |it| Some((arg, stuck(arg, it)?))));
        res.extend(stuck.filter_map(|(arg, len)| arg.text.get(arg.text.len() - len..)).map(last));
    }
    res
}

/// `python3 -m x` runs `x.py`.
fn module(args: &[Word]) -> Option<String> {
    let at = args.iter().position(|it| it.text == "-m")?;
    let name = args.get(at + 1)?.text.rsplit('.').next().filter(|it| !it.is_empty())?;
    Some(format!("{name}.py"))
}

/// `scp x h: && ssh h sh x`: a file that goes elsewhere keeps its name.
fn started_there(args: &[Word]) -> impl Iterator<Item = &str> {
    let words = || args.iter().flat_map(|it| it.text.split_whitespace());
    let runs = |it: &str| is_shell(base_name(it)) || interpreters::is_one(base_name(it)) || is_source(it);
    words().zip(words().skip(1)).filter(move |it| runs(it.0)).map(|it| base_name(it.1))
}

/// `core.pager=./x`, `ProxyCommand=./x`, `./x`
fn told(word: &Word) -> Option<&str> {
    let told = word.text.rsplit(['=', ' ']).next()?;
    told.contains('/').then(|| base_name(told))
}
