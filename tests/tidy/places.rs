//! How many files of `src` name a tool, a hook event or a dialect of models: few, so that one is added in few.

use std::{collections::BTreeSet, fs};

use castor_agent::session::policies::own_tools;
use castor_base::hook::HookEvent;
use castor_hands::process::Groups;
use castor_models::providers::ApiDialect;
use castor_tools::builtin::builtins;

use super::{sources, src};

/// Files that name them for another reason.
const EXCUSED: &[(&str, &str)] = &[
    ("xtask/docs/samples.rs", "examples in the reference"),
    ("cli/hooks/cursor.rs", "the names of Cursor's hooks and tools, and ours"),
    ("cli/hooks/migrate.rs", "the names of Claude Code's hooks, and ours"),
    ("engine/policy/danger.toml", "rules about commands"),
    ("engine/policy/load.rs", "`ask_user` is a decision, too"),
    ("engine/policy/names.rs", "former names of tools"),
    ("models/providers/demo.rs", "the demo model calls tools, as models do"),
    ("store/sessions/import/convert.rs", "what Gemini CLI's tools are in logs that were imported"),
    ("tools/workspace/agents/claude.rs", "the names of Claude Code's tools, and ours"),
];
const RULES: &str = "engine/policy/shipped";

/// Source files and shipped rules, without comments, tests and examples.
fn files() -> Vec<(String, String)> {
    let mut res: Vec<(String, String)> = sources().iter().map(|it| (it.name.clone(), it.code())).collect();
    for entry in fs::read_dir(src().join(RULES)).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let is_rule = |it: &&str| !["#", "match", "not_match", "decision"].iter().any(|head| it.starts_with(head));
        let name = format!("{RULES}/{}", path.file_name().unwrap().to_str().unwrap());
        res.push((name, text.lines().filter(is_rule).collect::<Vec<_>>().join("\n")));
    }
    res.retain(|(name, _)| !EXCUSED.iter().any(|it| it.0 == name));
    res
}

/// Those that say one of the words; `A::` and `::A` are whole words.
fn places<'f>(files: &'f [(String, String)], words: &[String]) -> BTreeSet<&'f str> {
    let is_word = |it: char| it == '_' || it.is_alphanumeric();
    let says = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
            let begins = word.starts_with(is_word) && before.is_some_and(is_word);
            let goes_on = word.ends_with(is_word) && after.is_some_and(is_word);
            !begins && !goes_on
        })
    };
    let named = files.iter().filter(|(_, text)| words.iter().any(|it| says(text, it)));
    named.map(|(name, _)| name.as_str()).collect()
}

/// The files but those of which the name begins so.
fn outside(files: &[(String, String)], head: &str) -> Vec<(String, String)> {
    files.iter().filter(|(name, _)| !name.starts_with(head)).cloned().collect()
}

fn check(what: &str, places: &BTreeSet<&str>, most: usize) {
    assert!((1..=most).contains(&places.len()), "{what} is named in {places:?}: at most {most} files may do so");
}

#[test]
fn a_tool_is_one_file_and_one_row() {
    let files = files();
    for tool in own_tools() {
        check(&tool.name, &places(&files, &[format!("\"{}\"", tool.name)]), 1);
    }
    for tool in builtins(Groups::default()).iter().map(|it| it.spec()) {
        let rest = outside(&files, &format!("tools/builtin/{}/", tool.name));
        check(&tool.name, &places(&rest, &[format!("\"{}\"", tool.name), format!("{}::", tool.name)]), 2);
    }
}

/// With the page that `cargo xtask docs` writes these are three.
#[test]
fn a_hook_event_is_a_row_and_a_point() {
    let files = files();
    for event in HookEvent::ALL {
        let name = event.as_str();
        check(name, &places(&files, &[format!("\"{name}\""), format!("HookEvent::{name}")]), 2);
    }
}

#[test]
fn a_dialect_is_its_folder_a_row_and_a_provider() {
    let files = files();
    for (dialect, _) in ApiDialect::ALL {
        let name = format!("{dialect:?}");
        let module = name.to_lowercase();
        // The command line has a chat of its own, and the reference a page on it.
        let rest = outside(&outside(&outside(&files, "cli/"), "xtask/"), &format!("models/providers/{module}"));
        check(&name, &places(&rest, &[format!("ApiDialect::{name}"), format!("{module}::")]), 2);
    }
}
