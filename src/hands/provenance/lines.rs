//! Lines of agents: the part of a file that is still an agent's after a change by an agent or by a person.
//!
//! What cannot be compared (no text, too long, too slow) has no lines: all of it is the agent's.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};

/// Line numbers from 0.
pub type LineSet = BTreeSet<usize>;

/// Longest text that is compared, in bytes.
const MAX_TEXT: usize = 512 << 10;
/// Most words of changed lines that are compared.
const MAX_WORDS: usize = 20_000;
/// A comparison that takes longer says nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Fewer equal lines without a word are chance.
const MIN_RUN: usize = 3;

/// The agent's lines once an agent has made `new` of `old`: those that were, those that differ, and those beside what is
/// gone.
pub fn after_agent(old: &[u8], own: &LineSet, new: &[u8]) -> Option<LineSet> {
    let (old, new) = (text_lines(old)?, text_lines(new)?);
    let mut res = LineSet::new();
    for op in compare(&old, &new)? {
        match op.tag() {
            DiffTag::Equal => res.extend(carry(own, &op)),
            // Where something is gone, the place is the agent's.
            DiffTag::Delete => res.extend(new.len().checked_sub(1).map(|last| op.new_range().start.min(last))),
            DiffTag::Insert | DiffTag::Replace => res.extend(op.new_range()),
        }
    }
    Some(res)
}

/// The agent's lines once a person, or a formatter, has made `new` of `old`: what they touched is theirs. To indent, to
/// wrap, to move a line, or to put other quotes, braces and commas around it, is no touch.
pub fn after_person(old: &[u8], own: &LineSet, new: &[u8]) -> Option<LineSet> {
    let said = |text| -> Option<Vec<Vec<&str>>> { Some(text_lines(text)?.into_iter().map(words).collect()) };
    let (old, new) = (said(old)?, said(new)?);
    let (mut res, mut fresh, mut gone) = (LineSet::new(), LineSet::new(), (0..old.len()).collect::<LineSet>());
    for op in compare(&old, &new)? {
        if op.tag() == DiffTag::Equal {
            op.old_range().for_each(|it| _ = gone.remove(&it));
            let is_chance = op.new_range().len() < MIN_RUN && !op.new_range().any(|it| is_said(&new, it));
            res.extend(carry(own, &op).filter(|_| !is_chance));
        } else {
            fresh.extend(op.new_range());
        }
    }
    if !gone.is_disjoint(own) {
        res.extend(rewrapped((&old, &gone), own, (&new, &fresh)));
    }
    Some(res)
}

/// Fresh lines that are made of old lines, each with its words in their order and without a gap, and of an own one.
fn rewrapped(old: (&[Vec<&str>], &LineSet), own: &LineSet, new: (&[Vec<&str>], &LineSet)) -> LineSet {
    let all = new.1.iter().flat_map(|at| new.0.get(*at).into_iter().flatten().map(|it| (*it, *at)));
    let (after, lines): (Vec<&str>, Vec<usize>) = all.unzip();
    if after.len() > MAX_WORDS {
        return new.1.clone();
    }
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    after.iter().enumerate().for_each(|(at, it)| places.entry(it).or_default().push(at));
    // Of each word, whether it is a part of an old line, and of an own one.
    let mut found: Vec<_> = lines.into_iter().map(|line| (line, None)).collect();
    for (at, line) in old.1.iter().filter_map(|at| Some((at, old.0.get(*at)?))) {
        let is_own = Some(own.contains(at) && is_said(old.0, *at));
        let begins = line.first().and_then(|it| places.get(it)).into_iter().flatten();
        for begin in begins.filter(|it| after.get(**it..).is_some_and(|it| it.starts_with(line))) {
            found.iter_mut().skip(*begin).take(line.len()).for_each(|it| it.1 = it.1.max(is_own));
        }
    }
    let is_own = |line: &&[(usize, Option<bool>)]| {
        line.iter().all(|it| it.1.is_some()) && line.iter().any(|it| it.1 == Some(true))
    };
    found.chunk_by(|a, b| a.0 == b.0).filter(is_own).filter_map(|it| Some(it.first()?.0)).collect()
}

fn text_lines(bytes: &[u8]) -> Option<Vec<&str>> {
    let text = str::from_utf8(bytes).ok().filter(|it| it.len() <= MAX_TEXT && !it.contains('\0'))?;
    Some(text.split_inclusive('\n').collect())
}

fn compare<T: Eq + std::hash::Hash>(old: &[T], new: &[T]) -> Option<Vec<DiffOp>> {
    let end = Instant::now() + PATIENCE;
    let res = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(end));
    // What was cut short is coarse.
    (Instant::now() < end).then_some(res)
}

fn carry(own: &LineSet, op: &DiffOp) -> impl Iterator<Item = usize> {
    op.old_range().zip(op.new_range()).filter(|it| own.contains(&it.0)).map(|it| it.1)
}

/// What a line says: runs of letters and digits, and each other sign alone. Blanks, quotes, commas, semicolons, braces and
/// parentheses are a formatter's.
fn words(line: &str) -> Vec<&str> {
    let is_sign = |it: char| !it.is_alphanumeric() && it != '_';
    let runs = line.split(|it: char| it.is_whitespace() || "'\"`,;(){}".contains(it));
    let pieces = runs.flat_map(|it| it.split_inclusive(is_sign));
    let parts = pieces.flat_map(|it| <[&str; 2]>::from(it.split_at(it.trim_end_matches(is_sign).len())));
    parts.filter(|it| !it.is_empty()).collect()
}

fn is_said(lines: &[Vec<&str>], at: usize) -> bool {
    lines.get(at).is_some_and(|it| it.iter().any(|it| it.contains(char::is_alphanumeric)))
}
