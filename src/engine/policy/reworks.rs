//! What commands have git do to the files of a work tree: where a sandbox holds one of them, git would stop half-way, and
//! what is run again would meet the half that is done. So it is asked about before. Read from the words alone: which files
//! that comes to, the world looks up.

mod args;
mod place;
mod reads;

pub(super) use args::Args;
use reads::{SUBS, Sub, rework};

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
const PATCHED_TWICE: &str = "It is not offered to run it again with more rights: what is patched already would be patched \
                             twice. Look at what it printed and with `git status`, take that back, and then apply it with \
                             `git apply`, which changes all or nothing: the user is asked before.";

/// What a script has git do to files.
pub(super) fn all(script: &Script) -> Vec<Rework> {
    let mut res: Vec<Rework> = script.commands.iter().filter_map(|it| of(it, script)).take(MAX).collect();
    // What is in brackets goes there alone: the others may be where the script began.
    let elsewhere = res.iter().filter(|it| script.going.nested && !it.dir.is_empty());
    let here: Vec<Rework> = elsewhere.map(|it| Rework { dir: String::new(), ..it.clone() }).collect();
    res.extend(here);
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
    let Reworked { places, perhaps, folder, top, closed } = query.targets.beyond.reworked.as_ref()?;
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
    let outside = top.as_ref().map(|it| match closed {
        false => format!("git {change} files outside of the workspace, in {it}"),
        true => format!(
            "git {change} files outside of the workspace, in {it}, which is too wide to be opened: it would stop half-way, \
             so better run it in a terminal of your own"
        ),
    });
    let words: Vec<String> = changed.into_iter().chain(made).chain(outside).collect();
    let signs = Signs::new(["git", sub].map(str::to_owned).into_iter());
    (!words.is_empty()).then(|| Held {
        places: places.iter().chain(folder).cloned().collect(),
        folder: folder.as_ref().or(top.as_ref().filter(|_| !closed)).cloned(),
        signs,
        unconfined: false,
        words: words.join("; "),
    })
}

/// Why a command that ran into the sandbox is better not run again as it is; `printed`: what it said.
pub fn half_done(call: &ToolCall, denial: &Denial, printed: &str) -> Option<&'static str> {
    let text = call.args.get("command").and_then(|it| it.as_str());
    let text = text.filter(|_| current_name(&call.name) == "run_shell_command")?;
    let script = Script::parse(text);
    if script.as_ref().is_ok_and(|it| it.commands.iter().any(patches)) && *denial != Denial::Network {
        return Some(PATCHED_TWICE);
    }
    let changes: Vec<Change> = script.ok().iter().flat_map(all).flat_map(|it| it.changes).collect();
    if matches!(denial, Denial::Config { .. }) {
        let printed = printed.to_lowercase();
        let began = changes.iter().any(|it| !matches!(it, Change::Clone(_) | Change::Alias { .. }))
            || HALF_WAY.iter().any(|it| printed.contains(it));
        return began.then_some(NOT_AGAIN);
    }
    // Its branch is there by then.
    if *denial != Denial::Network && changes.iter().any(|it| matches!(it, Change::Tree(_) | Change::Trees(_))) {
        return Some(NOT_AGAIN);
    }
    // What a rebase put elsewhere is there.
    let twice = |it: &Change| match it {
        Change::Commits(words) => !words.iter().any(|it| it.starts_with('^')),
        it => matches!(it, Change::Stash(_) | Change::Patch(_)),
    };
    changes.iter().any(twice).then_some(DONE_TWICE)
}

fn patches(command: &Command) -> bool {
    let is_one = command.name().is_some_and(|it| base_name(it) == "patch");
    is_one && !command.args().iter().any(|it| matches!(it.text.as_str(), "--dry-run" | "-C"))
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

/// What a command has git do to files; `None`: nothing.
fn of(command: &Command, script: &Script) -> Option<Rework> {
    let (name, args) = words(command)?;
    let mut res = match SUBS.iter().find(|it| it.name == name) {
        Some(sub) => read(sub, args, command)?,
        None if reads::KNOWN.binary_search(&name).is_ok() => return None,
        None => {
            let means = |sub: &Sub| Some((sub.name, read(sub, args, command)?));
            rework(vec![Change::Alias { name: name.to_owned(), means: SUBS.iter().filter_map(means).collect() }])
        }
    };
    match place::of(command, script) {
        Some(it) if it.is_top => Some(Rework { dir: it.dir, paths: Vec::new(), ..res }),
        Some(it) => {
            res.dir = it.dir;
            Some(res)
        }
        // Most likely it is the repository of the session.
        None => Some(rework(vec![Change::Unknown])),
    }
}

fn read(sub: &Sub, args: &[Word], command: &Command) -> Option<Rework> {
    let args = Args::read(args, sub.valued);
    if args.has(&["-h", "--help"]) {
        return None;
    }
    let may = args.unknown && matches!(sub.name, "checkout" | "cherry-pick" | "revert" | "switch");
    let mut res = (sub.read)(&args).or_else(|| may.then(Rework::default))?;
    if args.unknown && !res.changes.contains(&Change::Unknown) {
        res.changes.push(Change::Unknown);
    }
    // What the line itself sets.
    let off = |it: &Change| matches!(it, Change::DirtyIf(name) if setting(command, name) == Some(false));
    res.changes.retain(|it| !off(it));
    let is_on = |it: &Change| matches!(it, Change::DirtyIf(name) if setting(command, name) == Some(true));
    res.changes.iter_mut().filter(|it| is_on(it)).for_each(|it| *it = Change::Dirty);
    Some(res)
}

/// What `git -c name=value` says of a setting that is on or off.
fn setting(command: &Command, name: &str) -> Option<bool> {
    let is_named = |it: &str| it.split('=').next().is_some_and(|it| it.eq_ignore_ascii_case(name));
    let words = globals(command).iter().map(|it| it.text.as_str());
    let set = words.map(|it| it.strip_prefix("-c").unwrap_or(it)).rfind(|it| is_named(it))?;
    let value = set.split_once('=').map_or("true", |it| it.1);
    Some(!["", "0", "false", "no", "off"].iter().any(|it| value.eq_ignore_ascii_case(it)))
}
