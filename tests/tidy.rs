//! The architecture, checked: reads the table in `src/README.md` and every source file.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

#[path = "tidy/comments.rs"]
mod comments;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/docs.rs"]
mod docs;
#[path = "tidy/exceptions.rs"]
mod exceptions;
#[path = "tidy/findable.rs"]
mod findable;
#[path = "tidy/handlers.rs"]
mod handlers;
#[path = "tidy/models.rs"]
mod models;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/protocol.rs"]
mod protocol;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/text.rs"]
mod text;
#[path = "tidy/weight.rs"]
mod weight;
#[path = "tidy/wording.rs"]
mod wording;

use text::{braced, crate_paths, expand, indent, is_fn, items};

const MAX_LINES: usize = 500;
const MAX_FN_LINES: usize = 60;
/// Four spaces each, counted from the `fn` line: the body, three levels of blocks, two for the shape of an expression.
const MAX_FN_LEVELS: usize = 6;
const IMPURE: &[&str] = &[
    "async fn",
    "async move",
    "async {",
    ".await",
    "tokio::",
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "::now()",
    "thread::",
    "RandomState",
];
const LOCKS: &[&str] = &["Mutex<", "RwLock<", "Mutex::new", "RwLock::new"];
const SLEEPS: &[&str] = &["::sleep(", " sleep(", "sleep_until("];
const PANICS: &[&str] =
    &[".unwrap()", ".expect(", ".expect_err(", ".unwrap_err()", "panic!", "todo!", "unimplemented!"];
/// Start of a line in `src/`, with what may stand there all the same, and why.
const MAY_PANIC: &[(&str, &str, &str)] = &[];
/// Files whose tests may sleep, and why.
const MAY_SLEEP: &[(&str, &str)] = &[
    ("src/models/providers/gemini/tests_server.rs", "a loop that is slower than a socket's real time limit"),
    ("tests/tidy.rs", "only says the word"),
];
/// The rooms that join what the others do.
const JOINTS: &[&str] = &[
    "agent::errors",
    "agent::model",
    "agent::panics",
    "agent::server",
    "agent::session",
    "agent::settings",
    "cli",
    "host::ahp",
    "host::hub",
    "serve",
];
/// Folders of `src` that belong to the package itself. Each other one is a crate.
const OF_PACKAGE: &[&str] = &["cli", "serve"];
/// Names under which people keep their own machines' folders.
const HOMES: &[&str] = &["/home/", "/Users/", "/root/", "C:\\Users"];

struct Room {
    uses: Vec<String>,
    pure: bool,
}

/// One source file.
struct Source {
    name: String,
    /// Without its tests, unless the whole file is one.
    text: String,
    /// The tests at its end.
    tests: String,
}

/// Collects what is wrong, so that one run tells all of it.
#[derive(Default)]
struct Report(String);

impl Report {
    fn add(&mut self, source: &Source, line: usize, what: &str) {
        let _ = writeln!(self.0, "{}:{line}: {what}", source.name);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        assert!(self.0.is_empty() || std::thread::panicking(), "\n{}", self.0);
    }
}

#[test]
fn rooms_use_only_what_the_map_allows() {
    let (rooms, mut report) = (map(), Report::default());
    for source in sources() {
        let Some(own) = room_of(&rooms, &source.module()) else { continue };
        for (line, path) in crate_paths(&source.code()) {
            let Some(target) = room_of(&rooms, &path) else { continue };
            if target != own && !allows(&rooms[&own], &target) {
                report.add(&source, line, &format!("{own} may not use {target}"));
            }
        }
    }
}

#[test]
fn no_room_reaches_out_by_super() {
    let (rooms, mut report) = (map(), Report::default());
    for source in sources() {
        let module = source.module();
        let Some(own) = room_of(&rooms, &module) else { continue };
        let depth = module.split("::").count() - own.split("::").count();
        let climb = "super::".repeat(depth + 1);
        for (line, code) in source.lines() {
            if code.contains(&climb) {
                report.add(&source, line, &format!("leaves {own} by `super`; say `crate::…`"));
            }
        }
    }
}

