//! Matching strategies of `replace` for `old_string`, strictest first.

use regex::Regex;

use crate::world::tools::replace::{fuzzy::fuzzy, lines::Edit, query::ReplaceQuery};

/// A text is looked for as loose tokens only when it has at most this many.
const MAX_TOKENS: usize = 2000;
const DELIMITERS: &[char] = &['(', ')', ':', '[', ']', '{', '}', '<', '>', '='];

/// All places that a strategy finds, in order.
pub type Strategy = fn(&ReplaceQuery<'_>) -> Vec<Edit>;

/// The first that finds something decides.
pub const STRATEGIES: &[(&str, Strategy)] =
    &[("exact", exact), ("flexible", flexible), ("tokens", tokens), ("fuzzy", fuzzy)];

fn exact(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let found = query.text.match_indices(query.old);
    found.map(|(at, it)| Edit { range: at..at + it.len(), text: query.new.to_owned() }).collect()
}

/// Lines that are equal but for the white space around them.
fn flexible(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let block = query.block();
    let wanted: Vec<&str> = block.old.split('\n').map(str::trim).collect();
    let mut res = Vec::new();
    if wanted.iter().all(|it| it.is_empty()) {
        return res;
    }
    let mut at = 0;
    while let Some(range) = query.window(at, wanted.len()) {
        match wanted.iter().enumerate().all(|(n, it)| query.line(at + n).trim() == *it) {
            true => {
                res.push(query.edit(&block, range));
                at += wanted.len();
            }
            false => at += 1,
        }
    }
    res
}

/// The same tokens from the start of a line on, whatever the white space between them.
fn tokens(query: &ReplaceQuery<'_>) -> Vec<Edit> {
    let block = query.block();
    let Some(regex) = token_regex(block.old) else { return Vec::new() };
    regex.find_iter(query.text).map(|it| query.edit(&block, it.range())).collect()
}

fn token_regex(old: &str) -> Option<Regex> {
    let spaced: String = old.split_inclusive(DELIMITERS).map(space_last).collect();
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    if tokens.is_empty() || tokens.len() > MAX_TOKENS {
        return None;
    }
    let mut pattern = String::from(r"(?m)^[ \t]*");
    let mut after_word = false;
    for (n, token) in tokens.iter().enumerate() {
        // Two words that touch are one other word.
        match n > 0 && after_word && token.starts_with(is_word) {
            true => pattern.push_str(r"\s+"),
            false if n > 0 => pattern.push_str(r"\s*"),
            false => (),
        }
        pattern.push_str(&regex::escape(token));
        after_word = token.ends_with(is_word);
    }
    if after_word {
        pattern.push_str(r"\b");
    }
    Regex::new(&pattern).ok()
}

/// `part`, which may end in a delimiter, with spaces around that.
fn space_last(part: &str) -> String {
    match part.char_indices().next_back().filter(|it| DELIMITERS.contains(&it.1)) {
        Some((at, delimiter)) => format!("{} {delimiter} ", part.get(..at).unwrap_or_default()),
        None => part.to_owned(),
    }
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}
