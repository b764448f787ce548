//! The chain of a log: each line ends with a checksum, and names that of the line before.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as TEXT};
use sha2::{Digest, Sha256};

/// The checksum of a line: the beginning of its hash, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineSum([u8; LETTERS]);

/// Eight bytes.
const BYTES: usize = 8;
const LETTERS: usize = 11;
const KEY: &str = r#","sum":""#;
const END: &str = r#""}"#;

/// What a line says of itself and of the line before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    pub before: LineSum,
    pub own: LineSum,
    /// The line is what its sum says.
    pub is_sound: bool,
}

impl Default for LineSum {
    /// Of what is before the first line.
    fn default() -> Self {
        Self([b'A'; LETTERS])
    }
}

impl LineSum {
    fn of(hash: Sha256) -> Self {
        let (mut letters, digest) = ([b'A'; LETTERS], hash.finalize());
        // Eight bytes are eleven letters.
        _ = TEXT.encode_slice(digest.split_at(BYTES).0, &mut letters);
        Self(letters)
    }

    /// Of a line that has no sum, of an older castor: as if it had one.
    pub fn of_unsealed(before: Self, line: &[u8]) -> Self {
        Self::of(Sha256::new().chain_update(before.0).chain_update(line))
    }
}

/// Ends the JSON object at the end of `lines` with its sum. It begins at `start`.
pub fn seal(lines: &mut Vec<u8>, start: usize, before: LineSum) -> LineSum {
    // Its brace.
    lines.pop();
    lines.extend_from_slice(KEY.as_bytes());
    lines.extend_from_slice(&before.0);
    let own = LineSum::of(Sha256::new_with_prefix(lines.get(start..).unwrap_or_default()));
    lines.extend_from_slice(&own.0);
    lines.extend_from_slice(END.as_bytes());
    own
}

/// `None`: it has none.
pub fn read_seal(line: &[u8]) -> Option<Seal> {
    let (rest, own) = line.strip_suffix(END.as_bytes())?.split_last_chunk::<LETTERS>()?;
    let (head, before) = rest.split_last_chunk::<LETTERS>()?;
    head.strip_suffix(KEY.as_bytes())?;
    let (before, own) = (LineSum(*before), LineSum(*own));
    Some(Seal { before, own, is_sound: LineSum::of(Sha256::new_with_prefix(rest)) == own })
}

/// The object that was sealed; `None`: it has no sum.
pub fn without_seal(line: &[u8]) -> Option<Vec<u8>> {
    let (head, _) = split(line)?;
    Some([head, b"}"].concat())
}

/// What is before the sums, and the sums.
fn split(line: &[u8]) -> Option<(&[u8], &[u8; 2 * LETTERS])> {
    let (head, sums) = line.strip_suffix(END.as_bytes())?.split_last_chunk()?;
    Some((head.strip_suffix(KEY.as_bytes())?, sums))
}

/// A line without its sums, and the sums, for a store that has a column for them.
#[cfg(any(test, feature = "postgres"))]
pub fn split_seal(line: &str) -> (std::borrow::Cow<'_, str>, Option<&str>) {
    let parts = || {
        let (head, sums) = split(line.as_bytes())?;
        Some((str::from_utf8(head).ok()?, str::from_utf8(sums).ok()?))
    };
    match parts() {
        Some((head, sums)) => (format!("{head}}}").into(), Some(sums)),
        None => (line.into(), None),
    }
}

/// The line that was split so.
#[cfg(any(test, feature = "postgres"))]
pub fn join_seal(line: &str, sums: Option<&str>) -> String {
    match (sums, line.strip_suffix('}')) {
        (Some(sums), Some(head)) => [head, KEY, sums, END].concat(),
        _ => line.to_owned(),
    }
}

/// A power cut may leave zeros where a line was to be; the next line then follows them.
pub fn without_nul(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|it| *it != 0).unwrap_or(line.len());
    line.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{LineSum, join_seal, read_seal, seal, split_seal};

    #[test]
    fn a_sealed_line_is_json_that_shows_each_change() {
        let mut lines = b"before\n".to_vec();
        let start = lines.len();
        lines.extend_from_slice(br#"{"at":1,"fact":"cleared"}"#);
        let first = LineSum::of_unsealed(LineSum::default(), b"x");
        let own = seal(&mut lines, start, first);
        let line = lines.split_off(start);
        assert_eq!(lines, b"before\n");
        let read = read_seal(&line).unwrap();
        assert!(read.is_sound && read.own == own && read.before == first);
        let value: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&value["at"], value["sum"].as_str().unwrap().len()), (&1.into(), 22));
        for at in 0..line.len() {
            let mut other = line.clone();
            other[at] ^= 1;
            assert!(read_seal(&other).is_none_or(|it| !it.is_sound), "{at}");
        }
        let text = str::from_utf8(&line).unwrap();
        let (bare, sums) = split_seal(text);
        assert_eq!((&*bare, sums.unwrap().len()), (r#"{"at":1,"fact":"cleared"}"#, 22));
        assert_eq!(join_seal(&bare, sums), text);
        for odd in ["", "x", "{}", r#"{"sum":""}"#, "ü".repeat(30).as_str()] {
            let (bare, sums) = split_seal(odd);
            assert_eq!((join_seal(&bare, sums).as_str(), sums), (odd, None));
        }
    }
}
