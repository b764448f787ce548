//! Commands that are known to only look, and those known to destroy: two tables and their traps.

mod forms;
mod sed;
mod versions;

use std::borrow::Cow;

use super::shell::{Command, FOUND, Script, Word, WordKind};
use super::{paths, places};

enum Args {
    Any,
    /// Looks only while this holds.
    When(fn(&[Word]) -> bool),
}

const SAFE: &[(&str, Args)] = &[
    ("[", Args::Any),
    ("[[", Args::Any),
    ("arch", Args::Any),
    ("awk", Args::When(forms::awk)),
    ("b2sum", Args::Any),
    ("base64", Args::When(base64)),
    ("basename", Args::Any),
    ("cal", Args::Any),
    ("cat", Args::Any),
    ("cd", Args::When(|args| args.len() < 2)),
    ("cksum", Args::Any),
    ("cmp", Args::Any),
    ("column", Args::Any),
    ("comm", Args::Any),
    ("command", Args::When(super::shell::looks_up)),
    ("cut", Args::Any),
    ("date", Args::When(|args| args.iter().all(|it| it.text.starts_with('+') || it.text == "-u"))),
    ("df", Args::Any),
    ("diff", Args::Any),
    ("dirname", Args::Any),
    ("du", Args::Any),
    ("echo", Args::Any),
    ("expr", Args::Any),
    ("false", Args::Any),
    ("file", Args::When(|args| !has_prefix(args, &["--c"]) && !args.iter().any(|it| clustered(it, 'C')))),
    ("find", Args::When(find)),
    ("fold", Args::Any),
    ("free", Args::Any),
    ("git", Args::When(git)),
    ("grep", Args::Any),
    ("groups", Args::Any),
    ("hash", Args::When(|args| args.iter().all(|it| !it.text.starts_with('-') || it.text == "-t"))),
    ("head", Args::Any),
    ("hexdump", Args::Any),
    ("hostname", Args::When(<[Word]>::is_empty)),
    ("id", Args::Any),
    ("jq", Args::When(forms::jq)),
    ("ls", Args::Any),
    ("lscpu", Args::Any),
    ("md5sum", Args::Any),
    ("nl", Args::Any),
    ("nproc", Args::Any),
    ("numfmt", Args::Any),
    ("od", Args::Any),
    ("paste", Args::Any),
    ("printf", Args::When(|args| !has_prefix(args, &["-v"]))),
    ("ps", Args::When(forms::ps)),
    ("pwd", Args::Any),
    ("readlink", Args::Any),
    ("realpath", Args::Any),
    ("rev", Args::Any),
    ("sed", Args::When(sed::looks)),
    ("seq", Args::Any),
    ("sha1sum", Args::Any),
    ("sha224sum", Args::Any),
    ("sha256sum", Args::Any),
    ("sha384sum", Args::Any),
    ("sha512sum", Args::Any),
    ("shasum", Args::Any),
    ("sort", Args::When(sort)),
    ("stat", Args::Any),
    ("tac", Args::Any),
    ("tail", Args::Any),
    ("tar", Args::When(forms::tar)),
    ("test", Args::When(forms::test)),
    ("tr", Args::Any),
    ("tree", Args::When(forms::tree)),
    ("true", Args::Any),
    ("tsort", Args::Any),
    ("type", Args::Any),
    ("uname", Args::Any),
    ("uniq", Args::When(uniq)),
    ("unzip", Args::When(forms::unzip)),
    ("uptime", Args::Any),
    ("wc", Args::Any),
    ("which", Args::Any),
    ("whoami", Args::Any),
    ("xxd", Args::When(forms::xxd)),
];

/// What its configuration file says, which the environment names, is the user's: commands do not get that variable from
/// elsewhere. What its options say is looked at.
const RG: &[&str] = &["rg", "/usr/bin/rg", "/usr/local/bin/rg", "/opt/homebrew/bin/rg"];

