//! A model's thought, folded into one line: how long it took, and the first words of its heading.

use std::time::Duration;

use crate::{
    app::cli::{
        render::{
            clip::clip,
            text::{Line, Style},
            words,
        },
        terminal_text::clean_line,
    },
    base::text::head,
};

/// Bytes of a thought that are kept: its beginning.
const MAX_KEPT: usize = 600;
const MAX_HEADING: usize = 100;

#[derive(Debug)]
pub struct ThoughtView {
    pub started: Duration,
    text: String,
}

impl ThoughtView {
    pub fn new(now: Duration) -> Self {
        Self { started: now, text: String::new() }
    }

    pub fn push(&mut self, text: &str) {
        if self.text.len() < MAX_KEPT {
            self.text.push_str(head(text, MAX_KEPT));
        }
    }

    /// The first line with words, without the marks of a heading.
    pub fn heading(&self) -> String {
        let plain = |line: &str| line.trim_matches(|it: char| it.is_whitespace() || "*#_".contains(it)).to_owned();
        let first = self.text.lines().map(plain).find(|it| !it.is_empty());
        clean_line(&first.unwrap_or_default(), MAX_HEADING)
    }

    pub fn finished(&self, now: Duration, width: usize) -> Line {
        let took = words::duration(now.saturating_sub(self.started)).map(|it| format!(" {it}")).unwrap_or_default();
        clip(&Line::new(&format!("▸ thought{took}  {}", self.heading()), Style::DIM), width)
    }
}
