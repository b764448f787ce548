//! Reads code: comments, strings, numbers and words, each by a rule of its own. The first rule that fits counts.

use super::{
    scan::{ExpectedName, LineScan, MAX_DEPTH, ReadMode, ReadState, TagKind},
    syntax::{StringKind, StringRule, Syntax, SyntaxTrait},
    token::CodeToken,
};

type Rule = fn(&mut LineScan, &mut ReadState) -> bool;

/// In this order. None fits: it is a sign.
const RULES: &[Rule] =
    &[end_script, blanks, section, comment, heredoc, begin_string, lifetime, regex, element, number, prefixed, word];
/// Behind them stands the name of a function.
const FUNCTION_WORDS: &str = "def defmacro defn defp defun fn fun func function method proc sub";
/// Behind them stands the name of a type.
const TYPE_WORDS: &str = "class enum interface mod module namespace object protocol record struct trait type union";
/// Words that are keywords only where a word or a brace follows.
const CONTEXTUAL: &str = "as from get module namespace object of record set type";
/// Letters that belong to the string behind them.
const PREFIXES: &str = "b br c cr e f fr n r rb rf u u8 x";
/// A value ends with them: a slash is a division.
const VALUE_ENDS: &[char] = &[')', ']', '}', '_', '$', '"', '\'', '`'];
/// Behind them a slash begins an expression.
const VALUE_STARTERS: &[&str] = &["case", "return", "typeof", "yield", "await", "in", "of"];

pub fn read(scan: &mut LineScan, state: &mut ReadState) {
    if !RULES.iter().any(|rule| rule(scan, state)) {
        sign(scan, state);
    }
}

pub fn has_word(words: &str, word: &str) -> bool {
    !word.is_empty() && words.as_bytes().split(|it| *it == b' ').any(|it| it == word.as_bytes())
}

/// The tag that ends a script.
fn end_script(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let Some((syntax, tag)) = state.host else { return false };
    let is_end = scan.rest().get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag));
    if is_end {
        *state = ReadState { mode: ReadMode::MarkupText, ..ReadState::new(syntax) };
    }
    is_end
}

fn blanks(scan: &mut LineScan, _: &mut ReadState) -> bool {
    let has_any = scan.peek().is_some_and(char::is_whitespace);
    if has_any {
        scan.take_while(char::is_whitespace, CodeToken::Plain);
    }
    has_any
}

fn section(scan: &mut LineScan, state: &mut ReadState) -> bool {
    if scan.peek() != Some('[') || !state.syntax.has(SyntaxTrait::Sections) || !scan.is_at_start() {
        return false;
    }
    let rest = scan.rest();
    let names = rest.trim_start_matches('[');
    let name = names.split([']', ',', '"', '\'']).next().unwrap_or_default();
    let is_section = !name.is_empty() && names.get(name.len()..).is_some_and(|it| it.starts_with(']'));
    if is_section {
        scan.take(rest.len() - names.len(), CodeToken::Plain);
        scan.take(name.len(), CodeToken::Type);
    }
    is_section
}

fn comment(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let (rest, syntax) = (scan.rest(), state.syntax);
    if let Some((open, close)) = syntax.block_comments.iter().find(|it| rest.starts_with(it.0)) {
        state.mode = ReadMode::Comment { close, depth: 1 };
        scan.take(open.len(), CodeToken::Comment);
        return true;
    }
    let is_comment = |mark: &&str| {
        // `$#`, `${#a}`, `a#b`.
        let is_inside = |it: char| it.is_alphanumeric() || "_$&{".contains(it);
        rest.starts_with(*mark) && !(mark.starts_with('#') && scan.before().ends_with(is_inside))
    };
    let is_comment = syntax.line_comments.iter().any(is_comment);
    if is_comment {
        scan.take_rest(CodeToken::Comment);
    }
    is_comment
}

