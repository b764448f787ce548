//! Matching strategies of `replace` for `old_string`, strictest first.

use std::ops::Range;

use regex::Regex;
use tokio_util::sync::CancellationToken;

use crate::world::tools::replace::{
    fuzzy::fuzzy,
    lines::{Edit, indentation, lines, reindent},
};

/// A text is looked for as loose tokens only when it has at most this many.
const MAX_TOKENS: usize = 2000;
const DELIMITERS: &[char] = &['(', ')', ':', '[', ']', '{', '}', '<', '>', '='];

/// All places that a strategy finds, in order.
pub type Strategy = fn(&ReplaceQuery<'_>) -> Vec<Edit>;

/// The first that finds something decides.
pub const STRATEGIES: &[(&str, Strategy)] =
    &[("exact", exact), ("flexible", flexible), ("tokens", tokens), ("fuzzy", fuzzy)];

/// The text to find, and the file's text. LF only.
pub struct ReplaceQuery<'a> {
    pub text: &'a str,
    pub lines: Vec<Range<usize>>,
    pub old: &'a str,
    pub new: &'a str,
    pub cancel: &'a CancellationToken,
}

/// `old` and `new` as whole lines, without the end of the last.
pub struct Block<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Whether the line end behind a match goes as well: lines are deleted.
    takes_end: bool,
}

impl<'a> ReplaceQuery<'a> {
    pub fn new(text: &'a str, old: &'a str, new: &'a str, cancel: &'a CancellationToken) -> Self {
        Self { text, lines: lines(text), old, new, cancel }
    }

    pub fn line(&self, at: usize) -> &'a str {
        self.lines.get(at).and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }

    pub fn block(&self) -> Block<'a> {
        match (self.old.strip_suffix('\n'), self.new.strip_suffix('\n')) {
            (Some(old), Some(new)) => Block { old, new, takes_end: false },
            (Some(old), None) => Block { old, new: self.new, takes_end: self.new.is_empty() },
            (None, _) => Block { old: self.old, new: self.new, takes_end: false },
        }
    }

    /// The text of `count` lines from `first`, as a range.
    pub fn window(&self, first: usize, count: usize) -> Option<Range<usize>> {
        let last = first.checked_add(count)?.checked_sub(1)?;
        Some(self.lines.get(first)?.start..self.lines.get(last)?.end)
    }

    /// Puts the block's new text in the place of `range`, which begins a line, indented as what was there.
    pub fn edit(&self, block: &Block<'_>, mut range: Range<usize>) -> Edit {
        let indent = indentation(self.text.get(range.clone()).unwrap_or_default());
        let text = reindent(block.new, indent);
        if block.takes_end && self.text.get(range.end..).is_some_and(|it| it.starts_with('\n')) {
            range.end += 1;
        }
        Edit { range, text }
    }
}

fn exact(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let found = query.text.match_indices(query.old);
    found.map(|(at, it)| Edit { range: at..at + it.len(), text: query.new.to_owned() }).collect()
}

/// Lines that are equal but for the white space around them.
fn flexible(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let block = query.block();
    let wanted: Vec<&str> = block.old.split('\n').map(str::trim).collect();
    let mut res = Vec::new();
    if wanted.iter().all(|it| it.is_empty()) {
        return res;
    }
    let mut at = 0;
    while let Some(range) = query.window(at, wanted.len()) {
        match wanted.iter().enumerate().all(|(n, it)| query.line(at + n).trim() == *it) {
            true => {
                res.push(query.edit(&block, range));
                at += wanted.len();
            }
            false => at += 1,
        }
    }
    res
}

/// The same tokens from the start of a line on, whatever the white space between them.
fn tokens(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let block = query.block();
    let Some(regex) = token_regex(block.old) else { return Vec::new() };
    regex.find_iter(query.text).map(|it| query.edit(&block, it.range())).collect()
}

fn token_regex(old: &str) -> Option<Regex> {
    let spaced: String = old.split_inclusive(DELIMITERS).map(space_last).collect();
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    if tokens.is_empty() || tokens.len() > MAX_TOKENS {
        return None;
    }
    let mut pattern = String::from(r"(?m)^[ \t]*");
    let mut after_word = false;
    for (n, token) in tokens.iter().enumerate() {
        // Two words that touch are one other word.
        match n > 0 && after_word && token.starts_with(is_word) {
            true => pattern.push_str(r"\s+"),
            false if n > 0 => pattern.push_str(r"\s*"),
            false => (),
        }
        pattern.push_str(&regex::escape(token));
        after_word = token.ends_with(is_word);
    }
    if after_word {
        pattern.push_str(r"\b");
    }
    Regex::new(&pattern).ok()
}

/// `part`, which may end in a delimiter, with spaces around that.
fn space_last(part: &str) -> String {
    match part.char_indices().next_back().filter(|it| DELIMITERS.contains(&it.1)) {
        Some((at, delimiter)) => format!("{} {delimiter} ", part.get(..at).unwrap_or_default()),
        None => part.to_owned(),
    }
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}
