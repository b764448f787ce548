//! Commands that only say what they would do, or how they are called.

use crate::engine::policy::shell::Word;

/// Who knows the option, and does nothing then.
const KNOW: &[&str] = &["bun", "cargo", "git", "helm", "k", "kubectl", "npm", "oc", "pnpm", "rsync", "yarn"];
const TRY: &[&str] = &["--dry-run", "--dry-run=client", "--dry-run=server"];

pub(super) fn only_tries(program: &str, args: &[Word]) -> bool {
    let options = args.split(|it| it.text == "--").next().unwrap_or_default();
    let said = options.iter().position(|it| it.literal().is_some_and(|it| TRY.contains(&it)));
    // The last one holds: `--dry-run --no-dry-run`, `--dry-run false`.
    let taken_back = |it: &Word| {
        let text = it.text.as_str();
        it.literal().is_none() || matches!(text, "false" | "none" | "--no-dry-run") || text.starts_with("--dry-run=")
    };
    said.is_some_and(|at| KNOW.contains(&program) && !options.iter().skip(at + 1).any(taken_back))
}

/// `git rebase --help`
pub(super) fn only_helps(args: &[Word]) -> bool {
    let plain = |it: &Word| it.literal().is_some_and(|it| it.bytes().all(|it| it.is_ascii_lowercase()));
    let helps = |it: &Word| matches!(it.text.as_str(), "--help" | "-help");
    args.split_last().is_some_and(|(last, names)| names.len() < 3 && names.iter().all(plain) && helps(last))
}
