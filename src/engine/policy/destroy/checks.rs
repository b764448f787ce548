//! What the table of destructive commands cannot say by words and options alone. Each returns what decides.

use crate::engine::policy::{
    checked_out::branch_option,
    destroy::{option_matches, stores},
    shell::{FOUND, Word, WordKind, base_name},
};

pub(super) fn find(args: &[Word]) -> Option<&str> {
    args.iter().find(|it| it.text == "-delete" || it.is_unknown()).map(|it| it.text.as_str())
}

/// Writing to a device, not to a file.
pub(super) fn device(args: &[Word]) -> Option<&str> {
    args.iter().map(|it| it.text.as_str()).find(|it| super::is_device(it))
}

/// All changes, whatever a branch is called.
pub(super) fn forced_checkout(args: &[Word]) -> Option<&str> {
    let options = args.split(|it| it.text == "--").next().unwrap_or_default();
    options.iter().find(|it| option_matches(it, "f", &["--force"])).map(|it| it.text.as_str())
}

/// `git checkout` throws changes away when it names paths. `git checkout x` may be a branch or a file: what has the
/// ending of a file is taken for one, and what the world found to be one is by another row.
pub(super) fn checkout(args: &[Word]) -> Option<&str> {
    const TREE: &[&str] = &["--ours", "--theirs", "--patch", "--pathspec-from-file"];
    let before = args.split(|it| branch_option(it).is_some()).next().unwrap_or_default();
    if let Some(it) = before.iter().find(|it| option_matches(it, "p", TREE)) {
        return Some(&it.text);
    }
    if let Some(at) = args.iter().position(|it| it.text == "--") {
        return (at + 1 < args.len()).then_some("--");
    }
    // It moves a branch that may be there, and what only that had is lost.
    if let Some(it) = args.iter().find_map(moves) {
        // Its name may stick to it, and the start point stand in front.
        return args.iter().filter(|it| !it.text.starts_with('-')).nth(it).map(|it| it.text.as_str());
    }
    if args.iter().any(|it| option_matches(it, "b", &["--orphan"])) {
        return None;
    }
    let operands: Vec<&Word> = args.iter().filter(|it| !it.text.starts_with('-')).collect();
    match operands.as_slice() {
        [only] => (is_path(only) || only.is_unknown() || only.text == FOUND).then_some(only.text.as_str()),
        [] => None,
        [_, path, ..] => Some(&path.text),
    }
}

/// How many names stand in front of a start point: `-B x`, `-qBx`; what sticks to `-b` is another name.
fn moves(word: &Word) -> Option<usize> {
    let (letter, name) = branch_option(word)?;
    (letter == 'B').then(|| usize::from(name.is_empty()))
}

/// Onto a branch of one's own, over what that has: `+main:main`. Branches of others are copies.
pub(super) fn fetch(args: &[Word]) -> Option<&str> {
    let forced = args.iter().any(|it| option_matches(it, "f", &["--force"]));
    let own = |it: &&Word| {
        let onto = it.text.split_once(':').map_or("", |it| it.1);
        !it.text.starts_with('-')
            && !onto.is_empty()
            && !it.text.contains('@')
            && !it.text.contains("://")
            && !onto.contains("refs/remotes/")
    };
    let prunes = |it: &Word| it.text.starts_with("--prune-") || it.text == "--stdin" || is_short(it, 'P');
    if let Some(it) = args.iter().find(|it| prunes(it)) {
        return Some(&it.text);
    }
    // What the other side does not have is no branch here either.
    let pruned = args.iter().any(|it| matches!(it.text.as_str(), "--prune" | "--pru") || is_short(it, 'p'));
    let all = |it: &str| pruned && it.contains('*');
    args.iter().filter(own).map(|it| it.text.as_str()).find(|it| forced || it.starts_with('+') || all(it))
}

fn is_short(word: &Word, letter: char) -> bool {
    word.text.strip_prefix('-').is_some_and(|it| !it.starts_with('-') && it.contains(letter))
}

