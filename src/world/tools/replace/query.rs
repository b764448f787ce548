//! The query of `replace`: the text to find, its replacement, and the lines of the file. LF only.

use std::ops::Range;

use tokio_util::sync::CancellationToken;

use crate::world::tools::replace::lines::{Edit, indentation, lines, reindent};

/// The text to find, and the text of the file. LF only.
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