#[test]
fn the_map_and_the_folders_agree() {
    let (rooms, mut missing) = (map(), Vec::new());
    for name in rooms.keys() {
        let path = src().join(name.replace("::", "/"));
        if !path.is_dir() && !path.with_extension("rs").is_file() {
            missing.push(format!("{name} is in the map, but not in src"));
        }
    }
    for source in sources() {
        let module = source.module();
        let joint = rooms.keys().any(|it| it.starts_with(&format!("{module}::")));
        if room_of(&rooms, &module).is_none() && !joint && !["", "main"].contains(&module.as_str()) {
            missing.push(format!("src/{} is in no room of the map", source.name));
        }
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

#[test]
fn the_map_itself_has_no_cycle() {
    let rooms = map();
    for start in rooms.keys() {
        let mut open: Vec<&str> = rooms[start].uses.iter().map(String::as_str).collect();
        let mut seen = Vec::new();
        while let Some(name) = open.pop() {
            assert!(!covers(name, start), "{start} uses itself through {seen:?}");
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let below = rooms.iter().filter(|(room, _)| covers(name, room));
            open.extend(below.flat_map(|(_, it)| it.uses.iter().map(String::as_str)));
        }
    }
}

#[test]
fn the_map_names_only_rooms_that_it_has() {
    let rooms = map();
    for (name, room) in &rooms {
        for used in &room.uses {
            assert!(rooms.keys().any(|it| covers(used, it)), "{name} may use {used}, which is not a room");
        }
    }
}

#[test]
fn pure_rooms_are_pure() {
    let (rooms, mut report) = (map(), Report::default());
    for source in sources() {
        let Some(own) = room_of(&rooms, &source.module()) else { continue };
        if !rooms[&own].pure {
            continue;
        }
        report_words(&source, IMPURE, &format!("{own} is pure, but says"), &mut report);
    }
}

#[test]
fn one_owner_needs_no_lock() {
    let mut report = Report::default();
    for source in sources().iter().filter(|it| ["engine", "base"].iter().chain(JOINTS).any(|room| it.is_in(room))) {
        report_words(source, LOCKS, "shares state:", &mut report);
    }
}

#[test]
fn only_wire_acp_and_what_joins_know_the_protocol() {
    let mut report = Report::default();
    for source in sources().iter().filter(|it| !it.is_in("wire::acp") && !JOINTS.iter().any(|room| it.is_in(room))) {
        report_words(source, &["agent_client_protocol_schema"], "knows ACP:", &mut report);
    }
}

#[test]
fn policy_is_decided_in_one_place() {
    let mut calls = Vec::new();
    for source in sources().iter().filter(|it| !it.is_in("engine::policy")) {
        let lines = source.lines().into_iter().filter(|(_, code)| code.contains("policy::decide("));
        calls.extend(lines.map(|(line, _)| format!("src/{}:{line}", source.name)));
    }
    let decides = sources().iter().any(|it| it.is_in("engine::policy") && it.text.contains("pub fn decide"));
    assert!(!decides || calls.len() == 1, "policy::decide( is called at {calls:?}; exactly one place may");
}

#[test]
fn nothing_panics_on_purpose() {
    let mut report = Report::default();
    for source in sources() {
        for (line, code) in source.lines() {
            let Some(word) = PANICS.iter().find(|it| code.contains(**it)) else { continue };
            let excused = MAY_PANIC.iter().any(|(name, text, _)| source.name == *name && code.contains(text));
            if !excused {
                report.add(&source, line, &format!("`{word}` outside tests"));
            }
        }
    }
}

#[test]
fn no_paths_of_one_machine() {
    let mut report = Report::default();
    let here = env!("CARGO_MANIFEST_DIR");
    for source in sources() {
        report_words(&source, HOMES, "a path of somebody's machine:", &mut report);
        report_words(&source, &[here], "a path of this machine:", &mut report);
    }
}

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut report = Report::default();
    for source in ["src", "tests", "benches"].iter().flat_map(|it| sources_in(&root().join(it))) {
        let first = source.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") && source.name != "lib.rs" {
            report.add(&source, 1, "the first line says what the file is: `//! …`");
        }
        let n_lines = source.text.lines().count() + source.tests.lines().count();
        if n_lines > MAX_LINES {
            report.add(&source, n_lines, &format!("{n_lines} lines, at most {MAX_LINES}"));
        }
    }
}

#[test]
fn tests_do_not_sleep() {
    let mut report = Report::default();
    for folder in ["src", "tests"] {
        for Source { name, text, tests } in sources_in(&root().join(folder)) {
            let first = text.lines().count();
            let is_test = folder == "tests" || is_test_file(&name);
            let name = format!("{folder}/{name}");
            if MAY_SLEEP.iter().any(|(it, _)| *it == name) {
                continue;
            }
            let all = if is_test { text + &tests } else { "\n".repeat(first) + &tests };
            report_words(&Source { name, text: all, tests: String::new() }, SLEEPS, "a test waits for", &mut report);
        }
    }
}

