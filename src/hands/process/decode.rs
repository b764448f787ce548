//! Decoder from bytes to text: lossy UTF-8, with split characters kept whole.

use std::str::from_utf8;

/// Decodes a stream piece by piece. Holds back at most three bytes.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// The text of what was held back and `bytes`, up to a character that is not complete yet.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut joined = std::mem::take(&mut self.held);
        let input = match joined.is_empty() {
            true => bytes,
            false => {
                joined.extend_from_slice(bytes);
                joined.as_slice()
            }
        };
        if let Ok(text) = from_utf8(input) {
            return text.to_owned();
        }
        let mut res = String::with_capacity(input.len());
        let mut chunks = input.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            res.push_str(chunk.valid());
            let bad = chunk.invalid();
            if bad.is_empty() {
                continue;
            }
            // Only at the very end can a beginning still become a character.
            match chunks.peek().is_none() && is_beginning(bad) {
                true => self.held = bad.to_vec(),
                false => res.push(char::REPLACEMENT_CHARACTER),
            }
        }
        res
    }

    /// What remains at the end of the stream.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        if rest.is_empty() { String::new() } else { char::REPLACEMENT_CHARACTER.to_string() }
    }
}

fn is_beginning(bytes: &[u8]) -> bool {
    from_utf8(bytes).is_err_and(|it| it.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::Utf8Decoder;

    #[test]
    fn every_split_gives_the_same_text() {
        let bytes = b"a\xc3\xb1\xe2\x82\xac\xf0\x9f\xa6\xabz\xff\xe2\x82A\xe2\x82";
        let whole = String::from_utf8_lossy(bytes);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut decoder = Utf8Decoder::default();
                let mut text = decoder.push(&bytes[..first]);
                text += &decoder.push(&bytes[first..second]);
                text += &decoder.push(&bytes[second..]);
                text += &decoder.finish();
                assert_eq!(text, whole, "split at {first} and {second}");
            }
        }
    }
}
