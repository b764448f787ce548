//! Key decoder: terminal bytes to keys, with escape sequences, UTF-8 and bracketed paste.

use std::mem;

use super::background_answer::{self, MAX_ANSWER};

/// A longer control sequence is none that a keyboard sends.
const MAX_SEQUENCE: usize = 32;
/// The most that one paste gives.
const MAX_PASTE: usize = 1 << 20;
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPress {
    Char(char),
    /// A control key by its letter, such as `u` for Ctrl-U.
    Ctrl(char),
    /// Alt with a character.
    Alt(char),
    Enter,
    /// Shift, Alt or Ctrl with Enter, where the terminal tells it apart.
    LineBreak,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Esc,
    Up,
    Down,
    Left,
    Right,
    /// Ctrl or Alt with an arrow.
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    /// Pasted text: never a command.
    Paste(String),
    /// No key: the terminal says what its background is.
    Background {
        is_light: bool,
    },
}

/// What a terminal sent so far. A key may come in pieces.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    state: DecoderState,
    /// A line feed is Ctrl-J then, and Enter a carriage return.
    is_raw: bool,
    /// The terminal was asked for its background. Else `ESC ]` is a key.
    awaits_background: bool,
}

#[derive(Debug, Default)]
enum DecoderState {
    #[default]
    Ground,
    /// After ESC: the key, or the start of a sequence.
    Escape,
    /// `ESC [` and what followed it.
    Sequence(Vec<u8>),
    /// `ESC O`: one more byte follows.
    Single,
    /// The first bytes of a character.
    Character(Vec<u8>),
    /// Between the marks of a bracketed paste.
    Paste(Vec<u8>),
    /// `ESC ]` and what followed it, and whether its end has begun.
    Answer(Vec<u8>, bool),
}

impl KeyDecoder {
    /// `is_raw`: the system leaves carriage returns as they are.
    pub fn new(is_raw: bool) -> Self {
        Self { is_raw, ..Self::default() }
    }

    /// The terminal was asked, or its answer does not come any more.
    pub fn await_background(&mut self, awaits: bool) {
        self.awaits_background = awaits;
    }

    pub fn awaits_background(&self) -> bool {
        self.awaits_background
    }

    /// Forgets what came in part.
    pub fn reset(&mut self) {
        self.state = DecoderState::Ground;
    }

    pub fn decode(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        let mut keys = Vec::new();
        for byte in bytes {
            self.push(*byte, &mut keys);
        }
        keys
    }

    /// Nothing more came for a while: an escape that stands alone is the key. A paste and an answer stay open.
    pub fn pause(&mut self) -> Option<KeyPress> {
        match self.state {
            DecoderState::Escape => {
                self.state = DecoderState::Ground;
                Some(KeyPress::Esc)
            }
            DecoderState::Paste(_) | DecoderState::Answer(..) => None,
            _ => {
                self.state = DecoderState::Ground;
                None
            }
        }
    }

    /// What has begun has its end still to come, which must not be lost.
    pub fn is_open(&self) -> bool {
        matches!(self.state, DecoderState::Paste(_) | DecoderState::Answer(..))
    }

    fn push(&mut self, byte: u8, keys: &mut Vec<KeyPress>) {
        self.state = match mem::take(&mut self.state) {
            DecoderState::Ground if self.is_raw && byte == b'\n' => {
                keys.push(KeyPress::LineBreak);
                DecoderState::Ground
            }
            DecoderState::Ground => ground(byte, keys),
            DecoderState::Escape => match byte {
                b'[' => DecoderState::Sequence(Vec::new()),
                b'O' => DecoderState::Single,
                b']' if self.awaits_background => DecoderState::Answer(Vec::new(), false),
                0x1b => {
                    keys.push(KeyPress::Esc);
                    DecoderState::Escape
                }
                b'\r' | b'\n' => {
                    keys.push(KeyPress::LineBreak);
                    DecoderState::Ground
                }
                0x08 | 0x7f => {
                    keys.push(KeyPress::Ctrl('w'));
                    DecoderState::Ground
                }
                // Least of all it means the key alone.
                b' '..=b'~' => {
                    keys.push(KeyPress::Alt(char::from(byte)));
                    DecoderState::Ground
                }
                _ => DecoderState::Ground,
            },
            DecoderState::Single => {
                keys.extend(letter_key(byte));
                DecoderState::Ground
            }
            DecoderState::Sequence(parameters) => sequence(parameters, byte, keys),
            DecoderState::Character(bytes) => character(bytes, byte, keys),
            DecoderState::Paste(text) => paste(text, byte, keys),
            DecoderState::Answer(bytes, is_ending) => self.answer(bytes, is_ending, byte, keys),
        };
    }

