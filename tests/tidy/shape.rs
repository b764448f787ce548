//! The shape of the source: fields of a struct, methods of a type, members of a tuple parameter, files of a folder.

use std::collections::BTreeMap;

use super::{
    Source, exceptions,
    names::parameter_list,
    root, sources, sources_in,
    text::{Item, indent, is_field, is_fn, is_struct, items},
};

const MAX_FIELDS: usize = 12;
const MAX_METHODS: usize = 40;
const MAX_TUPLE: usize = 2;
const MAX_FILES: usize = 30;
/// Structs that are never made: tables for a schema, with a field for each row.
const TABLES: &[&str] = &["MetaPlaces", "Methods"];

#[test]
fn structs_have_few_fields() {
    let mut measured = BTreeMap::new();
    for source in sources() {
        for (name, n) in fields(&source.text) {
            if !TABLES.contains(&name.as_str()) {
                measured.insert(format!("src/{}::{name}", source.name), n);
            }
        }
    }
    exceptions::check("fields", MAX_FIELDS, &measured);
}

#[test]
fn types_have_few_methods() {
    exceptions::check("methods", MAX_METHODS, &methods(&sources()));
}

#[test]
fn parameters_are_no_large_tuples() {
    let mut measured = BTreeMap::new();
    for source in sources() {
        let n = items(&source.text, is_fn).iter().map(|it| large_tuples(&it.lines.join("\n"))).sum();
        measured.insert(format!("src/{}", source.name), n);
    }
    exceptions::check("large-tuple-parameters", 0, &measured);
}

#[test]
fn folders_have_few_files() {
    let mut measured = BTreeMap::new();
    for top in ["benches", "src", "tests"] {
        for source in sources_in(&root().join(top)).iter().filter(|it| !it.name.ends_with("/build.rs")) {
            let folder = source.name.rsplit_once('/').map_or(top.to_owned(), |(it, _)| format!("{top}/{it}"));
            *measured.entry(folder).or_default() += 1;
        }
    }
    exceptions::check("files", MAX_FILES, &measured);
}

/// The structs of a text with the numbers of their fields.
fn fields(text: &str) -> Vec<(String, usize)> {
    let count = |it: &Item<'_>| {
        let inner = it.lines.iter().skip(1).filter(|line| indent(line) == it.indent + 4);
        inner.filter(|line| is_field(line)).count()
    };
    items(text, is_struct).iter().map(|it| (word_after(it.lines[0], "struct "), count(it))).collect()
}

/// The methods of each type, over all its `impl` blocks; the file that defines it is its place.
fn methods(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::<String, Vec<&str>>::new();
    for source in sources {
        for line in source.text.lines() {
            if let Some(word) = ["struct ", "enum ", "union "].iter().find(|it| is_type(line, it)) {
                places.entry(word_after(line, word)).or_default().push(&source.name);
            }
        }
    }
    let mut res = BTreeMap::new();
    for source in sources {
        for block in items(&source.text, |it| it.starts_with("impl")) {
            let name = implemented(&block.lines.join(" "));
            let near = |place: &&&str| source.name.bytes().zip(place.bytes()).take_while(|(a, b)| a == b).count();
            // A type has its methods in its own crate.
            let is_own = |place: &&&str| place.split('/').next() == source.name.split('/').next();
            let all = places.get(&name).into_iter().flatten();
            let Some(place) = all.filter(is_own).max_by_key(near) else { continue };
            let is_method = |it: &&&str| indent(it) == block.indent + 4 && is_fn(it.trim_start());
            *res.entry(format!("src/{place}::{name}")).or_default() += block.lines.iter().filter(is_method).count();
        }
    }
    res
}

fn is_type(line: &str, word: &str) -> bool {
    line.strip_prefix("pub").map_or(line, |it| it.split_once(' ').map_or("", |it| it.1)).starts_with(word)
}

fn word_after(line: &str, word: &str) -> String {
    let rest = line.split_once(word).map_or("", |it| it.1);
    rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
}

/// The type that an `impl` block is of.
fn implemented(block: &str) -> String {
    let head = block.split('{').next().unwrap_or_default();
    let head = head.split(" where ").next().unwrap_or_default().trim_start_matches("impl");
    let (mut depth, mut plain) = (0, String::new());
    for c in head.replace("->", "").chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => plain.push(c),
            _ => (),
        }
    }
    let name = plain.rsplit(" for ").next().unwrap_or_default().trim();
    let name = name.rsplit("::").next().unwrap_or_default();
    name.split_whitespace().last().unwrap_or_default().trim_start_matches('&').to_owned()
}

/// How many parameters of a function are tuples of more than two.
fn large_tuples(item: &str) -> usize {
    let is_large = |parameter: &&String| {
        let kind = kind_of(parameter).trim_start_matches(['&', ' ']).trim_start_matches("mut ");
        kind.starts_with('(') && n_members(kind) > MAX_TUPLE
    };
    parameter_list(item).iter().filter(is_large).count()
}

/// What stands behind the colon after a parameter's pattern.
fn kind_of(parameter: &str) -> &str {
    let mut depth = 0;
    for (at, c) in parameter.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ':' if depth == 0 => return parameter[at + 1..].trim(),
            _ => (),
        }
    }
    ""
}

fn n_members(tuple: &str) -> usize {
    let (mut depth, mut res, mut is_empty) = (0, 0, true);
    for c in tuple.replace("->", "").chars() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 1 => {
                res += 1;
                is_empty = true;
                continue;
            }
            _ => (),
        }
        if depth == 0 {
            break;
        }
        is_empty = is_empty && (c == '(' && depth == 1 || c.is_whitespace());
    }
    res + usize::from(!is_empty)
}

#[test]
fn shapes_are_measured() {
    let text = "struct A {\n    pub(super) a: u8,\n    pub b: u8,\n    pub(in crate::x) c: u8,\n    /// d: no field\n    d: u8,\n}\n";
    assert_eq!(fields(text), [("A".to_owned(), 4)]);
    let source = |name: &str, text: &str| Source { name: name.into(), text: text.into(), tests: String::new() };
    let sources = [
        source("a/b.rs", "pub struct B<T>;\nimpl<T: Fn() -> u8> B<T> {\n    fn x() {}\n    pub(super) fn y() {}\n}\n"),
        source(
            "a/b/more.rs",
            "impl super::B<u8>\nwhere\n    u8: Copy,\n{\n    fn z() {}\n}\nimpl From<u8> for B<u8> {\n    fn from() {}\n}\n",
        ),
        source("c.rs", "enum B {}\nimpl B {\n    const fn own() {}\n}\n"),
    ];
    let expect = BTreeMap::from([("src/a/b.rs::B".to_owned(), 4), ("src/c.rs::B".to_owned(), 1)]);
    assert_eq!(methods(&sources), expect);
    let counts = [
        "fn a(x: (u8, u8))",
        "fn b((x, y, z): (u8, u8, u8)) {}",
        "fn c(x: &mut (u8, Vec<(u8, u8)>, &str,), f: impl Fn(u8, u8, u8)) {}",
        "fn d(x: Vec<(u8, u8, u8)>) -> (u8, u8, u8) {}",
    ];
    assert_eq!(counts.map(large_tuples), [0, 1, 1, 0]);
}
