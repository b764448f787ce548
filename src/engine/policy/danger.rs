//! Commands that destroy, escalate or cannot be taken back: asked about even where a rule allows them.

use super::safe;
use super::shell::{Command, Redirect, Script, Word, base_name};

enum When {
    Always,
    /// A short option with one of these letters, or a long one that begins so.
    Options(&'static str, &'static [&'static str]),
    Holds(fn(&[Word]) -> bool),
}

const DANGEROUS: &[(&str, When)] = &[
    ("rm", When::Options("fRr", &["--f", "--r", "--no-preserve-root"])),
    ("chmod", When::Options("R", &["--rec"])),
    ("chown", When::Options("R", &["--rec"])),
    ("chgrp", When::Options("R", &["--rec"])),
    ("find", When::Holds(|args| args.iter().any(|arg| safe::FIND_ACTS.iter().any(|it| arg.text.starts_with(it))))),
    ("rg", When::Holds(|args| !safe::rg(args))),
    ("git", When::Holds(git)),
    ("sudo", When::Always),
    ("doas", When::Always),
    ("su", When::Always),
    ("dd", When::Always),
    ("mkswap", When::Always),
    ("fdisk", When::Always),
    ("sfdisk", When::Always),
    ("parted", When::Always),
    ("wipefs", When::Always),
    ("shred", When::Always),
    ("shutdown", When::Always),
    ("reboot", When::Always),
    ("halt", When::Always),
    ("poweroff", When::Always),
    ("crontab", When::Always),
];

/// What is dangerous in the script, for people to read.
pub(super) fn find(script: &Script) -> Option<String> {
    let redirect = script.redirects.iter().find(|it| is_device(it)).map(|it| format!("redirection {}", it.target.text));
    let command = script.commands.iter().find(|it| is_dangerous(it)).map(|it| it.text.chars().take(80).collect());
    command.or(redirect)
}

fn is_device(redirect: &Redirect) -> bool {
    let text = redirect.target.text.as_str();
    text.starts_with("/dev/") && !matches!(text, "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty")
}

fn is_dangerous(command: &Command) -> bool {
    let Some(name) = command.name().map(base_name) else { return false };
    if name == "mkfs" || name.starts_with("mkfs.") {
        return true;
    }
    match DANGEROUS.iter().find(|it| it.0 == name) {
        Some((_, When::Always)) => true,
        Some((_, When::Options(short, long))) => command.args().iter().any(|it| has_option(it, short, long)),
        Some((_, When::Holds(holds))) => holds(command.args()),
        None => false,
    }
}

fn has_option(word: &Word, short: &str, long: &[&str]) -> bool {
    match word.text.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => long.iter().any(|it| word.text.starts_with(it)),
        Some(rest) => rest.contains(|it| short.contains(it)),
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
    let option = |short: &str, long: &[&str]| args.iter().any(|it| has_option(it, short, long));
    match command.text.as_str() {
        "push" => {
            option("fd", &["--fo", "--mi", "--de", "--pru"]) || args.iter().any(|it| it.text.starts_with(['+', ':']))
        }
        "reset" => option("", &["--ha"]),
        "clean" => option("f", &["--fo"]),
        "status" | "log" | "diff" | "show" | "branch" => args.iter().any(safe::git_acts),
        _ => false,
    }
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
