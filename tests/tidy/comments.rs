//! Doc comments stand before the item that they speak of.

use std::collections::BTreeMap;

use super::{exceptions, sources_in, src};

/// A line that ends with its sentence may be as long as this with the first word of the next one.
const WIDTH: usize = 110;
/// What a line of its own begins with: members of lists, and the names of parameters.
const OWN_LINES: &[char] = &['#', '-', '*', '|', '`', ' ', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

#[test]
fn doc_comments_speak_of_the_next_item() {
    let mut measured = BTreeMap::new();
    for source in sources_in(&src()) {
        let found = strays(&(source.text + &source.tests));
        for (line, why) in &found {
            eprintln!("src/{}:{line}: {why}", source.name);
        }
        measured.insert(format!("src/{}", source.name), found.len());
    }
    exceptions::check("stray-comments", 0, &measured);
}

/// Lines of doc comments that belong to no item, or to another one than the lines below them.
fn strays(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_doc = |it: &str| it.starts_with("///") && !it.starts_with("////");
    let (mut res, mut is_code) = (Vec::new(), false);
    for (idx, pair) in lines.windows(2).enumerate().filter(|(_, it)| is_doc(it[0])) {
        is_code ^= pair[0].starts_with("/// ```");
        let line = idx + 1;
        if pair[1].is_empty() || pair[1].starts_with('}') {
            res.push((line, "a doc comment without an item"));
        } else if pair[1].starts_with("#[") && is_doc(behind_attributes(&lines[idx + 1..])) {
            res.push((line, "two doc comments before one item"));
        } else if is_doc(pair[1]) && !is_code && ends_early(text.lines().nth(idx).unwrap_or_default(), pair[1]) {
            res.push((line, "the sentence ends its line early: is it another item's? If not, fill the line"));
        }
    }
    res
}

/// The first line behind attributes, which may have several lines.
fn behind_attributes<'l>(lines: &[&'l str]) -> &'l str {
    let mut depth = 0;
    for line in lines {
        if depth == 0 && !line.starts_with("#[") {
            return line;
        }
        depth += line.matches('[').count() as isize - line.matches(']').count() as isize;
    }
    ""
}

/// Whether the first word of the next line would have had room.
fn ends_early(line: &str, next: &str) -> bool {
    let next = next.trim_start_matches("///").strip_prefix(' ').unwrap_or_default();
    let word = next.split(' ').next().unwrap_or_default();
    line.ends_with('.') && !next.is_empty() && !next.starts_with(OWN_LINES) && line.len() + 1 + word.len() <= WIDTH
}

#[test]
fn strays_are_found() {
    let check = |text: &str, expect: &[usize]| {
        let found: Vec<usize> = strays(text).iter().map(|it| it.0).collect();
        assert_eq!(found, expect, "{text}");
    };
    check("/// A.\nfn a() {}\n", &[]);
    check("/// A.\n\nfn a() {}\n", &[1]);
    check("struct S {\n    /// A.\n}\n", &[2]);
    check("/// A.\n#[cfg(any(\n    unix,\n))]\n/// B.\nfn b() {}\n", &[1]);
    check("/// Asks a checker.\n/// The verdict alone.\nfn verdict() {}\n", &[1]);
    check("/// Asks a checker\n/// of the verdict.\nfn verdict() {}\n", &[]);
    check("/// Steps:\n/// 1. One.\n/// 2. Two.\n///\n/// Three.\nfn a() {}\n", &[]);
    check("/// A.\n/// `limit`: the most.\nfn a() {}\n", &[]);
    check(&format!("/// {} end.\n/// Next.\nfn a() {{}}\n", "x".repeat(100)), &[]);
    check("/// ```\n/// A.\n/// B.\n/// ```\nfn a() {}\n", &[]);
}
