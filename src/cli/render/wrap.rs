//! Word wrap of styled lines to a number of columns; wide characters and joined emoji count as terminals count them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::text::{Line, Span, Style};

/// A line does not begin with one of these, as it belongs to what stands before it.
const CLOSING: &[char] = &[
    ',', '.', ';', ':', '!', '?', ')', ']', '}', '%', '…', '、', '。', '，', '．', '：', '；', '！', '？', '）', '］',
    '｝', '」', '』', '】', '〉', '》', '〕', '’', '”',
];

/// The line in pieces of at most `width` columns, cut between words where that is possible. Pieces behind the first
/// begin with `indent`, which counts. Blanks at a cut are left out.
pub fn wrap(line: &Line, width: usize, indent: &str) -> Vec<Line> {
    let width = width.max(indent.width() + 2);
    if line.width() <= width {
        return vec![line.clone()];
    }
    let mut wrapper = Wrapper { width, indent, ..Wrapper::default() };
    let mut word = Word::default();
    for span in &line.spans {
        for chunk in span.text().split_inclusive(' ') {
            let text = chunk.strip_suffix(' ').unwrap_or(chunk);
            // Most text is ASCII, and has no characters that are joined.
            let pieces = if text.is_ascii() { vec![text] } else { text.graphemes(true).collect() };
            let blank = chunk.get(text.len()..).unwrap_or_default();
            for piece in pieces.into_iter().chain([blank]).filter(|it| !it.is_empty()) {
                let kind = Kind::of(piece);
                if word.ends_before(piece, kind) {
                    wrapper.add_word(std::mem::take(&mut word));
                }
                word.push(piece, kind, span);
            }
        }
    }
    wrapper.add_word(word);
    wrapper.done.push(wrapper.current);
    wrapper.done
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Blank,
    Narrow,
    /// A line may end before and behind it, as Chinese and Japanese have no blanks.
    Wide,
}

impl Kind {
    fn of(piece: &str) -> Self {
        match piece.chars().next() {
            // These blanks hold words together.
            Some('\u{a0}' | '\u{2007}' | '\u{202f}') => Self::Narrow,
            Some(it) if it.is_whitespace() => Self::Blank,
            _ if !piece.is_ascii() && piece.width() > 1 => Self::Wide,
            _ => Self::Narrow,
        }
    }
}

/// What stays on one line: blanks, or characters between blanks. It may have several styles.
#[derive(Default)]
struct Word<'a> {
    pieces: Vec<(&'a str, &'a Span)>,
    width: usize,
    kind: Kind,
}

impl<'a> Word<'a> {
    fn ends_before(&self, piece: &str, kind: Kind) -> bool {
        if self.pieces.is_empty() {
            return false;
        }
        match (self.kind, kind) {
            (Kind::Blank, Kind::Blank) | (Kind::Narrow, Kind::Narrow) => false,
            (Kind::Narrow | Kind::Wide, Kind::Narrow | Kind::Wide) => !piece.starts_with(CLOSING),
            _ => true,
        }
    }

    fn push(&mut self, piece: &'a str, kind: Kind, span: &'a Span) {
        self.width += piece.width();
        self.kind = kind;
        self.pieces.push((piece, span));
    }
}

#[derive(Default)]
struct Wrapper<'a> {
    width: usize,
    indent: &'a str,
    done: Vec<Line>,
    current: Line,
    used: usize,
    /// The current line has more than its indent.
    filled: bool,
    /// Blanks that get lost if the line ends here.
    blanks: Option<Word<'a>>,
}

impl<'a> Wrapper<'a> {
    fn add_word(&mut self, word: Word<'a>) {
        if word.kind == Kind::Blank {
            self.blanks = Some(word);
            return;
        }
        let blanks = self.blanks.take().unwrap_or_default();
        // An indent that leaves no room is no indent.
        let fits = self.used + blanks.width + word.width <= self.width;
        if fits || (!self.filled && self.used + blanks.width + word.width.min(self.width / 2) <= self.width) {
            self.put(&blanks);
        } else if self.filled {
            self.break_line();
        }
        if self.used + word.width <= self.width {
            return self.put(&word);
        }
        let pieces = word.pieces.iter().flat_map(|(text, span)| text.graphemes(true).map(move |it| (it, span)));
        for (piece, span) in pieces {
            let width = piece.width();
            if self.used + width > self.width && self.filled {
                self.break_line();
            }
            self.used += width;
            self.filled = true;
            self.current.append(piece, span);
        }
    }

    fn put(&mut self, word: &Word) {
        self.used += word.width;
        self.filled |= word.width > 0;
        for (piece, span) in &word.pieces {
            self.current.append(piece, span);
        }
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
    use crate::cli::render::text::{Color, Line, Style};

    fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
        wrap(&Line::plain(text), width, indent).iter().map(Line::text).collect()
    }

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("a recursive descent parser", 12, ""), ["a recursive", "descent", "parser"]);
        assert_eq!(wrapped("short", 12, "  "), ["short"]);
        assert_eq!(wrapped("- one two three", 9, "  "), ["- one two", "  three"]);
        assert_eq!(wrapped("aaaaaaaaaaaa", 5, ""), ["aaaaa", "aaaaa", "aa"]);
        assert_eq!(wrapped("日本語日本語", 5, ""), ["日本", "語日", "本語"]);
    }

    #[test]
    fn marks_stay_with_their_words() {
        assert_eq!(wrapped("use --all-targets, please.", 13, ""), ["use", "--all-targets", ", please."]);
        assert_eq!(wrapped("call f(x), then", 9, ""), ["call", "f(x),", "then"]);
        assert_eq!(wrapped("日本。語", 6, ""), ["日本。", "語"]);
        assert_eq!(wrapped("日本。語", 5, ""), ["日", "本。", "語"]);
        assert_eq!(wrapped("👩‍👩‍👧‍👦👩‍👩‍👧‍👦 ok", 4, ""), ["👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "ok"]);
    }

    #[test]
    fn an_indent_stays_if_it_leaves_room() {
        assert_eq!(wrapped("    let x = 1;", 10, "  "), ["    let x", "  = 1;"]);
        assert_eq!(wrapped("            let x = 1;", 10, "  "), ["let x = 1;"]);
    }

    #[test]
    fn styles_stay_with_their_words() {
        let mut line = Line::plain("one ");
        line.push("two three", Style::color(Color::Red));
        line.push(",", Style::PLAIN);
        let lines = wrap(&line, 8, "");
        assert_eq!(lines.iter().map(Line::text).collect::<Vec<_>>(), ["one two", "three,"]);
        assert_eq!(lines[1].spans.len(), 2);
        assert_eq!(lines[1].spans[0].style.color, Color::Red);
    }
}
