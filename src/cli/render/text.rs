//! Styled text: a line is spans, a span is text in one style. Terminal controls never get into a span.

use unicode_width::UnicodeWidthStr;

use crate::cli::terminal_text::{clean, is_unprintable};

/// The colours that a terminal's own theme defines, so that they can be read on light and on dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Default,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    Gray,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub color: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strike: bool,
    /// Foreground and background change places.
    pub reverse: bool,
}

impl Style {
    pub const PLAIN: Self = Self::color(Color::Default);
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };

    pub const fn color(color: Color) -> Self {
        Self { color, bold: false, dim: false, italic: false, underline: false, strike: false, reverse: false }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    text: String,
    pub style: Style,
    /// The address that a click on the span opens.
    link: Option<String>,
}

impl Span {
    /// The text without controls; a tab is four blanks, a line end one.
    pub fn new(text: &str, style: Style) -> Self {
        Self { text: printable(text), style, link: None }
    }

    pub fn with_link(mut self, address: &str) -> Self {
        self.link = Some(printable(address));
        self
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }
}

fn printable(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    for it in clean(text).chars() {
        match it {
            '\t' => res.push_str("    "),
            '\n' => res.push(' '),
            it if is_unprintable(it) => (),
            it => res.push(it),
        }
    }
    res
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
}

impl Line {
    pub fn new(text: &str, style: Style) -> Self {
        Self { spans: vec![Span::new(text, style)] }
    }

    pub fn plain(text: &str) -> Self {
        Self::new(text, Style::PLAIN)
    }

    pub fn push(&mut self, text: &str, style: Style) {
        self.spans.push(Span::new(text, style));
    }

    /// More text in the style and with the link of `like`.
    pub fn append(&mut self, text: &str, like: &Span) {
        match self.spans.last_mut() {
            Some(last) if last.style == like.style && last.link == like.link => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), ..like.clone() }),
        }
    }

    /// Columns on a terminal.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|it| it.text.width()).sum()
    }

    pub fn text(&self) -> String {
        self.spans.iter().map(|it| it.text.as_str()).collect()
    }
}
