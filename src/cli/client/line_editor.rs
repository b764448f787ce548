//! Line editor: one line of typed text with a cursor, drawn into the panel.

use unicode_segmentation::UnicodeSegmentation;

use super::keys::KeyPress;
use crate::cli::{
    render::text::{Line, Style},
    terminal_text::typed_line,
};

/// The longest line in characters.
const MAX_TEXT: usize = 10_000;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct LineEditor {
    text: String,
    /// A byte index, at the start of a character.
    cursor: usize,
}

impl LineEditor {
    pub fn with_text(text: &str) -> Self {
        let text = typed_line(text, MAX_TEXT);
        Self { cursor: text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text, and an empty line after it.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Takes a key of editing; other keys change nothing.
    pub fn key(&mut self, key: &KeyPress) {
        match key {
            KeyPress::Char(it) => self.insert(&it.to_string()),
            // One line stays one line.
            KeyPress::Paste(text) => self.insert(&typed_line(text, MAX_TEXT)),
            KeyPress::Backspace => self.remove(self.left()..self.cursor),
            KeyPress::Delete | KeyPress::Ctrl('d') => self.remove(self.cursor..self.right()),
            KeyPress::Ctrl('u') => self.remove(0..self.cursor),
            KeyPress::Ctrl('k') => self.remove(self.cursor..self.text.len()),
            KeyPress::Ctrl('w') => self.remove(self.word_start()..self.cursor),
            KeyPress::Left | KeyPress::Ctrl('b') => self.cursor = self.left(),
            KeyPress::Right | KeyPress::Ctrl('f') => self.cursor = self.right(),
            KeyPress::Home | KeyPress::Ctrl('a') => self.cursor = 0,
            KeyPress::End | KeyPress::Ctrl('e') => self.cursor = self.text.len(),
            _ => (),
        }
    }

    /// The text behind `prompt`, with the cursor as an underlined character.
    pub fn draw(&self, prompt: &str) -> Line {
        let (before, after) = self.text.split_at_checked(self.cursor).unwrap_or((&self.text, ""));
        let under = after.graphemes(true).next();
        let mut line = Line::new(prompt, Style::BOLD);
        line.push(before, Style::PLAIN);
        line.push(under.unwrap_or(" "), Style { underline: true, ..Style::PLAIN });
        line.push(after.get(under.map_or(0, str::len)..).unwrap_or_default(), Style::PLAIN);
        line
    }

    fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() <= MAX_TEXT {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
        }
    }

    fn remove(&mut self, range: std::ops::Range<usize>) {
        self.cursor = range.start;
        self.text.replace_range(range, "");
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn left(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |it| it.0)
    }

    fn right(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor + after.graphemes(true).next().map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let mut words = self.before().trim_end().char_indices().rev();
        words.find(|it| it.1.is_whitespace()).map_or(0, |(at, it)| at + it.len_utf8())
    }
}

#[cfg(test)]
mod tests {
    use super::LineEditor;
    use crate::cli::client::keys::{KeyDecoder, KeyPress};

    fn typed(bytes: &str) -> String {
        let mut editor = LineEditor::default();
        for key in KeyDecoder::default().decode(bytes.as_bytes()) {
            editor.key(&key);
        }
        let text = editor.draw("").spans;
        format!("{}|{}", text[1].text(), editor.text().get(text[1].text().len()..).unwrap())
    }

    #[test]
    fn a_line_is_edited() {
        for (bytes, expected) in [
            ("use tabs", "use tabs|"),
            ("usé\x7fe", "use|"),
            ("a👩\u{200d}🚀\x7fb", "ab|"),
            ("one two \x17three", "one three|"),
            ("one\x15two", "two|"),
            ("ac\x1b[Db", "ab|c"),
            ("bc\x1b[Ha\x1b[F!", "abc!|"),
            ("abc\x01\x04\x1b[C\x0b", "b|"),
            ("a\x1b[200~1\n2\x1b]0;t\x07\x1b[201~b", "a1 2b|"),
            ("\x7f\x17\x15\x1b[D\x1b[C\x04", "|"),
        ] {
            assert_eq!(typed(bytes), expected, "{}", bytes.escape_debug());
        }
    }

    #[test]
    fn an_endless_line_ends() {
        let mut editor = LineEditor::default();
        editor.key(&KeyPress::Paste("a".repeat(9_999)));
        editor.key(&KeyPress::Paste("漢".to_owned()));
        assert_eq!(editor.take().len(), 9_999);
        assert!(editor.is_empty());
    }
}
