//! What commands have git do to the files of a work tree: where a sandbox holds one of them, git would stop half-way, and
//! what is run again would meet the half that is done. So it is asked about before. Read from the words alone: which files
//! that comes to, the world looks up.

use super::{
    Query,
    danger::git_words,
    destroy::Signs,
    git_settings::Held,
    names::current_name,
    places,
    shell::{Command, Script, Word, WordKind, base_name},
};
use crate::base::{
    sandbox::Denial,
    tool::{Change, Rework, Reworked, ToolCall},
};

/// More of one script are not looked up.
const MAX: usize = 8;
/// Shown in a question.
const MAX_SHOWN: usize = 8;

/// Options that take the next word, of any of these commands: where one of them takes none, a word less is looked at.
const VALUED: &[&str] = &[
    "--author",
    "--cleanup",
    "--conflict",
    "--create",
    "--date",
    "--depth",
    "--empty",
    "--exclude",
    "--exec",
    "--force-create",
    "--gpg-sign",
    "--include",
    "--into-name",
    "--mainline",
    "--message",
    "--onto",
    "--orphan",
    "--pathspec-from-file",
    "--reason",
    "--source",
    "--strategy",
    "--strategy-option",
    "--upload-pack",
    "-B",
    "-C",
    "-X",
    "-b",
    "-c",
    "-m",
    "-x",
];
/// What git says where it began to change files and could not go on.
const HALF_WAY: &[&str] = &[
    "unable to unlink old '",
    "unable to create file ",
    "could not reset --hard",
    "could not detach head",
    "but update of config-file failed",
];
const NOT_AGAIN: &str = "It is not offered to run it again: git had begun, and would meet what is half done. Look with \
                         `git status` and `git stash list` first. `git merge --abort`, `git rebase --abort`, \
                         `git cherry-pick --abort`, `git revert --abort` or `git am --abort` end what is under way; what \
                         was put away comes back with `git stash pop`; where nothing is under way, files that git changed \
                         already are in `git status`, new ones among the untracked. Then run the git command by itself, \
                         not in a script: the user is asked before it runs, and a yes is for these files, too.";
const DONE_TWICE: &str = "It is not offered to run it again with more rights: what its git commands did would be done \
                          twice. Look with `git status`, and run only what is left to do.";

/// What a script has git do to files.
pub(super) fn all(script: &Script) -> Vec<Rework> {
    let mut res: Vec<Rework> = script.commands.iter().filter_map(|it| of(it, script)).take(MAX).collect();
    if res.is_empty() {
        return res;
    }
    // What is committed before is no more as it was found.
    let subs = || script.commands.iter().filter_map(|it| Some(words(it)?.0));
    let commits = subs().any(|it| it == "commit");
    let fetches = subs().any(|it| matches!(it, "fetch" | "remote"));
    for it in res.iter_mut().filter(|_| commits || fetches) {
        let moved = it.changes.iter().any(|it| matches!(it, Change::To(_) | Change::ToOrPath(_) | Change::Merged(_)));
        it.changes.extend((commits && moved).then_some(Change::Dirty));
        it.changes.extend((fetches && moved).then_some(Change::Unknown));
    }
    res
}

/// What of it a sandbox holds, as the world found it.
pub(super) fn held(command: &Command, query: &Query, script: &Script) -> Option<Held> {
    let Reworked { places, perhaps, folder } = query.targets.reworked.as_ref()?;
    // Where nobody can be asked, what will most likely go well may try.
    if *perhaps && !query.interactive {
        return None;
    }
    of(command, script)?;
    let (sub, _) = words(command)?;
    let root = query.roots.first();
    let mut shown: Vec<String> =
        places.iter().map(|it| root.map_or_else(|| it.to_string(), |root| it.shown_from(root))).collect();
    if shown.len() > MAX_SHOWN {
        shown.truncate(MAX_SHOWN);
        shown.push("…".to_owned());
    }
    let change = if *perhaps { "may change" } else { "would change" };
    let changed = (!shown.is_empty()).then(|| format!("git {change} what the sandbox keeps: {}", shown.join(", ")));
    let made = folder.as_ref().map(|it| format!("git would write outside of the workspace, below {it}"));
    let words: Vec<String> = changed.into_iter().chain(made).collect();
    let signs = Signs::new(["git", sub].map(str::to_owned).into_iter());
    (!words.is_empty()).then(|| Held {
        places: places.iter().chain(folder).cloned().collect(),
        folder: folder.clone(),
        signs,
        words: words.join("; "),
    })
}

