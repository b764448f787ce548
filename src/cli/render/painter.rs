//! Terminal painter: finished lines scroll up, the live region below them is erased and drawn again in one write.

use super::{
    ansi::{Palette, paint_with},
    text::Line,
};

/// Terminals that know synchronized output show a draw as a whole; others ignore these.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const SAVE: &str = "\u{1b}7";
const HIDE: &str = "\u{1b}[?25l";
const SHOW: &str = "\u{1b}[?25h";
/// In raw mode a line feed alone does not return to the first column.
const NEWLINE: &str = "\r\n";

/// Erases and draws. The cursor stays at the end of the live region.
#[derive(Debug, Default)]
pub struct Painter {
    /// `None`: no colours.
    palette: Option<Palette>,
    /// What stands in the live region, and its columns.
    drawn: Vec<Line>,
    width: usize,
    /// Row and column in the live region where the cursor stands; `None`: at its end.
    cursor: Option<(usize, usize)>,
    /// The terminal cuts lines when it becomes narrower, and does not wrap them.
    cuts_lines: bool,
}

impl Painter {
    pub fn new(color: bool) -> Self {
        Self::with_palette(color.then_some(Palette::Terminal))
    }

    pub fn with_palette(palette: Option<Palette>) -> Self {
        Self { palette, ..Self::default() }
    }

    /// For a terminal that cuts lines when it becomes narrower, and does not wrap them again.
    pub fn for_cut_lines(self) -> Self {
        Self { cuts_lines: true, ..self }
    }

    /// What is drawn next has other colours, and is drawn in whole.
    pub fn set_palette(&mut self, palette: Palette) {
        self.palette = Some(palette);
        self.width = 0;
    }

    /// Bytes that put `finished` above the live region and `live` into it; empty if nothing would change.
    pub fn draw(&mut self, finished: &[Line], live: Vec<Line>, width: usize) -> String {
        if finished.is_empty() && live == self.drawn && width == self.width && self.cursor.is_none() {
            return String::new();
        }
        let mut res = String::from(BEGIN);
        self.put(finished, live, width, &mut res);
        res.push_str(END);
        res
    }

    /// The same with the cursor at a row and column of the live region; hidden without one.
    pub fn draw_with_cursor(
        &mut self,
        finished: &[Line],
        live: Vec<Line>,
        cursor: Option<(usize, usize)>,
        width: usize,
    ) -> String {
        let cursor = cursor.map(|it| (it.0.min(live.len().saturating_sub(1)), it.1.min(width.saturating_sub(1))));
        if finished.is_empty() && live == self.drawn && width == self.width && cursor == self.cursor {
            return String::new();
        }
        let mut res = format!("{BEGIN}{HIDE}");
        self.put(finished, live, width, &mut res);
        // The top is saved: whatever ends the program can erase the region from there.
        let below = self.drawn.len().saturating_sub(1);
        res.push('\r');
        move_cursor(below, 'A', &mut res);
        res.push_str(SAVE);
        move_cursor(cursor.map_or(below, |it| it.0), 'B', &mut res);
        if let Some((_, column)) = cursor {
            move_cursor(column, 'C', &mut res);
            res.push_str(SHOW);
        }
        self.cursor = cursor;
        res.push_str(END);
        res
    }

    fn put(&mut self, finished: &[Line], live: Vec<Line>, width: usize, res: &mut String) {
        self.erase(width, res);
        for it in finished {
            paint_with(it, self.palette, res);
            res.push_str(NEWLINE);
        }
        for (at, it) in live.iter().enumerate() {
            if at > 0 {
                res.push_str(NEWLINE);
            }
            paint_with(it, self.palette, res);
        }
        (self.drawn, self.width, self.cursor) = (live, width, None);
    }

    /// Forgets the live region: what is written next stands below it.
    pub fn leave(&mut self) {
        self.drawn.clear();
        self.cursor = None;
    }

    fn erase(&self, width: usize, out: &mut String) {
        // A terminal that became narrower has wrapped the lines again.
        let rows = |it: &Line| it.width().saturating_sub(1) / width.max(1) + 1;
        let is_wrapped = width < self.width && !self.cuts_lines;
        let above = |count: usize| match is_wrapped {
            true => self.drawn.iter().take(count).map(rows).sum(),
            false => self.drawn.len().min(count),
        };
        // Up to the cursor, its row included.
        let rows: usize = match self.cursor {
            None => above(self.drawn.len()),
            Some((row, column)) => above(row) + 1 + if is_wrapped { column / width.max(1) } else { 0 },
        };
        if rows == 0 {
            return;
        }
        out.push('\r');
        move_cursor(rows - 1, 'A', out);
        out.push_str("\u{1b}[J");
    }
}

/// Moves the cursor: up by `A`, down by `B`, right by `C`.
fn move_cursor(count: usize, way: char, out: &mut String) {
    if count > 0 {
        out.push_str(&format!("\u{1b}[{count}{way}"));
    }
}
