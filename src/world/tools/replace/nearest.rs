//! Hint after a failed `replace`: the most similar lines of the file.

use std::{collections::HashSet, fmt::Write};

use crate::{
    base::text::first_line,
    world::tools::replace::{lines::indentation, query::ReplaceQuery},
};

const CONTEXT_LINES: usize = 2;
const MAX_LINES: usize = 40;
const MAX_LINE_CHARS: usize = 200;
/// Share of the words that a place must have, in percent.
const MIN_SHARE: usize = 30;
/// A new text shorter than this may be found by chance.
const MIN_APPLIED_CHARS: usize = 10;

/// Sentences to put behind the error, or nothing.
pub fn hint(query: &ReplaceQuery<'_>) -> String {
    let mut res = String::new();
    let new = query.new.trim();
    if new.len() >= MIN_APPLIED_CHARS
        && let Some(at) = query.text.find(new)
    {
        let line = query.lines.partition_point(|it| it.end < at) + 1;
        _ = write!(res, " new_string is already there, at line {line}: the edit may have been applied before.");
    }
    let count = query.old.lines().count();
    if let Some(first) = nearest(query, count) {
        res.push_str("\nThe nearest lines in the file, with their numbers, are:\n");
        let lines = first.saturating_sub(CONTEXT_LINES)..(first + count + CONTEXT_LINES).min(query.lines.len());
        for at in lines.clone().take(MAX_LINES) {
            let line = query.line(at);
            _ = writeln!(res, "{}: {}{}", at + 1, indentation(line), first_line(line, MAX_LINE_CHARS));
        }
        if lines.len() > MAX_LINES {
            res.push_str("...");
        }
    }
    res.trim_end().to_owned()
}

/// The first of the `count` lines that share most words with the wanted text. Linear: files may be large.
fn nearest(query: &ReplaceQuery<'_>, count: usize) -> Option<usize> {
    let wanted: HashSet<&str> = words(query.old).collect();
    let all: usize = query.old.lines().map(|it| score(it, &wanted)).sum();
    let scores: Vec<usize> = (0..query.lines.len()).map(|it| score(query.line(it), &wanted)).collect();
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
