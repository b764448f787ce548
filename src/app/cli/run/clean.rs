//! Model text made safe for a terminal: escape sequences and other controls are taken out.

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
        text.chars().filter(|it| self.keeps(*it)).collect()
    }

    fn keeps(&mut self, it: char) -> bool {
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

/// All of `text` at once.
pub fn clean(text: &str) -> String {
    Cleaner::default().clean(text)
}

/// One line without controls or reordering marks, at most `max` characters: for titles and questions, where a
/// trick of the eye could get something approved.
pub fn clean_line(text: &str, max: usize) -> String {
    let plain: String = clean(text).chars().map(|it| if it.is_whitespace() { ' ' } else { it }).collect();
    let mut res: String = plain.trim().chars().filter(|it| !is_reordering(*it)).take(max + 1).collect();
    if res.chars().count() > max {
        res.pop();
        res.push('…');
    }
    res
}

fn is_plain(it: char) -> bool {
    matches!(it, '\n' | '\t') || !it.is_control()
}

/// Bidirectional controls and the zero-width space and joiner marks.
pub fn is_reordering(it: char) -> bool {
    matches!(it, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{Cleaner, clean, clean_line};

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
        assert_eq!(clean_line("rm\n-rf\u{202e} x ", 80), "rm -rf x");
        assert_eq!(clean_line("abcdef", 3), "abc…");
    }
}
