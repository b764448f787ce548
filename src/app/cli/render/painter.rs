//! Terminal painter: finished lines scroll up, the live region below them is erased and drawn again in one write.

use super::{ansi::paint, text::Line};

/// Terminals that know synchronized output show a draw as a whole; others ignore these.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// In raw mode a line feed alone does not return to the first column.
const NEWLINE: &str = "\r\n";

/// Erases and draws. The cursor stays at the end of the live region.
#[derive(Debug, Default)]
pub struct Painter {
    color: bool,
    /// What stands in the live region, and its columns.
    drawn: Vec<Line>,
    width: usize,
}

impl Painter {
    pub fn new(color: bool) -> Self {
        Self { color, ..Self::default() }
    }

    /// Bytes that put `finished` above the live region and `live` into it; empty if nothing would change.
    pub fn draw(&mut self, finished: &[Line], live: Vec<Line>, width: usize) -> String {
        if finished.is_empty() && live == self.drawn && width == self.width {
            return String::new();
        }
        let mut res = String::from(BEGIN);
        self.erase(width, &mut res);
        for it in finished {
            paint(it, self.color, &mut res);
            res.push_str(NEWLINE);
        }
        for (at, it) in live.iter().enumerate() {
            if at > 0 {
                res.push_str(NEWLINE);
            }
            paint(it, self.color, &mut res);
        }
        res.push_str(END);
        (self.drawn, self.width) = (live, width);
        res
    }

    /// Forgets the live region: what is written next stands below it.
    pub fn leave(&mut self) {
        self.drawn.clear();
    }

    fn erase(&self, width: usize, out: &mut String) {
        // A terminal that became narrower has wrapped the lines again.
        let rows = |it: &Line| it.width().saturating_sub(1) / width.max(1) + 1;
        let rows: usize = match width < self.width {
            true => self.drawn.iter().map(rows).sum(),
            false => self.drawn.len(),
        };
        if rows == 0 {
            return;
        }
        out.push('\r');
        if rows > 1 {
            out.push_str(&format!("\u{1b}[{}A", rows - 1));
        }
        out.push_str("\u{1b}[J");
    }
}