pub fn read_comment(scan: &mut LineScan, state: &mut ReadState, close: &'static str, depth: usize) {
    let rest = scan.rest();
    let nests = state.syntax.has(SyntaxTrait::NestedComments);
    let open = state.syntax.block_comments.iter().find(|it| it.1 == close && nests).map(|it| it.0);
    let end = rest.find(close);
    let inner = open.and_then(|it| Some((rest.find(it)?, it.len()))).filter(|it| end.is_none_or(|end| it.0 < end));
    match (inner, end) {
        (Some((at, len)), _) => {
            state.mode = ReadMode::Comment { close, depth: depth + 1 };
            scan.take(at + len, CodeToken::Comment);
        }
        (None, Some(end)) => {
            state.mode = if depth > 1 { ReadMode::Comment { close, depth: depth - 1 } } else { ReadMode::Code };
            scan.take(end + close.len(), CodeToken::Comment);
        }
        (None, None) => scan.take_rest(CodeToken::Comment),
    }
}

/// `<<EOF`, `<<-'EOF'`, `<<~SQL`, `<<<TEXT`.
fn heredoc(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let rest = scan.rest();
    let Some(behind) = rest.strip_prefix("<<").filter(|_| state.syntax.has(SyntaxTrait::Heredocs)) else {
        return false;
    };
    let behind = behind.strip_prefix(['<', '-', '~']).unwrap_or(behind);
    let name = behind.trim_start();
    let unquoted = name.trim_start_matches(['"', '\'']);
    let word: String = unquoted.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    let has_small = word.chars().any(char::is_lowercase);
    let is_other = match rest.starts_with("<<<") {
        // A shell's string of one line.
        true => has_small || unquoted.len() > word.len() + 1,
        // A shift of bits, or an insertion.
        false if unquoted.len() == name.len() && has_small => {
            behind.len() > name.len() || scan.before().ends_with(char::is_alphanumeric)
        }
        false => false,
    };
    let is_name = word.starts_with(|it: char| it.is_alphabetic() || it == '_');
    if is_other || !is_name || scan.before().ends_with('<') {
        return false;
    }
    scan.take(rest.len() - unquoted.len() + word.len(), CodeToken::Plain);
    scan.take_while(|it| it == '"' || it == '\'', CodeToken::Plain);
    state.heredoc = Some(word);
    true
}

fn begin_string(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let (rest, syntax) = (scan.rest(), state.syntax);
    let fits = |it: &&StringRule| rest.starts_with(it.open) && (it.kind != StringKind::Char || is_char(rest));
    let Some(rule) = syntax.strings.iter().find(fits) else { return false };
    let token = match rule.kind {
        StringKind::Doc if scan.is_at_start() => CodeToken::Comment,
        _ if syntax.has(SyntaxTrait::QuotedKeys) && is_key(rest) => CodeToken::Key,
        _ => CodeToken::Text,
    };
    scan.expected = ExpectedName::None;
    scan.take(rule.open.len(), token);
    state.mode = ReadMode::String { rule, token };
    true
}

/// `'x'`, `'\n'`.
fn is_char(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => true,
        (Some(it), Some('\'')) => it != '\'',
        _ => false,
    }
}

/// `"a": 1`.
fn is_key(rest: &str) -> bool {
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, it)| {
        let is_end = !is_escaped && *it == '"';
        is_escaped = !is_escaped && *it == '\\';
        is_end
    });
    end.and_then(|it| rest.get(it.0 + 1..)).is_some_and(|it| it.trim_start().starts_with(':'))
}

pub fn read_string(scan: &mut LineScan, state: &mut ReadState, rule: &'static StringRule, token: CodeToken) {
    let rest = scan.rest();
    let mut is_escaped = false;
    for (at, it) in rest.char_indices() {
        let from = rest.get(at..).unwrap_or_default();
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        if from.starts_with(rule.close) {
            scan.take(at + rule.close.len(), token);
            state.mode = ReadMode::Code;
            return;
        }
        let has_inner = !rule.inner.is_empty() && from.starts_with(rule.inner);
        // `{{` is a brace.
        let is_doubled = has_inner && from.get(1..).is_some_and(|it| it.starts_with(rule.inner));
        if has_inner && !is_doubled && state.outer.len() < MAX_DEPTH {
            scan.take(at, token);
            scan.take(rule.inner.len(), CodeToken::Plain);
            return match rule.inner.ends_with('(') {
                true => state.enclose('(', ')'),
                false => state.enclose('{', '}'),
            };
        }
        is_escaped = is_doubled || (rule.has_escapes && it == '\\');
    }
    scan.take_rest(token);
}

