//! Files use each other in one direction: no file of `src` is in an import cycle, its own folder's file aside.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, braced, expand, sources};

type Path = Vec<String>;

/// The files by their modules, and what each of them imports or names by a path.
struct Files {
    uses: BTreeMap<Path, Vec<Path>>,
    /// Names that a file takes in, with what stands behind them: files below it see them, and all do if it is `pub`.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
}

#[test]
fn files_form_no_cycle() {
    let files = Files::of(&sources());
    let mut uses = files.edges();
    assert!(uses[&path("engine::policy::command")].contains(&path("engine::policy::shell")), "nothing is found");
    // Whatever uses nothing that is left is taken away; what cannot be taken away goes in circles.
    while let Some(done) = uses.iter().find(|(_, to)| to.iter().all(|it| !uses.contains_key(it))).map(|it| it.0.clone())
    {
        uses.remove(&done);
    }
    // What only leads into a circle is no part of it.
    while let Some(done) = uses.keys().find(|own| uses.values().all(|to| !to.contains(*own))).cloned() {
        uses.remove(&done);
    }
    let shown = |(own, to): (&Path, &BTreeSet<Path>)| {
        let to: Vec<String> = to.iter().filter(|it| uses.contains_key(*it)).map(|it| it.join("::")).collect();
        format!("{} uses {}", own.join("::"), to.join(", "))
    };
    let found: Vec<String> = uses.iter().map(shown).collect();
    assert!(found.is_empty(), "these files use each other:\n{}", found.join("\n"));
}

#[test]
fn cycles_are_found() {
    let source = |name: &str, text: &str| Source { name: name.into(), text: text.into(), tests: String::new() };
    let files = [
        source("a/mod.rs", "mod b;\nmod c;\npub use b::B;"),
        source("a/b.rs", "use super::c::C;\npub struct B;"),
        source("a/c.rs", "pub fn c() -> crate::B { crate::B }"),
    ];
    let uses = Files::of(&files).edges();
    assert!(uses[&path("a::b")].contains(&path("a::c")) && uses[&path("a::c")].contains(&path("a::b")), "{uses:?}");
    assert!(!uses[&path("a::b")].contains(&path("a")), "{uses:?}");
}

impl Files {
    fn of(sources: &[Source]) -> Self {
        let mut res = Self { uses: BTreeMap::new(), names: BTreeMap::new() };
        let modules: BTreeSet<Path> = sources.iter().map(module).collect();
        for source in sources {
            let (own, code) = (module(source), source.code());
            let (mut paths, mut names) = (Vec::new(), BTreeMap::new());
            for item in uses_of(&code) {
                let (from, name) = item.split_once(" as ").unwrap_or((&item, ""));
                let Some(full) = absolute(&own, from.trim(), &modules) else { continue };
                let name =
                    if name.is_empty() { full.last().cloned().unwrap_or_default() } else { name.trim().to_owned() };
                names.insert(name, full.clone());
                paths.push(full);
            }
            let words = ["crate::", "super::"].into_iter().flat_map(|word| paths_with(&code, word));
            paths.extend(words.filter_map(|it| absolute(&own, &it, &modules)));
            res.uses.insert(own.clone(), paths);
            res.names.insert(own, names);
        }
        res
    }

    /// Parents and children aside.
    fn edges(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let targets = |own: &Path, paths: &[Path]| {
            let found = paths.iter().map(|it| self.file_of(it, 0));
            found.filter(|it| !it.starts_with(own) && !own.starts_with(it)).collect()
        };
        self.uses.iter().map(|(own, paths)| (own.clone(), targets(own, paths))).collect()
    }

    /// The file that a path leads to, through the names that files on the way pass on.
    fn file_of(&self, path: &Path, depth: usize) -> Path {
        let n = (0..=path.len()).rev().find(|n| self.uses.contains_key(&path[..*n])).unwrap_or_default();
        let (file, rest) = path.split_at(n);
        let passed = rest.first().and_then(|it| self.names.get(file)?.get(it));
        match passed {
            Some(next) if depth < 8 && next != path => self.file_of(next, depth + 1),
            _ => file.to_vec(),
        }
    }
}

fn module(source: &Source) -> Path {
    let name = source.name.trim_end_matches(".rs");
    name.split('/').filter(|it| !["mod", "lib", "main"].contains(it)).map(str::to_owned).collect()
}

fn path(text: &str) -> Path {
    text.split("::").map(str::to_owned).collect()
}

/// What `use` items name, with groups spelled out.
fn uses_of(code: &str) -> Vec<String> {
    let mut res = Vec::new();
    for (at, word) in code.match_indices("use ") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("pub") {
            let item = code[at + word.len()..].split(';').next().unwrap_or_default();
            let item = item.split_whitespace().collect::<Vec<_>>().join(" ");
            spell_out("", &item, &mut res);
        }
    }
    res
}

fn spell_out(prefix: &str, item: &str, res: &mut Vec<String>) {
    match item.find('{') {
        None => res.push(format!("{prefix}{item}")),
        Some(at) => {
            braced(&item[at..]).into_iter().for_each(|it| spell_out(&format!("{prefix}{}", &item[..at]), it, res))
        }
    }
}

/// Paths in the code itself that begin with a word.
fn paths_with(code: &str, word: &str) -> Vec<String> {
    let mut res = Vec::new();
    for (at, _) in code.match_indices(word) {
        if !code[..at].ends_with("::") {
            expand("", &code[at..], &mut |path| res.push(path));
        }
    }
    res
}

/// From the crate's root; `None`: it is of another crate.
fn absolute(own: &Path, text: &str, modules: &BTreeSet<Path>) -> Option<Path> {
    let mut parts: Path = path(text).into_iter().filter(|it| !it.is_empty()).collect();
    let first = parts.first()?.clone();
    let mut base = own.clone();
    match first.as_str() {
        "crate" => return Some(parts.split_off(1)),
        "self" => _ = parts.remove(0),
        "super" => {
            let n = parts.iter().take_while(|it| *it == "super").count();
            parts.drain(..n);
            base.truncate(base.len().checked_sub(n)?);
        }
        // A child of this file, or another crate.
        _ if !modules.contains(&[own.as_slice(), std::slice::from_ref(&first)].concat()) => return None,
        _ => (),
    }
    parts.retain(|it| it != "self");
    Some([base, parts].concat())
}
