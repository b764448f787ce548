//! The sign of life: a spinner and seconds, once something takes longer than a moment.

use std::time::Duration;

use crate::cli::render::{
    clip::with_end,
    text::{Color, Line, Style},
    words,
};

/// A wait that is shorter shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Of the spinner.
pub const FRAME: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct Waiting {
    /// Of what came last; `None`: no turn runs.
    since: Option<Duration>,
    /// The answer paused once: the line stays, as it would come and go with each piece.
    stays: bool,
    pub is_asking: bool,
    pub is_cancelling: bool,
}

impl Waiting {
    pub fn start(&mut self, now: Duration) {
        *self = Self { since: Some(now), ..Self::default() };
    }

    pub fn stop(&mut self) {
        *self = Self::default();
    }

    pub fn set_asking(&mut self, is_asking: bool, now: Duration) {
        if self.is_asking != is_asking {
            self.is_asking = is_asking;
            self.touch(now, false);
        }
    }

    /// Something came.
    pub fn touch(&mut self, now: Duration, is_answer: bool) {
        let Some(since) = &mut self.since else { return };
        self.stays = is_answer && (self.stays || now.saturating_sub(*since) >= PATIENCE);
        *since = now;
    }

    pub fn spinner(&self, now: Duration) -> &'static str {
        let frame = now.as_millis() / FRAME.as_millis() % FRAMES.len() as u128;
        FRAMES.get(frame as usize).copied().unwrap_or_default()
    }

    /// When the line comes up or moves, if nothing happens. `busy_since`: something that takes time is under way.
    pub fn spinner_start(&self, busy_since: Option<Duration>) -> Option<Duration> {
        let since = self.since?;
        match busy_since.or(self.stays.then_some(since)) {
            Some(it) => Some(it),
            None if self.is_asking => None,
            None => Some(since + PATIENCE),
        }
    }

    /// `place`: columns, and how to stop.
    pub fn line(&self, words: &str, busy_since: Option<Duration>, now: Duration, place: (usize, &str)) -> Option<Line> {
        let (width, stop) = place;
        let since = self.since.filter(|_| !self.is_asking)?;
        let waited = now.saturating_sub(busy_since.unwrap_or(since));
        if waited < PATIENCE && !self.stays {
            return None;
        }
        let (words, hint) = match self.is_cancelling {
            true => ("cancelling", "Ctrl-C quits at once"),
            false => (words, if stop.is_empty() { "Ctrl-C stops" } else { stop }),
        };
        let mut line = Line::new(&format!("{} ", self.spinner(now)), Style::color(Color::Cyan));
        line.push(words, Style::DIM);
        let took = words::duration(waited).unwrap_or_default();
        let gap = if took.is_empty() { "" } else { " · " };
        let whole = Line::new(&format!("{took}{gap}{hint}"), Style::DIM);
        let has_room = line.width() + whole.width() + 2 <= width;
        Some(with_end(line, if has_room { whole } else { Line::new(&took, Style::DIM) }, width))
    }
}
