//! What rooms may weigh, and that the files of `engine::policy` use each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, sources, src};

/// Lines without tests, comments and blanks.
const MAX_CODE: usize = 4_500;
const MAX_DANGER: usize = 150;
const MAX_SAFE: usize = 120;
const FOLDER: &str = "engine/policy/";
/// What judges a command, and what confines it.
const GUARD: &[&str] = &[
    "app/session/confinement.rs",
    "base/guarded",
    "base/sandbox.rs",
    "engine/policy/",
    "world/process/sandbox/",
    "world/tools/aliases.rs",
];
const MAX_GUARD: usize = 8_500;
const MAX_CHECKPOINTS: usize = 2_500;

fn files() -> Vec<Source> {
    let own = |it: &Source| it.name.starts_with(FOLDER) && it.name != "engine/policy/mod.rs";
    sources().into_iter().filter(own).collect()
}

fn code(source: &Source) -> usize {
    // Behind the name of a module with tests the room's own code goes on.
    let rest = source.tests.strip_prefix("#[cfg(test)]\nmod tests;").unwrap_or_default();
    let lines = source.code() + rest;
    lines.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("//")).count()
}

#[test]
fn the_guard_and_checkpoints_stay_small() {
    for (what, rooms, max) in
        [("the guard", GUARD, MAX_GUARD), ("checkpoints", &["world/checkpoints/"], MAX_CHECKPOINTS)]
    {
        let all = sources();
        let own = all.iter().filter(|it| rooms.iter().any(|room| it.name.starts_with(room)));
        let lines: usize = own.map(code).sum();
        assert!(lines > 1_000 && lines <= max, "{what} has {lines} lines of code, at most {max}");
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

#[test]
fn files_of_policy_form_no_cycle() {
    let files = files();
    let module =
        |it: &Source| it.name.trim_start_matches(FOLDER).trim_end_matches(".rs").trim_end_matches("/mod").to_owned();
    let names: BTreeSet<String> = files.iter().map(module).collect();
    let mut uses = BTreeMap::<String, BTreeSet<String>>::new();
    for file in &files {
        let own = module(file);
        let folder = own.rsplit_once('/').map_or("", |it| it.0);
        let own_folder = if file.name.ends_with("/mod.rs") { own.as_str() } else { folder };
        // What a folder's own file names is in the folder.
        for path in used(&file.code()) {
            let full = if own_folder.is_empty() { path.clone() } else { format!("{own_folder}/{path}") };
            let hit = [full.as_str(), path.as_str()].into_iter().find(|it| names.contains(*it));
            uses.entry(own.clone()).or_default().extend(hit.filter(|it| **it != own).map(str::to_owned));
        }
    }
    assert!(uses["command"].contains("shell") && uses["shell/parse"].contains("shell/walk"), "{uses:?}");
    // Whoever uses nobody that is left is taken away; what cannot be taken away goes in circles.
    while let Some(done) = uses.iter().find(|(_, to)| to.iter().all(|it| !uses.contains_key(it))).map(|it| it.0.clone())
    {
        uses.remove(&done);
    }
    assert!(uses.is_empty(), "these use each other: {:?}", uses.keys());
}

/// The first names behind `super::`, and what `pub use` and `mod` of a folder's own file name.
fn used(code: &str) -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    let word = |it: &str| it.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect::<String>();
    for (at, _) in code.match_indices("super::") {
        let rest = &code[at + "super::".len()..];
        match rest.strip_prefix('{') {
            None => _ = res.insert(word(rest)),
            Some(list) => res.extend(first_names(list)),
        }
    }
    for line in code.lines().map(str::trim) {
        let path = line
            .strip_prefix("pub use ")
            .or_else(|| line.strip_prefix("mod "))
            .or_else(|| line.strip_prefix("pub mod "));
        res.extend(path.map(word));
    }
    res
}

/// Of `a, b::{c, d}, e::f}`: a, b and e.
fn first_names(list: &str) -> Vec<String> {
    let (mut depth, mut name, mut res) = (0, String::new(), Vec::new());
    for it in list.chars() {
        match it {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => res.push(std::mem::take(&mut name)),
            _ if depth == 0 => name.push(it),
            _ => (),
        }
    }
    res.push(name);
    res.iter().map(|it| it.trim().split("::").next().unwrap_or_default().to_owned()).collect()
}
