//! Framing: bytes in, lines out, however they are split; a line has 32 MiB, which bounds the largest image that a client may send.
//!
//! An image in a prompt is sent in base64. Nothing else limits a client's message.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Longest line, in bytes before its newline. What is longer is not kept.
pub const MAX_LINE: usize = 32 << 20;

/// A larger buffer is freed with the line that needed it, in bytes.
const KEPT_CAPACITY: usize = 256 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line, or the fact that there was one too long to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Never blank; without its line ending and without a byte order mark.
    Line(Bytes),
    /// Said once for a line; the next frame is the next line.
    TooLong,
}

/// Cuts a stream of bytes into lines. Push, then pull until `None`: what was not pulled is what it holds.
#[derive(Debug)]
pub struct Framer {
    buf: BytesMut,
    /// No newline before this offset.
    scanned: usize,
    /// Within a line that was too long: everything up to its newline goes.
    skipping: bool,
    max: usize,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl Framer {
    /// `max` as in [`MAX_LINE`].
    pub fn new(max: usize) -> Self {
        Self { buf: BytesMut::new(), scanned: 0, skipping: false, max }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = match self.skipping {
            true => self.after_skipped(bytes),
            false => bytes,
        };
        self.buf.extend_from_slice(bytes);
    }

    /// Bytes of lines that were not pulled yet.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// The next complete line; `None`: push more.
    #[allow(clippy::should_implement_trait, reason = "None is not the end")]
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let Some(at) = self.newline() else {
                return self.overflow();
            };
            let line = self.take(at);
            if line.len() > self.max {
                return Some(Frame::TooLong);
            }
            if let Some(line) = clean(line) {
                return Some(Frame::Line(line));
            }
        }
    }

    /// At the end of input: the last line, if it has no newline. Pull everything else first.
    pub fn finish(&mut self) -> Option<Frame> {
        let rest = std::mem::take(&mut self.buf).freeze();
        self.scanned = 0;
        self.skipping = false;
        clean(rest).map(Frame::Line)
    }

    /// What of `bytes` lies behind the newline that ends the skipped line.
    fn after_skipped<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr(b'\n', bytes) else {
            return &[];
        };
        self.skipping = false;
        bytes.get(at + 1..).unwrap_or_default()
    }

    fn newline(&mut self) -> Option<usize> {
        let fresh = self.buf.get(self.scanned..).unwrap_or_default();
        match memchr(b'\n', fresh) {
            Some(at) => Some(self.scanned + at),
            None => {
                self.scanned = self.buf.len();
                None
            }
        }
    }

    fn overflow(&mut self) -> Option<Frame> {
        if self.buf.len() <= self.max {
            return None;
        }
        self.buf = BytesMut::new();
        self.scanned = 0;
        self.skipping = true;
        Some(Frame::TooLong)
    }

    /// Splits off the line that ends before the newline at `at`.
    fn take(&mut self, at: usize) -> Bytes {
        let mut line = self.buf.split_to(at + 1);
        line.truncate(at);
        self.scanned = 0;
        if at > KEPT_CAPACITY {
            // The buffer would otherwise be used again and stay as large as the largest line ever was.
            self.buf = BytesMut::from(self.buf.as_ref());
        }
        line.freeze()
    }
}

/// The line without mark and carriage return; `None` when it is blank.
fn clean(mut line: Bytes) -> Option<Bytes> {
    if line.starts_with(BYTE_ORDER_MARK) {
        line = line.slice(BYTE_ORDER_MARK.len()..);
    }
    if line.ends_with(b"\r") {
        line.truncate(line.len() - 1);
    }
    (!line.trim_ascii().is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::{Frame, Framer};

    const MAX: usize = 16;

    /// Frames of `chunks`, one a line: `<text>`, or `!` for one too long.
    fn frames<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut framer = Framer::new(MAX);
        let mut res = String::new();
        let mut tell = |frame| match frame {
            Frame::Line(line) => res += &format!("<{}>\n", String::from_utf8_lossy(&line)),
            Frame::TooLong => res += "!\n",
        };
        for chunk in chunks {
            framer.push(chunk);
            while let Some(frame) = framer.next() {
                tell(frame);
            }
            assert!(framer.buf.len() <= MAX, "holds more than a line");
        }
        framer.finish().map(&mut tell);
        assert_eq!(framer.finish(), None);
        res
    }

    /// Whole, and cut in two at every place, and byte by byte.
    fn check(input: &[u8], expected: &str) {
        assert_eq!(frames([input]), expected, "{input:?}");
        for at in 0..=input.len() {
            let (head, tail) = input.split_at(at);
            assert_eq!(frames([head, tail]), expected, "{input:?} cut at {at}");
        }
        assert_eq!(frames(input.chunks(1)), expected, "{input:?} byte by byte");
    }

    /// Covers CRLF, blank lines and the byte order mark.
    #[test]
    fn cuts_lines_at_every_split() {
        check(b"", "");
        check(b"a\n", "<a>\n");
        check(b"a\nb", "<a>\n<b>\n");
        check(b"{\"a\":1}\r\n\r\n \t\r\n\n{}\n", "<{\"a\":1}>\n<{}>\n");
        check(b"\xef\xbb\xbfa\n\xef\xbb\xbf\n\xef\xbb\xbfb\r\nc\xef\xbb\xbf\n", "<a>\n<b>\n<c\u{feff}>\n");
        check(b"a\rb\n\r", "<a\rb>\n");
        check("é\n→".as_bytes(), "<é>\n<→>\n");
    }

    /// Lines have at most 32 MiB; a longer one is one error.
    #[test]
    fn says_too_long_once_and_goes_on() {
        check(b"0123456789abcdef\nx\n", "<0123456789abcdef>\n<x>\n");
        check(b"0123456789abcdefg\nx\n", "!\n<x>\n");
        check(b"0123456789abcdefg0123456789abcdefg0123456789abcdefg\n\nx", "!\n<x>\n");
        check(b"0123456789abcdefg\n0123456789abcdefg\ny\n", "!\n!\n<y>\n");
        check(b"x\n0123456789abcdefg0123456789", "<x>\n!\n");
    }

    #[test]
    fn random_splits_change_nothing() {
        let mut seed = 7_u64;
        let mut dice = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..2000 {
            let input: Vec<u8> = (0..dice(120)).map(|_| b"ab \xef\xbb\xbf\r\n\n{\"\\"[dice(11)]).collect();
            let whole = frames([&input[..]]);
            let mut chunks = Vec::new();
            let mut rest = &input[..];
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(1 + dice(rest.len().min(40)));
                chunks.push(head);
                rest = tail;
            }
            assert_eq!(frames(chunks), whole, "{input:?}");
        }
    }

    #[test]
    fn gives_the_memory_of_a_huge_line_back() {
        let mut framer = Framer::default();
        for _ in 0..64 {
            framer.push(&[b'x'; 64 << 10]);
            assert_eq!(framer.next(), None);
        }
        framer.push(b"\nrest");
        assert!(matches!(framer.next(), Some(Frame::Line(line)) if line.len() == 4 << 20));
        assert!(framer.buf.capacity() < 64 << 10);
        framer.push(b"\n");
        assert_eq!(framer.next(), Some(Frame::Line("rest".into())));
    }
}
