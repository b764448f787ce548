//! Commands that escalate or run what their options say: asked about even where a rule allows them, but in yolo.

use super::safe;
use super::shell::{Command, Script, Word, base_name};

enum When {
    Always,
    Holds(fn(&[Word]) -> bool),
}

/// What destroys is in the destructive class; these run or become something else.
const DANGEROUS: &[(&str, When)] = &[
    ("find", When::Holds(|args| args.iter().any(|arg| safe::FIND_ACTS.iter().any(|it| arg.text.starts_with(it))))),
    ("rg", When::Holds(|args| !safe::rg(args))),
    ("git", When::Holds(git)),
    ("sudo", When::Always),
    ("doas", When::Always),
    ("su", When::Always),
];

/// What is dangerous in the script, for people to read.
pub(super) fn find(script: &Script) -> Option<String> {
    script.commands.iter().find(|it| is_dangerous(it)).map(|it| it.text.chars().take(80).collect())
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

/// A git command's words from its sub-command on.
pub(super) fn git_words(mut args: &[Word]) -> &[Word] {
    const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"];
    while let Some((first, rest)) = args.split_first() {
        if !first.text.starts_with('-') {
            break;
        }
        args = match VALUED.contains(&first.text.as_str()) {
            true => rest.get(1..).unwrap_or_default(),
            false => rest,
        };
    }
    args
}