/// Whether git would take it for a path: by its ending, or since files and folders are called so, and branches are not.
fn is_path(word: &Word) -> bool {
    const FILES: &[&str] =
        &["Cargo.lock", "Dockerfile", "Gemfile", "LICENSE", "Makefile", "Procfile", "README", "Rakefile", "go.sum"];
    const FOLDERS: &[&str] = &["components", "crates", "include", "internal", "lib", "packages", "pkg", "src", "tests"];
    const LETTERS: &[&str] = &["c", "d", "f", "h", "m", "r", "s"];
    let text = word.text.as_str();
    // `"$(pwd)"`
    let printed =
        || word.kind == WordKind::Expanded && ["pwd", "PWD", "show-toplevel"].iter().any(|it| text.contains(it));
    if printed() || matches!(text, "." | "..") || ["./", "../", ":", "."].iter().any(|it| text.starts_with(it)) {
        return true;
    }
    let (first, last) = (text.split('/').next().unwrap_or_default(), base_name(text));
    let ending = text.rsplit_once('.').map_or("", |it| it.1);
    let ends = ending.bytes().all(|it| it.is_ascii_alphabetic())
        && ((2..=5).contains(&ending.len()) || LETTERS.contains(&ending) || ending == "properties");
    word.kind == WordKind::Pattern
        || FILES.contains(&last)
        || FOLDERS.contains(&first)
        || word.kind != WordKind::Expanded && (text.ends_with('/') || text.contains('*'))
        || ends
}

/// Whether it is such an option for sure: one that only may be spares nothing. What sticks to one of git's that takes a
/// value is no more options: `-enode_modules`, `-sSTABLE`.
fn spares(word: &Word, short: &str, long: &[&str]) -> bool {
    let text = match word.text.starts_with("--") {
        true => word.text.as_str(),
        false => word.text.split(['e', 's']).next().unwrap_or_default(),
    };
    let is_long = || long.contains(&text);
    word.kind != WordKind::Expanded
        && (is_long() || !text.starts_with("--") && option_matches(&Word::literally(text), short, &[]))
}

/// Only taking files out of the index loses nothing.
pub(super) fn restore(args: &[Word]) -> Option<&str> {
    let has = |short, long: &'static [&'static str]| args.iter().any(|it| spares(it, short, long));
    let tree = || args.iter().any(|it| option_matches(it, "W", &["--worktree"]));
    let harmless = has("S", &["--staged"]) && !tree();
    (!harmless && !args.is_empty()).then_some("")
}

/// Without `-f` it does nothing, unless a setting says otherwise, which is not looked at.
pub(super) fn clean(args: &[Word]) -> Option<&str> {
    let dry = args.iter().any(|it| spares(it, "n", &["--dry-run"]));
    let force = args.iter().find(|it| option_matches(it, "f", &["--force"]));
    (!dry).then(|| force.map_or("", |it| it.text.as_str()))
}

/// Settings by which a later push, fetch, `gc` or `clean` throws away what it would keep: `remote.origin.push +main`.
pub(super) fn config(args: &[Word]) -> Option<&str> {
    let operands: Vec<&Word> = args.iter().filter(|it| !it.text.starts_with('-')).collect();
    let pairs = operands.iter().zip(operands.iter().skip(1));
    pairs.into_iter().find(|it| loosens(&it.0.text, &it.1.text)).map(|it| it.0.text.as_str())
}

/// Whether a setting of git is of these.
pub(super) fn loosens(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let of_remote = |it: &str| key.starts_with("remote.") && key.ends_with(it);
    let forced = |value: &str| value.starts_with(['+', ':', '$', '"']);
    match key.as_str() {
        // What is called by mistake is run.
        "help.autocorrect" => !matches!(value, "0" | "false" | "no" | "off" | "never" | "prompt" | "show"),
        "clean.requireforce" => !value.eq_ignore_ascii_case("true"),
        _ if of_remote(".mirror") => !value.eq_ignore_ascii_case("false"),
        _ if of_remote(".push") => forced(value),
        // Onto branches of one's own.
        _ if of_remote(".fetch") => forced(value) && !value.contains(":refs/remotes/"),
        _ => key.starts_with("gc.") && key.contains("expire"),
    }
}

/// What lies on a server, not here.
pub(super) fn remote(args: &[Word]) -> Option<&str> {
    args.iter().map(|it| it.text.as_str()).find(|it| it.contains("://"))
}

/// Permissions of all that `find` finds, as with `-R`. Only letting files be run harms nobody.
pub(super) fn found(args: &[Word]) -> Option<&str> {
    let found = args.iter().any(|it| it.kind == WordKind::Expanded && it.text.contains(FOUND));
    let mode = args.iter().find(|it| !it.text.starts_with('-') || it.text.len() < 2).map_or("", |it| &it.text);
    let runs = mode.strip_suffix("+x").is_some_and(|it| it.bytes().all(|it| b"ugoa".contains(&it)));
    (found && !runs).then_some(mode)
}

