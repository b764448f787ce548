//! What servers of keys are told to forget, and what databases are sent over HTTP.

use super::{checks, told};
use crate::engine::policy::shell::Word;

/// Times since 1970 that have long passed.
const PAST: i64 = 1_000_000_000;

/// What a client of Redis is told.
pub(super) fn redis(args: &[Word]) -> Option<&str> {
    // Within a script, too: `eval "redis.call('flushall')"`.
    const HOLDS: &[&str] = &["flushall", "flushdb", "\"del\"", "'del'", "\"unlink\"", "'unlink'"];
    const VERBS: &[&str] = &[
        "del",
        "deluser",
        "getdel",
        "hdel",
        "lrem",
        "ltrim",
        "nosave",
        "srem",
        "unlink",
        "xdel",
        "xtrim",
        "zrem",
        "zremrangebylex",
        "zremrangebyrank",
        "zremrangebyscore",
    ];
    let words = || args.iter().flat_map(|it| it.text.split_whitespace());
    let flushes = |it: &str| HOLDS.iter().any(|word| it.to_ascii_lowercase().contains(word));
    let pairs = || words().zip(words().skip(1));
    let pair = || pairs().find(|it| empties(it.0, it.1)).map(|it| it.0);
    let ended = || pairs().zip(words().skip(2)).find(|it| ends(it.0.0, it.1)).map(|it| it.0.0);
    let set = || {
        let more = words().skip(2).zip(words().skip(3));
        pairs().zip(more).find(|it| is_one(it.0.0, &["getex"]) && is_soon(it.1.0, it.1.1)).map(|it| it.0.0)
    };
    let found = command_from_input(args);
    let found =
        found.or_else(|| words().find(|it| is_one(it, VERBS) || flushes(it)).or_else(pair).or_else(ended).or_else(set));
    found.or_else(|| args.iter().map(|it| it.text.as_str()).find(|it| computes(it)))
}

/// `xargs redis-cli`: which command it is stands in what nobody sees.
fn command_from_input(args: &[Word]) -> Option<&str> {
    const VALUED: &[&str] = &["-D", "-a", "-d", "-h", "-i", "-n", "-p", "-r", "-s", "-t", "-u"];
    let mut rest = args.iter();
    let first = loop {
        let it = rest.next()?;
        match it.text.starts_with('-') {
            false => break it,
            true if VALUED.contains(&it.text.as_str()) => _ = rest.next(),
            true => (),
        }
    };
    (first.is_unknown() || first.text == "\"$@\"" || first.text == "$@").then_some(&first.text)
}

fn is_one(word: &str, list: &[&str]) -> bool {
    list.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// `function flush`, `cluster reset`, `xgroup destroy x`, `replicaof h 6379`: all is taken from there.
fn empties(first: &str, second: &str) -> bool {
    let begins = |words: &[&str]| is_one(first, words);
    begins(&["cluster", "function"])
        && is_one(second, &["delslots", "delslotsrange", "flush", "flushslots", "forget", "reset"])
        || begins(&["xgroup"]) && is_one(second, &["delconsumer", "destroy"])
        || begins(&["--cluster"]) && is_one(second, &["del-node"])
        || begins(&["replicaof", "slaveof"]) && !is_one(second, &["no"])
}

/// `expire x 0`, `pexpire x 1`; one that is popped may be a queue's, many are what it holds.
fn ends(verb: &str, number: &str) -> bool {
    let is = |words: &[&str]| is_one(verb, words);
    let soon = match () {
        () if is(&["expire"]) => 2,
        () if is(&["pexpire"]) => 2_000,
        () if is(&["expireat"]) => PAST,
        () if is(&["pexpireat"]) => PAST * 1_000,
        () => return is(&["lpop", "rpop", "spop", "zpopmax", "zpopmin"]) && number.parse().is_ok_and(|it: u64| it > 1),
    };
    number.parse().is_ok_and(|it: i64| it < soon)
}

/// `getex x EX 1`
fn is_soon(unit: &str, number: &str) -> bool {
    let verb = [("ex", "expire"), ("px", "pexpire"), ("exat", "expireat"), ("pxat", "pexpireat")];
    verb.iter().find(|it| it.0.eq_ignore_ascii_case(unit)).is_some_and(|it| ends(it.1, number))
}

/// A script that puts a command's name together: `redis.call('fl'..'ushall')`.
fn computes(text: &str) -> bool {
    let plain = |rest: &str| {
        let rest = rest.trim_start();
        let mut parts = rest.get(1..).unwrap_or_default().split(['\'', '"']);
        let (name, after) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        rest.starts_with(['\'', '"']) && !name.contains('\\') && after.trim_start().starts_with([',', ')'])
    };
    ["redis.call(", "redis.pcall("].iter().any(|call| text.split(call).skip(1).any(|it| !plain(it)))
}

/// What a database is sent by a client of HTTP, on this machine too: ClickHouse by its port, and servers of keys.
pub(super) fn over_http(args: &[Word]) -> Option<&str> {
    if args.iter().any(|it| it.text.contains(":8123")) {
        return checks::sql(args);
    }
    let raw = |it: &&Word| ["dict://", "gopher://"].iter().any(|start| it.text.starts_with(start));
    args.iter().find(raw).and_then(|it| told::flushes(std::slice::from_ref(it)))
}

/// `POST https://h/users/1/delete`, and Elasticsearch's requests in bulk.
pub(super) fn posts_deletion(args: &[Word]) -> Option<&str> {
    const VERBS: &[&str] = &["delete", "destroy", "purge", "wipe"];
    let has = |text: &str| args.iter().any(|it| it.text.contains(text));
    let posts = |it: &Word| {
        matches!(it.text.as_str(), "POST" | "-XPOST" | "-d" | "--request=POST") || it.text.starts_with("--data")
    };
    let verb = |text: &str| {
        let path = text.split_once("://").map_or("", |it| it.1).split(['?', '#']).next().unwrap_or_default();
        path.trim_end_matches('/').rsplit_once('/').is_some_and(|it| VERBS.contains(&it.1))
    };
    const BODIES: &[&str] = &["DETACH DELETE", "\"VM.destroy\"", "{\"delete\":", "<delete>"];
    const CALLS: &[&str] = &["/_purge", "/admin/tsdb/delete_series", "/chat.delete", "/deleteMessage", "/doDelete"];
    let sql = |it: &&Word| {
        let query =
            it.text.split(['?', '&']).find_map(|it| it.strip_prefix("q=").or_else(|| it.strip_prefix("query=")));
        query.is_some_and(|it| it.split([' ', '+', '%']).next().is_some_and(checks::is_sql))
    };
    let told = |it: &&Word| {
        CALLS.iter().any(|call| it.text.contains(call))
            || BODIES.iter().any(|body| it.text.contains(body))
            || checks::mutates(&it.text)
            || sql(it)
    };
    let told = || args.iter().find(told);
    let by_path = || args.iter().find(|it| verb(&it.text)).filter(|_| args.iter().any(posts));
    let in_bulk = || args.iter().find(|it| it.text.contains("\"delete\"")).filter(|_| has("/_bulk"));
    by_path().or_else(in_bulk).or_else(told).map(|it| it.text.as_str())
}