    /// It ends with BEL or `ESC \`.
    fn answer(&mut self, mut bytes: Vec<u8>, is_ending: bool, byte: u8, keys: &mut Vec<KeyPress>) -> DecoderState {
        match byte {
            0x1b => DecoderState::Answer(bytes, true),
            0x07 | b'\\' if is_ending || byte == 0x07 => {
                self.awaits_background = false;
                keys.extend(background_answer::is_light(&bytes).map(|is_light| KeyPress::Background { is_light }));
                DecoderState::Ground
            }
            // Nothing that was asked for is so long.
            _ if is_ending || bytes.len() == MAX_ANSWER => {
                self.awaits_background = false;
                DecoderState::Ground
            }
            it => {
                bytes.push(it);
                DecoderState::Answer(bytes, false)
            }
        }
    }
}

fn ground(byte: u8, keys: &mut Vec<KeyPress>) -> DecoderState {
    match byte {
        0x1b => return DecoderState::Escape,
        b'\r' | b'\n' => keys.push(KeyPress::Enter),
        b'\t' => keys.push(KeyPress::Tab),
        0x08 | 0x7f => keys.push(KeyPress::Backspace),
        0 => (),
        0x01..=0x1a => keys.push(KeyPress::Ctrl(char::from(byte - 1 + b'a'))),
        b' '..=b'~' => keys.push(KeyPress::Char(char::from(byte))),
        0xc2..=0xf4 => return DecoderState::Character(vec![byte]),
        _ => (),
    }
    DecoderState::Ground
}

fn character(mut bytes: Vec<u8>, byte: u8, keys: &mut Vec<KeyPress>) -> DecoderState {
    if !(0x80..=0xbf).contains(&byte) {
        // It broke off here.
        return ground(byte, keys);
    }
    bytes.push(byte);
    match std::str::from_utf8(&bytes) {
        Ok(text) => {
            keys.extend(text.chars().filter(|it| !it.is_control()).map(KeyPress::Char));
            DecoderState::Ground
        }
        Err(error) if error.error_len().is_none() => DecoderState::Character(bytes),
        Err(_) => DecoderState::Ground,
    }
}

fn sequence(mut parameters: Vec<u8>, byte: u8, keys: &mut Vec<KeyPress>) -> DecoderState {
    match byte {
        0x1b => DecoderState::Escape,
        b' '..=b'?' => {
            if parameters.len() < MAX_SEQUENCE {
                parameters.push(byte);
            }
            DecoderState::Sequence(parameters)
        }
        b'~' if parameters == b"200" => DecoderState::Paste(Vec::new()),
        b'~' => {
            keys.extend(number_key(&parameters));
            DecoderState::Ground
        }
        b'u' => {
            keys.extend(code_key(&parameters));
            DecoderState::Ground
        }
        b'@'..=b'}' => {
            keys.extend(word_key(&parameters, byte).or_else(|| letter_key(byte)));
            DecoderState::Ground
        }
        _ => DecoderState::Ground,
    }
}

fn paste(mut text: Vec<u8>, byte: u8, keys: &mut Vec<KeyPress>) -> DecoderState {
    text.push(byte);
    if text.ends_with(PASTE_END) {
        text.truncate(text.len() - PASTE_END.len());
        text.truncate(MAX_PASTE);
        keys.push(KeyPress::Paste(String::from_utf8_lossy(&text).into_owned()));
        return DecoderState::Ground;
    }
    // The end of a paste that is too long is looked for in the last bytes only.
    if text.len() > MAX_PASTE + 2 * PASTE_END.len() {
        text.drain(MAX_PASTE..=MAX_PASTE + PASTE_END.len());
    }
    DecoderState::Paste(text)
}

fn letter_key(byte: u8) -> Option<KeyPress> {
    Some(match byte {
        b'A' => KeyPress::Up,
        b'B' => KeyPress::Down,
        b'C' => KeyPress::Right,
        b'D' => KeyPress::Left,
        b'H' => KeyPress::Home,
        b'F' => KeyPress::End,
        b'M' => KeyPress::Enter,
        b'Z' => KeyPress::BackTab,
        _ => return None,
    })
}

