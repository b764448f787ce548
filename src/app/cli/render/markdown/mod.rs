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
use crate::base::text::head;
use blocks::Blocks;

/// A longer block that has not ended gives up what it has, and a longer line what it is.
const MAX_OPEN: usize = 8_192;
const MIN_WIDTH: usize = 10;

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
}

impl MarkdownStream {
    pub fn new(width: usize) -> Self {
        Self { blocks: Blocks::new(width.max(MIN_WIDTH)), unread: String::new(), searched: 0 }
    }

    /// Only keeps the text: cheap enough for each piece that a model sends.
    pub fn push(&mut self, text: &str) {
        self.unread.push_str(text);
    }

    /// Lines that no further text can change, each of them once.
    pub fn take_finished(&mut self) -> Vec<Line> {
        self.read_lines();
        self.blocks.take_lines()
    }

    /// The lines that `take_finished` has not given, as they would be if the text ended here. They change with more text.
    pub fn tail(&self) -> Vec<Line> {
        self.clone().finish()
    }

    /// All lines that `take_finished` has not given. The stream is empty then, for another text.
    pub fn finish(&mut self) -> Vec<Line> {
        self.read_lines();
        let line = std::mem::take(&mut self.unread);
        self.searched = 0;
        if !line.is_empty() {
            self.blocks.add_line(&line);
        }
        self.blocks.finish()
    }

    fn read_lines(&mut self) {
        let mut start = 0;
        while let Some(end) = self.line_end(start) {
            self.blocks.add_line(self.unread.get(start..end).unwrap_or_default());
            start = end;
            self.searched = 0;
        }
        self.unread.drain(..start);
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
