//! Hint after a failed `replace`: the most similar lines of the file, and where they differ from the wanted ones.

use std::{collections::HashSet, fmt::Write};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::builtin::texts::edit_rule::{Lines, Replacement, indentation};
use castor_base::text::first_line;

const CONTEXT_LINES: usize = 2;
const MAX_LINES: usize = 40;
const MAX_LINE_CHARS: usize = 200;
/// Share of the words that a place must have, in percent.
const MIN_SHARE: usize = 30;
/// A new text shorter than this may be found by chance.
const MIN_APPLIED_CHARS: usize = 10;
/// More lines are not compared one by one.
const MAX_COMPARED: usize = 500;
/// How many differing places are named.
const MAX_DIFFERENCES: usize = 3;

/// Sentences to put behind the error, or nothing.
pub fn hint(file: &Lines<'_>, asked: Replacement<'_>) -> String {
    let mut res = String::new();
    let new = asked.new.trim();
    if new.len() >= MIN_APPLIED_CHARS
        && let Some(at) = file.text.find(new)
    {
        let line = file.number(at);
        _ = write!(res, " new_string is already there, at line {line}: the edit may have been applied before.");
    }
    let old: Vec<&str> = asked.old.lines().collect();
    if let Some(first) = nearest(file, asked.old, old.len()) {
        res.push_str(&differences(file, first, &old));
        res.push_str("\nThe nearest lines in the file, with their numbers, are:\n");
        res.push_str(&numbered(file, first.saturating_sub(CONTEXT_LINES), old.len() + 2 * CONTEXT_LINES.min(first)));
    }
    res.trim_end().to_owned()
}

/// The lines from `first` on, with their numbers from 1.
pub fn numbered(file: &Lines<'_>, first: usize, count: usize) -> String {
    let lines = first..(first + count).min(file.count());
    let mut res = String::new();
    for at in lines.clone().take(MAX_LINES) {
        let line = file.get(at);
        _ = writeln!(res, "{}: {}{}", at + 1, indentation(line), first_line(line, MAX_LINE_CHARS));
    }
    if lines.len() > MAX_LINES {
        res.push_str("...");
    }
    res.trim_end().to_owned()
}

/// Which lines only one of both has, where most are the same.
fn differences(file: &Lines<'_>, first: usize, old: &[&str]) -> String {
    if old.len() > MAX_COMPARED {
        return String::new();
    }
    // Lines that the model left out make the place longer.
    let start = first.saturating_sub(CONTEXT_LINES);
    let now: Vec<&str> = (start..(first + old.len() + old.len() / 2 + CONTEXT_LINES).min(file.count()))
        .map(|it| file.get(it).trim())
        .collect();
    let old: Vec<&str> = old.iter().map(|it| it.trim()).collect();
    let ops = capture_diff_slices(Algorithm::Myers, &old, &now);
    let same = ops.iter().filter(|it| matches!(it, DiffOp::Equal { .. })).map(|it| it.old_range().len()).sum::<usize>();
    let inner = ops.iter().enumerate().filter(|(n, it)| match it {
        DiffOp::Equal { .. } => false,
        // What lies around the place.
        DiffOp::Insert { .. } => *n > 0 && n + 1 < ops.len(),
        _ => true,
    });
    if same * 2 < old.len() {
        return String::new();
    }
    let mut res = String::new();
    for (_, it) in inner.take(MAX_DIFFERENCES) {
        let line = start + it.new_range().start + 1;
        let lost = old.get(it.old_range().start).map(|it| first_line(it, MAX_LINE_CHARS)).unwrap_or_default();
        match it {
            DiffOp::Insert { .. } => _ = write!(res, " Line {line} of the file is not in old_string."),
            DiffOp::Delete { .. } => _ = write!(res, " The file has no such line: {lost}"),
            _ => _ = write!(res, " Line {line} of the file is not this one: {lost}"),
        }
    }
    res
}

/// The first of the `count` lines that share most words with the wanted text. Linear: files may be large.
fn nearest(file: &Lines<'_>, old: &str, count: usize) -> Option<usize> {
    let wanted: HashSet<&str> = words(old).collect();
    let all: usize = old.lines().map(|it| score(it, &wanted)).sum();
    let scores: Vec<usize> = file.iter().map(|it| score(it, &wanted)).collect();
    let mut sum: usize = scores.iter().take(count).sum();
    let (mut best, mut best_at) = (sum, 0);
    for (n, (gone, come)) in scores.iter().zip(scores.iter().skip(count)).enumerate() {
        sum = sum + come - gone;
        // Of equals, the one that does not begin with lines that say nothing.
        if sum > best || (sum == best && *gone == 0 && best_at == n) {
            (best, best_at) = (sum, n + 1);
        }
    }
    (best > 0 && best * 100 >= all * MIN_SHARE).then_some(best_at)
}

/// How many different words of the line are wanted.
fn score(line: &str, wanted: &HashSet<&str>) -> usize {
    words(line).filter(|it| wanted.contains(it)).collect::<HashSet<_>>().len()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty())
}
