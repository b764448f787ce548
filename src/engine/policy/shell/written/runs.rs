//! Who runs a file that the line writes: by its name, behind an option, or as one of its words.

use crate::engine::policy::shell::{Command, Script, Word, base_name, interpreters, is_shell};

/// Options behind which a file with code stands.
const OPTIONS: &[&str] =
    &["-f", "--file", "--makefile", "-r", "--require", "--import", "--init-file", "--rcfile", "-S"];
/// Whose options these are, beside shells and interpreters.
const RUNNERS: &[&str] = &["awk", "gawk", "gmake", "make", "mawk", "mysql", "psql", "sed", "vim"];
/// Who reads files of these names.
const BY_NAME: &[(&str, &[&str])] = &[
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
    ("java", &[]),
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

/// Whether the command runs what is in a file of that name. `by_name`: also without a folder.
pub(super) fn runs(command: &Command, file: &str, by_name: bool) -> bool {
    let Some(name) = command.words.first() else { return false };
    let program = base_name(name.text.trim_matches('"'));
    let args = command.args();
    let has = |list: &[&str]| args.iter().any(|it| list.contains(&it.text.as_str()));
    let read_by_name = BY_NAME.iter().any(|it| it.0 == program && it.1.contains(&file));
    if (by_name || name.text.contains('/')) && program == file || read_by_name {
        return true;
    }
    let is = |text: &str| base_name(text.trim_matches(['"', '\''])) == file;
    let runs_file = is_shell(program) || interpreters::is_one(program) || is_source(program);
    if runs_file && interpreters::file(program, args).is_some_and(|it| is(&it.text)) || is_module(args, file) {
        return true;
    }
    let among = AMONG.iter().any(|it| it.0 == program && (it.1.is_empty() || has(it.1)));
    if among && args.iter().any(|it| is(&it.text))
        || STARTERS.contains(&program) && args.iter().any(|it| tells(it, file))
    {
        return true;
    }
    let behind = args.iter().zip(args.iter().skip(1)).any(|it| OPTIONS.contains(&it.0.text.as_str()) && is(&it.1.text));
    let stuck = args
        .iter()
        .any(|arg| OPTIONS.iter().any(|it| arg.text.strip_prefix(it).is_some_and(|it| is(it.trim_start_matches('=')))));
    (runs_file || RUNNERS.contains(&program)) && (behind || stuck)
}

/// `python3 -m x` runs `x.py`.
fn is_module(args: &[Word], file: &str) -> bool {
    let mut pairs = args.iter().zip(args.iter().skip(1));
    let module = pairs.find(|it| it.0.text == "-m").map_or("", |it| it.1.text.as_str());
    !module.is_empty() && file.strip_suffix(".py") == module.rsplit('.').next()
}

/// `core.pager=./x`, `ProxyCommand=./x`, `./x`
fn tells(word: &Word, file: &str) -> bool {
    let told = word.text.rsplit(['=', ' ']).next().unwrap_or_default();
    told.contains('/') && base_name(told) == file
}
