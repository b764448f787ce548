//! The forms of programs in which they only look, where a program has others.

use super::{Word, WordKind, clustered, has_prefix};

/// Variables that hold places, names and switches, and never a secret.
const PUBLIC: &[&str] = &[
    "?", "COLUMNS", "HOME", "HOSTNAME", "LANG", "LC_ALL", "LINES", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL",
    "SHLVL", "TERM", "TMPDIR", "TZ", "USER",
];

/// `$HOME/x`, `"in $PWD"`: nothing comes of it but what such variables hold.
pub(super) fn is_public(word: &Word) -> bool {
    let plain = |it: &str| !it.contains(['`', '\\', '{', '(']);
    let mut pieces = word.text.split('$');
    let before = pieces.next().unwrap_or_default();
    plain(before) && pieces.all(|it| behind_variable(it).is_some_and(plain))
}

/// What follows the name of such a variable.
fn behind_variable(text: &str) -> Option<&str> {
    let (name, rest) = match text.strip_prefix('{') {
        Some(inside) => inside.split_once('}')?,
        None if text.starts_with('?') => text.split_at_checked(1)?,
        None => {
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            text.split_at_checked(text.find(|it| !is_name(it)).unwrap_or(text.len()))?
        }
    };
    PUBLIC.contains(&name).then_some(rest)
}

/// What bash evaluates in subscripts (`-v 'a[$(x)]'`) is run, and names that a pattern finds may say so.
pub(super) fn test(args: &[Word]) -> bool {
    let plain = |it: &Word| it.literal().is_some_and(|it| !it.contains(['[', '$', '`']));
    args.iter().all(plain)
}

/// `-o` writes, and so does `-R` at the depth of `-L`; files of names are read and printed.
pub(super) fn tree(args: &[Word]) -> bool {
    const LONG: &[&str] = &["--dirsfirst", "--du", "--filesfirst", "--gitignore", "--noreport", "--prune", "--si"];
    let known = |it: &Word| match it.text.strip_prefix('-') {
        Some(long) if long.starts_with('-') => LONG.contains(&it.text.as_str()),
        Some(letters) => letters.bytes().all(|it| b"aCDdFfghIiJLlNnPpQqrSstUuvXx".contains(&it)),
        None => true,
    };
    args.iter().all(known)
}

/// An `e` without a dash shows what programs have in their environment.
pub(super) fn ps(args: &[Word]) -> bool {
    const WORDS: &[&str] = &["-A", "-e", "-ef", "-f", "-p", "-ww", "aux", "auxw", "auxww", "ax", "axu"];
    let number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    args.iter().filter_map(Word::literal).filter(|it| WORDS.contains(it) || number(it)).count() == args.len()
}

/// A filter may print the environment, or take in another one. `-f` and `-L` name such files.
pub(super) fn jq(args: &[Word]) -> bool {
    const TAKE_IN: &[&str] = &["ENV", "env", "import", "include", "get_search_list"];
    let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let takes_in = |arg: &Word| arg.text.split(|it| !word(it)).any(|it| TAKE_IN.contains(&it));
    !has_prefix(args, &["--f", "--l", "--run"])
        && !args.iter().any(|it| clustered(it, 'f') || clustered(it, 'L') || takes_in(it))
}

