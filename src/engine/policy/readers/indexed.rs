//! Names that git lists from its index: what is not in there is none of them, whatever else the folder holds.

use super::{
    super::{
        danger::git_words,
        safe,
        shell::{Command, Script, Word, base_name},
    },
    PRINT, RGS, entry,
    looped::Around,
};

/// Of git's, what leaves the index as it is, or takes nothing new into it.
const LEAVE_IT: &[&str] = &[
    "blame",
    "cat-file",
    "commit",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];
/// What may change what git, or the shell, makes of a word behind it.
const SET: &[&str] = &[
    ".", "alias", "builtin", "declare", "enable", "env", "eval", "exec", "export", "hash", "local", "printf", "read",
    "readonly", "set", "shopt", "source", "typeset",
];
/// What reads by code of its own; a name may be changed in there.
const BY_CODE: &[&str] = &["awk", "perl"];
const LS_FILES: &[&str] = &["--cached", "--deleted", "--modified", "-c", "-d", "-m", "-z"];
const DIFF: &[&str] = &["--name-only", "--no-renames", "--relative", "-z"];
const GREP: &[&str] = &["--files-with-matches", "--name-only", "--null"];

/// Whether all that it prints are names as the index has them.
pub(in crate::engine::policy) fn is_listed_by(command: &Command) -> bool {
    let Some((sub, args)) = words(command) else { return false };
    // A pattern may find a file that is called like an option.
    if args.iter().any(|it| it.literal().is_none()) {
        return false;
    }
    let dashes = args.iter().position(|it| it.text == "--").unwrap_or(args.len());
    let before = args.get(..dashes).unwrap_or_default();
    let behind = args.get(dashes..).unwrap_or_default();
    let options = || before.iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    match sub {
        "ls-files" => options().all(|it| LS_FILES.contains(&it)),
        // An operand may be a commit: what that has may lie here unknown to git.
        "diff" => {
            let staged = |it: &str| matches!(it, "--cached" | "--staged");
            // What was taken out of the index may be still there.
            let present = |it: &str| match it.strip_prefix("--diff-filter=") {
                Some("d") => true,
                Some(it) => !it.is_empty() && it.bytes().all(|it| b"ACMRT".contains(&it)),
                None => false,
            };
            let known = |it: &str| DIFF.contains(&it) || staged(it) || it.starts_with("--diff-filter=");
            options().count() == before.len()
                && options().any(|it| it == "--name-only")
                && options().all(known)
                && (!options().any(staged) || options().any(present))
        }
        "grep" => greps(before, !behind.is_empty()),
        _ => false,
    }
}

/// The same for the words of `git grep` before its paths.
fn greps(words: &[Word], dashes: bool) -> bool {
    let (mut names, mut patterns, mut words) = (false, 0, words.iter());
    let mut operands: Vec<&str> = Vec::new();
    while let Some(it) = words.next() {
        let text = it.text.as_str();
        match text.strip_prefix('-') {
            Some("e") => {
                patterns += 1;
                words.next();
            }
            Some(_) if GREP.contains(&text) => names |= text != "--null",
            Some(it) if !it.is_empty() && it.bytes().all(|it| b"EFGILPilnwz".contains(&it)) => {
                names |= it.contains(['l', 'L']);
            }
            Some(_) => return false,
            None => operands.push(text),
        }
    }
    let others = operands.get(usize::from(patterns == 0)..).unwrap_or_default();
    // It may be a commit, of which git would say `main:a`.
    let is_path = |it: &&str| {
        (it.ends_with('/') || it.starts_with("./") || it.contains('*')) && !it.contains([':', '^', '@', '{', '~'])
    };
    names && (patterns == 1 || patterns == 0 && !operands.is_empty()) && others.iter().all(|it| !dashes && is_path(it))
}

/// The sub-command of git, with its words, where no option leads to another repository.
fn words(command: &Command) -> Option<(&str, &[Word])> {
    let args = command.args();
    let words = git_words(args);
    let own = args.iter().take(args.len() - words.len()).all(|it| it.text == "--no-pager");
    let (sub, args) = words.split_first().filter(|_| own && command.name() == Some("git"))?;
    Some((sub.literal()?, args))
}

