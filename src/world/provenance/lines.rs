//! Lines of agents: the part of a file that is still an agent's after a change by an agent or by a person.
//!
//! What cannot be compared (no text, too long, too slow) has no lines: all of it is the agent's.

use std::{
    collections::{BTreeSet, HashSet},
    iter,
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Line numbers from 0.
pub type LineSet = BTreeSet<u32>;

/// Longest text that is compared, in bytes.
const MAX_TEXT: usize = 512 << 10;
/// Most words of one changed place that are compared.
const MAX_WORDS: usize = 20_000;
/// A comparison that takes longer says nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Fewer equal lines without a word are chance.
const MIN_RUN: usize = 3;

/// LineSet of `new` that differ from `old`, and those beside what is gone.
pub fn changed(old: &[u8], new: &[u8]) -> Option<LineSet> {
    after_agent(old, &LineSet::new(), new)
}

/// The agent's lines once an agent has made `new` of `old`.
pub fn after_agent(old: &[u8], own: &LineSet, new: &[u8]) -> Option<LineSet> {
    let (old, new) = (text(old)?, text(new)?);
    let mut res = LineSet::new();
    for op in compare(&old, &new)? {
        match op {
            DiffOp::Equal { old_index, new_index, len } => res.extend(carry(own, old_index, new_index, len)),
            // Where something is gone, the place is the agent's.
            DiffOp::Delete { new_index, .. } => {
                res.extend((!new.is_empty()).then(|| number(new_index.min(new.len() - 1))));
            }
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                res.extend((new_index..new_index + new_len).map(number));
            }
        }
    }
    Some(res)
}

/// The agent's lines once a person, or a formatter, has made `new` of `old`: what they touched is theirs. To indent, to
/// wrap, to move a line, or to put other quotes and commas around it, is no touch.
pub fn after_person(old: &[u8], own: &LineSet, new: &[u8]) -> Option<LineSet> {
    let (old, new) = (text(old)?, text(new)?);
    let keys = |lines: &[&str]| -> Vec<String> { lines.iter().map(|it| words(it).concat()).collect() };
    let (old_keys, new_keys) = (keys(&old), keys(&new));
    let (mut res, mut kept) = (LineSet::new(), LineSet::new());
    let mut fresh = Vec::new();
    for op in compare(&old_keys, &new_keys)? {
        let (from, to) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { old_index, new_index, len } = op {
            let same = new_keys.get(to).unwrap_or_default();
            kept.extend((old_index..old_index + len).map(number));
            if len >= MIN_RUN || same.iter().any(|it| is_said(it)) {
                res.extend(carry(own, old_index, new_index, len));
            }
            continue;
        }
        if from.clone().any(|it| own.contains(&number(it))) {
            res.extend(rewrapped(&old, own, &new, (from, to.clone()))?);
        }
        fresh.extend(to);
    }
    let is_gone =
        |(at, key): &(usize, &String)| own.contains(&number(*at)) && !kept.contains(&number(*at)) && is_said(key);
    let gone: HashSet<&String> = old_keys.iter().enumerate().filter(is_gone).map(|it| it.1).collect();
    res.extend(fresh.into_iter().filter(|it| new_keys.get(*it).is_some_and(|it| gone.contains(it))).map(number));
    Some(res)
}

/// LineSet of a changed place whose words are all an old line's, in their order and without a gap.
fn rewrapped(old: &[&str], own: &LineSet, new: &[&str], (from, to): (Range<usize>, Range<usize>)) -> Option<LineSet> {
    let split = |lines: &[&str], range: Range<usize>| -> Vec<(String, usize)> {
        let all = lines.iter().enumerate().skip(range.start).take(range.len());
        all.flat_map(|(at, line)| words(line).into_iter().map(move |it| (it.to_owned(), at))).collect()
    };
    let (before, after) = (split(old, from), split(new, to.clone()));
    if before.len().max(after.len()) > MAX_WORDS {
        return Some(to.map(number).collect());
    }
    let only = |all: &[(String, usize)]| -> Vec<String> { all.iter().map(|it| it.0.clone()).collect() };
    let mut origin = vec![None; after.len()];
    for op in compare(&only(&before), &only(&after))? {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            origin.iter_mut().skip(new_index).take(len).enumerate().for_each(|(n, it)| *it = Some(old_index + n));
        }
    }
    let kept: HashSet<usize> = origin.iter().filter_map(|it| *it).collect();
    let (mut res, mut words) = (LineSet::new(), after.iter().zip(&origin).peekable());
    for at in to {
        let of_line: Vec<_> = iter::from_fn(|| words.next_if(|it| it.0.1 == at)).map(|it| *it.1).collect();
        let Some(from) = of_line.into_iter().collect::<Option<Vec<usize>>>() else { continue };
        let is_whole = from.windows(2).all(|it| matches!(it, [a, b] if a + 1 == *b));
        // A word of the same old line that is nowhere any more was taken out.
        let lacks = |at: Option<usize>, beside: usize| {
            let line = |at: usize| before.get(at).map(|it| it.1);
            at.is_some_and(|at| line(at).is_some() && line(at) == line(beside) && !kept.contains(&at))
        };
        let ends = from.first().zip(from.last());
        let is_cut = ends.is_some_and(|(a, b)| lacks(a.checked_sub(1), *a) || lacks(b.checked_add(1), *b));
        let is_own = |it: &usize| before.get(*it).is_some_and(|(word, at)| own.contains(&number(*at)) && is_said(word));
        if is_whole && !is_cut && from.iter().any(is_own) {
            res.insert(number(at));
        }
    }
    Some(res)
}

/// As ranges, for those who show them.
pub fn ranges(lines: &LineSet) -> Vec<Range<usize>> {
    let mut res: Vec<Range<usize>> = Vec::new();
    for at in lines.iter().map(|it| *it as usize) {
        match res.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => res.push(at..at + 1),
        }
    }
    res
}

pub fn text(bytes: &[u8]) -> Option<Vec<&str>> {
    let text = str::from_utf8(bytes).ok().filter(|it| it.len() <= MAX_TEXT && !it.contains('\0'))?;
    Some(text.split_inclusive('\n').collect())
}

fn compare<T: Eq + std::hash::Hash>(old: &[T], new: &[T]) -> Option<Vec<DiffOp>> {
    let end = Instant::now() + PATIENCE;
    let res = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(end));
    // What was cut short is coarse.
    (Instant::now() < end).then_some(res)
}

fn carry(own: &LineSet, old: usize, new: usize, len: usize) -> impl Iterator<Item = u32> {
    (0..len).filter(move |it| own.contains(&number(old + it))).map(move |it| number(new + it))
}

/// What a line says: runs of letters and digits, and each other sign alone. Blanks, quotes, commas, semicolons and
/// parentheses are a formatter's.
fn words(line: &str) -> Vec<&str> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let is_style = |it: char| it.is_whitespace() || "'\"`,;()".contains(it);
    let (mut res, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let len = match is_word(first) {
            true => rest.find(|it| !is_word(it)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, more) = rest.split_at_checked(len).unwrap_or((rest, ""));
        res.extend((!is_style(first)).then_some(word));
        rest = more;
    }
    res
}

fn is_said(words: &str) -> bool {
    words.contains(char::is_alphanumeric)
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