/// Whether nothing in the script gives its words another meaning: the ground for calling any of its commands safe.
pub(super) fn is_plain(script: &Script) -> bool {
    let means_itself = !script.has_definitions || script.loops.only.is_some();
    script.redirects.is_empty() && !script.has_substitution && means_itself && !script.has_heredoc
}

/// Whether this command, in a plain script, only looks, and not where secrets are kept.
pub(super) fn is_safe(command: &Command, script: &Script) -> bool {
    readings(command, script).iter().all(|it| looks(it, script))
}

/// The command as it runs: in a loop once for each word.
pub(super) fn readings<'c>(command: &'c Command, script: &Script) -> Vec<Cow<'c, Command>> {
    // A name with blanks in it comes apart where the variable stands unquoted, into words that nobody looked at.
    let split = || command.name() == Some("echo");
    match script.loops.only.as_ref().filter(|it| !it.values_in(command).is_empty()) {
        Some(it) => it.readings(command, split()).into_iter().map(Cow::Owned).collect(),
        None => vec![Cow::Borrowed(command)],
    }
}

fn row(name: &str) -> Option<&'static Args> {
    SAFE.binary_search_by_key(&name, |it| it.0).ok().and_then(|it| SAFE.get(it)).map(|it| &it.1)
}

fn looks(command: &Command, script: &Script) -> bool {
    let Some(name) = command.name() else { return false };
    let args = command.args();
    let wide = script.going.wide;
    let pattern = pattern_at(super::shell::base_name(name), args);
    let (shows, prints) = (SHOWS_NAMES.contains(&name), matches!(name, "echo" | "printf"));
    let handed = |it: &Word| COUNT.contains(&name) && is_found(it) && is_handed(script);
    let quiet = args.iter().enumerate().all(|(at, it)| {
        let names_file = pattern != Some(at) && !shows;
        let secret = || paths::is_secret(it) || wide && paths::may_reach_kernel(it, true);
        match it.kind {
            WordKind::Expanded => prints && forms::is_public(it) || handed(it),
            _ => !(names_file && secret()),
        }
    });
    let passes = || hands_on_to_count(command) || forms::times(name, args);
    if command.opaque || command.wrapper && !passes() || !quiet {
        return false;
    }
    if command.wrapper {
        return true;
    }
    // What a repository's own configuration names (fsmonitor) runs with the first `git status` in it.
    if name == "git" && places::moves(script) {
        return false;
    }
    // Of another repository nobody knows which secrets it keeps.
    if name == "git" && args.first().is_some_and(|it| it.text == "-C") && super::shown::prints(command) {
        return false;
    }
    if versions::asks(name, args) {
        return true;
    }
    if RG.contains(&name) {
        return rg(args) && !(wide || searches_wide(args));
    }
    if name == "grep" && args.iter().any(recurses) && (wide || searches_wide(args)) {
        return false;
    }
    match row(name) {
        Some(Args::Any) => true,
        Some(Args::When(holds)) => holds(args) && !args.iter().any(may_be_option),
        None => false,
    }
}

/// `-r`, `-R`, `-d recurse` and their long forms.
pub(super) fn recurses(word: &Word) -> bool {
    ['r', 'R', 'd'].iter().any(|it| clustered(word, *it)) || has_prefix(std::slice::from_ref(word), &["--r", "--d"])
}

/// A search that goes wherever links lead.
pub(super) fn follows_links(command: &Command) -> bool {
    let name = super::shell::base_name(command.name().unwrap_or_default());
    let follows = |it: &Word| match name {
        "grep" => clustered(it, 'R') || it.text.starts_with("--d"),
        "rg" => clustered(it, 'L') || it.text.starts_with("--fo"),
        "diff" => recurses(it),
        _ => false,
    };
    command.args().iter().any(follows)
}

/// `cp -r` and its like.
pub(super) fn copies_all(word: &Word) -> bool {
    ['r', 'R', 'a'].iter().any(|it| clustered(word, *it)) || has_prefix(std::slice::from_ref(word), &["--r", "--a"])
}

