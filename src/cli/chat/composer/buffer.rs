//! Edited text of several lines: a cursor between graphemes, motions, what was killed, undo and redo.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a text; what is longer belongs into a file.
pub const MAX_TEXT: usize = 100_000;
/// Steps and bytes that undo keeps.
const MAX_STEPS: usize = 200;
const MAX_KEPT: usize = 2 << 20;

/// Where a key may move the cursor to. Up and down are a matter of the rows on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    Left,
    Right,
    /// To the start of a word, as shells do: marks between words do not count.
    WordLeft,
    /// Behind the end of a word.
    WordRight,
    LineStart,
    LineEnd,
    FirstInLine,
    TextStart,
    TextEnd,
    /// The words of vi: letters, or marks, or blanks.
    NextWord,
    WordBack,
    WordEnd,
}

/// What changed last: typed letters are one step of undo, as far as the blank that ends a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Change {
    #[default]
    Other,
    Letter,
    Blank,
    Removal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    text: String,
    cursor: usize,
}

#[derive(Debug, Default)]
pub struct EditBuffer {
    text: String,
    /// A byte index, at the start of a grapheme or at the end.
    cursor: usize,
    killed: String,
    last: Change,
    undo: Vec<Moment>,
    redo: Vec<Moment>,
}

impl EditBuffer {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    pub fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    pub fn killed(&self) -> &str {
        &self.killed
    }

    /// Another text, which undo can leave.
    pub fn set_text(&mut self, text: &str) {
        self.replace(0..self.text.len(), text);
        self.cursor = self.text.len();
        self.last = Change::Other;
    }

    /// The text; nothing of it is left, also for undo.
    pub fn take(&mut self) -> String {
        let killed = std::mem::take(&mut self.killed);
        std::mem::replace(self, Self { killed, ..Self::default() }).text
    }