/// Why a command that ran into the sandbox is better not run again as it is; `printed`: what it said.
pub fn half_done(call: &ToolCall, denial: &Denial, printed: &str) -> Option<&'static str> {
    let text = call.args.get("command").and_then(|it| it.as_str());
    let text = text.filter(|_| current_name(&call.name) == "run_shell_command")?;
    let changes: Vec<Change> = Script::parse(text).ok().iter().flat_map(all).flat_map(|it| it.changes).collect();
    if matches!(denial, Denial::Config { .. }) {
        let printed = printed.to_lowercase();
        let began = !changes.is_empty() || HALF_WAY.iter().any(|it| printed.contains(it));
        return began.then_some(NOT_AGAIN);
    }
    // Its branch is there by then.
    if *denial != Denial::Network && changes.iter().any(|it| matches!(it, Change::Tree(_))) {
        return Some(NOT_AGAIN);
    }
    // What a rebase put elsewhere is there.
    let twice = |it: &Change| match it {
        Change::Commits(words) => !words.iter().any(|it| it.starts_with('^')),
        it => matches!(it, Change::Stash(_) | Change::Patch(_)),
    };
    changes.iter().any(twice).then_some(DONE_TWICE)
}

/// git's own options, before the sub-command.
pub(super) fn globals(command: &Command) -> &[Word] {
    let args = command.args();
    args.get(..args.len() - git_words(args).len()).unwrap_or_default()
}

/// Whether such an option leads to another repository.
pub(super) fn leads(option: &Word) -> bool {
    ["-C", "--git-dir", "--work-tree"].iter().any(|start| option.text.starts_with(start))
}

/// Where git works, from where the call runs; `None`: nobody knows.
pub(super) fn folder(command: &Command, script: &Script) -> Option<String> {
    let apart = |it: &Word| it.text.starts_with("--git-dir") || it.text.starts_with("--work-tree");
    if globals(command).iter().any(apart) || places::set_elsewhere(script) {
        return None;
    }
    let moves = script.commands.iter().any(|it| matches!(it.name(), Some("cd" | "pushd" | "popd")));
    let here = Word { text: ".".to_owned(), kind: WordKind::Literal };
    let mut res = match moves {
        true => places::from_start(&here, script)?.literal()?.trim_end_matches("/.").to_owned(),
        false => String::new(),
    };
    for it in places::folders(command) {
        let to = it.literal()?;
        let beside = res.is_empty() || to.starts_with('/');
        res = if beside { to.to_owned() } else { format!("{res}/{to}") };
    }
    Some(res)
}

/// The sub-command, and what stands behind it.
fn words(command: &Command) -> Option<(&str, &[Word])> {
    if base_name(command.name()?) != "git" {
        return None;
    }
    let (sub, args) = git_words(command.args()).split_first()?;
    Some((sub.literal()?, args))
}

/// What a command has git do to files; `None`: nothing, or nobody knows where.
fn of(command: &Command, script: &Script) -> Option<Rework> {
    let (sub, args) = words(command)?;
    let read = READERS.iter().find(|it| it.0 == sub)?.1;
    let args = Args::read(args);
    if args.has(&["-h", "--help"]) {
        return None;
    }
    let may = args.unknown && matches!(sub, "checkout" | "cherry-pick" | "revert" | "switch");
    let mut res = read(&args).or_else(|| may.then(Rework::default))?;
    if args.unknown && !res.changes.contains(&Change::Unknown) {
        res.changes.push(Change::Unknown);
    }
    res.dir = folder(command, script)?;
    Some(res)
}

type Reader = fn(&Args) -> Option<Rework>;

const READERS: &[(&str, Reader)] = &[
    ("am", am),
    ("apply", apply),
    ("bisect", bisect),
    ("checkout", checkout),
    ("cherry-pick", picked),
    ("merge", merge),
    ("mv", moved),
    ("pull", pull),
    ("rebase", rebase),
    ("reset", reset),
    ("restore", restore),
    ("revert", picked),
    ("rm", moved),
    ("stash", stash),
    ("switch", switch),
    ("worktree", worktree),
];

