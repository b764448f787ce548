//! Lines of a text, and edits that leave the line ends of a file as they are.

use std::ops::Range;

use similar::{Algorithm, capture_diff_slices};

use super::Replacement;

/// `range`, in bytes of the text with LF only, becomes `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// The lines of a text with LF only, without their ends. What follows a final line end is no line.
pub struct Lines<'a> {
    pub text: &'a str,
    ranges: Vec<Range<usize>>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut start = 0;
        let spans = text.split_inclusive('\n').map(|line| {
            let span = start..start + line.strip_suffix('\n').unwrap_or(line).len();
            start += line.len();
            span
        });
        Self { text, ranges: spans.collect() }
    }

    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    pub fn get(&self, at: usize) -> &'a str {
        self.ranges.get(at).and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.ranges.iter().map(|it| self.text.get(it.clone()).unwrap_or_default())
    }

    /// The place of `count` lines from `first` in the text.
    pub fn span(&self, first: usize, count: usize) -> Option<Range<usize>> {
        let last = first.checked_add(count)?.checked_sub(1)?;
        Some(self.ranges.get(first)?.start..self.ranges.get(last)?.end)
    }

    /// How many bytes go behind lines that end at `end`, if `old` takes the end of its last line with it.
    pub fn behind_lines(&self, end: usize, asked: Replacement<'_>) -> usize {
        let Some(next) = self.text.get(end..).and_then(|it| it.strip_prefix('\n')) else { return 0 };
        if !asked.old.ends_with('\n') {
            return 0;
        }
        let line = next.split('\n').next().unwrap_or_default();
        match asked.new.is_empty() || asked.new.ends_with('\n') {
            true => 1,
            // What comes next is put behind the last new line: an empty line, but no other.
            false if line.trim().is_empty() && !next.is_empty() => 1 + line.len(),
            false => 0,
        }
    }

    /// The number, from 1, of the line with the byte `at`.
    pub fn number(&self, at: usize) -> usize {
        self.ranges.partition_point(|it| it.end < at) + 1
    }
}

/// The blanks and tabs that a line begins with.
pub fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
}

/// `original` with `edits` made: sorted, not overlapping, in terms of its LF-only text. Lines that stay keep their ends;
/// new ones end as the lines in whose place they come.
pub fn apply(original: &str, edits: &[Edit]) -> String {
    // Where, in the LF-only text, the line ends are that lost a CR.
    let cuts: Vec<usize> = original.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
    let in_original = |at: usize| at + cuts.partition_point(|it| *it < at);
    let mut res = String::with_capacity(original.len());
    let mut done = 0;
    for edit in edits {
        let range = in_original(edit.range.start)..in_original(edit.range.end);
        res.push_str(original.get(done..range.start).unwrap_or_default());
        match cuts.is_empty() {
            true => res.push_str(&edit.text),
            false => res.push_str(&with_line_ends(original, range.clone(), &edit.text)),
        }
        done = range.end;
    }
    res.push_str(original.get(done..).unwrap_or_default());
    keep_last_line_end(original, res)
}

/// The line end of the line of `text` with the byte `at`; of the last, that of the line before.
fn end_at(text: &str, at: usize) -> &'static str {
    let (before, behind) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
    let end = match (behind.find('\n'), before.rfind('\n')) {
        (Some(it), _) => Some(at + it),
        (None, it) => it,
    };
    let is_crlf = end.and_then(|it| text.get(..it)).is_some_and(|it| it.ends_with('\r'));
    if is_crlf { "\r\n" } else { "\n" }
}

/// `new`, which comes in place of `range` of `original`, with the line ends of that place.
fn with_line_ends(original: &str, range: Range<usize>, new: &str) -> String {
    let behind = end_at(original, range.end);
    let mut old: Vec<&str> = original.get(range).unwrap_or_default().split('\n').collect();
    let last = old.pop();
    let ends: Vec<&str> = old.iter().map(|it| if it.ends_with('\r') { "\r\n" } else { "\n" }).collect();
    if ends.iter().all(|it| *it == behind) {
        return if behind == "\n" { new.to_owned() } else { new.replace('\n', behind) };
    }
    let bare: Vec<&str> = old.iter().map(|it| it.strip_suffix('\r').unwrap_or(it)).chain(last).collect();
    let new: Vec<&str> = new.split('\n').collect();
    let mut res = String::new();
    for op in capture_diff_slices(Algorithm::Myers, &bare, &new) {
        let (at, len) = (op.old_range().start, op.old_range().len());
        for (n, line) in op.new_range().enumerate() {
            // A line that comes between two ends as the one before it.
            let like = if len == 0 { at.saturating_sub(1) } else { at + n.min(len - 1) };
            res.push_str(new.get(line).copied().unwrap_or_default());
            if line + 1 < new.len() {
                res.push_str(ends.get(like).copied().unwrap_or(behind));
            }
        }
    }
    res
}

/// Models are careless about the last line's end: it stays as it was, unless it is all that would change.
fn keep_last_line_end(original: &str, after: String) -> String {
    let kept = match (original.ends_with('\n'), after.strip_suffix('\n')) {
        (true, None) if !after.is_empty() => [&after, end_at(original, original.len() - 1)].concat(),
        (false, Some(rest)) => rest.strip_suffix('\r').unwrap_or(rest).to_owned(),
        _ => return after,
    };
    if kept == original { after } else { kept }
}