/// `git tag`, `git tag -l 'v*'`, `git tag --contains x`.
pub(super) fn tag(args: &[Word]) -> bool {
    const LISTS: &[&str] =
        &["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "-n"];
    const VALUED: &[&str] = &["--sort", "--format", "--color", "--column"];
    let (options, operands): (Vec<&Word>, Vec<&Word>) = args.iter().partition(|it| it.text.starts_with('-'));
    let name = |it: &Word| it.text.split('=').next().unwrap_or_default().to_owned();
    let lists = |it: &Word| {
        let lines = it.text.strip_prefix("-n").is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        lines || LISTS.contains(&name(it).as_str())
    };
    // What follows `--sort` is no name of a tag, but one that is listed might be made.
    let known = options.iter().all(|it| lists(it) || VALUED.contains(&name(it).as_str()) && it.text.contains('='));
    known && (operands.is_empty() || options.iter().any(|it| lists(it)))
}

/// One setting that holds no secret. Those of remotes may have a token in their addresses, and a second name would be
/// written.
pub(super) fn config(args: &[Word]) -> bool {
    const PLAIN: &[&str] = &["init.defaultbranch", "user.email", "user.name"];
    const CORE: &[&str] = &["autocrlf", "bare", "editor", "eol", "filemode", "hookspath", "ignorecase", "pager"];
    let words: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let words = match words.as_slice() {
        ["--global" | "--local" | "--system", rest @ ..] => rest,
        it => it,
    };
    let key = match words {
        ["--get" | "get", key] | [key] => key.to_ascii_lowercase(),
        _ => return false,
    };
    PLAIN.contains(&key.as_str()) || key.strip_prefix("core.").is_some_and(|it| CORE.contains(&it))
}

/// `git reflog`, `git reflog show main -n5`: others of its commands remove. It takes what `git log` takes.
pub(super) fn reflog(args: &[Word]) -> bool {
    let first = args.first().map_or("show", |it| it.text.as_str());
    first.starts_with('-') || matches!(first, "show" | "exists" | "list" | "HEAD") || first.contains("@{")
}

/// A program that compares, counts and prints: it starts nothing, writes nothing and reads what its operands say. Behind
/// a brace a `>` may be a file.
pub(super) fn awk(args: &[Word]) -> bool {
    const REACHES_OUT: &[&str] = &["ARGC", "ARGV", "ENVIRON", "PROCINFO", "SYMTAB", "getline", "system"];
    let mut rest = args;
    while let Some((first, behind)) = rest.split_first().filter(|it| it.0.text.starts_with('-')) {
        rest = match (first.literal(), first.text.as_str()) {
            (Some(_), "-F") => behind.get(1..).unwrap_or_default(),
            (Some(it), _) if it.starts_with("-F") => behind,
            _ => return false,
        };
    }
    let Some((program, files)) = rest.split_first() else { return false };
    let Some(text) = program.literal() else { return false };
    let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let reaches_out = text.split(|it| !word(it)).any(|it| REACHES_OUT.contains(&it));
    let writes = text.split_once('{').is_some_and(|it| it.1.contains('>'));
    let pipes = text.replace("||", "").contains(['|', '@', '`']);
    // `x=1` sets a variable, and a name that a pattern finds may do so.
    let plain = |it: &Word| !it.text.starts_with('-') && !it.text.contains('=');
    !(reaches_out || writes || pipes) && files.iter().all(plain)
}

/// `time ls`, `timeout 5 ls`: what they run is looked at by itself. `-o` of the program `time` writes.
pub(super) fn times(name: &str, args: &[Word]) -> bool {
    let Some(first) = args.first().and_then(Word::literal) else { return false };
    match name {
        "time" => !first.starts_with('-'),
        "timeout" => first.starts_with(|it: char| it.is_ascii_digit()),
        _ => false,
    }
}

/// `-O` runs a pager, `-f` reads what to search for, `--no-index` looks into what git does not know.
pub(super) fn git_grep(args: &[Word]) -> bool {
    const LONG: &[&str] = &[
        "--all-match",
        "--and",
        "--cached",
        "--count",
        "--files-with-matches",
        "--heading",
        "--ignore-case",
        "--line-number",
        "--name-only",
        "--not",
        "--or",
        "--untracked",
        "--word-regexp",
    ];
    let known = |it: &Word| match it.text.strip_prefix('-') {
        Some("" | "-") | None => true,
        Some(long) if long.starts_with('-') => LONG.contains(&it.text.as_str()),
        Some(letters) => letters.bytes().all(|it| it.is_ascii_digit() || b"ABCEFGHILPacehilmnopqvwz".contains(&it)),
    };
    args.iter().all(known)
}

/// Lists an archive: `tf x`, `-tvzf x`. Other options run programs, and a name with a colon is on another machine.
pub(super) fn tar(args: &[Word]) -> bool {
    let [letters, archive] = args else { return false };
    let letters = letters.text.strip_prefix('-').unwrap_or(&letters.text);
    let lists = letters.contains('t') && letters.ends_with('f') && letters.bytes().all(|it| b"tvzjJf".contains(&it));
    let here = archive.literal().is_some_and(|it| !it.starts_with('-') && !it.contains(':'));
    lists && here
}

/// Lists an archive.
pub(super) fn unzip(args: &[Word]) -> bool {
    let [lists, archive] = args else { return false };
    matches!(lists.text.as_str(), "-l" | "-v" | "-Z" | "-Z1")
        && archive.literal().is_some_and(|it| !it.starts_with('-'))
}

/// A second operand is written to, and `-r` makes a file of what it shows.
pub(super) fn xxd(args: &[Word]) -> bool {
    let plain = |it: &Word| it.kind != WordKind::Pattern && matches!(it.text.as_str(), "-b" | "-i" | "-p" | "-u");
    match args.split_last() {
        Some((file, options)) => file.literal().is_some_and(|it| !it.starts_with('-')) && options.iter().all(plain),
        None => true,
    }
}