#[test]
fn functions_are_short_and_flat() {
    let mut report = Report::default();
    for source in sources() {
        for item in items(&source.text, is_fn) {
            if item.lines.len() > MAX_FN_LINES {
                report.add(&source, item.at, &format!("{} lines in a function", item.lines.len()));
            }
            let deepest = item.lines.iter().map(|it| indent(it)).max().unwrap_or_default();
            let levels = deepest.saturating_sub(item.indent) / 4;
            if levels > MAX_FN_LEVELS {
                report.add(&source, item.at, &format!("{levels} levels deep, at most {MAX_FN_LEVELS}"));
            }
        }
    }
}

fn report_words(source: &Source, words: &[&str], what: &str, report: &mut Report) {
    for (line, code) in source.lines() {
        if let Some(word) = words.iter().find(|it| code.contains(**it)) {
            report.add(source, line, &format!("{what} `{word}`"));
        }
    }
}

/// The table whose header starts with `| room`.
fn map() -> BTreeMap<String, Room> {
    let text = fs::read_to_string(src().join("README.md")).unwrap();
    let table = text.lines().skip_while(|it| !it.starts_with("| room"));
    let rows = table.take_while(|it| it.starts_with('|')).skip(2);
    let rooms: BTreeMap<String, Room> = rows.map(row).collect();
    assert!(rooms.len() > 10, "the table `| room | uses | pure |` was not found in src/README.md");
    rooms
}

fn row(line: &str) -> (String, Room) {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [name, uses, pure] = cells[..] else { panic!("a row of the map has three cells: {line}") };
    let uses = uses.split_whitespace().map(str::to_owned).collect();
    (name.to_owned(), Room { uses, pure: pure == "yes" })
}

/// Whether `room` is `name` or below it.
fn covers(name: &str, room: &str) -> bool {
    room == name || room.strip_prefix(name).is_some_and(|it| it.starts_with("::"))
}

fn allows(room: &Room, target: &str) -> bool {
    room.uses.iter().any(|it| covers(it, target))
}

/// The longest room name that is a prefix of `path`.
fn room_of(rooms: &BTreeMap<String, Room>, path: &str) -> Option<String> {
    rooms.keys().filter(|it| covers(it, path)).max_by_key(|it| it.len()).cloned()
}

impl Source {
    fn module(&self) -> String {
        let parts = self.name.trim_end_matches(".rs").split('/');
        parts.filter(|it| !["mod", "lib"].contains(it)).collect::<Vec<_>>().join("::")
    }

    fn is_in(&self, room: &str) -> bool {
        covers(room, &self.module())
    }

    /// The text with comments blanked, and paths through crates as if all of them were modules of one.
    fn code(&self) -> String {
        let lines = self.lines().into_iter().map(|(_, code)| code);
        let code = lines.collect::<Vec<_>>().join("\n");
        let own = self.name.split('/').next().filter(|it| !it.ends_with(".rs") && !OF_PACKAGE.contains(it));
        let code = own.map_or_else(|| code.clone(), |it| code.replace("crate::", &format!("crate::{it}::")));
        code.replace("castor_", "crate::")
    }

    /// 1-based lines, cut at a comment that starts a line or follows a blank.
    fn lines(&self) -> Vec<(usize, &str)> {
        let cut = |line: &'_ str| match line.trim_start().starts_with("//") {
            true => 0,
            false => line.find(" // ").unwrap_or(line.len()),
        };
        self.text.lines().enumerate().map(|(idx, line)| (idx + 1, &line[..cut(line)])).collect()
    }
}

/// Every file of `src` that is no test and no build's step: files and folders named `tests…`, `testing` or `fixtures` hold
/// tests only.
fn sources() -> Vec<Source> {
    let mut res = sources_in(&src());
    res.retain(|it| !is_test_file(&it.name) && !it.name.ends_with("build.rs"));
    res
}

fn is_test_file(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with("tests") || part == "testing.rs" || part == "fixtures")
}

fn sources_in(folder: &Path) -> Vec<Source> {
    let (mut open, mut paths) = (vec![folder.to_owned()], Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("target") => (),
                true => open.push(path),
                false => paths.push(path),
            }
        }
    }
    paths.retain(|it| it.extension().is_some_and(|it| it == "rs"));
    paths.sort();
    paths.iter().map(|it| source(it, folder)).collect()
}

fn source(path: &Path, folder: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let at = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let (text, tests) = text.split_at(at);
    Source { name, text: text.to_owned(), tests: tests.to_owned() }
}

fn src() -> PathBuf {
    root().join("src")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
