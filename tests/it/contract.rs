//! The contract (`docs/explanation/contract.md`): what it names exists, and every event, hook, point and processor is named.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use castor_base::hook::{HookEvent, POINTS};
use castor_engine::{context::PROCESSORS, routing::strategies::STRATEGIES};
use serde_json::Value;

/// The last column of tables whose rows are held.
const SHOWN: &str = "shown by";

#[test]
fn contract_names_existing_code_and_tests() {
    let page = page();
    let (rows, wrong) = check(&page);
    assert!(rows > 150, "only {rows} rows were read");
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn contract_check_finds_missing_names() {
    for row in [
        "| x | `engine/nothing.rs` | `prompt-text` |",
        "| x | `base/event.rs` `Nothing` | `prompt-text` |",
        "| x | `base/event.rs` `AgentEven` | `prompt-text` |",
        "| x | `base/event.rs` | `prompt-nothing` |",
        "| x | `base/event.rs` | `engine/turn/tests::nothing` |",
        "| x | `base/event.rs` | `engine/turn/nothing::turns` |",
        "| x | `engine/turn/tests.rs` | `engine/turn/tests::fresh_session` |",
        "| x | `base/event.rs` | `engine/turn/tests/nothing.txt` |",
        "| x | `base/event.rs` | `engine/turn/tests/calls.txt` \"nothing of the kind\" |",
        "| x | `base/event.rs` | |",
        "| x | — | later |",
        "| x | — | no test |",
        "| x | `base/event.rs` | no test |",
    ] {
        let (rows, wrong) = check(&format!("| there | here | {SHOWN} |\n|---|---|---|\n{row}"));
        assert_eq!((rows, wrong.len()), (1, 1), "{row}: {wrong:?}");
    }
}

#[test]
fn contract_names_every_event_hook_and_point() {
    let schema: Value = serde_json::from_str(&read(&root().join("schema/events.json")).unwrap()).unwrap();
    let tags = |of: &Value| -> Vec<String> {
        let all = of["oneOf"].as_array().into_iter().flatten();
        all.map(|it| it["properties"]["type"]["const"].as_str().unwrap().to_owned()).collect()
    };
    let mut names = tags(&schema);
    names.extend(tags(&schema["$defs"]["Part"]));
    names.extend(tags(&schema["$defs"]["Display"]));
    let reasons = schema["$defs"]["EndReason"]["enum"].as_array().unwrap();
    names.extend(reasons.iter().map(|it| it.as_str().unwrap().to_owned()));
    names.extend(HookEvent::ALL.iter().map(|it| it.as_str().to_owned()));
    names.extend(POINTS.iter().map(|(it, _)| (*it).to_owned()));
    names.extend(PROCESSORS.iter().map(|(it, _)| (*it).to_owned()));
    names.extend(STRATEGIES.iter().map(|(it, _)| (*it).to_owned()));
    let page = page();
    let named: BTreeSet<&str> = rows(&page).flat_map(|it| marked(it[0], '`')).collect();
    let missing: Vec<&String> = names.iter().filter(|it| !named.contains(it.as_str())).collect();
    assert!(names.len() > 60 && missing.is_empty(), "{} names, not on the page: {missing:?}", names.len());
}

/// How many rows were held to what they say, and what is wrong with them.
fn check(page: &str) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let mut n_rows = 0;
    for [there, here, shown] in rows(page) {
        n_rows += 1;
        let found = check_here(here).and_then(|()| check_shown(here, shown));
        wrong.extend(found.err().map(|it| format!("{there}: {it}")));
    }
    (n_rows, wrong)
}

