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
    ("gmake", MAKEFILES),
    ("just", &[".justfile", "Justfile", "justfile"]),
    ("make", MAKEFILES),
    ("task", &["Taskfile.yaml", "Taskfile.yml", "taskfile.yaml", "taskfile.yml"]),
];
const MAKEFILES: &[&str] = &["GNUmakefile", "Makefile", "makefile"];
/// Who runs a file among its words, beside one of these.
const AMONG: &[(&str, &[&str])] = &[
    ("ansible-playbook", &[]),
    ("ant", &["-f", "-file"]),
    ("cmake", &["-P"]),
    ("emacs", &["--batch", "--load", "--script", "-batch", "-l"]),
    ("expect", &[]),
    ("go", &["run"]),
    ("groovy", &[]),
    ("java", &[]),
    ("jbang", &[]),
    ("jshell", &[]),
    ("k6", &["run"]),
    ("kotlinc", &["-script"]),
    ("powershell", &[]),
    ("pwsh", &[]),
];
/// Who starts what they are told as `./x`.
const STARTERS: &[&str] = &["git", "rsync", "screen", "ssh", "tar", "tmux", "watch"];

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
