//! The words behind a sub-command of git, as its options divide them.

use super::reads::rework;
use crate::{
    base::tool::{Change, Rework},
    engine::policy::shell::Word,
};

/// Whole ones that are the beginning of another.
const WHOLE: &[&str] = &["--exec", "--strategy"];

/// The words behind a sub-command.
#[derive(Default)]
pub struct Args<'a> {
    pub options: Vec<&'a str>,
    /// With their options, those that take the next word.
    pub values: Vec<(&'a str, &'a str)>,
    pub operands: Vec<&'a str>,
    /// Those behind `--`.
    pub paths: Vec<&'a str>,
    /// What some of them are is only known when it runs.
    pub unknown: bool,
}

/// How an option takes a value.
enum Takes {
    Nothing,
    /// The next word.
    Next,
    /// Nobody can say: cut short, it may be one that takes the next word, or one that takes none.
    Perhaps,
}

/// `valued`: the options of a sub-command that take a value.
fn takes(option: &str, valued: &[&str]) -> Takes {
    if option.starts_with("--") {
        let is_cut = |it: &&&str| !option.contains('=') && it.starts_with(option);
        return match valued.iter().find(is_cut) {
            Some(it) if *it == option => Takes::Next,
            Some(_) if !WHOLE.contains(&option) => Takes::Perhaps,
            _ => Takes::Nothing,
        };
    }
    // Of several short ones the first with a value takes what is left of the word, or the next: `-qb name`.
    let is_valued =
        |it: char| valued.iter().any(|short| short.strip_prefix('-').is_some_and(|rest| rest.chars().eq([it])));
    let mut letters = option.chars().skip(1);
    match letters.find(|it| is_valued(*it)) {
        Some(_) if letters.next().is_none() => Takes::Next,
        _ => Takes::Nothing,
    }
}

impl<'a> Args<'a> {
    pub fn read(words: &'a [Word], valued: &[&str]) -> Self {
        let (mut res, mut words) = (Self::default(), words.iter());
        while let Some(word) = words.next() {
            let Some(text) = word.literal() else {
                res.unknown = true;
                continue;
            };
            if text == "--" {
                break;
            }
            if !text.starts_with('-') || text.len() == 1 {
                res.operands.push(text);
                continue;
            }
            res.options.push(text);
            match takes(text, valued) {
                Takes::Nothing => {}
                Takes::Next => res.values.extend(words.next().and_then(Word::literal).map(|it| (text, it))),
                Takes::Perhaps => res.unknown = true,
            }
        }
        for word in words {
            match word.literal() {
                Some(it) => res.paths.push(it),
                None => res.unknown = true,
            }
        }
        res
    }

    pub fn has(&self, options: &[&str]) -> bool {
        self.options.iter().any(|it| options.contains(it))
    }

    /// Whether a short option is among those that stand together: `-fq`.
    pub fn has_letter(&self, letter: char) -> bool {
        self.options.iter().any(|it| !it.starts_with("--") && it.contains(letter))
    }

    /// What stands behind an option or sticks to it.
    pub fn value(&self, option: &str) -> Option<&'a str> {
        let sign = if option.starts_with("--") { "=" } else { "" };
        let glued = || self.options.iter().find_map(|it| it.strip_prefix(option)?.strip_prefix(sign));
        let glued = || glued().filter(|it| !it.is_empty());
        self.values.iter().find(|it| it.0 == option).map(|it| it.1).or_else(glued)
    }

    /// `--continue` and its like: what is under way goes on, or back.
    pub fn resumes(&self) -> Option<Rework> {
        let ends = self.has(&["--quit", "--show-current-patch", "--edit-todo"]);
        let resumes = ends || self.has(&["--abort", "--continue", "--skip"]);
        let origin = || vec!["ORIG_HEAD".to_owned(), "^HEAD".to_owned()];
        let changes = || vec![Change::Dirty, Change::To("ORIG_HEAD".to_owned()), Change::Commits(origin())];
        resumes.then(|| rework(if ends { Vec::new() } else { changes() }))
    }
}
