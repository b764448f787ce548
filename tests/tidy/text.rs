//! Reads Rust as text: paths with their groups spelled out, functions and structs with their lines.

/// Every `crate::a::b` in `code`, with `use crate::{a, b::c}` spelled out.
pub fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut res = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        let line = code[..at].matches('\n').count() + 1;
        expand("", &code[at + word.len()..], &mut |path| res.push((line, path)));
    }
    res
}

pub fn expand(prefix: &str, rest: &str, out: &mut dyn FnMut(String)) {
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
    let (head, tail) = rest.split_at(end);
    if !tail.starts_with('{') {
        return out(format!("{prefix}{head}"));
    }
    for item in braced(tail) {
        expand(&format!("{prefix}{head}"), item, out);
    }
}

/// What stands between the outermost braces at the start of `text`, split at its own commas.
pub fn braced(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut res) = (0, 1, Vec::new());
    for (idx, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        if (c == ',' && depth == 1) || depth == 0 {
            res.push(text[start..idx].trim());
            start = idx + 1;
        }
        if depth == 0 {
            break;
        }
    }
    res.retain(|it| !it.is_empty());
    res
}

/// A function or a struct: from its first line to the brace that ends it.
pub struct Item<'a> {
    pub at: usize,
    pub indent: usize,
    pub lines: Vec<&'a str>,
}

/// rustfmt puts the closing brace of an item under its first character.
pub fn items(text: &str, starts: fn(&str) -> bool) -> Vec<Item<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut res = Vec::new();
    for (idx, line) in lines.iter().enumerate().filter(|(_, line)| starts(line.trim_start())) {
        let own = indent(line);
        let ends = |it: &&str| indent(it) == own && (it.trim_end().ends_with('}') || it.trim_end().ends_with(';'));
        let len = lines[idx..].iter().position(ends).map_or(lines.len() - idx, |it| it + 1);
        res.push(Item { at: idx + 1, indent: own, lines: lines[idx..idx + len].to_vec() });
    }
    res
}

pub fn is_fn(line: &str) -> bool {
    starts_item(line, "fn ")
}

pub fn is_struct(line: &str) -> bool {
    starts_item(line, "struct ")
}

pub fn starts_item(line: &str, word: &str) -> bool {
    let before = line.find(word).map(|at| &line[..at]);
    let whole = |it| str::strip_prefix(it, "pub(in ").and_then(|it| it.split_once(')')).map_or(it, |it| it.1);
    let before = before.map(whole);
    let known = ["pub", "pub(crate)", "pub(super)", "async", "const", "unsafe"];
    before.is_some_and(|it| it.split_whitespace().all(|word| known.contains(&word)))
}

pub fn is_field(line: &str) -> bool {
    let line = line.trim();
    // Whoever may see it.
    let line = line.strip_prefix("pub(").and_then(|it| it.split_once(") ")).map_or(line, |it| it.1);
    let (name, _) = line.split_once(':').unwrap_or_default();
    let name = name.strip_prefix("pub ").unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#')
}

pub fn indent(line: &str) -> usize {
    match line.trim().is_empty() {
        true => 0,
        false => line.len() - line.trim_start().len(),
    }
}

#[test]
fn imports_are_spelled_out() {
    let found = crate_paths("use crate::{a::b, c::{d, e::{self, f}}};\nlet x = crate::g::h(1);");
    let paths: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, ["a::b", "c::d", "c::e::self", "c::e::f", "g::h"]);
    assert_eq!(found[4].0, 2);
}

#[test]
fn blocks_are_measured() {
    let text = "fn a(\n    x: u8,\n) {\n    b();\n}\n\nstruct S {\n    /// c: d\n    pub e: u8,\n}\n\nfn f() { g() }\n";
    let fns: Vec<usize> = items(text, is_fn).iter().map(|it| it.lines.len()).collect();
    assert_eq!(fns, [5, 1]);
    let structs = items(text, is_struct);
    assert_eq!(structs[0].lines.iter().filter(|it| is_field(it)).count(), 1);
}

/// A text between quotes, with the line where it begins.
pub struct Literal {
    pub line: usize,
    pub text: String,
}

/// The string literals of a source, continued lines joined; comments and characters are passed over.
pub fn literals(code: &str) -> Vec<Literal> {
    let (mut res, mut at) = (Vec::new(), 0);
    while let Some(rest) = code.get(at..).filter(|it| !it.is_empty()) {
        let line = || code[..at].matches('\n').count() + 1;
        let raw = rest.strip_prefix('r').map(|it| &it[..it.find(|it| it != '#').unwrap_or(it.len())]);
        let raw = raw.filter(|hashes| rest[1 + hashes.len()..].starts_with('"') && !ends_in_name(&code[..at]));
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(hashes) = raw {
            let start = at + hashes.len() + 2;
            let length = code[start..].find(&format!("\"{hashes}")).unwrap_or(code.len() - start);
            res.push(Literal { line: line(), text: code[start..start + length].to_owned() });
            at = start + length + 1 + hashes.len();
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let length = quoted_length(quoted);
            res.push(Literal { line: line(), text: joined(&quoted[..length]) });
            at += length + 2;
        } else {
            at += char_length(rest);
        }
    }
    res
}

fn ends_in_name(before: &str) -> bool {
    before.ends_with(|it: char| it == '_' || it.is_alphanumeric()) && !before.ends_with('b')
}

/// Up to the quote that ends it.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, it)| {
        let ends = *it == '"' && !escaped;
        escaped = *it == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

fn joined(text: &str) -> String {
    let mut pieces = text.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, it| all + it.trim_start())
}

/// Of a character literal, or of the next character.
fn char_length(rest: &str) -> usize {
    let is_char = |at: usize| rest.get(at..).is_some_and(|it| it.starts_with('\''));
    let mut chars = rest.char_indices().skip(1);
    let next = rest.chars().next().map_or(1, char::len_utf8);
    match (rest.starts_with('\''), chars.next(), chars.next()) {
        (true, Some((_, '\\')), _) => rest.get(3..).and_then(|it| it.find('\'')).map_or(next, |it| it + 4),
        (true, Some(_), Some((at, _))) if is_char(at) => at + 1,
        _ => next,
    }
}
