//! Keys of vi for the composer: insert and normal mode, counts, operators with motions.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::buffer::{EditBuffer, Motion};
use crate::cli::chat::lower::Key;

/// A larger count is a slip of the finger.
const MAX_COUNT: usize = 999;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViMode {
    #[default]
    Insert,
    Normal,
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViAnswer {
    /// It did what it does.
    Taken,
    /// It means what it means without vi, or what this key means.
    Pass(Key),
}

#[derive(Debug, Default)]
pub struct ViKeys {
    mode: ViMode,
    count: usize,
    /// `d`, `c` or `y`, before its motion.
    operator: Option<char>,
    /// `f`, `F`, `t`, `T`, `r` or `g`, before its character.
    prefix: Option<char>,
    last_find: Option<(char, char)>,
}

/// What a motion passes over.
struct Span {
    to: usize,
    /// The character at the end belongs to it.
    is_inclusive: bool,
}

impl ViKeys {
    pub fn mode(&self) -> ViMode {
        self.mode
    }

    /// A new text begins in insert mode.
    pub fn reset(&mut self) {
        *self = Self { last_find: self.last_find, ..Self::default() };
    }

    pub fn key(&mut self, key: &Key, buffer: &mut EditBuffer) -> ViAnswer {
        match (self.mode, key) {
            (ViMode::Insert, Key::Esc) => {
                self.mode = ViMode::Normal;
                if buffer.cursor() > buffer.line().start {
                    buffer.go(Motion::Left);
                }
                ViAnswer::Taken
            }
            (ViMode::Insert, _) => ViAnswer::Pass(key.clone()),
            (ViMode::Normal, Key::Char(it)) => self.normal(*it, buffer),
            (ViMode::Normal, Key::Ctrl('r')) => {
                buffer.redo();
                self.finish(buffer)
            }
            (ViMode::Normal, Key::Backspace) => ViAnswer::Pass(Key::Left),
            // A key that was begun is given up.
            (ViMode::Normal, Key::Esc) if self.is_pending() => {
                self.clear();
                ViAnswer::Taken
            }
            (ViMode::Normal, _) => {
                self.clear();
                ViAnswer::Pass(key.clone())
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.count > 0 || self.operator.is_some() || self.prefix.is_some()
    }

    fn clear(&mut self) {
        (self.count, self.operator, self.prefix) = (0, None, None);
    }

    /// The cursor of normal mode stands on a character.
    fn finish(&mut self, buffer: &mut EditBuffer) -> ViAnswer {
        self.clear();
        let line = buffer.line();
        if self.mode == ViMode::Normal && buffer.cursor() == line.end && !line.is_empty() {
            buffer.go(Motion::Left);
        }
        ViAnswer::Taken
    }

    fn insert(&mut self, buffer: &mut EditBuffer) -> ViAnswer {
        self.mode = ViMode::Insert;
        self.finish(buffer)
    }

    fn normal(&mut self, it: char, buffer: &mut EditBuffer) -> ViAnswer {
        if let Some(prefix) = self.prefix.take() {
            return self.prefixed(prefix, it, buffer);
        }
        match it {
            '1'..='9' | '0' if it != '0' || self.count > 0 => {
                let digit = usize::try_from(u32::from(it) - u32::from('0')).unwrap_or_default();
                self.count = (self.count * 10 + digit).min(MAX_COUNT);
                ViAnswer::Taken
            }
            'f' | 'F' | 't' | 'T' | 'g' => {
                self.prefix = Some(it);
                ViAnswer::Taken
            }
            'r' if self.operator.is_none() => {
                self.prefix = Some(it);
                ViAnswer::Taken
            }
            'd' | 'c' | 'y' => match self.operator {
                Some(own) if own == it => self.whole_lines(it, buffer),
                None => {
                    self.operator = Some(it);
                    ViAnswer::Taken
                }
                Some(_) => self.finish(buffer),
            },
            'j' | 'k' if self.operator.is_none() => {
                self.clear();
                ViAnswer::Pass(if it == 'j' { Key::Down } else { Key::Up })
            }
            ';' => match self.last_find {
                Some((kind, wanted)) => self.find(kind, wanted, buffer),
                None => self.finish(buffer),
            },
            _ => match motion(it) {
                Some((motion, is_inclusive)) => self.move_by(motion, is_inclusive, buffer),
                None if self.operator.is_none() => self.command(it, buffer),
                None => self.finish(buffer),
            },
        }
    }

    fn prefixed(&mut self, prefix: char, it: char, buffer: &mut EditBuffer) -> ViAnswer {
        match (prefix, it) {
            ('g', 'g') => self.move_by(Motion::TextStart, false, buffer),
            ('g', _) => self.finish(buffer),
            ('r', _) => {
                let at = buffer.cursor();
                let end = buffer.right_of(at);
                if end > at && end <= buffer.line().end {
                    buffer.replace(at..end, &it.to_string());
                    buffer.go_to_byte(at);
                }
                self.finish(buffer)
            }
            (kind, _) => {
                self.last_find = Some((kind, it));
                self.find(kind, it, buffer)
            }
        }
    }

    /// `f`, `F`, `t` and `T`, within the line.
    fn find(&mut self, kind: char, wanted: char, buffer: &mut EditBuffer) -> ViAnswer {
        let line = buffer.line();
        let at = buffer.cursor();
        let nth = self.count.max(1) - 1;
        let is_it = |found: &(usize, &str)| found.1.starts_with(wanted);
        let to = if kind.is_lowercase() {
            let from = buffer.right_of(at);
            let rest = buffer.text().get(from..line.end).unwrap_or_default();
            let found = rest.grapheme_indices(true).filter(is_it).nth(nth).map(|it| from + it.0);
            let before = |it: usize| buffer.text().get(..it).and_then(|it| it.grapheme_indices(true).next_back());
            if kind == 't' { found.and_then(before).map(|it| it.0) } else { found }
        } else {
            let head = buffer.text().get(line.start..at).unwrap_or_default();
            let found = head.grapheme_indices(true).rev().filter(is_it).nth(nth).map(|it| line.start + it.0);
            if kind == 'T' { found.map(|it| buffer.right_of(it)) } else { found }
        };
        match to {
            Some(to) => self.apply(Span { to, is_inclusive: kind.is_lowercase() }, buffer),
            None => self.finish(buffer),
        }
    }

    fn move_by(&mut self, motion: Motion, is_inclusive: bool, buffer: &mut EditBuffer) -> ViAnswer {
        let from = buffer.cursor();
        // `cw` leaves the blank behind the word.
        let on_word = buffer.after().starts_with(|it: char| !it.is_whitespace());
        let is_change = self.operator == Some('c') && motion == Motion::NextWord && on_word;
        for _ in 0..self.count.max(1) {
            buffer.go(motion);
        }
        let mut to = buffer.cursor();
        buffer.go_to_byte(from);
        let line = buffer.line();
        match motion {
            // Within the line, as in vi.
            Motion::Left => to = to.max(line.start),
            Motion::Right => to = to.min(line.end),
            // A deleted word takes no line's end with it.
            Motion::NextWord if self.operator.is_some() => to = to.min(line.end),
            _ => (),
        }
        if is_change {
            to = from + buffer.text().get(from..to).map_or(0, |it| it.trim_end().len());
        }
        self.apply(Span { to, is_inclusive }, buffer)
    }

    fn apply(&mut self, span: Span, buffer: &mut EditBuffer) -> ViAnswer {
        let from = buffer.cursor();
        let Some(operator) = self.operator else {
            buffer.go_to_byte(span.to);
            return self.finish(buffer);
        };
        let end = if span.is_inclusive { buffer.right_of(span.to) } else { span.to };
        let range = from.min(span.to)..from.max(end);
        self.operate(operator, range, buffer)
    }

    fn operate(&mut self, operator: char, range: Range<usize>, buffer: &mut EditBuffer) -> ViAnswer {
        if operator == 'y' {
            buffer.keep_killed(range.clone());
            buffer.go_to_byte(range.start);
            return self.finish(buffer);
        }
        buffer.kill(range);
        if operator == 'c' { self.insert(buffer) } else { self.finish(buffer) }
    }

    /// `dd`, `cc`, `yy`: whole lines, with their end.
    fn whole_lines(&mut self, operator: char, buffer: &mut EditBuffer) -> ViAnswer {
        let line = buffer.line();
        let mut end = line.end;
        for _ in 1..self.count.max(1) {
            let rest = buffer.text().get(end + 1..);
            end = rest.map_or(end, |it| end + 1 + it.find('\n').unwrap_or(it.len()));
        }
        if operator == 'c' {
            return self.operate('c', line.start..end, buffer);
        }
        let lines = format!("{}\n", buffer.text().get(line.start..end).unwrap_or_default());
        if operator == 'd' {
            let has_next = end < buffer.text().len();
            // The last line goes with the end of the one before it.
            let start = if has_next { line.start } else { line.start.saturating_sub(1) };
            buffer.remove(start..if has_next { end + 1 } else { end });
            buffer.go(Motion::FirstInLine);
        }
        buffer.set_killed(lines);
        self.finish(buffer)
    }

    fn command(&mut self, it: char, buffer: &mut EditBuffer) -> ViAnswer {
        let count = self.count.max(1);
        let at = buffer.cursor();
        let line = buffer.line();
        match it {
            'i' => return self.insert(buffer),
            'a' => {
                let to = buffer.right_of(at).min(line.end);
                buffer.go_to_byte(to);
                return self.insert(buffer);
            }
            'I' | 'A' => {
                buffer.go(if it == 'I' { Motion::FirstInLine } else { Motion::LineEnd });
                return self.insert(buffer);
            }
            'o' | 'O' => {
                buffer.go_to_byte(if it == 'o' { line.end } else { line.start });
                buffer.insert("\n");
                buffer.go_to_byte(if it == 'o' { line.end + 1 } else { line.start });
                return self.insert(buffer);
            }
            'x' | 's' => {
                let end = (0..count).fold(at, |end, _| buffer.right_of(end)).min(line.end);
                return self.operate(if it == 'x' { 'd' } else { 'c' }, at..end, buffer);
            }
            'X' => {
                let start = buffer.target(Motion::Left).max(line.start);
                return self.operate('d', start..at, buffer);
            }
            'D' | 'C' => return self.operate(it.to_ascii_lowercase(), at..line.end, buffer),
            'S' => return self.whole_lines('c', buffer),
            'Y' => return self.whole_lines('y', buffer),
            'p' | 'P' => put(it == 'p', buffer),
            'u' => buffer.undo(),
            _ => (),
        }
        self.finish(buffer)
    }
}

/// Whole lines go below or above the line, the rest behind or before the cursor.
fn put(is_behind: bool, buffer: &mut EditBuffer) {
    let line = buffer.line();
    match (buffer.killed().strip_suffix('\n').map(str::to_owned), is_behind) {
        (Some(lines), true) => {
            buffer.go_to_byte(line.end);
            buffer.insert(&format!("\n{lines}"));
            buffer.go_to_byte(line.end + 1);
        }
        (Some(lines), false) => {
            buffer.go_to_byte(line.start);
            buffer.insert(&format!("{lines}\n"));
            buffer.go_to_byte(line.start);
        }
        (None, _) => {
            let at = buffer.cursor();
            buffer.go_to_byte(if is_behind { buffer.right_of(at).min(line.end) } else { at });
            buffer.yank();
            buffer.go(Motion::Left);
        }
    }
}

/// A motion, and whether the character that it ends on belongs to it.
fn motion(it: char) -> Option<(Motion, bool)> {
    Some(match it {
        'h' => (Motion::Left, false),
        'l' | ' ' => (Motion::Right, false),
        'w' | 'W' => (Motion::NextWord, false),
        'b' | 'B' => (Motion::WordBack, false),
        'e' | 'E' => (Motion::WordEnd, true),
        '0' => (Motion::LineStart, false),
        '^' => (Motion::FirstInLine, false),
        '$' => (Motion::LineEnd, false),
        'G' => (Motion::TextEnd, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{EditBuffer, Key, ViAnswer, ViKeys};

    /// Keys in normal mode, over a text with a bar where the cursor stands; `<` is Esc.
    fn after(text: &str, keys: &str) -> String {
        let (mut vi, mut buffer) = (ViKeys::default(), EditBuffer::default());
        buffer.insert(&text.replace('|', ""));
        vi.key(&Key::Esc, &mut buffer);
        buffer.go_to_byte(text.find('|').unwrap());
        for it in keys.chars() {
            let key = if it == '<' { Key::Esc } else { Key::Char(it) };
            if let ViAnswer::Pass(Key::Char(it)) = vi.key(&key, &mut buffer) {
                buffer.insert(&it.to_string());
            }
        }
        format!("{}|{}", buffer.before(), buffer.after())
    }

    #[test]
    fn normal_mode_edits() {
        for (text, keys, expected) in [
            ("|one two", "w", "one |two"),
            ("|one two", "2w", "one tw|o"),
            ("|one two", "dw", "|two"),
            ("|one two", "cwsix<", "si|x two"),
            ("|a b", "cwx<", "|x b"),
            ("|one two three", "2dw", "|three"),
            ("one |two\nthree", "dw", "one| \nthree"),
            ("|one two", "de", "| two"),
            ("one| two", "D", "on|e"),
            ("one t|wo", "d0", "|wo"),
            ("one t|wo", "dd", "|"),
            ("a\n|b\nc", "dd", "a\n|c"),
            ("a\n|b\nc", "ddp", "a\nc\n|b"),
            ("a\nb|\nc", "ggyyP", "|a\na\nb\nc"),
            ("|abc", "x", "|bc"),
            ("ab|c", "x", "a|b"),
            ("|abc", "2x", "|c"),
            ("|abc", "xp", "b|ac"),
            ("|a(b)c", "f)", "a(b|)c"),
            ("|a(b)c", "dt)", "|)c"),
            ("a(b)|c", "dF(", "a|c"),
            ("|abcb", "fb;", "abc|b"),
            ("|abc", "rx", "|xbc"),
            ("a|b", "ix<", "a|xb"),
            ("a|b", "Ax<", "ab|x"),
            ("a|b", "ox<", "ab\n|x"),
            ("a|b", "Ox<", "|x\nab"),
            ("|one", "xu", "|one"),
            ("|one\ntwo", "G", "one\ntw|o"),
            ("|one two", "d<x", "|ne two"),
            ("|one", "dq", "|one"),
            ("|日本語", "x", "|本語"),
            ("|a👩\u{200d}🚀b", "lx", "a|b"),
            ("|one", "3h", "|one"),
        ] {
            assert_eq!(after(text, keys), expected, "{keys} on {text}");
        }
    }
}