/// Those that only print words and names, or tell what there is.
const NAMES_ONLY: &[&str] = &[
    "[", "[[", "basename", "cd", "command", "dirname", "echo", "expr", "find", "hash", "id", "ls", "printf", "ps",
    "readlink", "realpath", "seq", "stat", "test", "tr", "tree", "type", "which",
];
/// Of these, they say nothing of what is in a file whatever their words: a secret's name is none.
const SHOWS_NAMES: &[&str] = &[
    "[", "[[", "basename", "command", "dirname", "echo", "ls", "printf", "readlink", "realpath", "stat", "test",
    "type", "which",
];

/// What a known-safe command may read: its operands, and what sticks to its options.
pub(super) fn read_paths(command: &Command) -> impl Iterator<Item = Word> {
    let name = super::shell::base_name(command.name().unwrap_or_default());
    let names_only = NAMES_ONLY.contains(&name);
    let pattern = match name {
        "awk" | "grep" | "jq" | "rg" => pattern_operands(command.args()),
        _ => 0,
    };
    let option = |it: &&Word| it.text.starts_with('-') && it.text != "-";
    let (options, operands): (Vec<&Word>, Vec<&Word>) = command.args().iter().partition(option);
    let stuck = options.into_iter().filter_map(|it| {
        let at = it.text.find(['/', '~'])?;
        Some(Word { text: it.text.get(at..)?.to_owned(), kind: it.kind })
    });
    let script = |it: &&Word| name == "sed" && sed::is_script(it, command.args());
    let operands = operands.into_iter().filter(|it| !script(it)).skip(pattern);
    let counts = COUNT.contains(&name);
    let operands =
        operands.filter(|it| !paths::is_plain_kernel_file(it)).filter(|it| !(counts && is_found(it))).cloned();
    // Only ways out: what is relative was looked at with the folder.
    let all: Vec<Word> = if names_only { Vec::new() } else { stuck.chain(operands).collect() };
    all.into_iter()
}

/// A search through a home or the whole disk comes upon secrets that nobody named.
fn searches_wide(args: &[Word]) -> bool {
    let operands = args.iter().filter(|it| !it.text.starts_with('-'));
    operands.skip(pattern_operands(args)).any(|it| paths::is_wide(it) || may_be_option(it))
}

/// How many operands are what is searched for: the first, unless an option has it.
pub(super) fn pattern_operands(args: &[Word]) -> usize {
    let given = has_prefix(args, &["--reg", "--f"]) || args.iter().any(|it| clustered(it, 'e') || clustered(it, 'f'));
    usize::from(!given)
}

/// Where among the words stands what is searched for, if it is a search, or jq's filter. Words that an option takes may be taken for it:
/// then it is looked at like a file.
pub(super) fn pattern_at(name: &str, args: &[Word]) -> Option<usize> {
    let skipped = match (name, args.first()) {
        ("awk" | "grep" | "egrep" | "fgrep" | "jq" | "rg", _) => 0,
        ("git", Some(it)) if it.text == "grep" => 1,
        _ => return None,
    };
    let operands = args.iter().enumerate().skip(skipped).filter(|it| !it.1.text.starts_with('-'));
    operands.map(|it| it.0).next().filter(|_| pattern_operands(args) > 0)
}

/// Whether it may lead to the root or to a home.
pub(super) fn is_wide_cd(command: &Command) -> bool {
    let args = command.args();
    command.name() == Some("cd") && (args.is_empty() || args.iter().any(|it| paths::is_wide(it) || it.text == "-"))
}

/// A file may be called `-delete`: a pattern at the start of a word finds it.
fn may_be_option(word: &Word) -> bool {
    word.kind == WordKind::Pattern && word.text.starts_with(['*', '?', '[', '-'])
}

fn has_prefix(args: &[Word], prefixes: &[&str]) -> bool {
    args.iter().any(|arg| prefixes.iter().any(|it| arg.text.starts_with(it)))
}

fn base64(args: &[Word]) -> bool {
    !has_prefix(args, &["-o", "--o", "-D", "-i"]) && args.iter().all(|it| !clustered(it, 'o'))
}

