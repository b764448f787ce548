//! Paths as text: bytes that are no UTF-8 are marked, so that the text reads back to the same path.
//!
//! Logs, clients and models get paths as text. A byte that is no UTF-8 is `\xHH`; a backslash that could be taken for the
//! beginning of such a mark is marked itself, as `\x5c`. All other paths are their own text.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The path as text.
#[cfg(unix)]
pub fn to_text(path: &Path) -> Cow<'_, str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if let Some(text) = path.to_str().filter(|_| !bytes.windows(MARK_LEN).any(is_mark)) {
        return text.into();
    }
    let (mut res, mut at) = (String::new(), bytes);
    while !at.is_empty() {
        let chunk = at.utf8_chunks().next();
        let (valid, invalid) = chunk.map_or(("", at), |it| (it.valid(), it.invalid()));
        for (n, it) in valid.char_indices() {
            match at.get(n..n + MARK_LEN).is_some_and(is_mark) {
                true => push_mark(&mut res, b'\\'),
                false => res.push(it),
            }
        }
        invalid.iter().for_each(|it| push_mark(&mut res, *it));
        at = at.get(valid.len() + invalid.len()..).unwrap_or_default();
    }
    res.into()
}

/// The path that [`to_text`] made this text of.
#[cfg(unix)]
pub fn from_text(text: &str) -> Cow<'_, Path> {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let mut at = text.as_bytes();
    if !at.windows(MARK_LEN).any(is_mark) {
        return Path::new(text).into();
    }
    let mut res = Vec::with_capacity(at.len());
    while let Some((first, rest)) = at.split_first() {
        match at.get(..MARK_LEN).and_then(read_mark) {
            Some(it) => {
                res.push(it);
                at = at.get(MARK_LEN..).unwrap_or_default();
            }
            None => {
                res.push(*first);
                at = rest;
            }
        }
    }
    PathBuf::from(OsString::from_vec(res)).into()
}

#[cfg(not(unix))]
pub fn to_text(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

#[cfg(not(unix))]
pub fn from_text(text: &str) -> Cow<'_, Path> {
    Path::new(text).into()
}

/// `\xHH`.
#[cfg(unix)]
const MARK_LEN: usize = 4;

#[cfg(unix)]
fn is_mark(bytes: &[u8]) -> bool {
    read_mark(bytes).is_some()
}

/// The byte that a mark stands for: one that is no ASCII, or the backslash. So no mark hides a separator.
#[cfg(unix)]
fn read_mark(bytes: &[u8]) -> Option<u8> {
    let &[b'\\', b'x', high, low] = bytes else { return None };
    let digit = |it: u8| char::from(it).to_digit(16).filter(|_| !it.is_ascii_uppercase());
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (byte >= 0x80 || byte == b'\\').then_some(byte)
}

#[cfg(unix)]
fn push_mark(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    for half in [byte >> 4, byte & 15] {
        text.extend(DIGITS.get(usize::from(half)).map(|it| char::from(*it)));
    }
}

/// A field that is a path, as text.
///
/// # Errors
/// Those of `to`.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&to_text(path))
}

/// What [`serialize`] wrote.
///
/// # Errors
/// Those of `from`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(from_text(&String::deserialize(from)?).into_owned())
}

/// A field with several paths.
pub mod all {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, from_text, to_text};

    /// # Errors
    /// Those of `to`.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|it| to_text(it)))
    }

    /// # Errors
    /// Those of `from`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Ok(texts.iter().map(|it| from_text(it).into_owned()).collect())
    }
}

/// A field with a path or none.
pub mod maybe {
    use super::{Deserialize, Deserializer, PathBuf, Serialize, Serializer, from_text, to_text};

    /// # Errors
    /// Those of `to`.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(to_text).serialize(to)
    }

    /// # Errors
    /// Those of `from`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(|it| from_text(&it).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

    use super::{from_text, to_text};

    #[test]
    fn paths_are_text_that_reads_back() {
        let check = |bytes: &[u8], text: &str| {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(to_text(path), text);
            assert_eq!(from_text(text).as_os_str().as_bytes(), bytes, "{text}");
        };
        check(b"/w/a.txt", "/w/a.txt");
        check("/w/r\u{e9}sum\u{e9}/\u{6e2c}".as_bytes(), "/w/r\u{e9}sum\u{e9}/\u{6e2c}");
        check(b"/w/bad\xff.txt", "/w/bad\\xff.txt");
        check(b"/w/\xb2\xe2\xca\xd4.c", "/w/\\xb2\\xe2\\xca\\xd4.c");
        // The head of a character, its end cut off.
        check(b"/w/\xe6\xb8", "/w/\\xe6\\xb8");
        check(b"\xed\xa0\x80", "\\xed\\xa0\\x80");
        // What only looks like a mark.
        check(b"/w/\\xff", "/w/\\x5cxff");
        check(b"/w/\\x5cxff", "/w/\\x5cx5cxff");
        check(b"/w/\\\\xff\xff", "/w/\\\\x5cxff\\xff");
        check(b"/w/\\x\xff", "/w/\\x\\xff");
        check(b"/w/\\xf\xff", "/w/\\xf\\xff");
        check(b"C:\\x41\\xFF\\n", "C:\\x41\\xFF\\n");
        check(b"\\", "\\");
        check(b"", "");
    }

    /// No two paths have one text, whatever their bytes: all names of three pieces that could meet.
    #[test]
    fn every_path_has_a_text_of_its_own() {
        let pieces: [&[u8]; 10] = [b"\\", b"x", b"f", b"5", b"c", b"\xff", b"\xc3", b"\xa9", b"\\x5c", b"\\xff"];
        let mut seen = std::collections::BTreeMap::new();
        let mut names = vec![Vec::new()];
        for _ in 0..4 {
            names = names.iter().flat_map(|it| pieces.map(|piece| [it.as_slice(), piece].concat())).collect();
            for bytes in &names {
                let path = Path::new(OsStr::from_bytes(bytes));
                let text = to_text(path).into_owned();
                assert_eq!(from_text(&text), path);
                assert_eq!(seen.entry(text).or_insert_with(|| bytes.clone()), bytes);
            }
        }
    }
}
