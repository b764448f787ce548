//! What providers answer when something went wrong, and what castor makes of it: a table as text, from raw answers.

use std::path::Path;

use castor_engine::routing::{context_overflow::read_overflow, failure_class::classify};
use castor_models::providers::error_body;
use expect_test::expect_file;

/// When the answers came: 2026-01-31T12:00:00Z.
const NOW_MS: u64 = 1_769_860_800_000;

/// `failures.txt`: `== what`, a status or `stream`, headers, the body, and below what it is. `UPDATE_EXPECT=1` rewrites.
#[test]
fn every_answer_has_its_class() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/failures.txt");
    let table = std::fs::read_to_string(&file).unwrap();
    let mut actual = String::new();
    for block in table.split("\n\n") {
        let lines = block.lines().filter(|it| !it.starts_with("    "));
        let lines: Vec<&str> = lines.collect();
        let told = if lines[0].starts_with("== ") { told(&lines[1..]) } else { String::new() };
        actual += &format!("{}\n{told}\n", lines.join("\n"));
    }
    expect_file![file].assert_eq(&format!("{}\n", actual.trim_end()));
}

fn told(lines: &[&str]) -> String {
    let (status, rest) = lines.split_first().expect("a status");
    let header = |it: &&&str| {
        it.split_once(": ").is_some_and(|(name, _)| name.chars().all(|it| it == '-' || it.is_ascii_lowercase()))
    };
    let n_headers = rest.iter().take_while(header).count();
    let headers: Vec<(&str, &str)> = rest[..n_headers].iter().filter_map(|it| it.split_once(": ")).collect();
    let body = rest[n_headers..].join("\n");
    let header = |name: &str| headers.iter().find(|(it, _)| *it == name).map(|(_, value)| *value);
    let failure = match status.parse() {
        Ok(status) => error_body::from_answer(status, &body, error_body::wait_from_headers(status, header, NOW_MS)),
        Err(_) => error_body::from_stream(&body),
    };
    let found = classify(&failure);
    let delay = found.delay_ms.map(|it| format!(", wait {it} ms")).unwrap_or_default();
    let number = |it: Option<u64>| it.map_or("?".to_owned(), |it| it.to_string());
    let outgrown =
        read_overflow(&failure).map(|it| format!(", {} for a window of {}", number(it.size), number(it.window)));
    let outgrown = outgrown.unwrap_or_default();
    let link = failure.details.link.map(|it| format!(", {it}")).unwrap_or_default();
    format!("    {}{delay}{outgrown}{link}\n", found.class.as_str())
}
