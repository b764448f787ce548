//! What git shows of files that nobody names: `git diff`, `git show` and `git log -p` print whatever was changed.

use super::{
    readers,
    shell::{Command, Script, Word, base_name},
};
use crate::base::{
    guarded::SECRETS,
    path::AbsPath,
    tool::{Targets, Tracked},
};

/// Options of `git log` that have it print what was changed, by their beginnings.
const PATCHES: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-L",
    "-c",
    "-W",
    "-m",
    "--cc",
    "--patch",
    "--unified",
    "--word-diff",
    "--color-words",
    "--remerge",
    "--diff-m",
    "--binary",
    "--function",
    "--dd",
];
/// Options that leave the content out, unless there is one of the others.
const NAMES_ONLY: &[&str] = &[
    "--stat",
    "--name-only",
    "--name-status",
    "--numstat",
    "--shortstat",
    "--dirstat",
    "--summary",
    "--quiet",
    "-s",
    "--no-patch",
];

/// Whether something in the script may show what git keeps, or the names of that.
pub(super) fn may_show(script: &Script) -> bool {
    script.commands.iter().any(|it| shows(it).is_some() || readers::is_listed_by(it))
}

/// Whether it is one of git's commands that print content.
pub(super) fn prints(command: &Command) -> bool {
    shows(command).is_some()
}

/// The sub-command of git that prints content, with its words.
fn shows(command: &Command) -> Option<(&str, &[Word])> {
    if base_name(command.name()?) != "git" {
        return None;
    }
    let (sub, args) = super::danger::git_words(command.args()).split_first()?;
    let patches = patches(args);
    let quiet = options(args).any(|it| NAMES_ONLY.contains(&it.split('=').next().unwrap_or_default()));
    let prints = match sub.literal()? {
        "diff" | "show" => patches || !quiet,
        "grep" | "whatchanged" => true,
        "log" | "reflog" => patches,
        "stash" => patches && args.first().is_some_and(|it| it.text == "show"),
        _ => false,
    };
    prints.then_some((sub.text.as_str(), args))
}

fn options(args: &[Word]) -> impl Iterator<Item = &str> {
    args.iter().map(|it| it.text.as_str()).take_while(|it| *it != "--")
}

/// Whether `git log` prints with these words what was changed.
pub(super) fn patches(args: &[Word]) -> bool {
    options(args).any(|it| PATCHES.iter().any(|start| it.starts_with(start)))
}

/// Why git is asked about though it only looks.
pub(super) fn reason(command: &Command, here: Option<&AbsPath>, targets: &Targets) -> Option<String> {
    let is_git = command.name().is_some_and(|it| base_name(it) == "git");
    let runs = targets.git_runs.as_ref().filter(|_| is_git);
    let shown = || {
        secret(command, here, targets.tracked.as_deref().unwrap_or_default())
            .map(|it| format!("git may show what is secret: {it}"))
    };
    runs.map(|it| format!("git runs what this repository names: {it}")).or_else(shown)
}

/// The entry of the first file of secrets that a git command may print. `here`: where its words count from, if known.
fn secret(command: &Command, here: Option<&AbsPath>, tracked: &[Tracked]) -> Option<&'static str> {
    if tracked.is_empty() {
        return None;
    }
    let (sub, args) = shows(command)?;
    // What is compared with nothing else is the work tree: what was not changed there is not printed.
    let plain =
        |it: &Word| it.text.starts_with('-') && !["--ca", "--stag", "--me"].iter().any(|no| it.text.starts_with(no));
    let dashes = args.iter().position(|it| it.text == "--").unwrap_or(args.len());
    let (before, paths) = args.split_at(dashes);
    let changed_only = sub == "diff" && before.iter().all(plain);
    let paths = paths.get(1..).unwrap_or_default();
    let places: Vec<Option<AbsPath>> =
        paths.iter().map(|it| Some(here?.join(it.literal().filter(|it| !it.starts_with(':'))?))).collect();
    let named = |secret: &AbsPath| {
        places.is_empty() || places.iter().any(|it| it.as_ref().is_none_or(|it| secret.is_within(it)))
    };
    let printed = tracked.iter().filter(|it| (it.changed || !changed_only) && named(&it.path));
    printed.map(|it| &it.path).find_map(|it| SECRETS.find(it.as_path()))
}