/// A quote that begins no string: `'static`.
fn lifetime(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let has_chars = state.syntax.strings.iter().any(|it| it.kind == StringKind::Char);
    let Some(name) = scan.rest().strip_prefix('\'').filter(|_| has_chars) else { return false };
    let is_lifetime = name.starts_with(|it: char| it.is_alphabetic() || it == '_');
    if is_lifetime {
        scan.take_char(CodeToken::Keyword);
        scan.take_while(|it| it.is_alphanumeric() || it == '_', CodeToken::Keyword);
    }
    is_lifetime
}

/// Whether something is divided by, or compared with, what comes next.
fn is_behind_value(scan: &LineScan) -> bool {
    let before = scan.before().trim_end();
    let is_value = before.ends_with(|it: char| it.is_alphanumeric() || VALUE_ENDS.contains(&it));
    is_value && !VALUE_STARTERS.iter().any(|it| before.ends_with(it))
}

fn regex(scan: &mut LineScan, state: &mut ReadState) -> bool {
    if scan.peek() != Some('/') || !state.syntax.has(SyntaxTrait::Regexes) || is_behind_value(scan) {
        return false;
    }
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (at, it) in scan.rest().char_indices().skip(1) {
        match it {
            _ if std::mem::take(&mut is_escaped) => (),
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => {
                scan.take(at + 1, CodeToken::Text);
                scan.take_while(char::is_alphabetic, CodeToken::Text);
                return true;
            }
            _ => (),
        }
    }
    false
}

/// `<p>` in place of a value.
fn element(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let Some(name) = scan.rest().strip_prefix('<').filter(|_| state.syntax.has(SyntaxTrait::Jsx)) else {
        return false;
    };
    let behind = name.trim_start_matches(|it: char| it.is_alphanumeric() || it == '.' || it == '_');
    // `<T,>(it: T) => it` is a function.
    let is_generic = behind.starts_with(',') || behind.trim_start().starts_with("extends ");
    let is_element = name.starts_with(|it: char| it.is_alphabetic() || it == '>') && !is_generic;
    if !is_element || is_behind_value(scan) || state.outer.len() == MAX_DEPTH {
        return false;
    }
    state.enclose('\0', '\0');
    state.mode = ReadMode::Tag(TagKind::Begin);
    scan.take(1, CodeToken::Plain);
    scan.take(name.len() - behind.len(), CodeToken::Keyword);
    true
}

fn number(scan: &mut LineScan, _: &mut ReadState) -> bool {
    let len = number_len(scan.rest());
    scan.take(len, CodeToken::Constant);
    len > 0
}

/// `1_000`, `0x1f`, `1.5e-3`, `10px`.
pub fn number_len(text: &str) -> usize {
    if !text.starts_with(|it: char| it.is_ascii_digit()) {
        return 0;
    }
    let mut chars = text.char_indices().peekable();
    let mut last = '0';
    while let Some((at, it)) = chars.next() {
        let next = chars.peek().map_or(' ', |it| it.1);
        let is_part = match it {
            '.' => next.is_ascii_digit(),
            '+' | '-' => matches!(last, 'e' | 'E') && next.is_ascii_digit() && !text.starts_with("0x"),
            it => it.is_alphanumeric() || it == '_' || it == '%',
        };
        if !is_part {
            return at;
        }
        last = it;
    }
    text.len()
}

/// `@name`, `#name`.
fn prefixed(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let is_at_start = scan.is_at_start();
    let token = match scan.peek() {
        Some('@') if state.syntax.has(SyntaxTrait::Decorators) => CodeToken::Key,
        Some('#') if state.syntax.has(SyntaxTrait::HashWords) => CodeToken::Constant,
        Some('#') if state.syntax.has(SyntaxTrait::Preprocessor) && is_at_start => CodeToken::Keyword,
        _ => return false,
    };
    scan.take(1, token);
    scan.take_while(|it| state.syntax.is_in_word(it) || it == '.', token);
    true
}

