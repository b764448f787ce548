//! Searches for the lines of `old_string` in a file, in linear time or within a bound.

use std::collections::HashMap;

/// Comparisons of lines that a search for near ones may cost.
const MAX_COMPARISONS: usize = 20_000_000;

/// The first lines of all places where `wanted` stands in `lines`; they may overlap.
pub fn find_all<T: PartialEq>(lines: &[T], wanted: &[T]) -> Vec<usize> {
    let borders = borders(wanted);
    let mut found = Vec::new();
    let mut len = 0;
    for (n, line) in lines.iter().enumerate() {
        while len > 0 && wanted.get(len) != Some(line) {
            len = borders.get(len - 1).copied().unwrap_or(0);
        }
        if wanted.get(len) == Some(line) {
            len += 1;
        }
        if len > 0 && len == wanted.len() {
            found.push(n + 1 - len);
            len = borders.last().copied().unwrap_or(0);
        }
    }
    found
}

/// For each beginning of `wanted`, the length of the longest shorter one that it ends with (Knuth, Morris, Pratt).
fn borders<T: PartialEq>(wanted: &[T]) -> Vec<usize> {
    let mut res: Vec<usize> = Vec::with_capacity(wanted.len());
    let mut len = 0;
    for (n, it) in wanted.iter().enumerate() {
        while len > 0 && wanted.get(len) != Some(it) {
            len = res.get(len - 1).copied().unwrap_or(0);
        }
        if n > 0 && wanted.get(len) == Some(it) {
            len += 1;
        }
        res.push(len);
    }
    res
}

/// The first lines of all places where at most `max` lines are others than in `wanted`.
pub fn find_near(lines: &[u32], wanted: &[u32], max: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut cost = 0;
    for (first, window) in lines.windows(wanted.len().max(1)).enumerate() {
        let mut differing = 0;
        for (a, b) in window.iter().zip(wanted) {
            cost += 1;
            differing += usize::from(a != b);
            if differing > max {
                break;
            }
        }
        if cost > MAX_COMPARISONS {
            return Vec::new();
        }
        if differing <= max {
            found.push(first);
        }
    }
    found
}

/// Numbers for lines: equal ones for those that are equal by `key`.
pub struct Numbering<F> {
    key: F,
    numbers: HashMap<String, u32>,
}

impl<F: Fn(&str) -> String> Numbering<F> {
    pub fn new(key: F) -> Self {
        Self { key, numbers: HashMap::new() }
    }

    pub fn of<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Vec<u32> {
        let number = |it: &str| {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            *self.numbers.entry((self.key)(it)).or_insert(next)
        };
        lines.map(number).collect()
    }
}
