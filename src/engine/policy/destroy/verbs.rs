//! Programs that no table knows, by their own words: `b2 delete-file-version`, `render services delete`, `./x.sh destroy`.
//!
//! What stands behind such a program may be a verb or a name. It is taken for a verb where a sub-command stands, and not
//! behind words that look, make or run, which names follow: `foo get delete`.

use super::{Signs, computed, known, tries};
use crate::engine::policy::{
    danger::git_words,
    shell::{Command, Script, Word, WordKind, base_name, is_shell, runs_behind},
};

/// Verbs that take away, as a word by themselves, and at the beginning and the end of one that hyphens part.
const VERBS: &[&str] = &[
    "abandon",
    "decommission",
    "del",
    "delete",
    "deleteall",
    "deprovision",
    "deregister",
    "destroy",
    "drop",
    "erase",
    "expunge",
    "flush",
    "flushall",
    "flushdb",
    "nuke",
    "obliterate",
    "prune",
    "purge",
    "remove",
    "rm",
    "rmdir",
    "rmi",
    "shred",
    "teardown",
    "terminate",
    "truncate",
    "unpublish",
    "wipe",
    "yank",
];
/// Only as a whole.
const WHOLE: &[&str] = &["force-push", "push-force", "uninstall-all"];
/// As an option these are often something small: `--rm`, `--remove`, `--prune`.
const OPTIONS: &[&str] = &[
    "delete",
    "delete-all",
    "destroy",
    "drop",
    "drop-all",
    "erase",
    "force-delete",
    "force-push",
    "nuke",
    "obliterate",
    "purge",
    "purge-all",
    "remove-all",
    "shred",
    "wipe",
    "wipe-all",
];
/// What is reset behind these, or with such an option, is gone.
const KEPT: &[&str] = &["database", "db", "migrate", "migration", "migrations", "schema", "storage"];
const FORCES: &[&str] = &["--force", "--hard", "--yes", "-f", "-y"];

/// Words behind which names stand.
const NAMED: &[&str] = &[
    "add",
    "build",
    "cat",
    "check",
    "clone",
    "completion",
    "create",
    "describe",
    "diff",
    "doc",
    "docs",
    "download",
    "edit",
    "exec",
    "explain",
    "find",
    "format",
    "g",
    "gen",
    "generate",
    "get",
    "grep",
    "help",
    "info",
    "init",
    "inspect",
    "install",
    "lint",
    "list",
    "log",
    "logs",
    "ls",
    "make",
    "man",
    "new",
    "open",
    "plan",
    "preview",
    "print",
    "query",
    "read",
    "run",
    "search",
    "serve",
    "set",
    "show",
    "start",
    "startapp",
    "startproject",
    "status",
    "switch",
    "task",
    "test",
    "tests",
    "update",
    "upgrade",
    "use",
    "version",
    "view",
    "watch",
    "why",
];
/// Options behind which text stands, beside those that other rows know.
const TEXT: &[&str] = &[
    "-e",
    "-g",
    "-k",
    "-m",
    "-t",
    "--grep",
    "--mode",
    "--name",
    "--pattern",
    "--strategy",
    "--tag",
    "--testNamePattern",
];

/// Behind these some programs run others.
const STARTS: &[&str] = &["dlx", "exec", "rsh", "run", "x"];

/// How many words may lead to the verb: `foo cloud users delete`.
const DEEP: usize = 3;
/// More of them are not looked into: `poetry run npx foo`; nor more of their words for what is called.
const NESTED: usize = 3;
const MAX_CARRIED: usize = 16;
/// Words behind these are no sub-commands, with all options in front.
const MAX_LED: usize = 8;
/// More words are not looked at for an option.
const MAX_WORDS: usize = 64;

/// What makes the command look as if it deletes, if nobody knows better.
pub fn looks(command: &Command, script: &Script) -> Option<Signs> {
    let name = command.name()?;
    let hides = command.opaque && base_name(name) != "ssh" || command.wrapper || command.transparent;
    // What may be carried is looked at where it is carried.
    if hides || command.carried {
        return None;
    }
    let (name, args) = match is_shell(base_name(name)) {
        true => started(command.args())?,
        false => (name, command.args()),
    };
    let open = |it: &Word| it.kind == WordKind::Expanded && !it.is_unknown();
    let weighed = || runs_behind(base_name(name)).is_none() && known::is_known(name);
    looks_so(name, args, script).or_else(|| {
        let open = args.iter().take(MAX_LED).any(open) && !weighed();
        let readings = if open { computed::variants(args, script, false) } else { Vec::new() };
        readings.iter().find_map(|it| looks_so(name, it, script))
    })
}

