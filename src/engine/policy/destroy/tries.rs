//! Commands that only say what they would do, or how they are called.

use crate::engine::policy::shell::Word;

/// Who knows the option, and does nothing then. Not yarn, which publishes all the same.
const KNOW: &[(&str, &[&str])] = &[
    ("cargo", &["publish"]),
    ("git", &["fetch", "push", "rm"]),
    ("helm", &["uninstall"]),
    ("kubectl", &["apply", "delete", "drain", "scale"]),
    ("npm", &["publish", "unpublish"]),
    ("oc", &["delete"]),
    ("pnpm", &["publish"]),
    ("rsync", &[]),
    ("semantic-release", &[]),
];
const TRY: &[&str] = &["--dry-run", "--dry-run=client", "--dry-run=server"];
/// Options that take no value: behind others it might be theirs.
const PLAIN: &[&str] =
    &["--access=public", "--all", "--delete", "--force", "--tags", "-a", "-av", "-avz", "-f", "-n", "-u", "-v"];
/// To these it is one more name.
const NAMES: &[&str] = &["dropdb", "dropuser", "mysqladmin", "redis-cli", "valkey-cli"];

pub(super) fn only_tries(program: &str, args: &[Word]) -> bool {
    let options = args.split(|it| it.text == "--").next().unwrap_or_default();
    let Some(at) = options.iter().position(|it| it.literal().is_some_and(|it| TRY.contains(&it))) else { return false };
    let knows = |(name, subs): &(&str, &[&str])| {
        let sub = options.first().map_or("", |it| it.text.as_str());
        *name == program && (subs.is_empty() || subs.contains(&sub))
    };
    let before = at.checked_sub(1).and_then(|it| options.get(it)).map_or("", |it| it.text.as_str());
    let valued = before.starts_with('-') && !PLAIN.contains(&before);
    // The last one holds: `--dry-run --no-dry-run`, `--dry-run false`.
    let taken_back = |it: &Word| {
        let text = it.text.as_str();
        let again = ["--no-d", "--dry-run="].iter().any(|start| text.starts_with(start));
        it.literal().is_none() || matches!(text, "false" | "none") || again
    };
    KNOW.iter().any(knows) && !valued && !options.iter().skip(at + 1).any(taken_back)
}

/// What nobody knows, where its last word says that it only tells of itself, or of what it would do:
/// `./cli.py user remove bob --dry-run`.
pub(super) fn says_so(args: &[Word]) -> bool {
    const LAST: &[&str] = &["--check", "--dry-run", "--help"];
    let plain = |it: &Word| it.literal().is_some_and(|it| !it.starts_with('-') && it != "help");
    let only = |it: &Word| it.literal().is_some_and(|it| LAST.contains(&it));
    let mut options = args.iter().filter(|it| !plain(it));
    options.next().is_some_and(only) && options.next().is_none()
}

/// `git rebase --help`
pub(super) fn only_helps(program: &str, args: &[Word]) -> bool {
    let plain = |it: &Word| it.literal().is_some_and(|it| it.bytes().all(|it| it.is_ascii_lowercase()));
    let helps = |it: &Word| it.text == "--help" || it.text == "-help" && matches!(program, "terraform" | "tofu");
    let asks = args.split_last().is_some_and(|(last, names)| names.len() < 3 && names.iter().all(plain) && helps(last));
    asks && !NAMES.contains(&program)
}