fn word(scan: &mut LineScan, state: &mut ReadState) -> bool {
    let (rest, syntax) = (scan.rest(), state.syntax);
    let len = rest.find(|it| !syntax.is_in_word(it)).unwrap_or(rest.len());
    let (word, behind) = rest.split_at_checked(len).unwrap_or_default();
    if word.is_empty() {
        return false;
    }
    let lower = syntax.has(SyntaxTrait::IgnoresCase).then(|| word.to_lowercase());
    let name = lower.as_deref().unwrap_or(word);
    let expected = std::mem::replace(&mut scan.expected, ExpectedName::None);
    let token = if is_keyword(name, behind, scan, syntax) {
        scan.expected = expected_behind(name, behind);
        CodeToken::Keyword
    } else if has_word(syntax.constants, name) {
        CodeToken::Constant
    } else if has_word(syntax.types, name) {
        CodeToken::Type
    } else if let ExpectedName::Of(token) = expected {
        token
    } else {
        name_token(word, behind, syntax)
    };
    if expected == ExpectedName::BehindBrackets {
        scan.expected = expected;
    }
    scan.take(len, token);
    // No string begins within a word, but in shells: don't.
    let is_shell = syntax.strings.iter().any(|it| it.open == "'" && it.spans_lines);
    if behind.starts_with('\'') && !is_shell && !has_word(PREFIXES, &word.to_lowercase()) {
        scan.take(1, CodeToken::Plain);
    }
    true
}

fn is_keyword(name: &str, behind: &str, scan: &LineScan, syntax: &Syntax) -> bool {
    let before = scan.before();
    // A member, or a variable.
    let is_member = (before.ends_with('.') && !before.ends_with("..")) || before.ends_with("->");
    if is_member || before.ends_with('$') || !has_word(syntax.keywords, name) {
        return false;
    }
    let next = behind.trim_start().chars().next().unwrap_or(' ');
    let is_followed = behind.starts_with(' ') && (next.is_alphanumeric() || "_{*\"'".contains(next));
    let is_first = scan.is_at_start() || !syntax.has(SyntaxTrait::LineKeywords);
    is_first && (is_followed || !has_word(CONTEXTUAL, name))
}

fn expected_behind(name: &str, behind: &str) -> ExpectedName {
    match name {
        "func" if behind.starts_with(" (") => ExpectedName::BehindBrackets,
        _ if has_word(FUNCTION_WORDS, name) => ExpectedName::Of(CodeToken::Function),
        _ if has_word(TYPE_WORDS, name) => ExpectedName::Of(CodeToken::Type),
        _ => ExpectedName::None,
    }
}

fn name_token(word: &str, behind: &str, syntax: &Syntax) -> CodeToken {
    let next = behind.trim_start();
    let is_value = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
    let is_property = behind.starts_with(':') && !behind.contains('{');
    if (is_value && syntax.has(SyntaxTrait::EqualKeys)) || (is_property && syntax.has(SyntaxTrait::ColonKeys)) {
        return CodeToken::Key;
    }
    if !syntax.has(SyntaxTrait::Capitals) || !word.starts_with(char::is_uppercase) {
        return CodeToken::Plain;
    }
    match word.len() > 1 && !word.contains(char::is_lowercase) {
        true => CodeToken::Constant,
        false => CodeToken::Type,
    }
}

/// Brackets of code that stands in something else, operators, and all the rest.
fn sign(scan: &mut LineScan, state: &mut ReadState) {
    let Some(it) = scan.peek() else { return };
    scan.expected = match (scan.expected, it) {
        (ExpectedName::BehindBrackets, ')') => ExpectedName::Of(CodeToken::Function),
        (ExpectedName::BehindBrackets, _) => ExpectedName::BehindBrackets,
        (it, '*') => it,
        _ => ExpectedName::None,
    };
    scan.take_char(CodeToken::Plain);
    let Some(outer) = state.outer.last_mut() else { return };
    if it == outer.open {
        outer.depth += 1;
    } else if it == outer.close && outer.depth > 0 {
        outer.depth -= 1;
    } else if it == outer.close {
        state.mode = state.outer.pop().map_or(ReadMode::Code, |it| it.mode);
    }
}
