//! The rule by which a text is replaced in a file although it is not written there letter by letter; pure.

mod lines;
mod retyping;
mod search;
mod tokens;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use similar::{Algorithm, DiffTag, capture_diff_slices};

pub use lines::{Edit, Lines, apply, indentation};
use retyping::{IndentFault, Pair, Retyping, is_blank};
use search::{Numbering, find_all, find_near};

/// Shorter texts are near to too much.
const MIN_NEAR_CHARS: usize = 10;
/// Characters of `old_string` for each that may be another.
const CHARS_PER_SLIP: usize = 10;
/// Longer lines are not compared letter by letter.
const MAX_NEAR_CHARS: usize = 2_000;
/// Lines of `new_string` in percent of a line of `old_string` from which on they are one line, changed.
const MIN_LIKENESS: usize = 50;

/// How many lines are looked through for the one that a new line was.
const MAX_NEAR_PAIRS: usize = 50;

/// What is to be replaced by what. With LF only.
#[derive(Clone, Copy)]
pub struct Replacement<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Every place, not one.
    pub all: bool,
}

/// How far the text that was found is from the text that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    Exact,
    /// But for blanks at the ends of lines.
    TrailingBlanks,
    /// But for the indentation, too.
    Indentation,
    /// But for white space, quotes and dashes within lines, too.
    Spacing,
    /// But for slips of the pen, in lines that go.
    Slips,
}

/// The edits that replace it.
#[derive(Debug, PartialEq, Eq)]
pub struct EditPlan {
    pub edits: Vec<Edit>,
    pub by: Match,
}

/// Why nothing is replaced. Lines are counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub enum EditRefusal {
    Absent,
    Ambiguous {
        places: Vec<usize>,
    },
    /// The lines are there; their indentation differs from that of `old_string` in more than one way.
    Contradiction {
        first: usize,
        line: usize,
        count: usize,
    },
    /// The lines are there; how deep a line of `new_string` goes between them is not known.
    UnknownDepth {
        first: usize,
        count: usize,
        new: String,
    },
    /// The line of the file says something else than its line of `old_string`, and `new_string` would keep that.
    Stale {
        first: usize,
        line: usize,
        count: usize,
        old: String,
    },
}

/// # Errors
/// If it is not clear where the text stands, or what is to stand there.
pub fn find(file: &Lines<'_>, asked: Replacement<'_>) -> Result<EditPlan, EditRefusal> {
    let exact: Vec<usize> = file.text.match_indices(asked.old).map(|it| it.0).collect();
    let verbatim = |range: Range<usize>| Edit { range, text: asked.new.to_owned() };
    if !exact.is_empty() {
        check_count(exact.iter().map(|it| file.number(*it)), asked)?;
        let edits = exact.iter().map(|it| verbatim(*it..*it + asked.old.len())).collect();
        return Ok(EditPlan { edits, by: Match::Exact });
    }
    if is_blank(asked.old) {
        return Err(EditRefusal::Absent);
    }
    let block = Block::new(asked);
    let (by, places) = find_block(file, &block);
    if places.is_empty() {
        return Err(EditRefusal::Absent);
    }
    check_count(places.iter().map(|it| it + 1), asked)?;
    let edits = places.iter().map(|it| rewrite(file, &block, *it, by)).collect::<Result<_, _>>()?;
    Ok(EditPlan { edits, by })
}

fn check_count(lines: impl ExactSizeIterator<Item = usize>, asked: Replacement<'_>) -> Result<(), EditRefusal> {
    match lines.len() > 1 && !asked.all {
        true => Err(EditRefusal::Ambiguous { places: lines.collect() }),
        false => Ok(()),
    }
}

/// The line without blanks behind it.
fn trim_end(line: &str) -> &str {
    line.trim_end_matches([' ', '\t', '\r', '\u{c}'])
}

/// `old` and `new` as lines.
struct Block<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    asked: Replacement<'a>,
}

impl<'a> Block<'a> {
    fn new(asked: Replacement<'a>) -> Self {
        let old = asked.old.strip_suffix('\n').unwrap_or(asked.old);
        let new = asked.new.strip_suffix('\n').unwrap_or(asked.new);
        Self { old: old.split('\n').collect(), new: new.split('\n').collect(), asked }
    }

