//! Fuzzy matching of `old_string`: a few different characters, and little weight on white space.

use crate::world::tools::replace::{lines::Edit, query::ReplaceQuery};

/// Shorter texts are near to too much.
const MIN_CHARS: usize = 10;
/// Differing characters per character of `old_string`.
const MAX_DIFFERENCE: f64 = 0.1;
const WHITESPACE_WEIGHT: f64 = 0.1;
/// Lines of the file times the square of the text's length: more takes too long.
const MAX_WORK: usize = 400_000_000;

struct NearMatch {
    score: f64,
    first: usize,
}

/// The best matches that do not overlap.
pub fn fuzzy(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let block = query.block();
    let wanted = TextShape::new(block.old);
    let len = wanted.chars.len();
    let work = len.checked_mul(len).and_then(|it| it.checked_mul(query.lines.len()));
    if len < MIN_CHARS || wanted.dense.is_empty() || work.is_none_or(|it| it > MAX_WORK) {
        return Vec::new();
    }
    let count = block.old.split('\n').count();
    let mut near = Vec::new();
    let windows = (0..query.lines.len()).map_while(|first| Some((first, query.window(first, count)?)));
    for (first, range) in windows {
        if query.cancel.is_cancelled() {
            return Vec::new();
        }
        let score = wanted.difference(query.text.get(range).unwrap_or_default());
        near.extend(score.map(|score| NearMatch { score, first }));
    }
    near.sort_by(|a, b| a.score.total_cmp(&b.score).then(a.first.cmp(&b.first)));
    let mut chosen: Vec<usize> = Vec::new();
    for it in near {
        if chosen.iter().all(|other| other.abs_diff(it.first) >= count) {
            chosen.push(it.first);
        }
    }
    chosen.sort_unstable();
    chosen.iter().filter_map(|it| Some(query.edit(&block, query.window(*it, count)?))).collect()
}

/// A text with and without its white space.
struct TextShape {
    chars: Vec<char>,
    dense: Vec<char>,
}

impl TextShape {
    fn new(text: &str) -> Self {
        Self { chars: text.chars().collect(), dense: text.chars().filter(|it| !it.is_whitespace()).collect() }
    }

    /// How much `text` differs from this, if that is little enough.
    fn difference(&self, text: &str) -> Option<f64> {
        let other = Self::new(text);
        let most = self.chars.len() as f64 * MAX_DIFFERENCE;
        let dense = distance(&self.dense, &other.dense, most as usize)? as f64;
        let rest = (most - dense) / WHITESPACE_WEIGHT + dense;
        let all = distance(&self.chars, &other.chars, rest as usize)? as f64;
        let score = (dense + WHITESPACE_WEIGHT * (all - dense).max(0.0)) / self.chars.len() as f64;
        (score <= MAX_DIFFERENCE).then_some(score)
    }
}

/// Levenshtein's distance, if it is at most `max`. Gives up as soon as a whole row is above that.
fn distance(a: &[char], b: &[char], max: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.iter().enumerate() {
        let mut diagonal = n;
        let mut left = n + 1;
        let mut least = left;
        let mut cells = row.iter_mut();
        if let Some(first) = cells.next() {
            *first = left;
        }
        for (cell, y) in cells.zip(b) {
            left = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, left);
            least = least.min(left);
        }
        if least > max {
            return None;
        }
    }
    row.last().copied().filter(|it| *it <= max)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn counts_differences() {
        let check = |a: &str, b: &str, expected: Option<usize>| {
            let chars = |it: &str| it.chars().collect::<Vec<_>>();
            assert_eq!(distance(&chars(a), &chars(b), 3), expected, "{a} {b}");
        };
        check("kitten", "sitting", Some(3));
        check("same", "same", Some(0));
        check("", "abc", Some(3));
        check("abcdef", "uvwxyz", None);
        check("", "abcd", None);
    }
}
