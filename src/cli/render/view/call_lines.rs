//! The lines of a tool call: while it runs with the end of its output, at its end with its result.

use std::time::Duration;

use super::{
    ViewOptions, call, command_output,
    result::{self, Mark},
};
use crate::cli::render::{
    clip::with_end,
    text::{Color, Line, Style},
    wrap::wrap,
};
use castor_client::call::Call;

/// Last lines of a command's output that are shown while it runs.
const LIVE_LINES: usize = 8;

/// While it runs: one line, then the end of its output in at most `size.1` rows.
pub fn running(call: &Call, cwd: &str, spinner: &str, now: Duration, size: (usize, usize)) -> Vec<Line> {
    let (width, rows) = size;
    let mut line = Line::new(&format!("{spinner} "), Style::color(Color::Cyan));
    line.push(&call::label(call, cwd), Style::PLAIN);
    let took = call::run_time(call, now).map(|it| Line::new(&it, Style::DIM)).unwrap_or_default();
    let mut res = vec![with_end(line, took, width)];
    let lines = if call.is_command() { LIVE_LINES } else { usize::from(call::has_progress(call)) };
    res.extend(command_output::last_lines(&call::printed(call), rows.min(lines), width));
    res
}

/// At its end: one line with its result, and below it what a person wants to see at once. `is_plan`: the plan says it.
pub fn finished(call: &Call, is_plan: bool, options: &ViewOptions, width: usize) -> Vec<Line> {
    if is_plan && !call.is_failed() {
        return Vec::new();
    }
    let result = result::of(call, &options.cwd, width);
    let (mark, color) = match result.mark {
        Mark::Done => ("✓ ", Color::Green),
        Mark::Failed => ("✗ ", Color::Red),
        Mark::Noted => ("! ", Color::Yellow),
    };
    let mut line = Line::new(mark, Style::color(color));
    line.push(&call::label(call, &options.cwd), Style::PLAIN);
    for (text, style) in result.words.into_iter().chain(call::took(call).map(|it| (it, Style::DIM))) {
        line.push("  ", Style::PLAIN);
        line.push(&text, style);
    }
    let mut res = wrap(&line, width, "  ");
    res.extend(result.below);
    res
}

/// The turn is over, and nothing was heard of its end.
pub fn unfinished(call: &Call, options: &ViewOptions) -> Vec<Line> {
    if !call.is_running() {
        return Vec::new();
    }
    let mut line = Line::new("✗ ", Style::color(Color::Red));
    line.push(&call::label(call, &options.cwd), Style::PLAIN);
    line.push("  interrupted", Style::color(Color::Red));
    wrap(&line, options.width, "  ")
}