/// Arrows with a key held: it stands behind a semicolon as one and the sum of Shift 1, Alt 2 and Ctrl 4.
fn word_key(parameters: &[u8], byte: u8) -> Option<KeyPress> {
    match (byte, read_modifiers(parameters)) {
        (b'C', 2..) => Some(KeyPress::WordRight),
        (b'D', 2..) => Some(KeyPress::WordLeft),
        _ => None,
    }
}

fn read_modifiers(parameters: &[u8]) -> u8 {
    let number = parameters.split(|it| *it == b';').nth(1).and_then(|it| it.split(|it| *it == b':').next());
    let number = number.and_then(|it| std::str::from_utf8(it).ok()?.parse::<u8>().ok());
    number.unwrap_or(1).saturating_sub(1)
}

/// Keys as their character's number, of terminals that tell all of them apart.
fn code_key(parameters: &[u8]) -> Option<KeyPress> {
    let number = parameters.split(|it| matches!(*it, b';' | b':')).next()?;
    let code = char::from_u32(std::str::from_utf8(number).ok()?.parse().ok()?)?;
    let modifiers = read_modifiers(parameters);
    Some(match code {
        '\u{1b}' => KeyPress::Esc,
        '\r' if modifiers > 0 => KeyPress::LineBreak,
        '\r' => KeyPress::Enter,
        '\t' if modifiers & 1 > 0 => KeyPress::BackTab,
        '\t' => KeyPress::Tab,
        '\u{7f}' if modifiers > 1 => KeyPress::Ctrl('w'),
        '\u{7f}' | '\u{8}' => KeyPress::Backspace,
        it if it.is_control() || ('\u{e000}'..='\u{f8ff}').contains(&it) => return None,
        it if modifiers & 4 > 0 => KeyPress::Ctrl(it.to_ascii_lowercase()),
        it if modifiers & 2 > 0 => KeyPress::Alt(it),
        it => KeyPress::Char(it),
    })
}

