//! Tokens of a line: what it says but for its white space, and what an edit does to it.

use similar::{Algorithm, capture_diff_slices};

/// A line with more tokens is not merged.
const MAX_TOKENS: usize = 2_000;
/// Two words are one with a slip of the pen if that many letters of them, at most, are others.
const MAX_SLIP: usize = 2;
/// Letters of a word for each that may be another.
const LETTERS_PER_SLIP: usize = 4;

/// A word or a sign, with the white space before it.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub space: &'a str,
    pub text: &'a str,
}

impl Token<'_> {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word)
    }
}

/// As tokens count: whatever their white space, and whichever quotes and dashes.
impl PartialEq for Token<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || (is_one(self.text) && self.text.chars().map(plain).eq(other.text.chars().map(plain)))
    }
}

fn is_one(text: &str) -> bool {
    text.chars().nth(1).is_none()
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// Quotes and dashes as a keyboard has them: models retype them.
fn plain(it: char) -> char {
    match it {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        it => it,
    }
}

pub fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut res = Vec::new();
    let mut rest = line;
    loop {
        let text = rest.trim_start();
        let space = rest.get(..rest.len() - text.len()).unwrap_or_default();
        let Some(first) = text.chars().next() else { return res };
        let len = match is_word(first) {
            true => text.find(|it| !is_word(it)).unwrap_or(text.len()),
            false => first.len_utf8(),
        };
        let (token, behind) = text.split_at(len);
        res.push(Token { space, text: token });
        rest = behind;
    }
}

/// The line without white space that says nothing. Two words that touch are one other word.
pub fn dense(line: &str) -> String {
    let mut res = String::with_capacity(line.len());
    let mut was_word = false;
    for it in tokens(line) {
        if was_word && it.is_word() {
            res.push(' ');
        }
        res.extend(it.text.chars().map(plain));
        was_word = it.is_word();
    }
    res
}

/// The words of `text`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it| !is_word(it)).filter(|it| !it.is_empty())
}

/// How many tokens of `a` stand in `b`, in the same order, in percent of the longer.
pub fn likeness(a: &str, b: &str) -> usize {
    let (a, b) = (tokens(a), tokens(b));
    let longer = a.len().max(b.len());
    if longer == 0 || longer > MAX_TOKENS {
        return 0;
    }
    shared(&a, &b).len() * 100 / longer
}

/// The pairs of tokens that `a` and `b` share.
fn shared(a: &[Token<'_>], b: &[Token<'_>]) -> Vec<(usize, usize)> {
    let ops = capture_diff_slices(Algorithm::Myers, &keys(a), &keys(b));
    let equal = ops.iter().filter(|it| it.tag() == similar::DiffTag::Equal);
    equal.flat_map(|it| it.old_range().zip(it.new_range())).collect()
}

fn keys(tokens: &[Token<'_>]) -> Vec<String> {
    tokens
        .iter()
        .map(|it| if is_one(it.text) { it.text.chars().map(plain).collect() } else { it.text.to_owned() })
        .collect()
}

/// `new`, with what it shares with `old` as it stands in `file`, if its tokens are those of `old`. `None`: they are not, or too many.
pub fn merge(old: &str, new: &str, file: &str) -> Option<String> {
    let (olds, news, files) = (tokens(old), tokens(new), tokens(file));
    if olds.len().max(news.len()) > MAX_TOKENS || olds.len() != files.len() {
        return None;
    }
    let shared = shared(&olds, &news);
    if shared.iter().any(|it| olds.get(it.0) != files.get(it.0)) {
        return None;
    }
    let mut shared = shared.iter().peekable();
    let mut res = String::with_capacity(new.len());
    // The token of `old` that the one before is.
    let mut last = None;
    for (n, it) in news.iter().enumerate() {
        let at = shared.next_if(|pair| pair.1 == n).map(|it| it.0);
        let kept = at.and_then(|it| Some((olds.get(it)?, files.get(it)?)));
        let follows = at.is_some_and(|it| it.checked_sub(1) == last);
        let space = match kept {
            Some((old, file)) if follows && old.space == it.space => file.space,
            _ => it.space,
        };
        res.push_str(space);
        res.push_str(kept.map_or(it.text, |it| it.1.text));
        last = at.or(Some(usize::MAX));
    }
    Some(res)
}

/// The words of `old` that `file` has with a slip of the pen, if the lines are else made of the same words.
pub fn slips<'a>(old: &'a str, file: &str) -> Option<Vec<&'a str>> {
    let (mut olds, mut files) = (words(old), words(file));
    let mut res = Vec::new();
    loop {
        match (olds.next(), files.next()) {
            (None, None) => return Some(res),
            (Some(a), Some(b)) if a == b => (),
            (Some(a), Some(b)) if is_slip(a, b) => res.push(a),
            _ => return None,
        }
    }
}

/// Tells whether two words differ by a letter or two, and in no digit.
fn is_slip(a: &str, b: &str) -> bool {
    let digits = |it: &str| it.chars().filter(|it| it.is_numeric()).collect::<String>();
    let letters = |it: &str| it.chars().collect::<Vec<_>>();
    let (x, y) = (letters(a), letters(b));
    let most = MAX_SLIP.min(x.len().min(y.len()) / LETTERS_PER_SLIP);
    digits(a) == digits(b) && distance(&x, &y, most).is_some()
}

/// Levenshtein's distance, if it is at most `max`. Gives up as soon as a whole row is above that.
pub fn distance(a: &[char], b: &[char], max: usize) -> Option<usize> {
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

/// Tells whether what `file` has otherwise than `old` goes with `new`: nothing of it is in what `old` and `new` share.
pub fn is_replaced(old: &str, new: &str, file: &str) -> bool {
    let (old, new, file) = (tokens(old), tokens(new), tokens(file));
    if old.len().max(new.len()).max(file.len()) > MAX_TOKENS {
        return false;
    }
    let changes = |to: &[Token<'_>]| {
        let ops = capture_diff_slices(Algorithm::Myers, &keys(&old), &keys(to));
        ops.into_iter().filter(|it| it.tag() != similar::DiffTag::Equal).collect::<Vec<_>>()
    };
    let edits = changes(&new);
    changes(&file).iter().all(|drift| {
        let (gone, come) = (drift.old_range(), file.get(drift.new_range()));
        edits.iter().any(|edit| {
            let place = edit.old_range();
            let is_same = place == gone && new.get(edit.new_range()) == come;
            is_same || (place.start <= gone.start && gone.end <= place.end && !gone.is_empty())
        })
    })
}
