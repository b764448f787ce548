//! A model's thought, folded into one line: how long it took, and the first words of its heading.

use std::time::Duration;

use crate::cli::render::{
    clip::clip,
    text::{Line, Style},
    words,
    wrap::wrap,
};
use castor_client::entries::Words;

const EDGE: &str = "  │ ";

/// At its end: one line.
pub fn finished(thought: &Words, now: Duration, width: usize) -> Line {
    let took = words::duration(now.saturating_sub(thought.started)).map(|it| format!(" {it}")).unwrap_or_default();
    clip(&Line::new(&format!("▸ thought{took}  {}", thought.heading()), Style::DIM), width)
}

/// All that is kept of it.
pub fn unfolded(thought: &Words, width: usize) -> Vec<Line> {
    let room = width.saturating_sub(EDGE.len()).max(10);
    let lines = thought.text.trim().lines().flat_map(|it| wrap(&Line::new(it, Style::DIM), room, ""));
    let edged = lines.map(|it| {
        let mut line = Line::new(EDGE, Style::DIM);
        line.spans.extend(it.spans);
        line
    });
    edged.collect()
}
