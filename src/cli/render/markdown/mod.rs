//! Markdown of a model as styled lines for a terminal, whole or as it streams in.
//!
//! `blocks` reads line by line which block a line belongs to, so that what is finished can be shown and forgotten.
//! `leaf` has pulldown-cmark parse the text of one finished block.

mod blocks;
mod containers;
mod leaf;
mod table;
#[cfg(test)]
mod tests;

use super::text::Line;
use blocks::Blocks;
use castor_base::text::head;

/// A longer block that has not ended gives up what it has, and a longer line what it is.
const MAX_OPEN: usize = 8_192;
const MIN_WIDTH: usize = 10;
/// What one step reads and gives at most; the block that it ends with may give more.
const STEP_BYTES: usize = 8 << 10;
const STEP_LINES: usize = 128;

/// The whole text, each line at most `width` columns.
pub fn render(text: &str, width: usize) -> Vec<Line> {
    let mut stream = MarkdownStream::new(width);
    stream.push(text);
    stream.finish()
}

/// Markdown that comes in pieces. Where they are cut makes no difference to the lines that come out.
#[derive(Clone, Debug)]
pub struct MarkdownStream {
    blocks: Blocks,
    /// Text that `blocks` has not seen.
    unread: String,
    /// Bytes of it that have no line end.
    searched: usize,
    /// The last step left something in `unread`.
    is_behind: bool,
}

impl MarkdownStream {
    pub fn new(width: usize) -> Self {
        Self { blocks: Blocks::new(width.max(MIN_WIDTH)), unread: String::new(), searched: 0, is_behind: false }
    }

    /// Only keeps the text: cheap enough for each piece that a model sends.
    pub fn push(&mut self, text: &str) {
        self.unread.push_str(text);
    }

    /// Lines that no further text can change, each of them once.
    pub fn take_finished(&mut self) -> Vec<Line> {
        self.read_lines(usize::MAX, usize::MAX);
        self.blocks.take_lines()
    }

    /// The first of these lines: so many that nobody waits for them. `is_behind`: there may be more.
    pub fn take_step(&mut self) -> Vec<Line> {
        self.read_lines(STEP_BYTES, STEP_LINES);
        self.blocks.take_lines()
    }

    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Bytes of text that were not looked at.
    pub fn unread_len(&self) -> usize {
        self.unread.len()
    }

    /// The lines that were not given, as they would be if the text that was read ended here. They change with more text.
    pub fn tail(&self) -> Vec<Line> {
        if self.is_behind {
            return self.blocks.clone().finish();
        }
        self.clone().finish()
    }

    /// All lines that were not given. The stream is empty then, for another text.
    pub fn finish(&mut self) -> Vec<Line> {
        self.read_lines(usize::MAX, usize::MAX);
        let line = std::mem::take(&mut self.unread);
        self.searched = 0;
        if !line.is_empty() {
            self.blocks.add_line(&line);
        }
        self.blocks.finish()
    }

    /// Ends before the text does when that many bytes were read, or lines made.
    fn read_lines(&mut self, bytes: usize, lines: usize) {
        let mut start = 0;
        let mut is_enough = false;
        while !is_enough && let Some(end) = self.line_end(start) {
            self.blocks.add_line(self.unread.get(start..end).unwrap_or_default());
            start = end;
            self.searched = 0;
            is_enough = start >= bytes || self.blocks.line_count() >= lines;
        }
        self.unread.drain(..start);
        self.is_behind = is_enough && !self.unread.is_empty();
    }

    /// Behind the line that begins at `start`; nothing if it may still grow. A long line ends at a blank.
    fn line_end(&mut self, start: usize) -> Option<usize> {
        let line = self.unread.as_bytes().get(start..)?;
        let find = |from: usize, to: usize, ends: [u8; 2]| {
            let part = line.get(from..to.min(line.len()))?;
            memchr::memchr2(ends[0], ends[1], part).map(|it| start + from + it + 1)
        };
        let from = std::mem::replace(&mut self.searched, line.len());
        let found = find(from, MAX_OPEN, [b'\n', b'\n']);
        let found = found.or_else(|| find(from.max(MAX_OPEN), 2 * MAX_OPEN, [b'\n', b' ']));
        if found.is_none() && line.len() >= 2 * MAX_OPEN {
            return Some(start + head(self.unread.get(start..)?, 2 * MAX_OPEN).len());
        }
        found
    }
}
