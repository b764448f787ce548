//! What each sub-command of git does to files, by its words.

use super::args::Args;
use crate::base::tool::{Change, Rework};

/// A sub-command, with those of its options that take a value, which may be the next word. Not those whose value can only
/// stick to them (`-S`, `--track`).
pub struct Sub {
    pub name: &'static str,
    pub read: fn(&Args) -> Option<Rework>,
    pub valued: &'static [&'static str],
}

const fn sub(name: &'static str, read: fn(&Args) -> Option<Rework>, valued: &'static [&'static str]) -> Sub {
    Sub { name, read, valued }
}

pub const SUBS: &[Sub] = &[
    sub("am", am, &["--directory", "--empty", "--exclude", "--include", "--patch-format", "--whitespace", "-C", "-p"]),
    sub(
        "apply",
        apply,
        &["--build-fake-ancestor", "--directory", "--exclude", "--include", "--whitespace", "-C", "-p"],
    ),
    sub("bisect", bisect, &[]),
    sub("checkout", checkout, &["--conflict", "--orphan", "--pathspec-from-file", "-B", "-b"]),
    sub("cherry-pick", picked, &["--cleanup", "--empty", "--mainline", "--strategy", "--strategy-option", "-X", "-m"]),
    sub("clean", clean, &["--exclude", "-e"]),
    sub("clone", cloned, CLONE),
    sub("merge", merge, MERGE),
    sub("mv", moved, &[]),
    sub("pull", pull, PULL),
    sub("rebase", rebase, REBASE),
    sub("reset", reset, &["--pathspec-from-file"]),
    sub("restore", restore, &["--conflict", "--pathspec-from-file", "--source", "-s"]),
    sub("revert", picked, &["--cleanup", "--mainline", "--strategy", "--strategy-option", "-X", "-m"]),
    sub("rm", moved, &["--pathspec-from-file"]),
    sub("sparse-checkout", sparse, &[]),
    sub("stash", stash, &["--message", "--pathspec-from-file", "-m"]),
    sub("submodule", submodule, &[]),
    sub("switch", switch, &["--conflict", "--create", "--force-create", "--orphan", "-C", "-c"]),
    sub("worktree", worktree, &["--expire", "--reason", "-B", "-b"]),
];
/// Other ones of git, sorted: what it does not know may be an alias.
pub const KNOWN: &[&str] = &[
    "add",
    "annotate",
    "archive",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "commit",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "gui",
    "hash-object",
    "help",
    "init",
    "interpret-trailers",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "merge-base",
    "merge-file",
    "merge-tree",
    "name-rev",
    "notes",
    "prune",
    "push",
    "range-diff",
    "read-tree",
    "reflog",
    "remote",
    "repack",
    "replace",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "write-tree",
];
const CLONE: &[&str] = &[
    "--branch",
    "--bundle-uri",
    "--config",
    "--depth",
    "--filter",
    "--jobs",
    "--origin",
    "--ref-format",
    "--reference",
    "--reference-if-able",
    "--revision",
    "--separate-git-dir",
    "--server-option",
    "--shallow-exclude",
    "--shallow-since",
    "--template",
    "--upload-pack",
    "-b",
    "-c",
    "-j",
    "-o",
    "-u",
];
const MERGE: &[&str] =
    &["--cleanup", "--file", "--into-name", "--message", "--strategy", "--strategy-option", "-F", "-X", "-m", "-s"];
const PULL: &[&str] = &[
    "--cleanup",
    "--deepen",
    "--depth",
    "--filter",
    "--jobs",
    "--negotiation-tip",
    "--refmap",
    "--server-option",
    "--shallow-exclude",
    "--shallow-since",
    "--strategy",
    "--strategy-option",
    "--upload-pack",
    "-X",
    "-j",
    "-o",
    "-s",
];
const REBASE: &[&str] =
    &["--empty", "--exec", "--onto", "--strategy", "--strategy-option", "--whitespace", "-C", "-X", "-s", "-x"];

pub fn rework(changes: Vec<Change>) -> Rework {
    Rework { changes, ..Rework::default() }
}

/// A pattern may mean any of them.
fn about(paths: &[&str], changes: Vec<Change>) -> Rework {
    let plain = paths.iter().all(|it| !it.contains(['*', '?', '[', ':', '\\']));
    let paths = if plain { paths } else { &[] };
    Rework { paths: paths.iter().map(|it| (*it).to_owned()).collect(), changes, ..Rework::default() }
}

/// `-` is the branch before.
fn commit(word: &str) -> String {
    if word == "-" { "@{-1}".to_owned() } else { word.to_owned() }
}

fn some(it: Rework) -> Option<Rework> {
    (!it.changes.is_empty()).then_some(it)
}

fn checkout(args: &Args) -> Option<Rework> {
    let new = args.options.iter().any(|it| it.starts_with("-b") || it.starts_with("-B") || *it == "--orphan");
    let forced = args.has(&["--force"]) || args.has_letter('f');
    let dirty = (forced || !args.paths.is_empty()).then_some(Change::Dirty);
    let to = |it: &&str| match new || *it == "-" || !args.paths.is_empty() {
        true => Change::To(commit(it)),
        false => Change::ToOrPath((*it).to_owned()),
    };
    some(about(&args.paths, args.operands.iter().map(to).chain(dirty).collect()))
}

fn switch(args: &Args) -> Option<Rework> {
    let forced = args.has(&["--force", "--discard-changes"]) || args.has_letter('f');
    let dirty = forced.then_some(Change::Dirty);
    some(rework(args.operands.iter().map(|it| Change::To(commit(it))).chain(dirty).collect()))
}

fn restore(args: &Args) -> Option<Rework> {
    let staged = args.has(&["--staged"]) || args.has_letter('S');
    let tree = args.has(&["--worktree"]) || args.has_letter('W');
    if staged && !tree {
        return None;
    }
    let source = ["--source", "-s"].into_iter().filter_map(|it| args.value(it));
    let changes = source.map(|it| Change::To(it.to_owned())).chain([Change::Dirty]).collect();
    Some(about(&[&args.operands[..], &args.paths].concat(), changes))
}

fn reset(args: &Args) -> Option<Rework> {
    if !args.has(&["--hard", "--merge", "--keep"]) {
        return None;
    }
    let to = args.operands.iter().map(|it| Change::To(commit(it)));
    Some(rework(to.chain([Change::Dirty]).collect()))
}

fn stash(args: &Args) -> Option<Rework> {
    let of = |it: Option<&&str>| match it {
        Some(it) if it.bytes().all(|it| it.is_ascii_digit()) => Change::Stash(format!("stash@{{{it}}}")),
        Some(it) => Change::Stash((*it).to_owned()),
        None => Change::Stash("stash@{0}".to_owned()),
    };
    let rest = args.operands.get(1..).unwrap_or_default();
    match args.operands.first().copied() {
        Some("pop" | "apply") => Some(rework(vec![of(rest.first())])),
        Some("branch") => Some(rework(vec![of(rest.get(1)), Change::To("stash@{0}^1".to_owned())])),
        None | Some("push" | "save") => {
            let new = args.has(&["--include-untracked", "--all"]) || args.has_letter('u') || args.has_letter('a');
            let said = if args.operands.first() == Some(&"save") { &[] } else { rest };
            let changes = [Some(Change::Dirty), new.then_some(Change::Untracked)].into_iter().flatten();
            Some(about(&[said, &args.paths[..]].concat(), changes.collect()))
        }
        Some(_) => None,
    }
}

/// What was changed and is in no commit is put away, and taken out again behind it.
fn stashes(args: &Args, settings: &[&str]) -> Vec<Change> {
    let said = args.options.iter().rev().find(|it| matches!(**it, "--autostash" | "--no-autostash"));
    match said {
        Some(&"--autostash") => vec![Change::Dirty],
        Some(_) => Vec::new(),
        None => settings.iter().map(|it| Change::DirtyIf((*it).to_owned())).collect(),
    }
}

fn merge(args: &Args) -> Option<Rework> {
    if let Some(it) = args.resumes() {
        return some(it);
    }
    let dirty = stashes(args, &["merge.autoStash"]);
    let from = if args.operands.is_empty() { &["@{upstream}"] } else { &args.operands[..] };
    Some(rework(from.iter().map(|it| Change::Merged(commit(it))).chain(dirty).collect()))
}

/// What comes is known when it was fetched.
fn pull(args: &Args) -> Option<Rework> {
    if args.has(&["--dry-run"]) {
        return None;
    }
    let rebases = args.has_letter('r') || args.options.iter().any(|it| it.starts_with("--rebase"));
    let dirty = if rebases { vec![Change::Dirty] } else { stashes(args, &["merge.autoStash", "rebase.autoStash"]) };
    let from = [Change::Merged("@{upstream}".to_owned()), Change::Unknown];
    Some(rework(from.into_iter().chain(dirty).collect()))
}

fn rebase(args: &Args) -> Option<Rework> {
    if let Some(it) = args.resumes() {
        return some(it);
    }
    let upstream = args.operands.first().copied().unwrap_or("@{upstream}");
    let others = args.operands.iter().skip(1).copied().chain(args.value("--onto"));
    let to = others.chain([upstream]).map(|it| Change::To(commit(it)));
    let of = args.operands.get(1).copied().unwrap_or("HEAD");
    let own = Change::Commits(vec![of.to_owned(), format!("^{}", commit(upstream))]);
    let dirty = stashes(args, &["rebase.autoStash"]);
    Some(rework(to.chain([own]).chain(dirty).collect()))
}

fn picked(args: &Args) -> Option<Rework> {
    if let Some(it) = args.resumes() {
        return some(it);
    }
    let commits: Vec<String> = args.operands.iter().map(|it| commit(it)).collect();
    (!commits.is_empty()).then(|| rework(vec![Change::Commits(commits)]))
}

fn am(args: &Args) -> Option<Rework> {
    args.resumes().map_or_else(|| Some(patched(args)), some)
}

fn apply(args: &Args) -> Option<Rework> {
    let tells = args.has(&["--cached", "--check", "--stat", "--numstat", "--summary"]);
    (!tells || args.has(&["--apply"])).then(|| patched(args))
}

fn patched(args: &Args) -> Rework {
    let shifted = args.options.iter().any(|it| it.starts_with("--directory"));
    let files = args.operands.iter().chain(&args.paths).filter(|it| **it != "-");
    let mut changes: Vec<Change> = files.map(|it| Change::Patch((*it).to_owned())).collect();
    if changes.is_empty() || shifted {
        changes.push(Change::Unknown);
    }
    rework(changes)
}

fn bisect(args: &Args) -> Option<Rework> {
    let tells = matches!(args.operands.first(), None | Some(&("log" | "view" | "visualize" | "terms" | "help")));
    (!tells).then(|| rework(vec![Change::Unknown]))
}

fn moved(args: &Args) -> Option<Rework> {
    let only_known = args.has(&["--cached", "--dry-run"]) || args.has_letter('n');
    let paths = [&args.operands[..], &args.paths].concat();
    (!only_known && !paths.is_empty()).then(|| about(&paths, vec![Change::Moved]))
}

fn worktree(args: &Args) -> Option<Rework> {
    let (verb, rest) = args.operands.split_first()?;
    let rest: Vec<String> = rest.iter().chain(&args.paths).map(|it| (*it).to_owned()).collect();
    let change = match *verb {
        "add" => Change::Tree(rest.first()?.clone()),
        "remove" if rest.len() == 1 => Change::Trees(rest),
        "move" if rest.len() == 2 => Change::Trees(rest),
        "prune" if !args.has(&["-n", "--dry-run"]) => Change::Trees(Vec::new()),
        _ => return None,
    };
    Some(rework(vec![change]))
}

fn cloned(args: &Args) -> Option<Rework> {
    let mut words = args.operands.iter().chain(&args.paths);
    let from = words.next()?.trim_end_matches('/').trim_end_matches("/.git");
    // Its name, as git makes it of where it comes from.
    let name = from.rsplit(['/', ':']).next()?.trim_end_matches(".git");
    let is_bare = args.has(&["--bare", "--mirror"]);
    let own = if is_bare { format!("{name}.git") } else { name.to_owned() };
    Some(rework(vec![Change::Clone(words.next().map_or(own, |it| (*it).to_owned()))]))
}

fn clean(args: &Args) -> Option<Rework> {
    let forced = args.has(&["--force"]) || args.has_letter('f');
    if !forced || args.has(&["--dry-run"]) || args.has_letter('n') {
        return None;
    }
    let more = args.has_letter('x') || args.has_letter('X');
    let mut paths = [&args.operands[..], &args.paths].concat();
    // Not above where it is.
    if paths.is_empty() {
        paths.push(".");
    }
    Some(about(&paths, vec![if more { Change::Ignored } else { Change::Untracked }]))
}

/// Which files these are, its patterns say.
fn sparse(args: &Args) -> Option<Rework> {
    let changes = matches!(args.operands.first()?, &("add" | "disable" | "init" | "reapply" | "set"));
    changes.then(|| rework(vec![Change::Unknown]))
}

fn submodule(args: &Args) -> Option<Rework> {
    let (_, rest) = args.operands.split_first().filter(|it| *it.0 == "deinit")?;
    let paths = [rest, &args.paths[..]].concat();
    Some(about(&paths, vec![Change::Moved]))
}
