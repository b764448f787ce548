//! Imports in memory files: `@path` is replaced by the file's text.

use std::collections::BTreeSet;

use super::{MAX_FILE, read_text, unseen::Looks};
use castor_base::{guarded_names::SECRETS, path::AbsPath, text};
use castor_hands::disk;

/// How deep imports may be.
const MAX_DEPTH: usize = 5;
/// Ends of names that are looked for on the disk, for each word.
const MAX_ENDS: usize = 8;
/// What ends with one of these is meant as a file, and no name of somebody.
const TEXTS: &[&str] = &[".md", ".mdx", ".mdc", ".markdown", ".txt", ".rst", ".adoc"];
/// Of a name, in characters.
const MAX_NAME: usize = 200;
const MISSING: &str = "there is no such file";

/// Brings in the imports of one memory file. Each file comes in once, so that circles end.
pub(super) struct Importer<'a> {
    /// Nothing outside of it is brought in: a repository must not read the user's other files.
    top: &'a AbsPath,
    looks: &'a Looks,
    seen: BTreeSet<AbsPath>,
    len: usize,
    /// Imports that failed, for the user.
    faults: Vec<String>,
}

impl<'a> Importer<'a> {
    pub fn new(top: &'a AbsPath, looks: &'a Looks) -> Self {
        Self { top, looks, seen: BTreeSet::new(), len: 0, faults: Vec::new() }
    }

    /// The text with its imports, and what is to be said of those that failed.
    pub fn expand(mut self, file: &AbsPath, text: &str) -> (String, Vec<String>) {
        self.seen.insert(file.clone());
        (self.text(file, text, 0), self.faults)
    }

    fn text(&mut self, file: &AbsPath, text: &str, depth: usize) -> String {
        let mut res = String::with_capacity(text.len());
        let mut fenced = false;
        for line in text.split_inclusive('\n') {
            let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
            fenced ^= is_fence;
            match fenced || is_fence {
                true => res.push_str(line),
                false => self.line(file, line, depth, &mut res),
            }
        }
        res
    }

    fn line(&mut self, file: &AbsPath, line: &str, depth: usize, res: &mut String) {
        let mut rest = line;
        let mut in_code = false;
        while let Some(at) = rest.find(['@', '`']) {
            let (before, from) = rest.split_at(at);
            let start = if before.is_empty() { &*res } else { before };
            let starts = start.trim_end_matches(is_opening).chars().next_back().is_none_or(char::is_whitespace);
            res.push_str(before);
            in_code ^= from.starts_with('`');
            let word = from.get(1..).unwrap_or_default();
            let word = word.split(char::is_whitespace).next().unwrap_or_default();
            let may_be = word.starts_with(|it: char| it == '.' || it == '/' || it.is_ascii_alphabetic());
            let is_import = from.starts_with('@') && starts && !in_code && may_be;
            let taken = match is_import.then(|| self.expand_word(file, word, depth)).flatten() {
                Some((text, len)) => {
                    res.push_str(&text);
                    1 + len
                }
                None => {
                    res.push_str(from.get(..1).unwrap_or_default());
                    1
                }
            };
            rest = from.get(taken..).unwrap_or_default();
        }
        res.push_str(rest);
    }

    /// What stands for a word behind an `@`, and how much of the word it stands for; `None`: it stays as it is. Most such
    /// words are names of people and packages.
    fn expand_word(&mut self, from: &AbsPath, word: &str, depth: usize) -> Option<(String, usize)> {
        let found = names_in(word).find_map(|name| Some((name, self.read_import(from, name, depth)?)));
        let (name, text) = match found {
            Some(it) => it,
            None => (names_in(word).last().filter(|it| is_text_file(it))?, Err(MISSING)),
        };
        Some((text.unwrap_or_else(|why| self.fail(from, name, why)), name.len()))
    }

    /// What the model reads in place of an import.
    fn fail(&mut self, from: &AbsPath, name: &str, why: &str) -> String {
        self.faults.push(format!("{from} imports @{}, but that failed: {why}.", text::first_line(name, MAX_NAME)));
        format!("<!-- Import failed: {name} - {why} -->")
    }

    /// What stands for an import, or why nothing does; `None`: it names no file.
    fn read_import(&mut self, from: &AbsPath, name: &str, depth: usize) -> Option<Result<String, &'static str>> {
        let path = from.parent()?.join(name);
        let meta = disk::metadata(&path).ok().filter(|it| !it.is_dir)?;
        let real = match disk::real_path(&path) {
            Ok(it) if it.is_within(self.top) => it,
            _ => return Some(Err("it is not in the folder of the project")),
        };
        if SECRETS.find(real.as_path()).is_some() {
            return Some(Err("secrets are kept there"));
        }
        if depth >= MAX_DEPTH {
            return Some(Err("too many imports within imports"));
        }
        self.len += usize::try_from(meta.len).unwrap_or(usize::MAX).min(MAX_FILE);
        if self.len > MAX_FILE {
            return Some(Err("too long"));
        }
        if !self.seen.insert(real.clone()) {
            return Some(Ok(format!("<!-- File already processed: {name} -->")));
        }
        let Ok(text) = read_text(&real) else { return Some(Err("it cannot be read")) };
        if self.looks.is_unseen(&real, &text) {
            return Some(Err("an agent wrote it, and you have not looked at it (castor looked FILE)"));
        }
        let text = self.text(&real, &text, depth + 1);
        Some(Ok(format!("<!-- Imported from: {name} -->\n{}\n<!-- End of import from: {name} -->", text.trim())))
    }
}

fn is_text_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TEXTS.iter().any(|end| name.ends_with(end))
}

/// What may stand before the `@`: a quotation, a bracket, Markdown.
fn is_opening(it: char) -> bool {
    matches!(it, '(' | '[' | '{' | '<' | '"' | '\'' | '*' | '_' | '~' | '|' | '“' | '‘' | '«' | '„')
}

/// The names that a word may hold: all of it, then without what stands behind, as in `a.md,`, `a.md)` or `a.md](a.md)`.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let is_joint = |it: char| matches!(it, '/' | '.' | '-' | '_' | '+' | '@' | '~' | '#' | '%');
    let ends = word.char_indices().rev().filter(move |(at, mark)| {
        let behind = word.get(at + mark.len_utf8()..).unwrap_or_default();
        let goes_on = behind.trim_start_matches(is_joint).starts_with(char::is_alphanumeric);
        let is_inside = is_joint(*mark) && goes_on;
        !mark.is_alphanumeric() && !is_inside
    });
    let shorter = ends.filter_map(|(at, _)| word.get(..at)).filter(|it| !it.is_empty());
    std::iter::once(word).chain(shorter).take(MAX_ENDS)
}
