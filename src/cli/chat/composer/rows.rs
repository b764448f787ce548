//! Soft wrap of edited text: rows of at most a width, and the way between bytes and columns.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::folds::Folds;

/// The rows of a text on a screen. There is always one.
#[derive(Debug)]
pub struct Rows<'a> {
    text: &'a str,
    folds: &'a Folds,
    rows: Vec<Range<usize>>,
}

impl<'a> Rows<'a> {
    /// Rows are cut behind blanks where that is possible. The cursor has a column of its own behind a full row.
    pub fn new(text: &'a str, folds: &'a Folds, width: usize) -> Self {
        let width = width.saturating_sub(1).max(1);
        let (mut rows, mut start) = (Vec::new(), 0);
        for line in text.split('\n') {
            wrap_line(line, start, width, folds, &mut rows);
            start += line.len() + 1;
        }
        Self { text, folds, rows }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    pub fn row(&self, at: usize) -> &'a str {
        self.rows.get(at).and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }

    /// Where the row begins in the text.
    pub fn start(&self, at: usize) -> usize {
        self.rows.get(at).map_or(self.text.len(), |it| it.start)
    }

    /// Row and column of a byte. The end of a row that is cut is the start of the next one.
    pub fn place(&self, byte: usize) -> (usize, usize) {
        let row = self.rows.iter().rposition(|it| it.start <= byte).unwrap_or_default();
        let before = self.text.get(self.start(row)..byte).unwrap_or_default();
        (row, before.graphemes(true).map(|it| self.folds.width(it)).sum())
    }

    /// The byte at a column of a row, or at its end.
    pub fn byte(&self, row: usize, column: usize) -> usize {
        let Some(range) = self.rows.get(row) else { return self.text.len() };
        let (mut used, mut last) = (0, range.start);
        for (at, it) in self.row(row).grapheme_indices(true) {
            last = range.start + at;
            used += self.folds.width(it);
            if used > column {
                return last;
            }
        }
        // Behind the last column of a cut row the next row begins.
        let is_cut = self.rows.get(row + 1).is_some_and(|it| it.start == range.end);
        if is_cut { last } else { range.end }
    }
}

fn wrap_line(line: &str, offset: usize, width: usize, folds: &Folds, rows: &mut Vec<Range<usize>>) {
    // Where the row begins, how far it is, the last place where it may be cut, and how far it is since then.
    let (mut start, mut used, mut cut, mut since_cut) = (0, 0, 0, 0);
    for (at, it) in line.grapheme_indices(true) {
        let columns = folds.width(it);
        if columns > 1 {
            (cut, since_cut) = (at, 0);
        }
        while used + columns > width && at > start {
            // The word that is begun goes to the next row, if there is one before it.
            let to = if cut > start { cut } else { at };
            rows.push(offset + start..offset + to);
            used = if to == at { 0 } else { since_cut };
            start = to;
        }
        used += columns;
        since_cut += columns;
        if it == " " || it == "\t" || columns > 1 {
            (cut, since_cut) = (at + it.len(), 0);
        }
    }
    rows.push(offset + start..offset + line.len());
}

#[cfg(test)]
mod tests {
    use super::{Folds, Rows};

    fn rows(text: &str, width: usize) -> Vec<String> {
        let folds = Folds::default();
        let rows = Rows::new(text, &folds, width);
        (0..rows.count()).map(|it| rows.row(it).to_owned()).collect()
    }

    #[test]
    fn rows_are_cut_behind_blanks_and_between_wide_characters() {
        assert_eq!(rows("", 10), [""]);
        assert_eq!(rows("one two three", 9), ["one two ", "three"]);
        assert_eq!(rows("aaaaaaaaaa", 5), ["aaaa", "aaaa", "aa"]);
        assert_eq!(rows("日本語日本語", 6), ["日本", "語日", "本語"]);
        assert_eq!(rows("a\n\nb\n", 6), ["a", "", "b", ""]);
        assert_eq!(rows("ab cdefghij", 6), ["ab ", "cdefg", "hij"]);
    }

    /// Every place between graphemes has one cell, and the cell leads back to it.
    #[test]
    fn bytes_and_cells_agree() {
        use unicode_segmentation::UnicodeSegmentation;
        let mut folds = Folds::default();
        let fold = folds.paste(&"x\n".repeat(9));
        let text = format!("one two three\n\n日本語 👩\u{200d}🚀 e\u{301}{fold} end of it\n");
        for width in 2..60 {
            let rows = Rows::new(&text, &folds, width);
            let places = text.grapheme_indices(true).map(|it| it.0).chain([text.len()]);
            for byte in places {
                let (row, column) = rows.place(byte);
                assert!(column < width || width < 20, "{byte} at {width}: {row} {column}");
                assert_eq!(rows.byte(row, column), byte, "at {width}: {row} {column}");
            }
        }
    }
}
