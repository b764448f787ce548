//! Commands that surely need the network behind others that change something: where a sandbox has none, the line would
//! stop half-way, and who runs it again does its first half twice. So it is asked about before. Read from the words; where
//! git's remotes lead, the world looks up.

use super::{
    Query, Verdict,
    danger::git_words,
    destroy, reworks,
    reworks::Args,
    safe,
    shell::{Command, Script, Word, base_name},
};
use crate::base::{
    address::is_far,
    log::{Decision, Grant},
    tool::{Far, Reach, Remote, ToolCall, Which},
};

/// More of one script are not looked up.
const MAX: usize = 8;
/// Longer ones are not looked through.
const MAX_COMMANDS: usize = 256;

/// When a command that begins like its row needs the network.
enum When {
    Always,
    /// By what stands behind its sub-command.
    Holds(fn(&[Word]) -> bool),
}
use When::{Always, Holds};

/// A program, and its sub-commands; none: it has none.
struct Row(&'static str, &'static [&'static str], When);

const GH: &[&str] = &[
    "api",
    "cache",
    "codespace",
    "cs",
    "gist",
    "issue",
    "label",
    "pr",
    "project",
    "release",
    "repo",
    "ruleset",
    "run",
    "search",
    "secret",
    "status",
    "variable",
    "workflow",
];
const GLAB: &[&str] =
    &["api", "ci", "incident", "issue", "job", "label", "mr", "release", "repo", "snippet", "variable"];

/// Where it is not sure, it is not here. What publishes is in the table of that (see `destroy`), and what runs in
/// containers reaches the network by a socket.
const ROWS: &[Row] = &[
    Row("cargo", &["install"], Holds(installs_crate)),
    Row("curl", &[], Holds(names_address)),
    Row("gh", GH, Always),
    Row("glab", GLAB, Always),
    Row("npm", &["add", "i", "install"], Holds(names_package)),
    Row("pip", &["install"], Holds(names_package)),
    Row("pip3", &["install"], Holds(names_package)),
    Row("pnpm", &["add", "i", "install"], Holds(names_package)),
    Row("rsync", &[], Holds(copies_far)),
    Row("scp", &[], Holds(copies_far)),
    Row("sftp", &[], Holds(logs_in)),
    Row("ssh", &[], Holds(logs_in)),
    Row("wget", &[], Holds(names_address)),
    Row("yarn", &["add"], Holds(names_package)),
];

/// With one of these it only says what it would do, or takes what is there.
const QUIET: &[&str] =
    &["--dry-run", "--help", "--no-index", "--offline", "--prefer-offline", "--unix-socket", "--version", "help"];
const NEAR: &[&str] = &["localhost", "127.", "0.0.0.0", "[::1]"];

/// Of package managers, options that take the next word; where one of them takes none, a package is passed by.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "-e",
    "-F",
    "-f",
    "-i",
    "-j",
    "-r",
    "-t",
    "-w",
    "--bin",
    "--cache",
    "--constraint",
    "--dir",
    "--editable",
    "--example",
    "--extra-index-url",
    "--features",
    "--filter",
    "--find-links",
    "--git",
    "--include",
    "--index-url",
    "--loglevel",
    "--omit",
    "--prefix",
    "--profile",
    "--registry",
    "--requirement",
    "--root",
    "--tag",
    "--target",
    "--userconfig",
    "--version",
    "--workspace",
];
const OF_SSH: &[&str] = &[
    "-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-o", "-P", "-p", "-R", "-S", "-W",
    "-w", "-X",
];
/// Of git's sub-commands that reach out.
const OF_GIT: &[&str] = &[
    "-j",
    "-m",
    "-o",
    "-s",
    "-t",
    "-X",
    "--deepen",
    "--depth",
    "--exec",
    "--jobs",
    "--negotiation-tip",
    "--push-option",
    "--receive-pack",
    "--refmap",
    "--repo",
    "--server-option",
    "--shallow-exclude",
    "--shallow-since",
    "--sort",
    "--strategy",
    "--strategy-option",
    "--upload-pack",
];

/// What may be done twice, or only looks whatever its words, by program and its first word; none: whatever that is.
const AGAIN: &[(&str, &[&str])] = &[
    (":", &[]),
    ("break", &[]),
    ("cargo", &["build", "check", "clippy", "doc", "fmt", "test"]),
    ("cd", &[]),
    ("continue", &[]),
    ("echo", &[]),
    ("exit", &[]),
    ("export", &[]),
    ("git", &["add", "diff", "fetch", "init", "log", "ls-remote", "pull", "push", "rev-parse", "show", "status"]),
    ("go", &["build", "test", "vet"]),
    ("mkdir", &["-p", "-pv"]),
    ("npm", &["ci", "t", "test"]),
    ("popd", &[]),
    ("printf", &[]),
    ("pushd", &[]),
    ("pytest", &[]),
    ("return", &[]),
    ("set", &[]),
    ("sleep", &[]),
    ("touch", &[]),
    ("tsc", &[]),
    ("umask", &[]),
    ("unset", &[]),
    ("wait", &[]),
];

/// What of a script the world has to look at before it runs.
pub(super) fn all(script: &Script) -> Vec<Far> {
    if script.commands.len() > MAX_COMMANDS {
        return Vec::new();
    }
    let commands = script.commands.iter().enumerate().skip(1);
    let mut res: Vec<(usize, Far)> = commands.filter_map(|(at, it)| Some((at, of(it, script)?))).collect();
    if res.is_empty() {
        return Vec::new();
    }
    let Some(first) = first_change(script) else { return Vec::new() };
    res.retain(|(at, _)| place(*at, script) > first);
    res.into_iter().map(|it| it.1).take(MAX).collect()
}

/// Which of the commands is the first that may change something.
fn first_change(script: &Script) -> Option<Place> {
    let written = script.redirects.iter().filter(|it| it.writes).map(|it| it.by.unwrap_or_default());
    let commands = script.commands.iter().enumerate();
    let changes = commands.filter(|(_, it)| !may_be_done_again(it, script) && of(it, script).is_none());
    written.chain(changes.map(|it| it.0)).map(|it| place(it, script)).min()
}

/// When it runs among the others: what others run is listed behind all, and runs when these do.
type Place = (usize, usize);

fn place(at: usize, script: &Script) -> Place {
    let Some(command) = script.commands.get(at) else { return (at, at) };
    // `rm $@` is of `xargs rm`.
    let text = command.text.trim_end_matches(" $@");
    let runs = |it: &Command| (it.wrapper || it.transparent) && it.text.contains(text);
    (script.commands.iter().take(at).position(runs).unwrap_or(at), at)
}

/// What it runs, and what may run it, is listed on its own.
fn may_be_done_again(command: &Command, script: &Script) -> bool {
    if command.transparent || command.wrapper || command.carried {
        return true;
    }
    let Some(name) = command.name() else { return false };
    let args = if base_name(name) == "git" { git_words(command.args()) } else { command.args() };
    let first = args.first().map_or("", |it| it.text.as_str());
    let rows = AGAIN.binary_search_by_key(&base_name(name), |it| it.0).ok().and_then(|at| AGAIN.get(at));
    let listed = rows.is_some_and(|(_, subs)| subs.is_empty() || subs.contains(&first));
    // `. .venv/bin/activate`
    let activates = || matches!(name, "." | "source") && first.ends_with("bin/activate");
    listed && !command.opaque || activates() || safe::is_safe(command, script)
}

/// Whether a command line does more behind what changes something: who runs it again does that twice.
pub fn done_before(call: &ToolCall) -> bool {
    let text = call.args.get("command").and_then(|it| it.as_str());
    let Some(script) = text.and_then(|it| Script::parse(it).ok()) else { return false };
    if script.commands.len() > MAX_COMMANDS {
        return true;
    }
    let does = |it: &Command| !may_be_done_again(it, &script) || of(it, &script).is_some();
    let last = script.commands.iter().enumerate().filter(|it| does(it.1)).map(|it| place(it.0, &script)).max();
    last.is_some_and(|last| first_change(&script).is_some_and(|first| first < last))
}

/// The same question as after a denial, before anything is done. Nobody is asked where nobody can be: then it may try.
pub(super) fn asked_before(query: &Query, verdict: Verdict) -> Verdict {
    let far = query.targets.beyond.far.as_ref().filter(|_| query.interactive && verdict.decision != Decision::Deny);
    let Some(Reach { words, cache }) = far else { return verdict };
    let below = cache.as_ref().map(|it| format!(", and to write below {it}")).unwrap_or_default();
    let why = format!(
        "`{words}` needs the network{below}: asked before anything runs, so that nothing is done twice, and a yes is for \
         that, too"
    );
    let gives = verdict.gives.into_iter().chain(cache.clone()).collect();
    let verdict = Verdict { gives, ..verdict };
    match verdict.decision {
        Decision::Allow => {
            let (rule, grant) = (why.clone(), Some(Grant::Network));
            Verdict { decision: Decision::Ask, rule, why: Some(why), network: true, grant, ..verdict }
        }
        _ => {
            let why = verdict.why.map_or(why.clone(), |it| format!("{it}; {why}"));
            Verdict { why: Some(why), network: true, ..verdict }
        }
    }
}

/// What a command reaches out for, if it surely does, or git's settings say it.
fn of(command: &Command, script: &Script) -> Option<Far> {
    // Whether that is run nobody knows.
    if command.carried {
        return None;
    }
    let program = base_name(command.name()?);
    let args = command.args();
    let passes =
        || args.iter().any(|it| QUIET.contains(&it.text.as_str()) || NEAR.iter().any(|near| it.text.contains(near)));
    if program == "git" {
        let (words, remote) = of_git(command, script).filter(|_| !passes())?;
        return Some(Far { words, remote });
    }
    let needs = |words: String| (!passes()).then_some(Far { words, remote: None });
    if let Some(sub) = destroy::publishes(command).filter(|_| !matches!(program, "docker" | "nerdctl")) {
        return needs(format!("{program} {}", sub.join(" ")));
    }
    if let ("python" | "python3", [m, pip, install, rest @ ..]) = (program, args) {
        let is_pip = [m, pip, install].map(|it| it.text.as_str()) == ["-m", "pip", "install"];
        return needs("pip install".to_owned()).filter(|_| is_pip && names_package(rest));
    }
    let Row(_, subs, when) = ROWS.binary_search_by_key(&program, |it| it.0).ok().and_then(|at| ROWS.get(at))?;
    let (words, behind) = match (subs, args.split_first()) {
        ([], _) => (program.to_owned(), args),
        (subs, Some((sub, rest))) if subs.contains(&sub.text.as_str()) => (format!("{program} {}", sub.text), rest),
        _ => return None,
    };
    let holds = match when {
        Always => true,
        Holds(it) => it(behind),
    };
    needs(words).filter(|_| holds)
}

/// What people are told, and where to look.
fn of_git(command: &Command, script: &Script) -> Option<(String, Option<Remote>)> {
    let (sub, rest) = git_words(command.args()).split_first()?;
    let name = sub.literal()?;
    if !matches!(name, "clone" | "fetch" | "ls-remote" | "pull" | "push" | "remote" | "submodule") {
        return None;
    }
    // What it sets for itself may lead elsewhere.
    let sets = |it: &Word| ["remote.", "url."].iter().any(|key| it.text.to_ascii_lowercase().contains(key));
    if reworks::globals(command).iter().any(sets) {
        return None;
    }
    let args = Args::read(rest, OF_GIT);
    let to = |which| Some(Remote { dir: reworks::folder(command, script)?, which });
    let words = format!("git {name}");
    match (name, args.operands.as_slice()) {
        ("clone", operands) => operands.iter().any(|it| is_far(it)).then_some((words, None)),
        ("remote", ["update", ..]) => Some((format!("{words} update"), Some(to(Which::Any)?))),
        ("submodule", ["update", ..]) if args.has(&["--init"]) => {
            Some((format!("{words} update"), Some(to(Which::Modules)?)))
        }
        ("remote" | "submodule", _) => None,
        // Which of them it is only known when it runs.
        _ if rest.iter().find(|it| !it.text.starts_with('-')).is_some_and(|it| it.literal().is_none()) => None,
        ("pull" | "push", []) => Some((words, Some(to(Which::Upstream)?))),
        (_, []) => Some((words, Some(to(Which::Any)?))),
        (_, [to_whom, ..]) if is_far(to_whom) => Some((words, None)),
        (_, [path, ..]) if path.starts_with(['.', '/', '~']) || path.contains(':') => None,
        (_, [remote, ..]) => match said_before(remote, script) {
            Some(it) => is_far(it).then_some((words, None)),
            None => Some((words, Some(to(Which::Named((*remote).to_owned()))?))),
        },
    }
}

/// Where the script itself says that a remote is: `git remote add origin https://h/x && git push origin`.
fn said_before<'s>(remote: &str, script: &'s Script) -> Option<&'s str> {
    let said = |it: &'s Command| {
        let words = it.name().filter(|it| base_name(it) == "git").map(|_| git_words(it.args()))?;
        let (_, rest) = words.split_first().filter(|it| it.0.text == "remote")?;
        match Args::read(rest, OF_GIT).operands.as_slice() {
            ["add" | "set-url", name, url] if *name == remote => Some(*url),
            _ => None,
        }
    };
    script.commands.iter().find_map(said)
}