/// Rows of the tables that end with what shows them.
fn rows(page: &str) -> impl Iterator<Item = [&str; 3]> {
    let mut held = false;
    page.lines().filter_map(move |line| {
        let Some(cells) = line.strip_prefix('|') else {
            held = false;
            return None;
        };
        let cells: Vec<&str> = cells.trim_end().trim_end_matches('|').split(" |").map(str::trim).collect();
        let is_head = cells.last() == Some(&SHOWN);
        held |= is_head;
        let is_row = held && !is_head && !line.starts_with("|-");
        is_row.then(|| cells.try_into().unwrap_or_else(|_| panic!("three cells: {line}")))
    })
}

/// Files, and words that stand in one of them.
fn check_here(cell: &str) -> Result<(), String> {
    let (files, words): (Vec<&str>, Vec<&str>) = marked(cell, '`').partition(|it| it.ends_with(".rs"));
    let mut texts = String::new();
    for file in &files {
        texts += &read(&root().join("src").join(file)).ok_or_else(|| format!("there is no src/{file}"))?;
    }
    let code = texts.lines().filter(|it| !it.trim_start().starts_with("//"));
    let names: BTreeSet<&str> = code.flat_map(|it| it.split(|it: char| !it.is_alphanumeric() && it != '_')).collect();
    match words.iter().find(|it| !names.contains(**it)) {
        Some(it) => Err(format!("{it} is in none of {files:?}")),
        None if files.is_empty() && cell != "—" => Err("no file is named".to_owned()),
        None => Ok(()),
    }
}

/// Tests, conversations and files of data. A row without any says that it has none.
fn check_shown(here: &str, cell: &str) -> Result<(), String> {
    let mut sections = String::new();
    let mut n = 0;
    for it in marked(cell, '`') {
        n += 1;
        match it.split_once("::") {
            Some((file, test)) => check_test(file, test)?,
            None if it.ends_with(".txt") => {
                sections += &read(&root().join("src").join(it)).ok_or_else(|| format!("there is no src/{it}"))?;
            }
            None if root().join("tests/data").join(format!("{it}.txt")).is_file() => (),
            None => return Err(format!("there is no conversation {it}")),
        }
    }
    if let Some(it) = marked(cell, '"').find(|title| !sections.lines().any(|line| line == format!("== {title}"))) {
        return Err(format!("no section is called {it:?}"));
    }
    let says = |words: &[&str]| words.iter().any(|it| cell.contains(it));
    match here == "—" {
        true if !says(&["not wanted"]) => Err("why is there nothing?".to_owned()),
        false if n == 0 && !says(&["the same", "accepted"]) => Err("what shows it?".to_owned()),
        _ => Ok(()),
    }
}

fn check_test(file: &str, test: &str) -> Result<(), String> {
    let places = ["tests/it", "tests", "src"].map(|it| root().join(it).join(file));
    let files = places.iter().flat_map(|it| [it.with_extension("rs"), it.join("mod.rs"), it.join("main.rs")]);
    let texts: Vec<String> = files.filter_map(|it| read(&it)).collect();
    match texts.iter().any(|it| has_test(it, test)) {
        true => Ok(()),
        false => Err(format!("there is no test {file}::{test}")),
    }
}

/// A test of its own, or one of those that `kinds!` makes.
fn has_test(text: &str, test: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {test}()");
    let is_test = |at: usize| {
        let mut above = lines[..at].iter().rev().take_while(|it| it.starts_with("#["));
        above.any(|it| it.ends_with("test]") || it.starts_with("#[tokio::test"))
    };
    let of_its_own =
        lines.iter().enumerate().any(|(at, it)| it.trim_start_matches("async ").starts_with(&head) && is_test(at));
    let mut kinds = lines.iter().filter_map(|it| it.strip_prefix("kinds!(")?.strip_suffix(");"));
    of_its_own || kinds.any(|it| it.split(' ').any(|it| it == test))
}

/// What stands between two marks.
fn marked(cell: &str, mark: char) -> impl Iterator<Item = &str> {
    cell.split(mark).skip(1).step_by(2)
}

fn page() -> String {
    read(&root().join("docs/explanation/contract.md")).expect("the page is there")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
