//! Imports in memory files: `@path` is replaced by the file's text.

use std::collections::BTreeSet;

use super::{MAX_FILE, read_text};
use crate::{
    base::{guarded_names::SECRETS, path::AbsPath},
    world::disk,
};

/// How deep imports may be.
const MAX_DEPTH: usize = 5;

/// Brings in the imports of one memory file. Each file comes in once, so that circles end.
pub(super) struct Importer<'a> {
    /// Nothing outside of it is brought in: a repository must not read the user's other files.
    top: &'a AbsPath,
    seen: BTreeSet<AbsPath>,
    len: usize,
}

impl<'a> Importer<'a> {
    pub fn new(top: &'a AbsPath) -> Self {
        Self { top, seen: BTreeSet::new(), len: 0 }
    }

    pub fn expand(mut self, file: &AbsPath, text: &str) -> String {
        self.seen.insert(file.clone());
        self.text(file, text, 0)
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
            let starts = res.ends_with(char::is_whitespace) || res.is_empty();
            let starts = if before.is_empty() { starts } else { before.ends_with(char::is_whitespace) };
            res.push_str(before);
            in_code ^= from.starts_with('`');
            let name = from.get(1..).unwrap_or_default();
            let name = name.split(char::is_whitespace).next().unwrap_or_default();
            let may_be = name.starts_with(|it: char| it == '.' || it == '/' || it.is_ascii_alphabetic());
            let brought =
                (from.starts_with('@') && starts && !in_code && may_be).then(|| self.expand_import(file, name, depth));
            let taken = match brought.flatten() {
                Some(text) => {
                    res.push_str(&text);
                    1 + name.len()
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

    /// What stands for an import; `None`: it names no file. Most words with an `@` are names of people and packages.
    fn expand_import(&mut self, from: &AbsPath, name: &str, depth: usize) -> Option<String> {
        let path = from.parent()?.join(name);
        let meta = disk::metadata(&path).ok().filter(|it| !it.is_dir)?;
        let failed = |why: &str| Some(format!("<!-- Import failed: {name} - {why} -->"));
        let real = match disk::real_path(&path) {
            Ok(it) if it.is_within(self.top) => it,
            _ => return failed("it is not in the folder of the project"),
        };
        if SECRETS.find(real.as_path()).is_some() {
            return failed("secrets are kept there");
        }
        if depth >= MAX_DEPTH {
            return failed("too many imports within imports");
        }
        self.len += usize::try_from(meta.len).unwrap_or(usize::MAX).min(MAX_FILE);
        if self.len > MAX_FILE {
            return failed("too long");
        }
        if !self.seen.insert(real.clone()) {
            return Some(format!("<!-- File already processed: {name} -->"));
        }
        let Ok(text) = read_text(&real) else { return failed("it cannot be read") };
        let text = self.text(&real, &text, depth + 1);
        Some(format!("<!-- Imported from: {name} -->\n{}\n<!-- End of import from: {name} -->", text.trim()))
    }
}