    /// `places` without those that begin within the one before, if all are meant.
    fn apart(&self, places: Vec<usize>) -> Vec<usize> {
        let mut end = 0;
        let mut is_apart = |it: &usize| {
            let res = *it >= end;
            if res {
                end = it + self.old.len();
            }
            res
        };
        if self.asked.all { places.into_iter().filter(|it| is_apart(it)).collect() } else { places }
    }
}

/// The lines at which the block begins, by the strictest way that finds any.
fn find_block(file: &Lines<'_>, block: &Block<'_>) -> (Match, Vec<usize>) {
    for (by, key) in [(Match::TrailingBlanks, trim_end as fn(&str) -> &str), (Match::Indentation, str::trim)] {
        let mut numbering = Numbering::new(|it| key(it).to_owned());
        let lines = numbering.of(file.iter());
        let found = find_all(&lines, &numbering.of(block.old.iter().copied()));
        if !found.is_empty() {
            return (by, block.apart(found));
        }
    }
    let mut numbering = Numbering::new(tokens::dense);
    let lines = numbering.of(file.iter());
    let wanted = numbering.of(block.old.iter().copied());
    let found = find_all(&lines, &wanted);
    if !found.is_empty() {
        return (Match::Spacing, block.apart(found));
    }
    let mut found = Vec::new();
    let chars: usize = block.old.iter().map(|it| tokens::dense(it).chars().count()).sum();
    if chars >= MIN_NEAR_CHARS {
        found = find_near(&lines, &wanted, 2.max(block.old.len() / 10));
        found.retain(|it| is_near(file, block, *it, chars / CHARS_PER_SLIP));
    }
    (Match::Slips, block.apart(found))
}

/// Tells whether the lines of the file from `first` on differ from the block by slips of the pen only: `max`
/// characters.
fn is_near(file: &Lines<'_>, block: &Block<'_>, first: usize, max: usize) -> bool {
    let mut left = max;
    block.old.iter().enumerate().all(|(n, old)| {
        let now = file.get(first + n);
        if now.len().max(old.len()) > MAX_NEAR_CHARS {
            return old.trim() == now.trim();
        }
        let (a, b) = (tokens::dense(old), tokens::dense(now));
        if a == b {
            return true;
        }
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let difference = tokens::distance(&a, &b, left).filter(|_| tokens::slips(old, now).is_some());
        left = left.saturating_sub(difference.unwrap_or(0));
        difference.is_some()
    })
}

/// The edit that puts the new lines in the place of the block at the line `first`.
fn rewrite(file: &Lines<'_>, block: &Block<'_>, first: usize, by: Match) -> Result<Edit, EditRefusal> {
    let mut range = file.span(first, block.old.len()).unwrap_or_default();
    range.end += file.behind_lines(range.end, block.asked);
    if by == Match::TrailingBlanks {
        return Ok(Edit { range, text: block.asked.new.to_owned() });
    }
    let mut text = new_lines(file, block, first, by)?.join("\n");
    if block.asked.new.is_empty() {
        text.clear();
    }
    if block.asked.new.ends_with('\n') {
        text.push('\n');
    }
    Ok(Edit { range, text })
}

/// The new lines for the place at the line `first`, as the file would have them.
fn new_lines(file: &Lines<'_>, block: &Block<'_>, first: usize, by: Match) -> Result<Vec<String>, EditRefusal> {
    let count = block.old.len();
    let pairs: Vec<Pair<'_>> =
        block.old.iter().enumerate().map(|(n, old)| Pair { old, file: file.get(first + n) }).collect();
    if let Some((n, it)) = pairs.iter().enumerate().find(|it| by == Match::Slips && is_stale(it.1, &block.new)) {
        let (line, old) = (first + n + 1, it.old.trim().to_owned());
        return Err(EditRefusal::Stale { first: first + 1, line, count, old });
    }
    let retyping = Retyping::new(&pairs, &block.new, file).map_err(|it| match it {
        IndentFault::Contradiction(n) => EditRefusal::Contradiction { first: first + 1, line: first + n + 1, count },
        IndentFault::Unknown(n) => {
            let new = block.new.get(n).copied().unwrap_or_default().trim().to_owned();
            EditRefusal::UnknownDepth { first: first + 1, count, new }
        }
    })?;
    Ok(Rewriting::new(&pairs, retyping).lines(&block.old, &block.new))
}

