//! Names that a substitution or a pipe hands to a command that prints files: `cat $(git ls-files)`, `ls *.md | xargs head`.

use super::{
    super::{
        danger::git_words,
        safe,
        shell::{Command, Word, WordKind, base_name},
    },
    GREPS, RGS, entry, indexed, is_like,
    looped::Around,
};
use crate::base::guarded::SECRETS;

/// What prints no names of files that it finds.
const NO_NAMES: &[&str] = &[
    "basename", "command", "date", "dirname", "expr", "hostname", "nproc", "pwd", "realpath", "seq", "type", "uname",
    "wc", "which", "whoami",
];
/// What stands between who lists and who reads.
const FILTERS: &[&str] = &["awk", "cut", "head", "sed", "sort", "tail", "tr", "uniq", "xargs"];
/// Of git's, what prints numbers, hashes, branches and versions.
const GIT_NO_NAMES: &[&str] =
    &["branch", "describe", "log", "merge-base", "rev-list", "rev-parse", "symbolic-ref", "tag"];

/// The entry of the first file of secrets that may be among the names which substitutions in a command's words print.
pub(super) fn in_words(command: &Command, around: &Around) -> Option<&'static str> {
    let (name, args) = (command.name().map(base_name)?, command.args());
    let pattern = safe::pattern_at(name, args);
    let script = (name == "sed").then(|| script_at(args)).flatten();
    let code = |at: usize| Some(at) == pattern || Some(at) == script;
    let words = args.iter().enumerate().filter(|it| !code(it.0) && is_list(it.1));
    words.map(|it| it.1).find_map(|word| {
        let mut inner = around.script.commands_in(&word.text).peekable();
        // `$(<names)`
        let found =
            inner.peek().is_none().then(|| around.any()).flatten().or_else(|| inner.find_map(|it| listed(it, around)));
        found.filter(|_| !indexed::spares_word(command, word, around))
    })
}

/// Where sed's script stands: behind `-e`, or the first operand.
fn script_at(args: &[Word]) -> Option<usize> {
    match args.iter().position(|it| matches!(it.text.as_str(), "-e" | "-ne" | "-Ee" | "-ie")) {
        Some(at) => Some(at + 1),
        None => args.iter().position(|it| !it.text.starts_with('-')).filter(|_| safe::pattern_operands(args) > 0),
    }
}

/// The same for what `xargs` at the end of a pipe is handed by a command that is no `find` and no search.
pub(super) fn handed(command: &Command, around: &Around) -> Option<&'static str> {
    let commands = &around.script.commands;
    let at = commands.iter().position(|it| std::ptr::eq(it, command));
    let before = at.and_then(|at| commands.get(..at)).unwrap_or_default();
    // Its input may come from a file.
    let piped = !around.script.redirects.iter().any(|it| !it.writes);
    match before.iter().rev().find(|it| !filters(it)).filter(|_| piped) {
        Some(it) => listed(it, around).filter(|_| !indexed::spares_handed(command, before.len(), around)),
        None => around.any(),
    }
}

/// What passes on some of what it is given: with a file among its words it reads that.
fn filters(command: &Command) -> bool {
    let Some(name) = command.name().map(base_name) else { return false };
    // Numbers and single characters belong to options: `head -n 5`, `cut -d : -f 1`.
    let counts = |it: &&Word| {
        let text = it.text.as_str();
        !text.starts_with('-') && text.chars().nth(1).is_some() && !text.bytes().all(|it| it.is_ascii_digit())
    };
    let operands = command.args().iter().filter(counts).count();
    match name {
        "xargs" => true,
        "awk" | "sed" => operands < 2,
        "tr" => operands < 3,
        _ if FILTERS.contains(&name) => operands == 0,
        _ => GREPS.contains(&name) && !command.args().iter().any(safe::recurses) && operands < 2,
    }
}

fn listed(command: &Command, around: &Around) -> Option<&'static str> {
    let Some(name) = command.name().map(base_name) else { return around.any() };
    match name {
        _ if NO_NAMES.contains(&name) || filters(command) => None,
        "git" => by_git(git_words(command.args()), around),
        "ls" | "fd" | "fdfind" | "find" | "gfind" => around.listed_by(command),
        _ if RGS.contains(&name) || GREPS.contains(&name) => around.searched_by(command),
        _ => around.any(),
    }
}

/// By paths alone, whatever git has in its index.
fn by_git(words: &[Word], around: &Around) -> Option<&'static str> {
    let (sub, args) = words.split_first()?;
    if GIT_NO_NAMES.contains(&sub.text.as_str()) && !args.iter().any(|it| it.text.starts_with("--name")) {
        return None;
    }
    let dashes = args.iter().position(|it| it.text == "--").map(|at| at + 1);
    let paths: Vec<&Word> = match (sub.text.as_str(), dashes) {
        (_, Some(at)) => args.get(at..).unwrap_or_default().iter().collect(),
        ("ls-files", None) => args.iter().filter(|it| !it.text.starts_with('-')).collect(),
        _ => Vec::new(),
    };
    let plain =
        |it: &&Word| it.kind != WordKind::Expanded && !it.text.starts_with(':') && !it.text.contains(['[', '\\']);
    let Some(here) = around.here.filter(|_| !paths.is_empty() && paths.iter().all(plain)) else { return around.any() };
    let told = |file: &str| {
        paths.iter().any(|it| {
            let path = here.join(&it.text).to_string();
            // A star crosses folders, and a folder stands for what is in it.
            is_like(path.as_bytes(), file.as_bytes()) || is_like(format!("{path}/*").as_bytes(), file.as_bytes())
        })
    };
    around.met.iter().find(|it| told(&it.0.to_string())).and_then(|it| entry(*it))
}

/// Whether a word stands for names: `"$(ls)"`, `$(ls)x`, `.$(x)`; not `$((n+1))`, `"logs/$(date).log"`.
fn is_list(word: &Word) -> bool {
    let opens = word.text.find("$(").into_iter().chain(word.text.find('`')).min();
    let Some((before, rest)) = opens.and_then(|at| word.text.split_at_checked(at)) else { return false };
    if word.kind != WordKind::Expanded || rest.starts_with("$((") {
        return false;
    }
    // Outside of quotes it is many words.
    let one = before.matches('"').count() % 2 == 1;
    let before = before.replace('"', "");
    let before = before.rsplit('/').next().unwrap_or_default();
    let end = rest.rfind([')', '`']).map_or(rest.len(), |at| at + 1);
    let after = rest.get(end..).unwrap_or_default().replace('"', "");
    !one || may_be_secret(before, &after)
}

/// Whether a file of secrets may be called so, with something in between.
fn may_be_secret(before: &str, after: &str) -> bool {
    let name = |it: &&str| it.len() > before.len() + after.len() && it.starts_with(before) && it.ends_with(after);
    let begins = |it: &&str| !before.is_empty() && (it.starts_with(before) || before.starts_with(it));
    let ends = |it: &&str| !after.is_empty() && (it.ends_with(after) || after.ends_with(it));
    let any = before.is_empty() && after.is_empty() || after.starts_with('/');
    any || SECRETS.names.iter().any(name) || SECRETS.starts.iter().any(begins) || SECRETS.ends.iter().any(ends)
}