/// Whether the word of `reader` with a substitution stands for nothing but names of the index, none of them of secrets.
pub(super) fn spares_word(reader: &Command, word: &Word, around: &Around) -> bool {
    let text = word.text.trim_matches('"');
    let whole = text.starts_with("$(") && text.ends_with(')') && text.matches("$(").count() == 1;
    let mut inner = around.script.commands_in(&word.text);
    let Some(lister) = inner.next().filter(|_| whole && !text.contains('`')) else { return false };
    // In a word of the shell names run together where a zero stands between them.
    let runs_on = lister.args().iter().any(|it| it.text == "--null" || is_short(it) && it.text.contains('z'));
    !runs_on && reads_whole(reader.name(), reader.args()) && spares(lister, inner, around)
}

/// The same for what the `xargs` at `at` is handed.
pub(super) fn spares_handed(xargs: &Command, at: usize, around: &Around) -> bool {
    let Some((lister, between)) = around.script.commands.get(..at).and_then(<[Command]>::split_first) else {
        return false;
    };
    let args = xargs.args();
    let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let plain = |it: &&Word| match it.text.as_str() {
        "-0" | "-r" | "-t" | "-0r" | "-r0" | "--null" | "--no-run-if-empty" | "-n" | "-P" | "-L" => true,
        "-I" | "-I{}" | "{}" | "-d" | "\\n" | "-d\\n" => true,
        it => is_digits(it.trim_start_matches("-n").trim_start_matches("-P").trim_start_matches("-L")),
    };
    let program = args.get(args.iter().take_while(plain).count()..).unwrap_or_default();
    let Some((name, args)) = program.split_first().filter(|_| xargs.name() == Some("xargs")) else { return false };
    let whole = |it: &Word| it.text == "{}" || !it.text.contains("{}");
    args.iter().all(whole) && reads_whole(name.literal(), args) && spares(lister, between.iter(), around)
}

/// Whether a program reads the files that it is handed, not what lies in a folder that took the place of one.
fn reads_whole(name: Option<&str>, args: &[Word]) -> bool {
    let reads = |it| PRINT.contains(&it) && !RGS.contains(&it) && !BY_CODE.contains(&it);
    name.map(base_name).is_some_and(reads) && !args.iter().any(safe::recurses)
}

fn spares<'a>(lister: &Command, mut behind: impl Iterator<Item = &'a Command>, around: &Around) -> bool {
    let Some(tracked) = around.tracked.filter(|_| around.here.is_some() && is_listed_by(lister)) else { return false };
    // A link is in the index by its own name, and who is handed that follows it.
    let may_be_listed = !tracked.is_empty() || around.leads.iter().any(|it| entry((&it.path, &it.real)).is_some());
    !may_be_listed && behind.all(passes_whole) && is_as_it_was(around.script)
}

/// Whether a filter lets names pass as they are, or not at all.
fn passes_whole(command: &Command) -> bool {
    let args = || command.args().iter().map(|it| it.literal());
    let digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    match command.name() {
        Some("head" | "tail") => {
            args().flatten().filter(|it| *it == "-n" || digits(it.trim_start_matches(['-', 'n']))).count()
                == args().count()
        }
        Some("sort") => args().all(|it| matches!(it, Some("-u" | "-r" | "-V" | "-z"))),
        Some("uniq") => args().count() == 0,
        Some("grep" | "egrep") => {
            let options = args().filter(|it| it.is_none_or(|it| it.starts_with('-')));
            let plain = |it: Option<&str>| {
                it.and_then(|it| it.strip_prefix('-')).is_some_and(|it| it.bytes().all(|it| b"EFPivwxz".contains(&it)))
            };
            let operands = args().flatten().filter(|it| !it.starts_with('-')).count();
            operands == 1 && options.into_iter().all(plain)
        }
        _ => false,
    }
}

/// Whether the index that was looked at is the one that git reads, and the shell splits words as it does at its start.
fn is_as_it_was(script: &Script) -> bool {
    let leaves = |it: &Command| match it.name().map(base_name) {
        Some("git") => words(it).is_some_and(|it| LEAVE_IT.contains(&it.0)),
        Some(it) => !SET.contains(&it),
        None => false,
    };
    let sets = script.has_definitions || script.has_heredoc || !script.assigned.is_empty();
    !sets && script.functions.is_empty() && script.commands.iter().all(leaves)
}

fn is_short(word: &Word) -> bool {
    word.text.starts_with('-') && !word.text.starts_with("--")
}