/// `-uo` is `-u -o`.
fn clustered(word: &Word, letter: char) -> bool {
    word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letter)
}

/// Predicates that run, write or remove.
pub(super) const FIND_ACTS: &[&str] = &["-exec", "-ok", "-delete", "-fls", "-fprint"];

/// What prints nothing of a file's content.
const COUNT: &[&str] = &["basename", "dirname", "du", "ls", "stat", "wc"];
/// Of these, to whom a file's name may be an option that does: `--files0-from=.env`. What `find` prints begins with a folder.
const OBEY_NAMES: &[&str] = &["du", "wc"];

/// What `find` and `xargs` put in. A shell may have something else in its `$@`, which an error would show.
fn is_found(word: &Word) -> bool {
    word.text == FOUND || *word == Word::unknown()
}

fn is_handed(script: &Script) -> bool {
    let may_say = |it: &Command| it.transparent || it.name() == Some("set");
    let name = |it: &Command| it.name().unwrap_or_default().to_owned();
    let obeys = script.commands.iter().any(|it| OBEY_NAMES.contains(&name(it).as_str()));
    let passes = |it: &Command| match name(it).as_str() {
        "find" | "xargs" | "wc" | "du" => true,
        "sort" | "head" | "tail" => it.args().iter().all(|it| it.text.starts_with('-')),
        _ => false,
    };
    let only_found =
        || script.commands.first().map(name).as_deref() == Some("find") && script.commands.iter().all(passes);
    script.commands.iter().any(hands_on_to_count) && !script.commands.iter().any(may_say) && (!obeys || only_found())
}

/// `xargs -0 wc -l`, `find . -exec wc -l {} +`: nothing else is run.
fn hands_on_to_count(command: &Command) -> bool {
    match command.name() {
        Some("find") => find_counts(command.args()),
        Some("xargs") => {
            let options = |it: &&Word| matches!(it.text.as_str(), "-0" | "-r" | "--null" | "--no-run-if-empty");
            command.args().iter().find(|it| !options(it)).and_then(Word::literal).is_some_and(|it| COUNT.contains(&it))
        }
        _ => false,
    }
}

pub(super) fn find_counts(args: &[Word]) -> bool {
    let Some(at) = args.iter().position(|it| it.text == "-exec") else { return false };
    let (before, run) = args.split_at(at);
    let Some(end) = run.iter().position(|it| matches!(it.text.as_str(), ";" | "+")) else { return false };
    let (run, after) = run.split_at(end);
    let counts = run.get(1).and_then(Word::literal).is_some_and(|it| COUNT.contains(&it));
    counts && run.iter().all(|it| it.literal().is_some()) && find(before) && find(after)
}

fn find(args: &[Word]) -> bool {
    !has_prefix(args, FIND_ACTS)
}

/// Everything it may be told; `-o`, `-T` and `--compress-program` write or run.
fn sort(args: &[Word]) -> bool {
    const LONG: &[&str] = &["--reverse", "--numeric-sort", "--unique", "--human-numeric-sort", "--version-sort"];
    args.iter().all(|it| match it.text.strip_prefix('-') {
        Some(_) if it.text.starts_with("--") => LONG.contains(&it.text.as_str()),
        Some("") => true,
        Some(key) if key.starts_with('k') => {
            key.bytes().skip(1).all(|it| it.is_ascii_alphanumeric() || b",.".contains(&it))
        }
        Some(flags) => flags.bytes().all(|it| b"bdfghiMnRrVuzcCs".contains(&it)),
        None => true,
    })
}

/// A second operand is written to; so is what a pattern turns into two.
fn uniq(args: &[Word]) -> bool {
    let operands = args.iter().filter(|it| !it.text.starts_with('-') || it.text == "-").count();
    // After `--` an operand may begin with a dash.
    let unclear = args.iter().any(|it| it.kind == WordKind::Pattern || it.text == "--");
    operands < 2 && !unclear
}

pub(super) fn rg(args: &[Word]) -> bool {
    !has_prefix(args, &["--pre", "--hostname-bin", "--search-zip"])
        && !args.iter().any(|it| clustered(it, 'z') || may_be_option(it))
}

