//! Captured output of a command: bounded, with detection of binary data.

use std::fmt::Write;

use castor_base::{ansi::plain, text::tail};

/// How much of the end is kept.
pub const MAX_BYTES: usize = 1024 * 1024;
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
        if self.end.len() > 2 * MAX_BYTES {
            self.end = tail(&self.end, MAX_BYTES).to_owned();
        }
        Some(text)
    }

    /// Its end as plain text, at most [`MAX_BYTES`] bytes and a note.
    pub fn text(&self) -> String {
        if self.binary {
            return BINARY.to_owned();
        }
        let end = tail(&self.end, MAX_BYTES);
        let omitted = self.total - end.len();
        let mut res = String::new();
        if omitted > 0 {
            _ = writeln!(res, "… {omitted} bytes omitted");
        }
        res + collapse_overwrites(&plain(end).0).trim_end()
    }
}

/// Lines that were written over (`\r`, as progress bars do) as they looked at last.
fn collapse_overwrites(text: &str) -> String {
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
    use super::{BINARY, MAX_BYTES, Output, collapse_overwrites};

    #[test]
    fn keeps_the_end() {
        let mut output = Output::default();
        for _ in 0..300 {
            assert!(output.push(&"é".repeat(8 * 1024)).is_some());
            assert!(output.end.capacity() <= 8 * MAX_BYTES);
        }
        output.push("the end\n");
        let text = output.text();
        assert!(text.len() <= MAX_BYTES + 64);
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
    fn progress_bars_settle() {
        assert_eq!(collapse_overwrites("a\r\nb\n"), "a\nb\n");
        assert_eq!(collapse_overwrites("10%\r50%\r100%\ndone"), "100%\ndone");
        assert_eq!(collapse_overwrites("10%\r"), "10%");
    }
}