fn looks_so(name: &str, args: &[Word], script: &Script) -> Option<Signs> {
    // `git spice branch delete x` is a program's own.
    if base_name(name) == "git" {
        let (sub, args) = git_words(args).split_first()?;
        let other = sub.literal().is_some_and(|it| !known::is_git_command(it));
        let found = || verb_in(std::slice::from_ref(sub)).or_else(|| verb_in(args)).or_else(|| option_in(args));
        return other.then(found).flatten().map(|it| Signs::new([sub.text.clone(), it.to_owned()].into_iter()));
    }
    let found = verb_in(args).or_else(|| option_in(args));
    let carries = || args.iter().take(MAX_WORDS).any(|it| STARTS.contains(&it.text.as_str()));
    if found.is_none() && !carries() {
        return None;
    }
    let (name, args, found) = match behind_runner(base_name(name), args, NESTED) {
        Some(it) => it?,
        None => (name, args, found?),
    };
    let own = || script.functions.iter().any(|it| it == name);
    let helps =
        || !name.contains('/') && tries::only_helps(name, args) || !name.ends_with("sh") && tries::says_so(args);
    let unknown = !known::is_known(name) && !own() && !helps();
    unknown.then(|| Signs::new([base_name(name), found].into_iter().map(str::to_owned)))
}

/// `bash ./manage.sh delete` is `./manage.sh delete`.
fn started(args: &[Word]) -> Option<(&str, &[Word])> {
    let at = args.iter().position(|it| !it.text.starts_with(['-', '+']))?;
    let (file, rest) = args.get(at..)?.split_first()?;
    let script = !args.iter().take(at).any(|it| !it.text.starts_with("--") && it.text.ends_with(['c', 'o']));
    Some((file.literal().filter(|_| script)?, rest))
}

/// Of `npx foo users delete`: `foo`, its words, and `delete`. `None`: it runs nothing; `Some(None)`: no such thing.
fn behind_runner<'w>(name: &str, args: &'w [Word], deep: usize) -> Option<Option<(&'w str, &'w [Word], &'w str)>> {
    // What is run by these is a script, unless they are told otherwise.
    const SCRIPTS: &[&str] = &["bun", "npm", "pnpm", "yarn"];
    let subs: &[&str] = match name {
        "ssh" => &[],
        _ if SCRIPTS.contains(&name) => &["dlx", "exec", "x"],
        _ => runs_behind(name)?,
    };
    let at = args.iter().position(|it| subs.contains(&it.text.as_str()));
    let behind = match at {
        None if name == "ssh" => args.get(behind_host(args)..)?,
        None if subs.is_empty() => args,
        _ => args.get(at? + 1..)?,
    };
    Some(carried(behind, deep))
}

/// Where the command line of `ssh -p 22 host foo` begins.
pub(super) fn behind_host(args: &[Word]) -> usize {
    const VALUED: &[u8] = b"BDEFIJLOPQRSWbceilmopw";
    let mut valued = false;
    let is_host = |it: &Word| {
        let (option, value) = (it.text.strip_prefix('-'), valued);
        valued = option.is_some_and(|it| it.len() == 1 && it.bytes().all(|it| VALUED.contains(&it)));
        option.is_none() && !value
    };
    args.iter().position(is_host).map_or(args.len(), |it| it + 1)
}

