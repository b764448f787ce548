//! Word wrap of styled lines to a number of columns; wide characters and joined emoji count as terminals count them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::text::{Line, Span, Style};

/// The line in pieces of at most `width` columns, cut between words where that is possible. Pieces behind the first
/// begin with `indent`, which counts.
pub fn wrap(line: &Line, width: usize, indent: &str) -> Vec<Line> {
    let width = width.max(indent.width() + 2);
    if line.width() <= width {
        return vec![line.clone()];
    }
    let mut wrapper = Wrapper { width, indent, done: Vec::new(), current: Line::default(), used: 0, filled: false };
    for span in &line.spans {
        for word in span.text().split_word_bounds() {
            wrapper.add_word(word, span);
        }
    }
    wrapper.done.push(wrapper.current);
    wrapper.done
}

struct Wrapper<'a> {
    width: usize,
    indent: &'a str,
    done: Vec<Line>,
    current: Line,
    used: usize,
    /// The current line has more than its indent.
    filled: bool,
}

impl Wrapper<'_> {
    fn add_word(&mut self, word: &str, like: &Span) {
        let width = word.width();
        if self.used + width <= self.width {
            return self.put(word, width, like);
        }
        if self.filled {
            self.break_line();
        }
        // A blank at the edge is the line end.
        if word.trim().is_empty() {
            return;
        }
        if self.used + width <= self.width {
            return self.put(word, width, like);
        }
        for piece in word.graphemes(true) {
            let width = piece.width();
            if self.used + width > self.width && self.filled {
                self.break_line();
            }
            self.put(piece, width, like);
        }
    }

    fn put(&mut self, text: &str, width: usize, like: &Span) {
        self.used += width;
        self.filled = true;
        self.current.append(text, like);
    }

    fn break_line(&mut self) {
        let mut next = Line::default();
        if !self.indent.is_empty() {
            next.push(self.indent, Style::PLAIN);
        }
        self.done.push(std::mem::replace(&mut self.current, next));
        self.used = self.indent.width();
        self.filled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::wrap;
    use crate::app::cli::render::text::{Color, Line, Style};

    fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
        wrap(&Line::plain(text), width, indent).iter().map(Line::text).collect()
    }

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("a recursive descent parser", 12, ""), ["a recursive ", "descent ", "parser"]);
        assert_eq!(wrapped("short", 12, "  "), ["short"]);
        assert_eq!(wrapped("- one two three", 9, "  "), ["- one two", "  three"]);
        assert_eq!(wrapped("aaaaaaaaaaaa", 5, ""), ["aaaaa", "aaaaa", "aa"]);
        assert_eq!(wrapped("日本語日本語", 5, ""), ["日本", "語日", "本語"]);
    }

    #[test]
    fn styles_stay_with_their_words() {
        let mut line = Line::plain("one ");
        line.push("two three", Style::color(Color::Red));
        let lines = wrap(&line, 8, "");
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].spans.len(), 1);
        assert_eq!(lines[1].spans[0].style.color, Color::Red);
    }
}
