//! A file that is handed on as long as it is UTF-8: text in another encoding is to be decoded first.

use std::io::{self, Read};

/// The longest beginning of a character.
const MAX_TAIL: usize = 3;

/// Fails at the first bytes that are no UTF-8, and `is_odd` says so.
pub struct Utf8Reader<R> {
    inner: R,
    /// The beginning of a character whose rest is still to be read.
    tail: Vec<u8>,
    pub is_odd: bool,
}

impl<R: Read> Utf8Reader<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, tail: Vec::with_capacity(MAX_TAIL + 1), is_odd: false }
    }

    /// Tells whether `bytes` go on as UTF-8 behind what was read before.
    fn goes_on(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((first, rest)) = bytes.split_first().filter(|_| !self.tail.is_empty()) {
            self.tail.push(*first);
            bytes = rest;
            match std::str::from_utf8(&self.tail) {
                Ok(_) => self.tail.clear(),
                Err(it) if it.error_len().is_some() => return false,
                Err(_) => (),
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(it) if it.error_len().is_some() => false,
            Err(it) => {
                self.tail.extend(bytes.iter().skip(it.valid_up_to()));
                true
            }
        }
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        let is_end = n == 0 && !buf.is_empty();
        self.is_odd |= if is_end { !self.tail.is_empty() } else { !self.goes_on(buf.get(..n).unwrap_or_default()) };
        if self.is_odd { Err(io::ErrorKind::InvalidData.into()) } else { Ok(n) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::Utf8Reader;

    /// In pieces of any size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(buf.len());
            self.0.read(buf.get_mut(..n).unwrap_or_default())
        }
    }

    #[test]
    fn text_is_told_from_other_bytes_however_it_comes() {
        let euro = "a\u{20ac}\u{1f389}\u{e9}z".as_bytes();
        let cases: [(&[u8], bool); 7] = [
            (b"", true),
            (euro, true),
            (&euro[..3], false),
            (b"caf\xe9 au lait", false),
            (b"\xff\xfea\0", false),
            (b"ab\xed\xa0\x80", false),
            (b"ok\xc3", false),
        ];
        for (bytes, is_text) in cases {
            for size in 1..=bytes.len() + 1 {
                let (mut reader, mut out) = (Utf8Reader::new(Pieces(bytes, size)), Vec::new());
                let read = reader.read_to_end(&mut out);
                assert_eq!((read.is_ok(), reader.is_odd), (is_text, !is_text), "{bytes:?} {size}");
                assert!(!is_text || out == bytes);
            }
        }
    }
}
