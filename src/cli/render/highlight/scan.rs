//! A line that is being read, and what it leaves to the next one.

use super::{
    syntax::{StringRule, Syntax},
    token::CodeToken,
};

/// Code within strings within code, and so on.
pub const MAX_DEPTH: usize = 32;

#[derive(Clone, Debug)]
pub enum ReadMode {
    Code,
    Comment {
        close: &'static str,
        /// Comments that are open.
        depth: usize,
    },
    String {
        rule: &'static StringRule,
        token: CodeToken,
    },
    /// Up to a line that is only this word.
    Heredoc(String),
    /// Behind `<name`.
    Tag(TagKind),
    /// A value of an attribute, up to this quote.
    Value(char, TagKind),
    /// Between tags.
    MarkupText,
    /// A fenced block of Markdown.
    Fence(char),
    /// Lines of YAML's text, further in than this.
    Scalar(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    Begin,
    /// Code of another language stands behind it.
    Script,
    Style,
    End,
}

/// What continues when the code in it ends.
#[derive(Clone, Debug)]
pub struct Enclosing {
    pub mode: ReadMode,
    pub open: char,
    pub close: char,
    /// Brackets that are open in the code, or elements.
    pub depth: usize,
}

#[derive(Clone, Debug)]
pub struct ReadState {
    pub syntax: &'static Syntax,
    pub mode: ReadMode,
    /// The innermost last.
    pub outer: Vec<Enclosing>,
    /// It begins with the next line, and ends with this word.
    pub heredoc: Option<String>,
    /// The page around a script, and the tag that ends the script.
    pub host: Option<(&'static Syntax, &'static str)>,
}

impl ReadState {
    pub fn new(syntax: &'static Syntax) -> Self {
        Self { syntax, mode: ReadMode::Code, outer: Vec::new(), heredoc: None, host: None }
    }

    /// Code begins within what is read.
    pub fn enclose(&mut self, open: char, close: char) {
        let mode = std::mem::replace(&mut self.mode, ReadMode::Code);
        self.outer.push(Enclosing { mode, open, close, depth: 0 });
    }

    pub fn end_line(&mut self) {
        let ends = |it: &ReadMode| matches!(it, ReadMode::String { rule, .. } if !rule.spans_lines);
        if ends(&self.mode) {
            self.mode = ReadMode::Code;
        }
        if let Some(at) = self.outer.iter().position(|it| ends(&it.mode)) {
            self.outer.truncate(at);
            self.mode = ReadMode::Code;
        }
        if let Some(word) = self.heredoc.take() {
            self.mode = ReadMode::Heredoc(word);
        }
    }
}

/// What a name would be that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedName {
    None,
    Of(CodeToken),
    /// Go's methods: the function's name stands behind it.
    BehindBrackets,
}

pub struct LineScan<'a> {
    line: &'a str,
    at: usize,
    /// Tokens, each with its end.
    ends: Vec<(usize, CodeToken)>,
    pub expected: ExpectedName,
}

impl<'a> LineScan<'a> {
    pub fn new(line: &'a str) -> Self {
        Self { line, at: 0, ends: Vec::new(), expected: ExpectedName::None }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub fn before(&self) -> &'a str {
        self.line.get(..self.at).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn is_at_start(&self) -> bool {
        self.before().trim_start().is_empty()
    }

    pub fn take(&mut self, len: usize, token: CodeToken) {
        self.at = self.line.len().min(self.at + len);
        match self.ends.last_mut() {
            Some(last) if last.1 == token || last.0 == self.at => last.0 = self.at,
            _ => self.ends.push((self.at, token)),
        }
    }

    pub fn take_char(&mut self, token: CodeToken) {
        self.take(self.peek().map_or(0, char::len_utf8), token);
    }

    pub fn take_while(&mut self, is_part: impl Fn(char) -> bool, token: CodeToken) {
        let rest = self.rest();
        self.take(rest.find(|it| !is_part(it)).unwrap_or(rest.len()), token);
    }

    pub fn take_rest(&mut self, token: CodeToken) {
        self.take(self.rest().len(), token);
    }

    pub fn tokens(self) -> Vec<(&'a str, CodeToken)> {
        let mut start = 0;
        let part = |(end, token)| (self.line.get(std::mem::replace(&mut start, end)..end).unwrap_or_default(), token);
        self.ends.into_iter().map(part).filter(|it| !it.0.is_empty()).collect()
    }
}
