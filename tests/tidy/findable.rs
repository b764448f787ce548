//! Findable files: questions of a stranger lead to the file that answers, by file names, first lines and type names.
//!
//! The ranking knows no synonyms and no code. A file gets the weight of each word of the question that it has, once:
//! `ln(files / files with the word)`, so that rare words weigh more. Words lose their endings; words of every question
//! do not count. Where a question fails, mend the first line of the file that answers, never the question.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{Source, root, sources};

const SHOWN: usize = 5;
const STOP_WORDS: &str = "a an and are be by can castor count do does for from get give how i in is it its may my not of \
                          on or than that the to use what when where which who why with without";
const RIDDLES: &[&str] = &["What ", "Which ", "Who ", "Why ", "Whether ", "Where ", "When ", "How "];
const PERSONS: &[&str] = &["who", "whom", "whoever", "nobody", "somebody", "anybody", "everybody"];
const MAX_WORDS: usize = 25;
/// Longest first, as the first that fits is taken away.
const ENDINGS: &[&str] = &[
    "izations", "ization", "ations", "ation", "ized", "izes", "ions", "ings", "ize", "ing", "ers", "ies", "ied", "ion",
    "es", "ed", "er", "s", "e", "y",
];
/// Shortest stem that an ending may leave, in bytes.
const MIN_STEM: usize = 4;

struct Index {
    /// Path below `src`, and its words.
    files: Vec<(String, BTreeSet<String>)>,
    counts: BTreeMap<String, usize>,
}

#[test]
fn questions_find_their_file_among_the_first_five() {
    let index = Index::new(&sources());
    let text = fs::read_to_string(root().join("tests/data/findable.txt")).unwrap();
    let rows: Vec<(&str, &str)> = text.lines().filter_map(|it| it.split_once(" -> src/")).collect();
    assert!(rows.len() >= 12 && rows.len() == text.lines().count(), "twelve lines `question -> src/path.rs`");
    let mut wrong = String::new();
    for (question, answer) in rows {
        let found = index.find(question);
        match index.file(answer) {
            None => wrong += &format!("src/{answer} is not there\n"),
            Some(file) if found.contains(&file) => (),
            Some(file) => wrong += &format!("{question} src/{file} is not among {found:?}\n"),
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A question is no subject, and a program is no person.
#[test]
fn first_lines_are_plain_sentences() {
    let mut wrong = String::new();
    for source in sources().iter().filter(|it| it.name != "lib.rs") {
        let text: Vec<&str> = source.text.lines().map_while(|it| it.strip_prefix("//! ")).collect();
        let text = text.join(" ");
        let first = text.split(". ").next().unwrap_or_default();
        let parts: Vec<&str> = first.split(|it: char| !it.is_alphanumeric() && it != '\'').collect();
        let is_riddle = RIDDLES.iter().any(|it| first.starts_with(it)) || PERSONS.iter().any(|it| parts.contains(it));
        if is_riddle || first.split_whitespace().count() > MAX_WORDS {
            wrong += &format!("src/{}: {first}\n", source.name);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn questions_about_other_things_find_nothing() {
    let file = |name: &str, text: &str| Source { name: name.into(), text: text.into(), tests: String::new() };
    let index = Index::new(&[
        file("a/oven.rs", "//! Bakes bread.\npub struct LoafShape;\n"),
        file("a/other.rs", "//! Something else.\nfn bread() {}\n"),
    ]);
    for question in ["how is bread baked?", "how are the ovens heated?", "which shapes do loafs have?"] {
        assert_eq!(index.find(question), ["a/oven.rs"], "{question}");
    }
    assert!(index.find("where is the weather forecast?").is_empty());
}

impl Index {
    fn new(sources: &[Source]) -> Self {
        let files: Vec<_> = sources.iter().map(|it| (it.name.clone(), words(&said_by(it)).collect())).collect();
        let mut counts = BTreeMap::new();
        for word in files.iter().flat_map(|(_, words): &(_, BTreeSet<String>)| words) {
            *counts.entry(word.clone()).or_default() += 1;
        }
        Self { files, counts }
    }

    /// The file at that path; where it moved, the only one of that name.
    fn file(&self, path: &str) -> Option<&str> {
        let names = || self.files.iter().map(|(name, _)| name.as_str());
        let last = |it: &str| it.rsplit('/').next().unwrap_or_default().to_owned();
        let moved: Vec<&str> = names().filter(|it| last(it) == last(path)).collect();
        names().find(|it| *it == path).or_else(|| moved.first().copied().filter(|_| moved.len() == 1))
    }

    /// The best files; those without any word of the question are none.
    fn find(&self, question: &str) -> Vec<&str> {
        let asked: BTreeSet<String> = words(question).collect();
        let mut ranked: Vec<(Reverse<u64>, &str)> =
            self.files.iter().map(|(name, has)| (Reverse(self.weight(&asked, has)), name.as_str())).collect();
        ranked.retain(|(weight, _)| weight.0 > 0);
        ranked.sort();
        ranked.into_iter().take(SHOWN).map(|(_, name)| name).collect()
    }

    /// In thousandths, to be compared exactly.
    fn weight(&self, asked: &BTreeSet<String>, has: &BTreeSet<String>) -> u64 {
        let weigh = |word: &String| (1000.0 * (self.files.len() as f64 / self.counts[word] as f64).ln()) as u64;
        asked.intersection(has).map(weigh).sum()
    }
}

/// The name of the file and its folder, its first line, and the names of its public types.
fn said_by(source: &Source) -> String {
    let path: Vec<&str> = source.name.trim_end_matches(".rs").split('/').collect();
    let mut res = path[path.len().saturating_sub(2)..].join(" ").replace("mod", "");
    let first = source.text.lines().next().unwrap_or_default();
    res.extend([" ", first.trim_start_matches("//!")]);
    for line in source.text.lines() {
        let parts: Vec<&str> = line.split([' ', '<', '(', ')', ';', ':']).filter(|it| !it.is_empty()).collect();
        if let ["pub", "struct" | "enum" | "trait" | "type", name, ..] = parts[..] {
            res.extend([" ", name]);
        }
    }
    res
}

/// Lower case, `CamelCase` taken apart, without endings.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut apart = String::new();
    let mut was_small = false;
    for it in text.chars() {
        if was_small && it.is_ascii_uppercase() {
            apart.push(' ');
        }
        was_small = it.is_ascii_lowercase() || it.is_ascii_digit();
        apart.push(it.to_ascii_lowercase());
    }
    let all: Vec<String> = apart.split(|it: char| !it.is_ascii_alphanumeric()).map(stem).collect();
    all.into_iter().filter(|it| !it.is_empty() && !STOP_WORDS.split_whitespace().any(|word| word == it))
}

fn stem(word: &str) -> String {
    let mut stems = ENDINGS.iter().filter_map(|it| word.strip_suffix(it));
    stems.find(|it| it.len() >= MIN_STEM).unwrap_or(word).to_owned()
}