fn number_key(parameters: &[u8]) -> Option<KeyPress> {
    let number = parameters.split(|it| *it == b';').next()?;
    Some(match number {
        b"1" | b"7" => KeyPress::Home,
        b"4" | b"8" => KeyPress::End,
        b"3" => KeyPress::Delete,
        b"5" => KeyPress::PageUp,
        b"6" => KeyPress::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{KeyDecoder, KeyPress, MAX_PASTE, PASTE_END};

    fn decode(bytes: &[u8]) -> Vec<KeyPress> {
        let mut decoder = KeyDecoder::default();
        let mut keys = decoder.decode(bytes);
        keys.extend(decoder.pause());
        keys
    }

    fn paste(text: &str) -> KeyPress {
        KeyPress::Paste(text.to_owned())
    }

    fn table() -> Vec<(&'static [u8], Vec<KeyPress>)> {
        vec![
            (b"yN 1", vec![KeyPress::Char('y'), KeyPress::Char('N'), KeyPress::Char(' '), KeyPress::Char('1')]),
            ("é漢🚀".as_bytes(), vec![KeyPress::Char('é'), KeyPress::Char('漢'), KeyPress::Char('🚀')]),
            (
                b"\r\n\t\x7f\x08",
                vec![KeyPress::Enter, KeyPress::Enter, KeyPress::Tab, KeyPress::Backspace, KeyPress::Backspace],
            ),
            (b"\x15\x17\x04\x00", vec![KeyPress::Ctrl('u'), KeyPress::Ctrl('w'), KeyPress::Ctrl('d')]),
            (b"\x1b", vec![KeyPress::Esc]),
            (b"\x1b\x1b", vec![KeyPress::Esc, KeyPress::Esc]),
            (b"\x1by\x1b\r\x1b\x7f", vec![KeyPress::Alt('y'), KeyPress::LineBreak, KeyPress::Ctrl('w')]),
            (b"\x1b[1;5C\x1b[1;3D\x1b[13;2u", vec![KeyPress::WordRight, KeyPress::WordLeft, KeyPress::LineBreak]),
            (b"\x1b[27u\x1b[99;5u\x1b[97;3u\x1b[57441u", vec![KeyPress::Esc, KeyPress::Ctrl('c'), KeyPress::Alt('a')]),
            (b"\x1b[A\x1b[B\x1b[C\x1b[D", vec![KeyPress::Up, KeyPress::Down, KeyPress::Right, KeyPress::Left]),
            (b"\x1bOA\x1bOH\x1b[1;5A", vec![KeyPress::Up, KeyPress::Home, KeyPress::Up]),
            (
                b"\x1b[5~\x1b[6~\x1b[3~\x1b[Z",
                vec![KeyPress::PageUp, KeyPress::PageDown, KeyPress::Delete, KeyPress::BackTab],
            ),
            (b"\x1b[15~\x1b[?1;2cy", vec![KeyPress::Char('y')]),
            (b"\x1b[200~y\nn\x1b[A\x1b[201~x", vec![paste("y\nn\u{1b}[A"), KeyPress::Char('x')]),
            (b"\xc3y\xffz\xed\xa0\x80", vec![KeyPress::Char('y'), KeyPress::Char('z')]),
            ("\u{9b}y".as_bytes(), vec![KeyPress::Char('y')]),
        ]
    }

    #[test]
    fn the_answer_of_the_terminal_is_no_text() {
        let light = |is_light| KeyPress::Background { is_light };
        for (bytes, expected) in [
            (&b"a\x1b]11;rgb:ffff/ffff/ffff\x07b"[..], vec![KeyPress::Char('a'), light(true), KeyPress::Char('b')]),
            (b"\x1b]11;rgb:00/00/00\x1b\\\x1b]", vec![light(false), KeyPress::Alt(']')]),
            (b"\x1b]52;c;x\x07y", vec![KeyPress::Char('y')]),
        ] {
            for cut in 0..=bytes.len() {
                let mut decoder = KeyDecoder::default();
                decoder.await_background(true);
                let mut keys = decoder.decode(&bytes[..cut]);
                // In the midst of it nothing is taken for a key.
                keys.extend(decoder.is_open().then(|| decoder.pause()).flatten());
                keys.extend(decoder.decode(&bytes[cut..]));
                assert_eq!(keys, expected, "{} at {cut}", bytes.escape_ascii());
            }
        }
        let mut decoder = KeyDecoder::default();
        decoder.await_background(true);
        assert_eq!(
            decoder.decode(&[b"\x1b]".as_slice(), &[b'x'; 100]].concat()).len(),
            35,
            "what has no end is dropped"
        );
        assert_eq!(decode(b"\x1b]1"), [KeyPress::Alt(']'), KeyPress::Char('1')], "nobody asked");
    }

    #[test]
    fn bytes_give_keys_wherever_they_are_cut() {
        for (bytes, expected) in table() {
            assert_eq!(decode(bytes), expected, "{}", bytes.escape_ascii());
            for cut in 0..=bytes.len() {
                let mut decoder = KeyDecoder::default();
                let mut keys = decoder.decode(&bytes[..cut]);
                keys.extend(decoder.decode(&bytes[cut..]));
                keys.extend(decoder.pause());
                assert_eq!(keys, expected, "{} at {cut}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn an_open_paste_gives_no_keys() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.decode(b"\x1b[200~yyy"), []);
        assert!(decoder.is_open() && decoder.pause().is_none() && decoder.is_open());
        assert_eq!(decoder.decode(b"y\x1b[201~"), [paste("yyyy")]);
        let long = [b"\x1b[200~".as_slice(), &vec![b'a'; 3 * MAX_PASTE], PASTE_END, b"n"].concat();
        assert_eq!(decoder.decode(&long), [paste(&"a".repeat(MAX_PASTE)), KeyPress::Char('n')]);
    }

    /// Whatever comes, in whatever pieces: the same keys, no controls among them, and the decoder finds back.
    #[test]
    fn any_bytes_give_the_same_keys_in_any_pieces() {
        let alphabet: Vec<&[u8]> =
            table().iter().map(|it| it.0).chain([&b"\x1b["[..], b"\x1bO", b"\xf0\x9f"]).collect();
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        for _ in 0..2_000 {
            let mut bytes = Vec::new();
            for _ in 0..random(12) {
                match random(3) {
                    0 => bytes.push(u8::try_from(random(256)).unwrap()),
                    _ => bytes.extend_from_slice(alphabet[random(alphabet.len())]),
                }
            }
            let (mut whole, mut pieces) = (KeyDecoder::default(), KeyDecoder::default());
            let expected = whole.decode(&bytes);
            let (mut keys, mut rest) = (Vec::new(), bytes.as_slice());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(1 + random(rest.len()));
                keys.extend(pieces.decode(piece));
                rest = more;
            }
            assert_eq!(keys, expected, "{}", bytes.escape_ascii());
            assert!(!keys.iter().any(|it| matches!(it, KeyPress::Char(it) if it.is_control())));
            // Out of a paste and of any sequence, a key is a key again.
            whole.decode(PASTE_END);
            whole.pause();
            assert_eq!(whole.decode(b"q"), [KeyPress::Char('q')], "{}", bytes.escape_ascii());
        }
    }
}