/// Anything but an option that lists.
pub(super) fn any(args: &[Word]) -> Option<&str> {
    args.iter().map(|it| it.text.as_str()).find(|it| !matches!(*it, "-l" | "-V" | "--version" | "--help"))
}

/// Out of the index alone it loses nothing.
pub(super) fn git_rm(args: &[Word]) -> Option<&str> {
    let cached = args.iter().any(|it| it.literal() == Some("--cached"));
    args.iter().find(|it| option_matches(it, "f", &["--force"])).filter(|_| !cached).map(|it| it.text.as_str())
}

/// A task that publishes, by whatever way it is named; not to this machine's own store.
pub(super) fn publish(args: &[Word]) -> Option<&str> {
    let task = |it: &str| it.rsplit([':', '/', '+']).next().unwrap_or_default().to_owned();
    const TASKS: &[&str] = &[
        "artifactoryPublish",
        "bintrayUpload",
        "dockerPush",
        "dropAll",
        "flywayClean",
        "jib",
        "jreleaserDeploy",
        "jreleaserFullRelease",
        "jreleaserRelease",
        "liquibaseDropAll",
        "release",
        "uploadArchives",
    ];
    let releases = |it: &str| {
        it.starts_with("publish")
            || it.starts_with("closeAndRelease")
            || it.starts_with("appDistributionUpload")
            || TASKS.contains(&it)
    };
    let publishes = |it: &str| releases(it) && !it.contains("Local") && it != "publishM2";
    args.iter().map(|it| it.text.as_str()).find(|it| publishes(&task(it)))
}

/// The tool that rewrites histories, as it is started.
pub(super) fn bfg(args: &[Word]) -> Option<&str> {
    args.iter().map(|it| it.text.as_str()).find(|it| base_name(it).starts_with("bfg") && it.ends_with(".jar"))
}

/// Every process, or the first one.
pub(super) fn kill(args: &[Word]) -> Option<&str> {
    let signal = usize::from(args.first().is_some_and(|it| it.text.starts_with('-')));
    let pids = args.get(signal..).unwrap_or_default();
    pids.iter().map(|it| it.text.as_str()).find(|it| matches!(*it, "1" | "-1"))
}

/// All processes of somebody, or of everybody.
pub(super) fn pkill(args: &[Word]) -> Option<&str> {
    let whose = args.iter().find(|it| option_matches(it, "uUG", &["--euid", "--uid", "--group"]));
    let all = args.iter().find(|it| matches!(it.text.as_str(), "." | ".*" | "" | "^"));
    // Behind such an option stands its value, and then what they are called.
    let named = args.iter().filter(|it| !it.text.starts_with('-')).count() > usize::from(whose.is_some());
    all.or(whose.filter(|_| !named)).map(|it| it.text.as_str())
}

/// What a shell of MongoDB is told to do.
pub(super) fn mongo(args: &[Word]) -> Option<&str> {
    const CALLS: &[&str] = &[
        "drop",
        "remove(",
        "deleteMany",
        "deleteOne",
        "findOneAndDelete",
        "{delete:",
        "{ delete:",
        "remove: true",
        "remove:true",
        "removeShard",
        "$out",
    ];
    args.iter().find_map(|it| CALLS.iter().find(|call| it.text.contains(**call)).copied())
}

/// Tasks of Laravel and its like, and of Rails, that empty a database.
pub(super) const ARTISAN: &[&str] = &[
    "db:wipe",
    "doctrine:database:drop",
    "doctrine:fixtures:load",
    "doctrine:schema:drop",
    "migrate:fresh",
    "migrate:refresh",
    "migrate:reset",
    "migration:fresh",
    "migration:refresh",
    "migration:reset",
    "messenger:failed:remove",
    "queue:clear",
    "queue:flush",
    "queue:forget",
];
pub(super) const RAILS: &[&str] =
    &["db:drop", "db:migrate:reset", "db:purge", "db:reset", "db:schema:load", "db:seed:replant", "db:truncate"];

