//! What git prints: names that it made or checked itself, or what people wrote, who may be attackers.
//!
//! A commit's author, its subject, the message of a stash, the value of a setting or a file's name may be `--hard`.

use crate::engine::policy::{
    danger::git_words,
    shell::{Command, Word},
};

/// Sub-commands that print names of branches and commits, as long as no format says otherwise.
const NAMES: &[&str] = &[
    "branch",
    "commit-tree",
    "describe",
    "for-each-ref",
    "hash-object",
    "ls-remote",
    "merge-base",
    "name-rev",
    "remote",
    "rev-parse",
    "show-ref",
    "symbolic-ref",
    "tag",
    "worktree",
    "write-tree",
];
/// Options that add messages or names of files.
const MORE: &[&str] = &[
    "--cc",
    "--children",
    "--format=raw",
    "--name",
    "--notes",
    "--numstat",
    "--oneline",
    "--patch",
    "--pretty",
    "--raw",
    "--show-notes",
    "--stat",
    "--summary",
    "-p",
    "-u",
];
/// Of formats: hashes, numbers, times and places in a reflog.
const HASHES: &[&str] =
    &["H", "h", "T", "t", "P", "p", "at", "ct", "ad", "cd", "aI", "cI", "ai", "ci", "as", "cs", "gD", "gd", "n"];
/// How options begin that give a format.
const FORMATS: &[&str] =
    &["--format=format:", "--format=tformat:", "--pretty=format:", "--pretty=tformat:", "--format=", "--pretty="];
/// Of formats for branches and tags, and beginnings.
const FIELDS: &[&str] =
    &["HEAD", "committerdate", "creatordate", "authordate", "objectname", "objecttype", "push", "refname", "upstream"];

/// Whether all that the command prints are such names.
pub(super) fn names(command: &Command) -> bool {
    let Some((sub, args)) = git_words(command.args()).split_first() else { return false };
    let sub = sub.text.as_str();
    let formats = || args.iter().filter(|it| it.text.contains('%'));
    let plain = || formats().all(|it| is_plain(&it.text));
    let formatted = || args.iter().any(gives_format) && plain() && !adds(args);
    let has = |words: &[&str]| args.iter().any(|it| words.contains(&it.text.as_str()));
    let verbose = |it: &Word| {
        let short = it.text.strip_prefix('-').filter(|it| !it.starts_with('-')).unwrap_or_default();
        short.contains(['v', 'n']) || it.text.starts_with("--verb")
    };
    match sub {
        "show" => formatted() && has(&["-s", "--no-patch"]),
        "stash" => args.first().is_some_and(|it| it.text == "create") || formatted(),
        "log" | "reflog" => formatted(),
        "rev-list" => plain() && !adds(args) && !has(&["--header"]),
        // With these they print messages, too.
        "branch" | "tag" => plain() && !args.iter().any(verbose),
        _ => NAMES.contains(&sub) && plain(),
    }
}

/// `git log --oneline -1 | cut -d' ' -f1`: nothing but the first word is passed on.
pub(super) fn begins_with_hash(command: &Command) -> bool {
    let words = git_words(command.args());
    let telling = words.first().is_some_and(|it| matches!(it.text.as_str(), "log" | "reflog"));
    let plain = |it: &Word| {
        let adds = MORE.iter().any(|start| it.text.starts_with(start)) || it.text.starts_with("--graph");
        !(adds || it.text.contains('%')) || it.text == "--oneline" || it.text == "--pretty=oneline"
    };
    let oneline = |it: &Word| it.text == "--oneline" || it.text == "--pretty=oneline";
    let short = words.first().is_some_and(|it| it.text == "reflog") || words.iter().any(oneline);
    telling && short && words.iter().all(plain)
}

/// Whether a filter passes on only the first word of each line.
pub(super) fn takes_first_word(command: &Command) -> bool {
    let args = command.args();
    let has = |word: &str| args.iter().any(|it| it.literal() == Some(word));
    match command.name() {
        Some("cut") => has("-f1") && (has("-d ") || has("-d") && has(" ")),
        Some("awk") => args.len() == 1 && (has("{print $1}") || has("{ print $1 }")),
        _ => false,
    }
}

fn gives_format(word: &Word) -> bool {
    let format = FORMATS.iter().find_map(|it| word.literal()?.strip_prefix(it));
    format.is_some_and(|it| it.contains('%'))
}

fn adds(args: &[Word]) -> bool {
    args.iter().filter(|it| !gives_format(it)).any(|it| MORE.iter().any(|start| it.text.starts_with(start)))
}

/// Whether all that a format puts in are hashes, times and names of branches, and nothing in it makes an option.
fn is_plain(text: &str) -> bool {
    let text = text.trim_matches('"');
    if let Some(date) = text.strip_prefix("--date=format:") {
        let is_part = |it: &str| matches!(it.get(1..), Some("" | "." | "-" | "_" | ":" | "/" | "T"));
        return date.strip_prefix('%').is_some_and(|it| it.split('%').all(is_part)) && !date.contains(['n', 't']);
    }
    let format = FORMATS.iter().find_map(|it| text.strip_prefix(it)).unwrap_or(text);
    let mut pieces = format.split('%');
    !pieces.next().is_some_and(makes_option) && pieces.all(is_name)
}

/// What stands behind a percent sign.
fn is_name(piece: &str) -> bool {
    if let Some(field) = piece.strip_prefix('(') {
        let (name, rest) = field.split_once(')').unwrap_or((field, ""));
        return FIELDS.iter().any(|it| name.trim_start_matches('*').starts_with(it)) && !makes_option(rest);
    }
    // The longest first: `%ad`, not `%a`.
    let rest = piece.get(2..).filter(|_| piece.get(..2).is_some_and(|it| HASHES.contains(&it)));
    let rest = rest.or_else(|| piece.get(1..).filter(|_| piece.get(..1).is_some_and(|it| HASHES.contains(&it))));
    rest.is_some_and(|it| !makes_option(it))
}

fn makes_option(text: &str) -> bool {
    text.contains("--")
        || text.split_whitespace().any(|it| it.starts_with('-') && it.len() > 1)
        || text.starts_with('-')
}