/// What is called, as the first word, or as one behind an option, whose value that may be.
fn carried(args: &[Word], deep: usize) -> Option<(&str, &[Word], &str)> {
    let mut valued = false;
    for (at, word) in args.iter().enumerate().take(MAX_CARRIED) {
        let name = word.text.as_str();
        if name.starts_with('-') {
            valued = name != "--" && !name.contains('=');
            continue;
        }
        let rest = args.get(at + 1..)?;
        // `foo@5`
        let name = name.get(1..).and_then(|it| it.rfind('@')).and_then(|at| name.get(..=at)).unwrap_or(name);
        let runs = deep.checked_sub(1).and_then(|deep| behind_runner(name, rest, deep));
        let inner = runs.unwrap_or_else(|| {
            let found = verb_in(rest).or_else(|| option_in(rest))?;
            // Behind a container: `docker exec c npm prune`.
            let mut before = rest.iter().take_while(|it| it.text != found);
            let known = known::is_known(name) || before.any(|it| known::is_known(&it.text));
            (!known).then_some((name, rest, found))
        });
        if inner.is_some() || !valued {
            return inner;
        }
        valued = false;
    }
    None
}

/// The first of the leading words that is such a verb.
fn verb_in(args: &[Word]) -> Option<&str> {
    let (mut deep, mut option, mut before) = (0, None, "");
    for word in args {
        let text = word.text.as_str();
        if text.starts_with('-') && text.len() > 1 {
            option = Some(text).filter(|it| *it != "--" && !it.contains('='));
            continue;
        }
        let is_text = option.is_some_and(|it| TEXT.contains(&it) || super::TEXT.contains(&it));
        if !is_text && word.literal().is_some() && destroys(text, before, args) {
            return Some(text);
        }
        // What a cache loses is made again.
        // `migrate:make`
        let named = || text.split(':').any(|it| NAMED.contains(&it));
        if deep == DEEP || named() || parts(text).any(is_cache) {
            return None;
        }
        // Behind an option it may be the value of that.
        deep += usize::from(option.is_none());
        (option, before) = (None, text);
    }
    None
}

fn destroys(text: &str, before: &str, args: &[Word]) -> bool {
    // A path, an assignment, a sentence, a test, a migration by its date; what has an ending is a file.
    let is_name =
        text.ends_with("_test") || text.ends_with("_spec") || text.starts_with(|it: char| it.is_ascii_digit());
    if is_name || text.len() > 40 || text.contains(|it: char| it.is_whitespace() || matches!(it, '/' | '=' | '@')) {
        return false;
    }
    if text == "reset" {
        return KEPT.contains(&before) || args.iter().any(|it| FORCES.contains(&it.text.as_str()));
    }
    if WHOLE.contains(&text) {
        return true;
    }
    if let Some((_, last)) = text.rsplit_once('.') {
        return is_verb(last);
    }
    let (mut first, mut last, mut one_before) = ("", "", "");
    for it in parts(text) {
        if is_cache(it) {
            return false;
        }
        first = if first.is_empty() { it } else { first };
        (one_before, last) = (last, it);
    }
    is_verb(first) || is_verb(last) || last == "reset" && KEPT.contains(&one_before) || is_camel(text)
}

/// The pieces of `db:drop`, `delete-file-version`, `delete_user`.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(['-', ':', '_'])
}

fn is_cache(part: &str) -> bool {
    part.eq_ignore_ascii_case("cache") || part.eq_ignore_ascii_case("caches")
}

fn is_verb(part: &str) -> bool {
    (2..13).contains(&part.len()) && VERBS.iter().any(|it| it.eq_ignore_ascii_case(part))
}

/// `DeleteInstance`, `deleteSite`
fn is_camel(text: &str) -> bool {
    let end = text.bytes().skip(1).position(|it| it.is_ascii_uppercase()).map_or(0, |it| it + 1);
    // `IN`, `RM`: all in capitals is no such word.
    end > 2 && text.get(..end).is_some_and(is_verb)
}

/// `--purge`, `-delete`, `--force-delete=true`
fn option_in(args: &[Word]) -> Option<&str> {
    let options = args.iter().take(MAX_WORDS).take_while(|it| it.text != "--");
    let is_one = |it: &&Word| {
        let Some(name) = it.text.strip_prefix('-') else { return false };
        let (name, value) = name.strip_prefix('-').unwrap_or(name).split_once('=').unwrap_or((&it.text, "true"));
        let name = name.trim_start_matches('-');
        value != "false" && OPTIONS.contains(&name)
    };
    options.into_iter().find(is_one).map(|it| it.text.as_str())
}
