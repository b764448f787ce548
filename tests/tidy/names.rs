//! Names that a reader can look for: one public type of a name in a band, no participle alone, few parameters.

use std::collections::BTreeMap;

use super::{Report, is_fn, items, sources};

/// Beside `self`.
const MAX_PARAMETERS: usize = 5;
/// They say that something happened, not what a thing is.
const PARTICIPLES: &[&str] = &[
    "Asked", "Begun", "Done", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Made", "Named",
    "Said", "Seen", "Shown", "Standing", "Taken", "Told", "Wanted", "Written",
];

/// Compiled in place of another file, with its names.
const TWINS: &[&str] = &["store/sessions/no_postgres.rs", "agent/telemetry/unexported.rs"];

#[test]
fn no_type_is_named_by_a_participle_alone() {
    let mut report = Report::default();
    for source in sources() {
        for (line, name, _) in types(&source.code()) {
            if PARTICIPLES.contains(&name.as_str()) {
                report.add(&source, line, &format!("`{name}` says that something happened, not what it is"));
            }
        }
        let file = source.name.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if PARTICIPLES.iter().any(|it| it.to_lowercase() == file) {
            report.add(&source, 1, "the file's name says that something happened, not what it is");
        }
    }
}

#[test]
fn a_public_type_has_its_name_for_itself_in_its_band() {
    let mut report = Report::default();
    let mut first = BTreeMap::<(String, String), String>::new();
    for source in sources().into_iter().filter(|it| !TWINS.contains(&it.name.as_str())) {
        let band = source.name.split('/').next().unwrap_or_default().to_owned();
        for (line, name, _) in types(&source.code()).into_iter().filter(|it| it.2) {
            if let Some(other) = first.insert((band.clone(), name.clone()), source.name.clone()) {
                report.add(&source, line, &format!("{other} has a `{name}`, too"));
            }
        }
    }
    assert!(first.len() > 500, "only {} types are found", first.len());
}

#[test]
fn functions_have_few_parameters() {
    let mut report = Report::default();
    for source in sources() {
        for item in items(&source.text, is_fn) {
            let n = parameters(&item.lines.join("\n"));
            if n > MAX_PARAMETERS {
                report.add(&source, item.at, &format!("{n} parameters, at most {MAX_PARAMETERS}"));
            }
        }
    }
}

#[test]
fn names_and_parameters_are_counted() {
    let found = types("pub struct A<T>;\n    type B = C;\nenum D {}\npub(super) trait E {}\npub type F = u8;");
    let names: Vec<(usize, &str, bool)> = found.iter().map(|it| (it.0, it.1.as_str(), it.2)).collect();
    assert_eq!(names, [(1, "A", true), (3, "D", false), (4, "E", true), (5, "F", true)]);
    let counts =
        ["fn a()", "fn b<T: Fn(u8, u8)>(&self, x: [u8; 2],) {}", "fn c(a: Vec<(u8, u8)>, b: impl Fn(A, B) -> C)"];
    assert_eq!(counts.map(parameters), [0, 1, 2]);
}

/// Line, name, whether it is public. What an `impl` calls a type is indented, and is none.
fn types(code: &str) -> Vec<(usize, String, bool)> {
    let mut res = Vec::new();
    for (idx, line) in code.lines().enumerate() {
        let mut words = line.split_whitespace();
        let mut word = words.next().unwrap_or_default();
        let is_public = word.starts_with("pub");
        if is_public {
            word = words.next().unwrap_or_default();
        }
        let is_type = matches!(word, "struct" | "enum" | "trait") || (word == "type" && !line.starts_with(' '));
        let name = words.next().unwrap_or_default();
        let name: String = name.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
        if is_type && !name.is_empty() {
            res.push((idx + 1, name, is_public));
        }
    }
    res
}

/// How many there are beside `self`.
fn parameters(item: &str) -> usize {
    parameter_list(item).len()
}

/// The parameters beside `self`, with their types.
pub fn parameter_list(item: &str) -> Vec<String> {
    let text = item.split_once("fn ").map_or(item, |it| it.1).replace("->", "");
    let (mut angles, mut depth, mut all) = (0, 0, vec![String::new()]);
    for c in text.chars() {
        let is_inside = depth > 0;
        match c {
            '<' => angles += 1,
            '>' => angles -= 1,
            '(' | '[' => depth += i32::from(is_inside || (angles == 0 && c == '(')),
            ')' | ']' if depth == 1 && angles == 0 => break,
            ')' | ']' if is_inside => depth -= 1,
            ',' if depth == 1 && angles == 0 => {
                all.push(String::new());
                continue;
            }
            _ => (),
        }
        if is_inside {
            all.last_mut().unwrap().push(c);
        }
    }
    all.iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty() && !it.ends_with("self")).collect()
}