/// Options that write a file or run a program. git takes any unambiguous beginning of a long option for the whole.
const GIT_ACTS: &[&str] =
    &["--output", "--ext-diff", "--textconv", "--exec", "--paginate", "--show-signature", "--config-env", "--no-index"];

pub(super) fn git_acts(arg: &Word) -> bool {
    let name = arg.text.split('=').next().unwrap_or_default();
    // `%G` formats run the signature program; `%+G`, `%-G` and `% G` are the same.
    let signature = ["%G", "%+G", "%-G", "% G", "%(signature", "%(*signature"].iter().any(|it| arg.text.contains(it));
    (name.len() > 2 && name.starts_with("--") && GIT_ACTS.iter().any(|it| it.starts_with(name)))
        || name.starts_with("--output")
        || signature
}

fn git(args: &[Word]) -> bool {
    // What the repository there has git run is looked up, too.
    let args = match args {
        [first, to, rest @ ..] if first.literal() == Some("-C") && is_below(to) => rest,
        _ => args,
    };
    let args = match args {
        [first, rest @ ..] if matches!(first.literal(), Some("--no-pager" | "--no-optional-locks")) => rest,
        _ => args,
    };
    let Some((command, args)) = args.split_first() else { return false };
    if args.iter().any(git_acts) {
        return false;
    }
    match command.literal() {
        Some("status" | "log" | "diff" | "show" | "blame" | "ls-files" | "rev-parse" | "shortlog" | "describe") => true,
        Some(
            "check-attr" | "count-objects" | "whatchanged" | "rev-list" | "check-ignore" | "for-each-ref" | "ls-tree"
            | "merge-base" | "name-rev" | "show-ref",
        ) => true,
        Some("cat-file") => matches!(args, [what, _] if matches!(what.text.as_str(), "-e" | "-s" | "-t")),
        Some("grep") => forms::git_grep(args),
        Some("reflog") => forms::reflog(args),
        Some("--version" | "version") => args.is_empty(),
        Some("branch") => branch(args),
        Some("config") => forms::config(args),
        Some("tag") => forms::tag(args),
        Some("remote") => args.iter().all(|it| matches!(it.text.as_str(), "-v" | "--verbose")),
        Some("stash") if args.first().is_some_and(|it| it.text == "show") => true,
        Some("stash" | "worktree") => matches!(args, [list] if list.text == "list"),
        _ => false,
    }
}

fn branch(args: &[Word]) -> bool {
    const FLAGS: &[&str] =
        &["-a", "-r", "-v", "-vv", "-av", "-avv", "--all", "--remotes", "--verbose", "--show-current", "--no-color"];
    // With one of these an operand is a pattern; without it would be a new branch.
    const LISTS: &[&str] = &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    const VALUED: &[&str] = &["--sort", "--format", "--color", "--column"];
    let (options, operands): (Vec<&Word>, Vec<&Word>) = args.iter().partition(|it| it.text.starts_with('-'));
    let name = |it: &Word| it.text.split('=').next().unwrap_or_default().to_owned();
    let lists = options.iter().any(|it| LISTS.contains(&name(it).as_str()));
    let known = options.iter().all(|it| {
        let name = name(it);
        FLAGS.contains(&it.text.as_str()) || LISTS.contains(&name.as_str()) || VALUED.contains(&name.as_str())
    });
    known && (lists || operands.is_empty())
}

/// Whether a `cd` in front of other commands stays below where it starts.
pub(super) fn is_cd_below(command: &Command) -> bool {
    let [to] = command.args() else { return false };
    is_below(to)
}

fn is_below(to: &Word) -> bool {
    to.literal().is_some_and(|it| !it.starts_with(['/', '-']) && !it.split('/').any(|it| it == ".."))
}

#[cfg(test)]
pub(super) fn safe_names() -> [Vec<&'static str>; 2] {
    [SAFE.iter().map(|it| it.0).collect(), versions::names().collect()]
}
