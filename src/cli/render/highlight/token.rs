//! Tokens of source code, as styles of a terminal and as CSS classes of a page.

use crate::cli::render::text::{Color, Style};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeToken {
    Plain,
    Comment,
    Constant,
    Deleted,
    Function,
    Heading,
    Inserted,
    Key,
    Keyword,
    Text,
    Type,
}

impl CodeToken {
    /// Neither blue nor yellow, which many themes make unreadable on dark and on light; no bright black, which is the
    /// background of some.
    pub fn style(self) -> Style {
        match self {
            Self::Plain => Style::PLAIN,
            Self::Comment => Style::DIM,
            Self::Deleted => Style::color(Color::Red),
            Self::Inserted | Self::Text => Style::color(Color::Green),
            Self::Function | Self::Heading => Style::BOLD,
            Self::Keyword => Style::color(Color::Magenta),
            Self::Constant | Self::Key | Self::Type => Style::color(Color::Cyan),
        }
    }

    pub fn class(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::Comment => "hl-comment",
            Self::Constant => "hl-constant",
            Self::Deleted => "hl-deleted",
            Self::Function => "hl-function",
            Self::Heading => "hl-heading",
            Self::Inserted => "hl-inserted",
            Self::Key => "hl-key",
            Self::Keyword => "hl-keyword",
            Self::Text => "hl-string",
            Self::Type => "hl-type",
        })
    }
}
