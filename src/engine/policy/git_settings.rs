//! Settings of git that name what it runs, or where it finds more of them: to write one is to write configuration.

use super::{
    danger::git_words,
    shell::{Command, Word, base_name},
};

/// In lower case; a star stands for any ending, or for what is between.
const RUN: &[&str] = &[
    "alias.*",
    "core.askpass",
    "core.attributesfile",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "core.worktree",
    "credential.*",
    "diff.*command",
    "diff.*textconv",
    "diff.external",
    "difftool.*",
    "filter.*",
    "gpg.*program",
    "include.*",
    "includeif.*",
    "init.templatedir",
    "interactive.difffilter",
    "merge.*driver",
    "mergetool.*",
    "pager.*",
    "protocol.*",
    "remote.*receivepack",
    "remote.*uploadpack",
    "remote.*vcs",
    "sequence.editor",
    "submodule.*update",
    "trailer.*",
    "uploadpack.packobjectshook",
    "url.*",
];
/// With one of these nothing is set.
const READS: &[&str] = &["--get", "--list", "-l", "--unset", "--remove-section", "--rename-section"];
const VERBS: &[&str] = &["get", "list", "unset", "remove-section", "rename-section", "edit"];
/// Values that run nothing of anybody's.
const HARMLESS: &[&str] = &["", "0", "1", ":", "cache", "cat", "false", "less", "osxkeychain", "store", "true"];

/// Whether the command sets such a setting.
pub(super) fn sets_what_runs(command: &Command) -> bool {
    if command.name().map(base_name) != Some("git") {
        return false;
    }
    let words = git_words(command.args());
    let Some((_, args)) = words.split_first().filter(|it| it.0.text == "config") else { return false };
    if args.iter().any(|it| READS.iter().any(|start| it.text.starts_with(start))) {
        return false;
    }
    // `--file x` and its like take a word more: any may be the key.
    let operands: Vec<&Word> = args.iter().filter(|it| !it.text.starts_with('-')).collect();
    if operands.first().is_some_and(|it| VERBS.contains(&it.text.as_str())) {
        return false;
    }
    let pairs = operands.iter().zip(operands.iter().skip(1));
    pairs.into_iter().any(|(key, value)| runs(&key.text) && !HARMLESS.contains(&value.text.as_str()))
}

fn runs(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    RUN.iter().any(|it| match it.split_once('*') {
        Some((start, end)) => key.len() >= start.len() + end.len() && key.starts_with(start) && key.ends_with(end),
        None => *it == key,
    })
}