/// `gh repo delete x`: what stands in front, behind the repository that it is about.
pub(super) fn gh(args: &[Word]) -> Option<&str> {
    const VERBS: &[&str] = &["archive", "delete", "item-delete", "remove"];
    let about = args.first().is_some_and(|it| matches!(it.text.as_str(), "-R" | "--repo"));
    let operands = args.iter().skip(if about { 2 } else { 0 }).filter(|it| !it.text.starts_with('-'));
    operands.take(2).map(|it| it.text.as_str()).find(|it| VERBS.iter().any(|verb| it.starts_with(verb)))
}

/// Modules of Python that are programs of their own: `python -m git_filter_repo`.
pub(super) fn python(args: &[Word]) -> Option<&str> {
    let rewrites = |it: &&Word| matches!(base_name(&it.text), "git-filter-repo" | "git-filter-repo.py");
    if args.iter().find(|it| !it.text.starts_with('-')).is_some_and(|it| rewrites(&it)) {
        return Some("git-filter-repo");
    }
    let at = args.iter().position(|it| it.text == "-m")?;
    match args.get(at + 1)?.literal()? {
        "git_filter_repo" => Some("git_filter_repo"),
        "sqlite3" => sql(args.get(at + 2..).unwrap_or_default()),
        _ => None,
    }
}

/// A line that is run: `gh cs ssh -- rm x`, `gh alias set x 'repo delete'`.
pub(super) fn says(args: &[Word]) -> Option<&str> {
    let text = args.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
    let deletes = || text.split(' ').find(|it| matches!(*it, "delete" | "archive")).map(|_| "delete");
    super::rows_in(&text).map(|it| it.program).or_else(deletes)
}

/// A branch that is moved by force, and a mutation that deletes.
pub(super) fn forge_api(args: &[Word]) -> Option<&str> {
    let has = |text: &str| args.iter().any(|it| it.text.contains(text));
    let moved = has("git/refs/") && has("force=true");
    // As `gh repo archive` and `gh repo edit --visibility` do it.
    let sets = ["archived=true", "private=false", "visibility=public"].into_iter().find(|it| has(it));
    let mutation = args.iter().any(|it| mutates(&it.text));
    mutation.then_some("mutation").or(moved.then_some("force=true")).or(sets)
}

/// An image that goes to where others get it: `--output type=registry`, `--set '*.output=type=image,push=true'`.
pub(super) fn outputs(args: &[Word]) -> Option<&str> {
    args.iter().map(|it| it.text.as_str()).find(|it| it.contains("type=registry") || it.contains("push=true"))
}

/// A mutation of GraphQL that takes something away.
pub(super) fn mutates(text: &str) -> bool {
    const TAKES: &[&str] = &["archive", "delete", "force:true", "force: true", "remove"];
    text.contains("mutation") && TAKES.iter().any(|it| text.contains(it))
}

pub(super) fn compose(args: &[Word]) -> Option<&str> {
    let down = args.iter().any(|it| it.text == "down" || it.text == "rm");
    let starts = args.iter().any(|it| it.text == "up" || it.text == "create");
    let renews = |it: &&Word| it.text == "--renew-anon-volumes" || starts && is_short(it, 'V');
    if let Some(it) = args.iter().find(renews) {
        return Some(&it.text);
    }
    let volumes = args.iter().find(|it| option_matches(it, "v", &["--volumes"]));
    volumes.filter(|_| down).map(|it| it.text.as_str())
}

/// Words of SQL that take away what is there.
pub(super) fn is_sql(word: &str) -> bool {
    ["drop", "truncate", "delete", "gexec", "lo_unlink"].iter().any(|it| it.eq_ignore_ascii_case(word))
}

pub(super) fn sql(args: &[Word]) -> Option<&str> {
    if let Some(it) = args.iter().find(|it| it.is_unknown()) {
        return Some(&it.text);
    }
    args.iter().find_map(|it| {
        takes_away(&it.text)
            .filter(|_| without_strings(&it.text).is_none_or(|it| takes_away(&it).is_some()))
            .or_else(|| sql_phrase(&it.text))
    })
}

fn takes_away(text: &str) -> Option<&str> {
    let words = |text| str::split(text, |it: char| !it.is_ascii_alphanumeric() && it != '_');
    // `-tAcDROP TABLE x`: what sticks to a few letters.
    let stuck = || {
        let first = text.strip_prefix('-').filter(|it| !it.starts_with('-'))?.split_whitespace().next()?;
        (1..MAX_LETTERS).filter_map(|at| first.get(at..)).find(|it| is_sql(it))
    };
    words(text).find(|it| is_sql(it)).or_else(stuck)
}