/// A package by its name, which is no file.
fn names_package(args: &[Word]) -> bool {
    const FILES: &[&str] = &["file:", "link:", "workspace:", "portal:"];
    const ENDS: &[&str] = &[".tgz", ".tar.gz", ".whl", ".txt", ".zip"];
    let is_file = |it: &str| {
        let by_end = !it.contains("://") && ENDS.iter().any(|end| it.ends_with(end));
        it.starts_with(['.', '/', '~']) || by_end || FILES.iter().any(|start| it.starts_with(start))
    };
    Args::read(args, VALUED).operands.iter().any(|it| !is_file(it))
}

fn installs_crate(args: &[Word]) -> bool {
    let args = Args::read(args, VALUED);
    let is_local = args.options.iter().any(|it| it.starts_with("--path") || *it == "--list");
    let from_git = || args.values.iter().any(|it| it.0 == "--git" && is_far(it.1));
    let by_git = || args.options.iter().any(|it| it.starts_with("--git"));
    !is_local && (from_git() || !args.operands.is_empty() && !by_git())
}

/// A page elsewhere: what has no scheme may be anything.
fn names_address(args: &[Word]) -> bool {
    let text = |it: &Word| it.text.trim_matches(['"', '\'']).to_owned();
    args.iter().map(text).any(|it| it.contains("://") && is_far(&it))
}

fn copies_far(args: &[Word]) -> bool {
    args.iter().filter_map(Word::literal).any(|it| !it.starts_with('-') && is_far(it))
}

fn logs_in(args: &[Word]) -> bool {
    let args = Args::read(args, OF_SSH);
    let looks = args.options.iter().any(|it| matches!(*it, "-G" | "-O" | "-Q" | "-V"));
    let is_host = |it: &&str| is_far(it) || is_far(&format!("{it}:"));
    !looks && args.operands.first().is_some_and(is_host)
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, ROWS};

    #[test]
    fn the_tables_are_sorted_by_their_programs() {
        assert!(ROWS.is_sorted_by_key(|it| it.0) && AGAIN.is_sorted_by_key(|it| it.0));
    }
}
