//! A model's thought, folded into one line: how long it took, and the first words of its heading.

use std::time::Duration;

use crate::{
    app::cli::{
        render::{
            clip::clip,
            text::{Line, Style},
            words,
            wrap::wrap,
        },
        terminal_text::clean_line,
    },
    base::text::head,
};

/// Bytes of a thought that are kept: its beginning.
const MAX_KEPT: usize = 16 * 1024;
const MAX_HEADING: usize = 100;
const EDGE: &str = "  │ ";

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
            self.text.push_str(head(text, MAX_KEPT - self.text.len()));
        }
    }

    /// The first line with words, without the marks of a heading.
    pub fn heading(&self) -> String {
        let plain = |line: &str| {
            line.replace("**", "").trim_matches(|it: char| it.is_whitespace() || "*#_".contains(it)).to_owned()
        };
        let first = self.text.lines().map(plain).find(|it| !it.is_empty());
        clean_line(&first.unwrap_or_default(), MAX_HEADING)
    }

    pub fn finished(&self, now: Duration, width: usize) -> Line {
        let took = words::duration(now.saturating_sub(self.started)).map(|it| format!(" {it}")).unwrap_or_default();
        clip(&Line::new(&format!("▸ thought{took}  {}", self.heading()), Style::DIM), width)
    }
    /// All that is kept of it.
    pub fn unfolded(&self, width: usize) -> Vec<Line> {
        let room = width.saturating_sub(EDGE.len()).max(10);
        let lines = self.text.trim().lines().flat_map(|it| wrap(&Line::new(it, Style::DIM), room, ""));
        let edged = lines.map(|it| {
            let mut line = Line::new(EDGE, Style::DIM);
            line.spans.extend(it.spans);
            line
        });
        edged.collect()
    }
}
