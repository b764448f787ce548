//! What a command printed, bounded: the end of it, how much it was, and whether it is text at all.

use std::fmt::Write;

use crate::base::text::tail;

/// How much of the end is kept.
pub const KEPT: usize = 1024 * 1024;
/// A NUL this early says that it is not text.
const SNIFFED: usize = 4096;
pub const BINARY: &str = "[Binary output detected. Halting stream...]";

/// Takes everything, keeps the end.
#[derive(Debug, Default)]
pub struct Output {
    end: String,
    /// In bytes, of everything.
    total: usize,
    binary: bool,
}

impl Output {
    /// Returns what is new for people: nothing more after binary output was detected.
    pub fn push<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let early = SNIFFED.saturating_sub(self.total);
        self.total = self.total.saturating_add(text.len());
        if self.binary {
            return None;
        }
        if text.bytes().take(early).any(|it| it == 0) {
            self.binary = true;
            self.end = String::new();
            return Some(BINARY);
        }
        self.end.push_str(text);
        // Twice as much before it is cut: else every push would move a megabyte.
        if self.end.len() > 2 * KEPT {
            self.end = tail(&self.end, KEPT).to_owned();
        }
        Some(text)
    }

    /// Its end as plain text, at most [`KEPT`] bytes and a note.
    pub fn text(&self) -> String {
        if self.binary {
            return BINARY.to_owned();
        }
        let end = tail(&self.end, KEPT);
        let omitted = self.total - end.len();
        let mut res = String::new();
        if omitted > 0 {
            _ = writeln!(res, "… {omitted} bytes omitted");
        }
        res + settled(&plain(end).0).trim_end()
    }
}

/// `text` without escape sequences and control characters, and the sequence at its end that is not complete yet.
///
/// They would reach terminals that show our updates: colours are no loss, but titles, clipboard and cursor are not
/// a command's to change.
pub fn plain(text: &str) -> (String, &str) {
    let mut res = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, sequence) = rest.split_at(at);
        push_printable(&mut res, before);
        match sequence_len(sequence.as_bytes()) {
            Some(len) => rest = sequence.get(len..).unwrap_or_default(),
            None => return (res, sequence),
        }
    }
    push_printable(&mut res, rest);
    (res, "")
}

fn push_printable(res: &mut String, text: &str) {
    let printable = |it: &char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    match text.chars().all(|it| printable(&it)) {
        true => res.push_str(text),
        false => res.extend(text.chars().filter(printable)),
    }
}

/// Length of the escape sequence that `bytes` begin with (ECMA-48); `None`: it goes on. Ends between characters.
fn sequence_len(bytes: &[u8]) -> Option<usize> {
    /// Nothing serious is longer: an unfinished one must not swallow the rest.
    const LONGEST: usize = 4096;
    let too_long = (bytes.len() > LONGEST).then_some(1);
    match bytes.get(1)? {
        // CSI: parameters and intermediates, then one final byte.
        b'[' => {
            let end = bytes.iter().skip(2).position(|it| !(0x20..=0x3f).contains(it));
            let Some(at) = end.map(|it| it + 2) else { return too_long };
            // Anything else breaks it off and is text again.
            Some(if bytes.get(at).is_some_and(|it| (0x40..=0x7e).contains(it)) { at + 1 } else { at })
        }
        // OSC, DCS, SOS, PM, APC: a string up to BEL or ESC \.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let Some(at) = bytes.iter().skip(2).position(|it| matches!(it, 0x07 | 0x1b)) else { return too_long };
            let at = at + 2;
            match bytes.get(at..) {
                Some([0x07, ..]) => Some(at + 1),
                Some([0x1b, b'\\', ..]) => Some(at + 2),
                Some([0x1b]) => too_long,
                _ => Some(at),
            }
        }
        // Two or three bytes: intermediates, then a final one.
        0x20..=0x2f => bytes.get(2).map(|it| if it.is_ascii() { 3 } else { 2 }),
        0x30..=0x7e => Some(2),
        _ => Some(1),
    }
}

/// Lines that were written over (`\r`, as progress bars do) as they looked at last.
fn settled(text: &str) -> String {
    if !text.contains('\r') {
        return text.to_owned();
    }
    let last = |line: &str| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |it| (it, "\n"));
        let shown = line.rsplit('\r').find(|it| !it.is_empty()).unwrap_or_default();
        format!("{shown}{end}")
    };
    text.split_inclusive('\n').map(last).collect()
}

#[cfg(test)]
mod tests {
    use super::{BINARY, KEPT, Output, plain, settled};

    #[test]
    fn keeps_the_end() {
        let mut output = Output::default();
        for _ in 0..300 {
            assert!(output.push(&"é".repeat(8 * 1024)).is_some());
            assert!(output.end.capacity() <= 8 * KEPT);
        }
        output.push("the end\n");
        let text = output.text();
        assert!(text.len() <= KEPT + 64);
        assert!(text.starts_with("… 38666") && text.ends_with("éthe end"), "{}", &text[..40]);
    }

    #[test]
    fn binary_is_detected_early_only() {
        let mut output = Output::default();
        assert_eq!(output.push("\x7fELF"), Some("\x7fELF"));
        assert_eq!(output.push("\x01\0\0"), Some(BINARY));
        assert_eq!(output.push("more"), None);
        assert_eq!(output.text(), BINARY);
        let mut late = Output::default();
        late.push(&"x".repeat(4096));
        assert!(late.push("\0").is_some());
        assert_eq!(late.text().len(), 4096);
    }

    #[test]
    fn escape_sequences_go() {
        let check = |text: &str, shown: &str, rest: &str| assert_eq!(plain(text), (shown.to_owned(), rest), "{text:?}");
        check("a\x1b[1;31mred\x1b[0m b", "ared b", "");
        check("\x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y", "xy", "");
        check("\x1b(Bx\x1b=y\x1bMz", "xyz", "");
        check("a\x07b\x08c\td\r\n\u{9b}e", "abc\td\r\ne", "");
        check("cut \x1b[3", "cut ", "\x1b[3");
        check("cut \x1b", "cut ", "\x1b");
        check("\x1b[31\nx", "\nx", "");
        check("\x1b[é\x1bé\x1b(é", "ééé", "");
    }

    #[test]
    fn progress_bars_settle() {
        assert_eq!(settled("a\r\nb\n"), "a\nb\n");
        assert_eq!(settled("10%\r50%\r100%\ndone"), "100%\ndone");
        assert_eq!(settled("10%\r"), "10%");
    }
}