    /// Typed or pasted text. What does not fit is left out whole.
    pub fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() > MAX_TEXT {
            return;
        }
        let change = match text.chars().next() {
            Some(it) if it.len_utf8() < text.len() => Change::Other,
            Some(it) if it.is_whitespace() => Change::Blank,
            _ => Change::Letter,
        };
        self.keep_moment(change);
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A mark that joins what stands before it makes one grapheme of two.
        self.cursor = self.ceil(self.cursor);
    }

    /// Removes what a motion passes over.
    pub fn remove_to(&mut self, motion: Motion) {
        let to = self.target(motion);
        self.remove(self.cursor.min(to)..self.cursor.max(to));
    }

    /// The same, and keeps it for a yank.
    pub fn kill_to(&mut self, motion: Motion) {
        let to = self.target(motion);
        // A kill at the end of a line takes the line's end.
        let to = if to == self.cursor && motion == Motion::LineEnd { self.target(Motion::Right) } else { to };
        self.kill(self.cursor.min(to)..self.cursor.max(to));
    }

    pub fn kill(&mut self, range: Range<usize>) {
        self.keep_killed(range.clone());
        self.last = Change::Other;
        self.remove(range);
    }

    /// Keeps a part of the text for a yank.
    pub fn keep_killed(&mut self, range: Range<usize>) {
        if let Some(it) = self.text.get(range).filter(|it| !it.is_empty()) {
            self.killed = it.to_owned();
        }
    }

    pub fn set_killed(&mut self, text: String) {
        self.killed = text;
    }

    pub fn yank(&mut self) {
        let killed = self.killed.clone();
        self.last = Change::Other;
        self.insert(&killed);
    }

    pub fn remove(&mut self, range: Range<usize>) {
        if range.is_empty() || self.text.get(range.clone()).is_none() {
            return;
        }
        self.keep_moment(Change::Removal);
        self.cut(range, "");
    }

    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        let rest = self.text.len().saturating_sub(range.len());
        if self.text.get(range.clone()).is_none() || rest + with.len() > MAX_TEXT {
            return;
        }
        self.last = Change::Other;
        self.keep_moment(Change::Other);
        self.cut(range, with);
    }

    fn cut(&mut self, range: Range<usize>, with: &str) {
        let end = range.start + with.len();
        self.text.replace_range(range, with);
        self.cursor = self.ceil(end);
    }

    /// Swaps the characters around the cursor, as emacs does.
    pub fn transpose(&mut self) {
        let at = if self.cursor == self.line().end { self.target(Motion::Left) } else { self.cursor };
        let start = self.text.get(..at).unwrap_or_default().grapheme_indices(true).next_back().map_or(at, |it| it.0);
        let end = self.right_of(at);
        let (Some(left), Some(right)) = (self.text.get(start..at), self.text.get(at..end)) else { return };
        if !left.is_empty() && left != "\n" && !right.is_empty() {
            let swapped = format!("{right}{left}");
            self.replace(start..end, &swapped);
        }
    }

    pub fn undo(&mut self) {
        if let Some(it) = self.undo.pop() {
            let now = self.go_to(it);
            self.redo.push(now);
        }
    }

    pub fn redo(&mut self) {
        if let Some(it) = self.redo.pop() {
            let now = self.go_to(it);
            self.undo.push(now);
        }
    }

    fn go_to(&mut self, moment: Moment) -> Moment {
        let now = Moment { text: std::mem::replace(&mut self.text, moment.text), cursor: self.cursor };
        self.cursor = moment.cursor;
        self.last = Change::Other;
        now
    }

    fn keep_moment(&mut self, change: Change) {
        self.redo.clear();
        let is_one = matches!(
            (self.last, change),
            (Change::Letter, Change::Letter | Change::Blank)
                | (Change::Blank, Change::Blank)
                | (Change::Removal, Change::Removal)
        );
        self.last = change;
        if is_one {
            return;
        }
        self.undo.push(Moment { text: self.text.clone(), cursor: self.cursor });
        let mut kept: usize = self.undo.iter().map(|it| it.text.len()).sum();
        while self.undo.len() > MAX_STEPS || kept > MAX_KEPT {
            kept -= self.undo.remove(0).text.len();
        }
    }

    pub fn go(&mut self, motion: Motion) {
        self.go_to_byte(self.target(motion));
    }

    pub fn go_to_byte(&mut self, at: usize) {
        self.cursor = self.ceil(at.min(self.text.len()));
        self.last = Change::Other;
    }

    /// The start of the grapheme at or behind `at`.
    fn ceil(&self, at: usize) -> usize {
        // A grapheme does not go beyond its line; a whole text need not be looked through.
        let start = self.text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
        let line = self.text.get(start..).unwrap_or_default();
        line.grapheme_indices(true).map(|it| start + it.0).find(|it| *it >= at).unwrap_or(self.text.len())
    }

    /// The line of the cursor, without its end.
    pub fn line(&self) -> Range<usize> {
        let start = self.before().rfind('\n').map_or(0, |it| it + 1);
        start..self.after().find('\n').map_or(self.text.len(), |it| self.cursor + it)
    }

    pub fn right_of(&self, at: usize) -> usize {
        at + self.text.get(at..).and_then(|it| it.graphemes(true).next()).map_or(0, str::len)
    }

    pub fn target(&self, motion: Motion) -> usize {
        match motion {
            Motion::Left => self.before().grapheme_indices(true).next_back().map_or(0, |it| it.0),
            Motion::Right => self.right_of(self.cursor),
            Motion::WordLeft => self.before().split_word_bound_indices().rev().find(is_word).map_or(0, |it| it.0),
            Motion::WordRight => {
                let word = self.after().split_word_bound_indices().find(is_word);
                word.map_or(self.text.len(), |(at, it)| self.cursor + at + it.len())
            }
            Motion::LineStart => self.line().start,
            Motion::LineEnd => self.line().end,
            Motion::FirstInLine => {
                let line = self.line();
                let text = self.text.get(line.clone()).unwrap_or_default();
                line.start + text.len() - text.trim_start().len()
            }
            Motion::TextStart => 0,
            Motion::TextEnd => self.text.len(),
            Motion::NextWord => self.next_word(),
            Motion::WordBack => self.word_back(),
            Motion::WordEnd => self.word_end(),
        }
    }

    fn next_word(&self) -> usize {
        let mut all = self.after().grapheme_indices(true).map(|(at, it)| (self.cursor + at, Class::of(it)));
        let Some((_, first)) = all.next() else { return self.cursor };
        let mut is_past = first == Class::Blank;
        let next = all.find(|(_, it)| {
            is_past |= *it != first;
            is_past && *it != Class::Blank
        });
        next.map_or(self.text.len(), |it| it.0)
    }

    fn word_back(&self) -> usize {
        let mut all = self.before().grapheme_indices(true).rev().map(|(at, it)| (at, Class::of(it)));
        let Some((mut start, class)) = all.find(|it| it.1 != Class::Blank) else { return 0 };
        for (at, it) in all {
            if it != class {
                break;
            }
            start = at;
        }
        start
    }

    /// The last character of a word, on which vi's cursor stands.
    fn word_end(&self) -> usize {
        let from = self.right_of(self.cursor);
        let rest = self.text.get(from..).unwrap_or_default();
        let mut all = rest.grapheme_indices(true).map(|(at, it)| (from + at, Class::of(it)));
        let Some((mut end, class)) = all.find(|it| it.1 != Class::Blank) else { return self.text.len() };
        for (at, it) in all {
            if it != class {
                break;
            }
            end = at;
        }
        end
    }
}