/// Tells whether the line of the file says something else, and the new lines would keep some of it.
fn is_stale(pair: &Pair<'_>, new: &[&str]) -> bool {
    if tokens::dense(pair.old) == tokens::dense(pair.file) {
        return false;
    }
    let slips: HashSet<&str> = tokens::slips(pair.old, pair.file).unwrap_or_default().into_iter().collect();
    let keeps_slip = new.iter().flat_map(|it| tokens::words(it)).any(|it| slips.contains(it));
    let heirs = new.iter().filter(|it| tokens::likeness(pair.old, it) >= MIN_LIKENESS);
    keeps_slip || heirs.into_iter().any(|it| !tokens::is_replaced(pair.old, it, pair.file))
}

/// The new lines of one place, as they are made.
struct Rewriting<'a> {
    pairs: &'a [Pair<'a>],
    retyping: Retyping<'a>,
    /// Numbers of the pairs whose lines differ within, and the same by the line of `old_string`.
    differing: Vec<usize>,
    by_content: HashMap<&'a str, usize>,
    /// The pair behind the last one that stayed.
    at: usize,
}

impl<'a> Rewriting<'a> {
    fn new(pairs: &'a [Pair<'a>], retyping: Retyping<'a>) -> Self {
        let differing = pairs.iter().enumerate().filter(|it| it.1.old.trim() != it.1.file.trim());
        let by_content: HashMap<&str, usize> = differing.map(|(n, it)| (it.old.trim(), n)).collect();
        let mut differing: Vec<usize> = by_content.values().copied().collect();
        differing.sort_unstable();
        Self { pairs, retyping, differing, by_content, at: 0 }
    }

    fn lines(&mut self, old: &[&str], new: &[&str]) -> Vec<String> {
        let mut kept: HashMap<usize, usize> = HashMap::new();
        for it in capture_diff_slices(Algorithm::Myers, old, new).iter().filter(|it| it.tag() == DiffTag::Equal) {
            kept.extend(it.new_range().zip(it.old_range()));
        }
        new.iter().enumerate().map(|(n, it)| self.line(it, kept.get(&n).copied())).collect()
    }

    /// The line `new`, which stays from `old_string`, is changed, or comes anew.
    fn line(&mut self, new: &str, kept: Option<usize>) -> String {
        if is_blank(new) {
            return self.blank_line(new);
        }
        if let Some(it) = kept.and_then(|it| self.pairs.get(it)) {
            self.at = kept.map_or(self.at, |it| it + 1);
            return it.file.to_owned();
        }
        let indent = self.retyping.retype(indentation(new), self.at);
        let content = new.get(indentation(new).len()..).unwrap_or_default();
        let (bare, behind) = content.split_at(content.trim_end().len());
        [&indent, self.changed(bare).as_deref().unwrap_or(bare), behind].concat()
    }

    /// Blank lines are many: the one that comes next is this one, and no other.
    fn blank_line(&mut self, new: &str) -> String {
        let Some(next) = self.pairs.get(self.at).filter(|it| is_blank(it.old)) else { return new.to_owned() };
        self.at += 1;
        if next.old == new { next.file.to_owned() } else { new.to_owned() }
    }

    /// `new`, with what it shares with a line that differs from its line of the file as it stands there.
    fn changed(&mut self, new: &str) -> Option<String> {
        if let Some(it) = self.by_content.get(new).and_then(|it| self.pairs.get(*it)) {
            return Some(it.file.trim().to_owned());
        }
        let next = self.differing.partition_point(|it| *it < self.at);
        let near = self.differing.iter().skip(next.saturating_sub(1)).take(MAX_NEAR_PAIRS);
        let likely = near.filter_map(|it| Some((tokens::likeness(self.pairs.get(*it)?.old, new), *it)));
        let (_, found) = likely.filter(|it| it.0 >= MIN_LIKENESS).max_by_key(|it| (it.0, std::cmp::Reverse(it.1)))?;
        let pair = self.pairs.get(found)?;
        self.at = found + 1;
        tokens::merge(pair.old.trim(), new, pair.file.trim())
    }
}

#[cfg(test)]
mod tests;
