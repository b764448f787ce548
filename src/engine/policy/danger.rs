//! Commands that escalate or run what their options say: asked about even where a rule allows them, but in yolo.

use super::safe;
use super::shell::{Command, Script, Word, base_name};

enum When {
    Always,
    Holds(fn(&[Word]) -> bool),
}

/// What destroys is in the destructive class; these run or become something else.
const DANGEROUS: &[(&str, When)] = &[
    (
        "find",
        When::Holds(|args| {
            !safe::find_counts(args) && args.iter().any(|arg| safe::FIND_ACTS.iter().any(|it| arg.text.starts_with(it)))
        }),
    ),
    ("rg", When::Holds(|args| !safe::rg(args))),
    ("git", When::Holds(git)),
    ("sudo", When::Always),
    ("doas", When::Always),
    ("su", When::Always),
];

/// Variables in capitals that programs only read numbers, names and switches from. Of others nobody knows: many name a
/// program that is run, a library that is loaded, a file that is obeyed.
const HARMLESS_VARIABLES: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LINES",
    "LOG_LEVEL",
    "NODE_ENV",
    "NO_COLOR",
    "PORT",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
    "VERBOSE",
];

/// What is dangerous in the script, for people to read.
pub(super) fn find(script: &Script) -> Option<String> {
    let command = script.commands.iter().find(|it| is_dangerous(it)).map(|it| it.text.chars().take(80).collect());
    command.or_else(|| script.assigned.iter().find(|it| !is_harmless(it)).map(|it| format!("{it}=")))
}

/// A script's own variables are lower case, but for those that npm and libraries for the net read.
fn is_harmless(variable: &str) -> bool {
    let own = !variable.contains(|it: char| it.is_ascii_uppercase())
        && !variable.starts_with("npm_")
        && !variable.ends_with("_proxy");
    // `A`, `I`: nobody obeys a single letter.
    own || variable.len() == 1 || HARMLESS_VARIABLES.contains(&variable)
}

fn is_dangerous(command: &Command) -> bool {
    let Some(name) = command.name().map(base_name) else { return false };
    match DANGEROUS.iter().find(|it| it.0 == name) {
        Some((_, When::Always)) => true,
        Some((_, When::Holds(holds))) => holds(command.args()),
        None => false,
    }
}

fn git(args: &[Word]) -> bool {
    // `-c` sets a program to run.
    let (globals, words) = args.split_at(args.len() - git_words(args).len());
    if globals
        .iter()
        .any(|it| it.text.starts_with("-c") || it.text.starts_with("--conf") || it.text.starts_with("--exec"))
    {
        return true;
    }
    let Some((command, args)) = words.split_first() else { return false };
    matches!(command.text.as_str(), "status" | "log" | "diff" | "show" | "branch") && args.iter().any(safe::git_acts)
}

/// Options of git itself that take the next word.
pub(super) const GIT_VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--list-cmds",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// A git command's words from its sub-command on.
pub(super) fn git_words(mut args: &[Word]) -> &[Word] {
    while let Some((first, rest)) = args.split_first() {
        if !first.text.starts_with('-') {
            break;
        }
        args = match GIT_VALUED.contains(&first.text.as_str()) {
            true => rest.get(1..).unwrap_or_default(),
            false => rest,
        };
    }
    args
}
