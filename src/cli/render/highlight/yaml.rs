//! Reads YAML: keys, plain and quoted values, and the lines of longer texts.

use super::{
    code::{has_word, number_len},
    scan::{LineScan, ReadMode, ReadState},
    syntax::{DOUBLE, StringRule, long, raw},
    token::CodeToken,
};

const QUOTED: StringRule = long(DOUBLE.open, DOUBLE.close);
const RAW: StringRule = raw("'", "'");
const CONSTANTS: &str = "true false null ~ yes no on off True False Null";

/// A line, or what is left of it.
pub fn read(scan: &mut LineScan, state: &mut ReadState) {
    let rest = scan.rest();
    let Some(first) = scan.peek() else { return };
    let has_end = |len: usize| rest.get(len..).is_some_and(|it| it.is_empty() || it.starts_with(' '));
    let is_parted = scan.before().is_empty() || scan.before().ends_with(char::is_whitespace);
    match first {
        '#' if is_parted => scan.take_rest(CodeToken::Comment),
        '-' | '?' | ':' if has_end(1) => scan.take(1, CodeToken::Plain),
        '-' if scan.at() == 0 && matches!(rest.trim_end(), "---") => scan.take_rest(CodeToken::Heading),
        '"' | '\'' => begin_quoted(scan, state),
        '&' | '*' | '!' => scan.take_while(|it| !it.is_whitespace() && !",]}".contains(it), CodeToken::Type),
        '|' | '>' if !scan.is_at_start() && is_block_mark(rest) => {
            let line = scan.before();
            state.mode = ReadMode::Scalar(line.len() - line.trim_start().len());
            scan.take_rest(CodeToken::Plain);
        }
        it if it.is_whitespace() || "[]{},".contains(it) => scan.take_char(CodeToken::Plain),
        _ => read_plain(scan),
    }
}

/// `|`, `>-`, `|2 # a comment`.
fn is_block_mark(rest: &str) -> bool {
    let behind = rest.trim_start_matches(|it: char| it.is_ascii_digit() || "|>+-".contains(it)).trim_start();
    behind.is_empty() || behind.starts_with('#')
}

fn begin_quoted(scan: &mut LineScan, state: &mut ReadState) {
    let rule: &'static StringRule = if scan.rest().starts_with('"') { &QUOTED } else { &RAW };
    let behind = scan.rest().get(1..).unwrap_or_default();
    let key = behind.find(rule.close).and_then(|it| behind.get(it + 1..)).is_some_and(|it| it.starts_with(':'));
    let token = if key { CodeToken::Key } else { CodeToken::Text };
    scan.take(1, token);
    state.mode = ReadMode::String { rule, token };
}

/// A key or a value without quotes.
fn read_plain(scan: &mut LineScan) {
    let rest = scan.rest();
    let is_in_brackets = scan.before().contains(['{', '[']);
    let mut end = rest.len();
    let mut is_key = false;
    let mut last = 'x';
    for (at, it) in rest.char_indices() {
        let next = rest.get(at + it.len_utf8()..).and_then(|it| it.chars().next());
        is_key = it == ':' && next.is_none_or(|it| it.is_whitespace());
        if is_key || (it == '#' && last.is_whitespace()) || (is_in_brackets && ",]}".contains(it)) {
            end = at;
            break;
        }
        last = it;
    }
    let text = rest.get(..end).unwrap_or_default().trim_end();
    let is_number = number_len(text.trim_start_matches('-')) == text.trim_start_matches('-').len();
    let token = match text {
        _ if is_key => CodeToken::Key,
        it if is_number || has_word(CONSTANTS, it) => CodeToken::Constant,
        _ => CodeToken::Text,
    };
    scan.take(text.len(), token);
    scan.take(end - text.len(), CodeToken::Plain);
    if is_key {
        scan.take(1, CodeToken::Plain);
    }
}

/// Lines that are further in than the key above them.
pub fn read_scalar(scan: &mut LineScan, state: &mut ReadState, indent: usize) {
    let rest = scan.rest();
    let own = rest.len() - rest.trim_start().len();
    if own > indent || rest.trim().is_empty() {
        return scan.take_rest(CodeToken::Text);
    }
    state.mode = ReadMode::Code;
}
