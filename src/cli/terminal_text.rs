//! Safe text for terminals: strips escape sequences from models' text, and shows odd characters of names.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

pub use castor_base::shown_text::clean_line;
use castor_base::{shown_text::show_line, text::is_deceptive};

/// Takes terminal controls out of text that comes in pieces: a sequence may be split between two of them.
#[derive(Debug, Default)]
pub struct Cleaner {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte, as in `ESC ( B`: one more follows.
    Intermediate,
    /// `ESC [` … up to a letter or `@`…`~`.
    Control,
    /// `ESC ]`, `ESC P` and the like, up to BEL or ST.
    Payload,
    /// ESC within a payload: `\` ends it.
    PayloadEscape,
}

impl Cleaner {
    pub fn clean(&mut self, text: &str) -> String {
        text.chars().filter(|it| self.is_kept(*it)).collect()
    }

    /// The same for text that stays as it is written: what turns it around, or says something to a model alone, is
    /// written out.
    pub fn clean_answer(&mut self, text: &str) -> String {
        let text = self.clean(text);
        match text.contains(is_disguise) {
            true => text.split_inclusive(is_disguise).map(write_out_last).collect(),
            false => text,
        }
    }

    fn is_kept(&mut self, it: char) -> bool {
        let (next, keep) = match (self.state, it) {
            // Lone ESC and CAN/SUB end whatever was going on, as terminals do; a payload only on ST.
            (State::Payload, '\u{1b}') => (State::PayloadEscape, false),
            (State::Payload, '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') => (State::Text, false),
            (State::Payload, _) => (State::Payload, false),
            (State::PayloadEscape, '\\') => (State::Text, false),
            (State::PayloadEscape, _) => (State::Payload, false),
            (_, '\u{1b}') => (State::Escape, false),
            (State::Escape, '[') => (State::Control, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::Payload, false),
            (State::Escape, ' '..='/') => (State::Intermediate, false),
            (State::Escape | State::Intermediate, _) => (State::Text, false),
            (State::Control, '@'..='~') => (State::Text, false),
            (State::Control, ' '..='?') => (State::Control, false),
            // Anything else is no part of a sequence: it broke off here.
            (State::Control, _) => (State::Text, is_plain(it)),
            (State::Text, '\u{9b}') => (State::Control, false),
            (State::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => (State::Payload, false),
            (State::Text, _) => (State::Text, is_plain(it)),
        };
        self.state = next;
        keep
    }
}

/// Embeddings, overrides and isolates of direction, and tags. Marks of direction are part of Hebrew and Arabic text.
fn is_disguise(it: char) -> bool {
    matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

fn write_out_last(piece: &str) -> String {
    let at = piece.char_indices().next_back().map_or(0, |it| it.0);
    let (head, last) = piece.split_at(at);
    if last.contains(is_disguise) { format!("{head}{}", show_line(last)) } else { piece.to_owned() }
}

/// All of `text` at once.
pub fn clean(text: &str) -> String {
    Cleaner::default().clean(text)
}

/// What somebody types or pastes, as one line of at most `max` characters: controls and hidden characters are left out.
pub fn typed_line(text: &str, max: usize) -> String {
    let plain = clean(text);
    let plain = plain.trim().chars().filter(|it| !is_unprintable(*it)).take(max);
    plain.map(|it| if it.is_whitespace() { ' ' } else { it }).collect()
}

fn is_plain(it: char) -> bool {
    matches!(it, '\n' | '\t') || !it.is_control()
}

/// Controls other than line ends and tabs, bidirectional marks, and invisible characters; not emoji joiners.
pub fn is_unprintable(it: char) -> bool {
    is_deceptive(it) && !matches!(it, '\n' | '\t' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// What a verb prints. Odd characters are written as JSON has them (`\u001b`): people see that they are there, and in
/// JSON they stay what they are. The one place for all verbs: names in what they print come from repositories, logs and
/// servers.
pub struct CleanText<W: Write> {
    to: W,
    /// A character that came in part.
    left: Vec<u8>,
}

impl<W: Write> CleanText<W> {
    pub fn new(to: W) -> Self {
        Self { to, left: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        match text.contains(is_unprintable) {
            true => self.to.write_all(escape_text(&text).as_bytes()),
            false => self.to.write_all(text.as_bytes()),
        }
    }
}

impl<W: Write> Write for CleanText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.left);
        all.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&all) {
            Err(it) if it.error_len().is_none() => it.valid_up_to(),
            _ => all.len(),
        };
        self.left = all.split_off(whole);
        self.put(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let left = std::mem::take(&mut self.left);
        self.put(&left)?;
        self.to.flush()
    }
}

/// Odd characters written out.
pub fn escape_text(text: &str) -> String {
    escape_chars(text, is_unprintable)
}

/// The same for a name within a line: it makes no line of its own.
pub fn escape_line(text: &str) -> String {
    escape_chars(text, |it| is_unprintable(it) || matches!(it, '\n' | '\t'))
}

fn escape_chars(text: &str, odd: impl Fn(char) -> bool) -> String {
    let mut res = String::with_capacity(text.len());
    for it in text.chars() {
        match odd(it) {
            true => it.encode_utf16(&mut [0; 2]).iter().for_each(|it| _ = write!(res, "\\u{it:04x}")),
            false => res.push(it),
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{CleanText, Cleaner, clean, clean_line, escape_line};

    #[test]
    fn what_is_odd_is_written_out_wherever_it_is_cut() {
        let text = "a\u{1b}[31m \u{202e}é\t\r\n漢\u{e0041}👩\u{200d}🚀";
        let want = "a\\u001b[31m \\u202eé\t\\u000d\n漢\\udb40\\udc41👩\u{200d}🚀";
        for size in 1..=text.len() {
            let mut out = CleanText::new(Vec::new());
            text.as_bytes().chunks(size).for_each(|it| out.write_all(it).unwrap());
            out.write_all(&[0xe6]).unwrap();
            out.flush().unwrap();
            assert_eq!(String::from_utf8(out.to).unwrap(), format!("{want}\u{fffd}"), "{size}");
        }
        assert_eq!(serde_json::from_str::<String>("\"\\u202e\"").unwrap(), "\u{202e}");
        assert_eq!(escape_line("a\nb"), "a\\u000ab");
    }

    #[test]
    fn takes_out_sequences() {
        for (text, expected) in [
            ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("a\u{1b}Pq#0\u{1b}\\b", "ab"),
            ("a\u{1b}(Bb\u{1b}cc", "abc"),
            ("a\u{9b}2Jb\r\u{8}c", "abc"),
            ("a\u{1b}[12\nb", "a\nb"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn takes_out_sequences_split_anywhere() {
        let text = "a\u{1b}[1;31mb\u{1b}]0;t\u{1b}\\c\u{1b}(Bd";
        let cuts: Vec<usize> = text.char_indices().map(|it| it.0).collect();
        for cut in cuts {
            let (head, tail) = text.split_at(cut);
            let mut cleaner = Cleaner::default();
            assert_eq!(cleaner.clean(head) + &cleaner.clean(tail), "abcd", "{cut}");
        }
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(clean_line("rm\n-rf\u{202e} x\r ", 80), "rm -rf⟨U+202E⟩ x");
        assert_eq!(clean_line("abcdef", 3), "abc…");
    }
}