/// The words behind a sub-command.
#[derive(Default)]
struct Args<'a> {
    options: Vec<&'a str>,
    /// With their options, those that take the next word.
    values: Vec<(&'a str, &'a str)>,
    operands: Vec<&'a str>,
    /// Those behind `--`.
    paths: Vec<&'a str>,
    /// What some of them are is only known when it runs.
    unknown: bool,
}

/// Also the last of several short ones: `-qb name`.
fn takes_next(option: &str) -> bool {
    let mut letters = option.strip_prefix('-').unwrap_or_default().chars();
    let last = letters.next_back().filter(|it| "BCXbcmx".contains(*it));
    let others = letters.as_str();
    let are_letters = !others.is_empty() && others.bytes().all(|it| it.is_ascii_lowercase());
    VALUED.contains(&option) || last.is_some() && are_letters
}

impl<'a> Args<'a> {
    fn read(words: &'a [Word]) -> Self {
        let (mut res, mut words) = (Self::default(), words.iter());
        while let Some(word) = words.next() {
            let Some(text) = word.literal() else {
                res.unknown = true;
                continue;
            };
            if text == "--" {
                break;
            }
            match text.starts_with('-') && text.len() > 1 {
                true if takes_next(text) => {
                    res.options.push(text);
                    res.values.extend(words.next().and_then(Word::literal).map(|it| (text, it)));
                }
                true => res.options.push(text),
                false => res.operands.push(text),
            }
        }
        for word in words {
            match word.literal() {
                Some(it) => res.paths.push(it),
                None => res.unknown = true,
            }
        }
        res
    }

    fn has(&self, options: &[&str]) -> bool {
        self.options.iter().any(|it| options.contains(it))
    }

    /// Whether a short option is among those that stand together: `-fq`.
    fn has_letter(&self, letter: char) -> bool {
        self.options.iter().any(|it| !it.starts_with("--") && it.contains(letter))
    }

    /// What stands behind an option or sticks to it.
    fn value(&self, long: &str) -> Option<&'a str> {
        let glued = || self.options.iter().find_map(|it| it.strip_prefix(long)?.strip_prefix('='));
        self.values.iter().find(|it| it.0 == long).map(|it| it.1).or_else(glued)
    }

    /// `--continue` and its like: what is under way goes on, or back.
    fn resumes(&self) -> Option<Rework> {
        let ends = self.has(&["--quit", "--show-current-patch", "--edit-todo"]);
        let resumes = ends || self.has(&["--abort", "--continue", "--skip"]);
        let origin = || vec!["ORIG_HEAD".to_owned(), "^HEAD".to_owned()];
        let changes = || vec![Change::Dirty, Change::To("ORIG_HEAD".to_owned()), Change::Commits(origin())];
        resumes.then(|| rework(if ends { Vec::new() } else { changes() }))
    }
}

fn rework(changes: Vec<Change>) -> Rework {
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
    let short = args.has(&["-s"]);
    let (named, paths) = args.operands.split_at(usize::from(short).min(args.operands.len()));
    let source = args.value("--source").into_iter().chain(named.iter().copied());
    let changes = source.map(|it| Change::To(it.to_owned())).chain([Change::Dirty]).collect();
    Some(about(&[paths, &args.paths[..]].concat(), changes))
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

fn merge(args: &Args) -> Option<Rework> {
    if let Some(it) = args.resumes() {
        return some(it);
    }
    let dirty = args.has(&["--autostash"]).then_some(Change::Dirty);
    let from = if args.operands.is_empty() { &["@{upstream}"] } else { &args.operands[..] };
    Some(rework(from.iter().map(|it| Change::Merged(commit(it))).chain(dirty).collect()))
}

/// What comes is known when it was fetched.
fn pull(args: &Args) -> Option<Rework> {
    if args.has(&["--dry-run"]) {
        return None;
    }
    let rebases =
        args.has_letter('r') || args.options.iter().any(|it| it.starts_with("--rebase") || *it == "--autostash");
    let dirty = rebases.then_some(Change::Dirty);
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
    let dirty = args.has(&["--autostash"]).then_some(Change::Dirty);
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
    let (_, rest) = args.operands.split_first().filter(|it| *it.0 == "add")?;
    let path = rest.first().or_else(|| args.paths.first())?;
    Some(rework(vec![Change::Tree((*path).to_owned())]))
}
