//! Reads markup: tags with their attributes, and the text between them, in pages and within code.

use super::{
    scan::{LineScan, MAX_DEPTH, ReadMode, ReadState, TagKind},
    syntax::SyntaxTrait,
    token::CodeToken,
};

const COMMENT: (&str, &str) = ("<!--", "-->");

/// Between tags.
pub fn read_text(scan: &mut LineScan, state: &mut ReadState) {
    let rest = scan.rest();
    let has_code = state.syntax.has(SyntaxTrait::Jsx);
    if rest.starts_with(COMMENT.0) && !has_code {
        state.mode = ReadMode::Comment { close: COMMENT.1, depth: 1 };
        return scan.take(COMMENT.0.len(), CodeToken::Comment);
    }
    match scan.peek() {
        Some('<') => begin_tag(scan, state),
        Some('&') if !has_code => entity(scan),
        Some('{') if has_code && state.outer.len() < MAX_DEPTH => {
            scan.take(1, CodeToken::Plain);
            state.enclose('{', '}');
        }
        _ => {
            scan.take_char(CodeToken::Plain);
            scan.take_while(|it| !"<&{".contains(it), CodeToken::Plain);
        }
    }
}

fn begin_tag(scan: &mut LineScan, state: &mut ReadState) {
    let rest = scan.rest();
    let name = rest.trim_start_matches(['<', '/', '!', '?']);
    let is_name = |it: char| it.is_alphanumeric() || ":-_.".contains(it);
    let len = name.find(|it| !is_name(it)).unwrap_or(name.len());
    if len == 0 && !name.starts_with('>') {
        return scan.take_char(CodeToken::Plain);
    }
    scan.take(rest.len() - name.len(), CodeToken::Plain);
    let kind = match name.get(..len).unwrap_or_default().to_ascii_lowercase().as_str() {
        _ if rest.starts_with("</") => TagKind::End,
        "script" => TagKind::Script,
        "style" => TagKind::Style,
        _ => TagKind::Begin,
    };
    scan.take(len, CodeToken::Keyword);
    state.mode = ReadMode::Tag(kind);
}

/// `&amp;`.
fn entity(scan: &mut LineScan) {
    let rest = scan.rest();
    let name = rest.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '&' || it == '#');
    match name.starts_with(';') {
        true => scan.take(rest.len() - name.len() + 1, CodeToken::Constant),
        false => scan.take_char(CodeToken::Plain),
    }
}

/// Within a tag, behind its name. Gives the tag when it has ended.
pub fn read_tag(scan: &mut LineScan, state: &mut ReadState, kind: TagKind) -> Option<TagKind> {
    let rest = scan.rest();
    match scan.peek()? {
        '/' | '?' if rest.get(1..).is_some_and(|it| it.starts_with('>')) => {
            scan.take(2, CodeToken::Plain);
            return end_tag(state, 0, kind);
        }
        '>' => {
            scan.take(1, CodeToken::Plain);
            return end_tag(state, if kind == TagKind::End { -1 } else { 1 }, kind);
        }
        it @ ('"' | '\'') => {
            scan.take(1, CodeToken::Text);
            state.mode = ReadMode::Value(it, kind);
        }
        '{' if state.syntax.has(SyntaxTrait::Jsx) && state.outer.len() < MAX_DEPTH => {
            scan.take(1, CodeToken::Plain);
            state.enclose('{', '}');
        }
        it if it.is_alphabetic() || "_:@#".contains(it) => {
            // Behind `=` it is a value without quotes.
            let token = if scan.before().ends_with('=') { CodeToken::Text } else { CodeToken::Key };
            scan.take_while(|it| !it.is_whitespace() && !"=>/\"'{".contains(it), token);
        }
        _ => scan.take_char(CodeToken::Plain),
    }
    None
}

/// `change`: how many more elements are open now.
fn end_tag(state: &mut ReadState, change: isize, kind: TagKind) -> Option<TagKind> {
    state.mode = ReadMode::MarkupText;
    if !state.syntax.has(SyntaxTrait::Jsx) {
        return Some(kind).filter(|_| change > 0);
    }
    let outer = state.outer.last_mut()?;
    outer.depth = outer.depth.saturating_add_signed(change);
    if outer.depth == 0 {
        state.mode = state.outer.pop().map_or(ReadMode::Code, |it| it.mode);
    }
    None
}

pub fn read_value(scan: &mut LineScan, state: &mut ReadState, quote: char, kind: TagKind) {
    match scan.rest().find(quote) {
        Some(at) => {
            scan.take(at + quote.len_utf8(), CodeToken::Text);
            state.mode = ReadMode::Tag(kind);
        }
        None => scan.take_rest(CodeToken::Text),
    }
}
