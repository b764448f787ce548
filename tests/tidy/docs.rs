//! The pages of `docs/reference` are what `cargo xtask docs` writes, and say all variables that the source does.

use std::{collections::BTreeSet, fs};

use castor_agent::settings::gemini_variables::VARIABLES;
use castor_xtask::docs::{self, PAGES, variables};

use super::{root, sources};

/// Variables that are not for users, and why.
const UNTOLD: &[(&str, &str)] = &[
    ("CASTOR_DEBUG_END_HOOKS_MS", "debug builds alone read it, for tests"),
    ("CASTOR_DEBUG_PANIC", "debug builds alone read it, for tests"),
    ("CASTOR_TEST_NETWORK", "tests alone set it: where hosts are"),
    ("PATH", "castor gives it no meaning of its own"),
];
/// How the names of variables begin that castor goes by.
const OURS: &[&str] = &["CASTOR_", "CLOUDSDK_", "GCE_", "GEMINI_", "GOOGLE_", "OTEL_"];

#[test]
fn the_reference_is_current() {
    let folder = root().join("docs/reference");
    let written = tempfile::tempdir().unwrap();
    docs::write(written.path()).unwrap();
    for page in PAGES {
        let file = format!("{}.md", page.name);
        let [there, now] = [&folder, written.path()].map(|it| fs::read_to_string(it.join(&file)).unwrap_or_default());
        assert!(there == now, "docs/reference/{file} is not current: run cargo xtask docs");
    }
    let pages = fs::read_dir(&folder).unwrap().map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
    let n_written = pages.filter(|it| it.starts_with("<!-- `cargo xtask docs`")).count();
    assert_eq!(n_written, PAGES.len(), "docs/reference holds a page that cargo xtask docs no longer writes");
}

#[test]
fn docs_list_every_variable() {
    let told: BTreeSet<&str> =
        variables::READ.iter().map(|it| it.0).chain(variables::SET.iter().map(|it| it.0)).collect();
    let unread: BTreeSet<&str> = VARIABLES.iter().map(|it| it.0).collect();
    let (mut all, mut missing) = (String::new(), BTreeSet::new());
    for source in sources().iter().filter(|it| !it.name.starts_with("xtask/docs")) {
        let code = source.code();
        for (at, word) in quoted(&code) {
            let is_name = word.bytes().all(|it| it == b'_' || it.is_ascii_uppercase() || it.is_ascii_digit());
            let is_ours = OURS.iter().any(|it| word.starts_with(it)) || word.ends_with("_API_KEY");
            let is_read = is_ours && !word.ends_with('_') || code[..at].ends_with("env.get(");
            let untold = UNTOLD.iter().any(|it| it.0 == word) || told.contains(word) || unread.contains(word);
            if is_name && is_read && !untold {
                missing.insert(format!("{word} ({})", source.name));
            }
        }
        all += &source.text;
        all += &source.tests;
    }
    assert!(missing.is_empty(), "src/xtask/docs/variables.rs does not name {missing:?}");
    for name in told {
        assert!(all.contains(name), "nothing in src goes by the variable {name}");
    }
}

/// What stands between quotes in one line, and where the quotes begin.
fn quoted(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('"').filter_map(|(at, _)| {
        let rest = &code[at + 1..];
        let end = rest.find(|it: char| !(it == '_' || it.is_ascii_alphanumeric()))?;
        (end > 0 && rest[end..].starts_with('"')).then(|| (at, &rest[..end]))
    })
}

/// Paths of the pages for colleagues; some are below `src`.
#[test]
fn pages_name_existing_paths() {
    let tops = [
        "agent", "base", "benches", "cli", "client", "docs", "engine", "hands", "host", "models", "schema", "serve",
        "src", "store", "tests", "tools", "wire",
    ];
    for page in ["CONTRIBUTING.md", "docs/architecture.md", "src/README.md", "tests/README.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let paths = text.split('`').skip(1).step_by(2).filter(|it| {
            it.split_once('/').is_some_and(|(top, _)| tops.contains(&top))
                && !it.contains(['*', ' '])
                && !it.contains("NAME")
        });
        let missing: Vec<&str> =
            paths.filter(|it| !["", "src"].iter().any(|top| root().join(top).join(it).exists())).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}, which are not there");
    }
}
