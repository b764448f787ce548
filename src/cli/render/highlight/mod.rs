//! Syntax highlighting of source code: tokens of a language, as styled lines for terminals and as CSS classes for pages.
//!
//! Tables and one pass over each line, in place of grammars: their expressions took 10 MB and 30 ms a language, on the
//! thread that answers keys. Nothing is loaded, compiled or kept here, and a line costs microseconds. It knows words,
//! not what they mean.

mod code;
mod lines;
mod markup;
mod scan;
mod syntax;
mod syntaxes;
#[cfg(test)]
mod tests;
mod token;
mod yaml;

use self::{
    scan::{LineScan, ReadMode, ReadState, TagKind},
    syntax::SyntaxForm,
    syntaxes::find_syntax,
    token::CodeToken,
};
use super::text::Line;
use crate::cli::terminal_text::clean;

/// Longer lines are generated code.
const MAX_LINE: usize = 2_000;
const MAX_CODE: usize = 500_000;

/// The code as HTML: text with its special characters escaped, tokens as `<span class="hl-keyword">`. Nothing if no
/// syntax has this name.
pub fn highlight_classes(code: &str, language: &str) -> Option<String> {
    let mut highlighter = Highlighter::new(language);
    highlighter.state.as_ref()?;
    let mut res = String::with_capacity(code.len() * 2);
    for line in code.lines() {
        for (text, token) in highlighter.tokens(&clean(line)) {
            match token.class() {
                None => push_escaped(text, &mut res),
                Some(class) => {
                    res.push_str(&format!("<span class=\"{class}\">"));
                    push_escaped(text, &mut res);
                    res.push_str("</span>");
                }
            }
        }
        res.push('\n');
    }
    Some(res)
}

fn push_escaped(text: &str, out: &mut String) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            it => out.push(it),
        }
    }
}

/// Colours code that comes line by line.
#[derive(Clone, Debug)]
pub struct Highlighter {
    /// None where no colour is due: a language without a syntax, or too much code.
    state: Option<ReadState>,
    bytes: usize,
}

impl Highlighter {
    /// `language` may also be a file name or an extension. Code of another language stays plain.
    pub fn new(language: &str) -> Self {
        Self { state: find_syntax(language).map(ReadState::new), bytes: 0 }
    }

    /// The next line, without its line end.
    pub fn line(&mut self, line: &str) -> Line {
        let mut res = Line::default();
        // Before a token cuts an escape sequence in two.
        for (text, token) in self.tokens(&clean(line)) {
            res.push(text, token.style());
        }
        res
    }

    fn tokens<'a>(&mut self, line: &'a str) -> Vec<(&'a str, CodeToken)> {
        self.bytes += line.len() + 1;
        if self.bytes > MAX_CODE {
            self.state = None;
        }
        match &mut self.state {
            Some(state) if line.len() <= MAX_LINE => read_line(line, state),
            _ => vec![(line, CodeToken::Plain)],
        }
    }
}

fn read_line<'a>(line: &'a str, state: &mut ReadState) -> Vec<(&'a str, CodeToken)> {
    let mut scan = LineScan::new(line);
    while !scan.rest().is_empty() {
        read_part(&mut scan, state);
    }
    state.end_line();
    scan.tokens()
}

/// Takes at least a character, or changes the mode to one that does.
fn read_part(scan: &mut LineScan, state: &mut ReadState) {
    match state.mode.clone() {
        ReadMode::Code => match state.syntax.form {
            SyntaxForm::Code => code::read(scan, state),
            SyntaxForm::Diff => lines::read_diff(scan),
            SyntaxForm::Markdown => lines::read_markdown(scan, state),
            SyntaxForm::Markup => markup::read_text(scan, state),
            SyntaxForm::Yaml => yaml::read(scan, state),
        },
        ReadMode::Comment { close, depth } => code::read_comment(scan, state, close, depth),
        ReadMode::String { rule, token } => code::read_string(scan, state, rule, token),
        ReadMode::Heredoc(word) => lines::read_heredoc(scan, state, &word),
        ReadMode::Fence(mark) => lines::read_fence(scan, state, mark),
        ReadMode::Scalar(indent) => yaml::read_scalar(scan, state, indent),
        ReadMode::MarkupText => markup::read_text(scan, state),
        ReadMode::Value(quote, kind) => markup::read_value(scan, state, quote, kind),
        ReadMode::Tag(kind) => match markup::read_tag(scan, state, kind) {
            Some(TagKind::Script) => begin_script(state, "js", "</script"),
            Some(TagKind::Style) => begin_script(state, "css", "</style"),
            _ => (),
        },
    }
}

fn begin_script(state: &mut ReadState, language: &str, end: &'static str) {
    if let Some(syntax) = find_syntax(language) {
        *state = ReadState { host: Some((state.syntax, end)), ..ReadState::new(syntax) };
    }
}
