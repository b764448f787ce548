//! What rooms may weigh.

use super::{Source, sources, src};

const MAX_CODE: usize = 4_500;
const MAX_DANGER: usize = 150;
const MAX_SAFE: usize = 120;
const FOLDER: &str = "engine/policy/";
/// What judges a command, and what confines it.
const GUARD: &[&str] = &[
    "agent/session/confinement.rs",
    "agent/session/server_ground.rs",
    "base/guarded",
    "base/sandbox.rs",
    "base/sandbox/program.rs",
    "base/sandbox/protected_paths.rs",
    "base/sandbox/shared_tmp.rs",
    "engine/policy/",
    "hands/process/outside.rs",
    "hands/process/reach.rs",
    "hands/process/sandbox/",
    "hands/process/seccomp.rs",
    "tools/builtin/aliases.rs",
];
/// What tells what a sandbox refused.
const RECORD: &[&str] = &["base/sandbox/refusal.rs", "hands/process/record/"];
// A session's own `/tmp`, a home of which tools are seen, layers above their folders, sockets that are its own, and secrets
// that are open with their hosts: some 420 lines. To be 9,500.
const MAX_GUARD: usize = 9_808;
const MAX_CHECKPOINTS: usize = 2_505;
const MAX_PROVENANCE: usize = 734;
// Sockets, servers, programs in front and attempts to read secrets came to it. To be 500.
const MAX_RECORD: usize = 509;
const MAX_DOOR: usize = 1_200;

fn files() -> Vec<Source> {
    let own = |it: &Source| it.name.starts_with(FOLDER) && it.name != "engine/policy/mod.rs";
    sources().into_iter().filter(own).collect()
}

/// Lines without tests, comments and blanks.
pub fn code(source: &Source) -> usize {
    // Behind the name of a module with tests the room's own code goes on.
    let rest = source.tests.strip_prefix("#[cfg(test)]\nmod tests;").unwrap_or_default();
    let lines = source.code() + rest;
    lines.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("//")).count()
}

#[test]
fn the_guard_and_checkpoints_stay_small() {
    for (what, rooms, max) in [
        ("the guard", GUARD, MAX_GUARD),
        ("checkpoints", &["hands/checkpoints/"], MAX_CHECKPOINTS),
        ("the sandbox's record", RECORD, MAX_RECORD),
        ("provenance", &["hands/provenance/"], MAX_PROVENANCE),
        ("the door", &["base/network", "hands/door"], MAX_DOOR),
    ] {
        let all = sources();
        let own = all.iter().filter(|it| rooms.iter().any(|room| it.name.starts_with(room)));
        let lines: usize = own.map(code).sum();
        assert!(lines > 300 && lines <= max, "{what} has {lines} lines of code, at most {max}");
    }
}

#[test]
fn policy_stays_small() {
    let all: usize = files().iter().map(code).sum();
    assert!(all > 1_000 && all <= MAX_CODE, "engine/policy has {all} lines of code, at most {MAX_CODE}");
    for (file, head, max) in [("danger.toml", "[[rule]]", MAX_DANGER), ("safe.toml", "[[row]]", MAX_SAFE)] {
        let text = std::fs::read_to_string(src().join(FOLDER).join(file)).unwrap();
        let n = text.lines().filter(|it| *it == head).count();
        assert!(n > 50 && n <= max, "{file} has {n} rows, at most {max}");
    }
}