/// So many short options may stand in one word.
const MAX_LETTERS: usize = 8;

/// The statement without its texts: `where action = 'delete'`; not where such a text may be run.
fn without_strings(text: &str) -> Option<String> {
    const RUN: &[&str] = &["exec", "prepare", "immediate", "gexec", "dblink", "query", "$$", "eval"];
    let lower = text.to_ascii_lowercase();
    let plain = text.matches('\'').count().is_multiple_of(2)
        && !text.contains(['\\', '"', '`', '$', '#'])
        && !text.contains("--")
        && !text.contains("/*");
    let runs = || RUN.iter().any(|it| lower.contains(it));
    (text.contains('\'') && plain && !runs()).then(|| text.split('\'').step_by(2).collect::<Vec<_>>().join("''"))
}

/// Two words that take away together.
fn sql_phrase(text: &str) -> Option<&str> {
    const PHRASES: &[&str] = &[
        "or replace table",
        "pg_drop_replication_slot",
        "purge binary logs",
        "purge master logs",
        "reset binary logs",
        "reset master",
    ];
    let restores = text.trim_start().starts_with(".restore");
    let says = || {
        let lower = text.to_ascii_lowercase();
        PHRASES.iter().any(|it| lower.contains(it))
    };
    (restores || text.len() < MAX_SQL && says()).then_some(text)
}

/// Longer texts are not looked through for phrases.
const MAX_SQL: usize = 4_096;

/// `-X DELETE`, to another machine than this one.
pub(super) fn http(args: &[Word]) -> Option<&str> {
    const HERE: &[&str] = &["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
    // Behind it is a daemon, docker's above all, whatever the host is called.
    let daemon = |it: &Word| it.text.starts_with("--unix-socket") || it.text.contains(":2375/");
    let socket = args.iter().any(daemon);
    if let Some(it) = curl_told(args).or_else(|| stores::over_http(args)) {
        return Some(it);
    }
    let told = |it: &&Word| {
        let text = it.text.rsplit_once('=').map_or(it.text.as_str(), |it| it.1);
        text.eq_ignore_ascii_case("DELETE")
            || it.text.starts_with("-") && !it.text.starts_with("--") && it.text.ends_with("XDELETE")
            || HTTP.iter().any(|sign| it.text.contains(sign))
            || socket && it.text.ends_with("/prune")
    };
    let here = |it: &Word| {
        let host = it.text.split_once("://").map_or(it.text.as_str(), |it| it.1);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        // `http DELETE :8000/x`
        let short = host.strip_prefix(':').is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        short && it.text.starts_with(':') && it.text.len() > 1
            || !host.contains('@')
                && HERE
                    .iter()
                    .any(|it| host.strip_prefix(it).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')))
    };
    let elsewhere = |it: &Word| it.text.contains("://") && !here(it);
    let stays = !socket && args.iter().any(here) && !args.iter().any(elsewhere);
    let found = args.iter().find(told).map(|it| it.text.as_str()).or_else(|| stores::posts_deletion(args));
    found.filter(|_| !stays)
}

/// What deletes in an address, a header or a body.
const HTTP: &[&str] = &[
    "_delete_by_query",
    "ethod-Override: DELETE",
    "ethod-Override:DELETE",
    "DROP TABLE ",
    "TRUNCATE TABLE ",
    "mutation { delete",
    "mutation{delete",
];

/// Commands for a server of files, and settings that nobody sees: `-Q 'DELE x'`, `-K -`.
fn curl_told(args: &[Word]) -> Option<&str> {
    const VERBS: &[&str] = &["dele", "expunge", "rm", "rmd", "rmdir"];
    let quoted = |it: &str| {
        let verb = it.trim_start_matches(['-', '+', '*']).split_whitespace().next().unwrap_or_default();
        VERBS.iter().any(|it| it.eq_ignore_ascii_case(verb))
    };
    let decides = |it: &(&Word, &Word)| match it.0.text.as_str() {
        "-Q" | "-X" | "--postquote" | "--prequote" | "--quote" | "--request" => quoted(&it.1.text),
        "-K" | "--config" => it.1.text == "-" || it.1.text.starts_with("/dev/") || it.1.text.starts_with("<("),
        _ => false,
    };
    args.iter().zip(args.iter().skip(1)).find(decides).map(|it| it.1.text.as_str())
}