fn is_word(it: &(usize, &str)) -> bool {
    it.1.chars().any(|it| it.is_alphanumeric() || is_private(it))
}

/// Characters that stand for a folded paste are words.
fn is_private(it: char) -> bool {
    ('\u{f0000}'..='\u{ffffd}').contains(&it)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Mark,
}

impl Class {
    fn of(grapheme: &str) -> Self {
        match grapheme.chars().next() {
            Some(it) if it.is_alphanumeric() || it == '_' || is_private(it) => Self::Word,
            Some(it) if !it.is_whitespace() => Self::Mark,
            _ => Self::Blank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EditBuffer, Motion};

    /// The text with a bar where the cursor stands.
    fn buffer(text: &str) -> EditBuffer {
        let mut it = EditBuffer::default();
        it.insert(&text.replace('|', ""));
        it.go_to_byte(text.find('|').unwrap());
        it
    }

    fn text_with_cursor(it: &EditBuffer) -> String {
        format!("{}|{}", it.before(), it.after())
    }

    #[test]
    fn motions_go_by_graphemes_and_words() {
        for (from, motion, to) in [
            ("a👩\u{200d}🚀|b", Motion::Left, "a|👩\u{200d}🚀b"),
            ("a|e\u{301}b", Motion::Right, "ae\u{301}|b"),
            ("|", Motion::Left, "|"),
            ("one two|", Motion::WordLeft, "one |two"),
            ("one |two", Motion::WordLeft, "|one two"),
            ("|one, two", Motion::WordRight, "one|, two"),
            ("one|, two", Motion::WordRight, "one, two|"),
            ("日本|", Motion::WordLeft, "日|本"),
            ("ab\n  c|d", Motion::LineStart, "ab\n|  cd"),
            ("ab\n  c|d", Motion::FirstInLine, "ab\n  |cd"),
            ("a|b\ncd", Motion::LineEnd, "ab|\ncd"),
            ("|foo.bar baz", Motion::NextWord, "foo|.bar baz"),
            ("foo.|bar baz", Motion::NextWord, "foo.bar |baz"),
            ("foo.bar |baz", Motion::WordBack, "foo.|bar baz"),
            ("|foo bar", Motion::WordEnd, "fo|o bar"),
            ("fo|o bar", Motion::WordEnd, "foo ba|r"),
        ] {
            let mut it = buffer(from);
            it.go(motion);
            assert_eq!(text_with_cursor(&it), to, "{motion:?} from {from}");
        }
    }

    #[test]
    fn removal_takes_whole_graphemes() {
        let mut it = buffer("a👩\u{200d}🚀|b");
        it.remove_to(Motion::Left);
        assert_eq!(text_with_cursor(&it), "a|b");
        let mut it = buffer("one| two\nthree");
        it.kill_to(Motion::LineEnd);
        assert_eq!((text_with_cursor(&it).as_str(), it.killed()), ("one|\nthree", " two"));
        it.kill_to(Motion::LineEnd);
        assert_eq!(text_with_cursor(&it), "one|three");
        it.yank();
        assert_eq!(text_with_cursor(&it), "one\n|three");
        let mut it = buffer("ab|");
        it.transpose();
        assert_eq!(text_with_cursor(&it), "ba|");
    }

    #[test]
    fn undo_takes_words_and_redo_brings_them_back() {
        let mut it = EditBuffer::default();
        for letter in "one two".chars() {
            it.insert(&letter.to_string());
        }
        it.undo();
        assert_eq!(text_with_cursor(&it), "one |");
        it.undo();
        assert_eq!(text_with_cursor(&it), "|");
        it.redo();
        it.redo();
        assert_eq!(text_with_cursor(&it), "one two|");
        it.undo();
        it.insert("x");
        it.redo();
        assert_eq!(text_with_cursor(&it), "one x|");
        it.set_text("other");
        it.undo();
        assert_eq!(text_with_cursor(&it), "one x|");
    }

    #[test]
    fn a_text_and_its_undo_are_bounded() {
        let mut it = EditBuffer::default();
        it.insert(&"x".repeat(super::MAX_TEXT));
        it.insert("y");
        assert_eq!(it.text().len(), super::MAX_TEXT);
        for _ in 0..100 {
            it.remove_to(Motion::Left);
            it.go(Motion::Left);
        }
        assert!(it.undo.iter().map(|it| it.text.len()).sum::<usize>() <= super::MAX_KEPT && it.undo.len() > 10);
    }
}
