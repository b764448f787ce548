//! JSON text as other programs write it: with halves of surrogate pairs, or bytes that are no UTF-8. serde_json takes neither.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Stands before a half that was marked. Unicode promises that it is no character; the half follows in private use.
const MARK: char = '\u{ffff}';
const FIRST_HALF: u16 = 0xd800;
/// Where marked halves lie: U+D800 becomes this one.
const FIRST_MARKED: u16 = 0xe000;

/// The text, with U+FFFD for a half pair and for bytes that are no UTF-8.
pub fn readable(json: &[u8]) -> Cow<'_, str> {
    rewrite(json, |_, out| out.push_str("\\ufffd"))
}

/// The same, but a half pair is marked: [`HalfJoiner`] joins it with the piece that has the other half.
pub fn mark_halves(json: &[u8]) -> Cow<'_, str> {
    rewrite(json, |half, out| *out += &format!("\\uffff\\u{:04x}", half - FIRST_HALF + FIRST_MARKED))
}

/// Whether a text that was read has halves in it.
pub fn has_halves(text: &str) -> bool {
    text.contains(MARK)
}

/// A text that comes in pieces: halves that meet become the character, others U+FFFD.
#[derive(Debug, Default)]
pub struct HalfJoiner {
    /// The first half of a pair, at the end of the last piece.
    first: Option<u16>,
}

impl HalfJoiner {
    /// Of a text that has no more pieces.
    pub fn join(text: &str) -> String {
        let mut joiner = Self::default();
        let mut res = joiner.push(text);
        res.extend(joiner.finish());
        res
    }

    /// The next piece, without a half at its end that may go on in the piece after it.
    pub fn push(&mut self, piece: &str) -> String {
        let mut res = String::with_capacity(piece.len() + 4);
        let mut chars = piece.chars();
        while let Some(it) = chars.next() {
            let half = chars.clone().next().filter(|_| it == MARK).and_then(marked_half);
            if half.is_some() {
                chars.next();
            }
            match (self.first.take(), half) {
                (Some(first), Some(second)) if is_second(second) => {
                    res.extend(char::decode_utf16([first, second]).flatten())
                }
                (first, half) => {
                    res.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
                    self.first = half.filter(|it| !is_second(*it));
                    match half {
                        Some(half) if is_second(half) => res.push(char::REPLACEMENT_CHARACTER),
                        Some(_) => (),
                        None => res.push(it),
                    }
                }
            }
        }
        res
    }

    /// What is left at the end of all pieces.
    pub fn finish(&mut self) -> Option<char> {
        self.first.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

fn marked_half(it: char) -> Option<u16> {
    let at = u16::try_from(u32::from(it)).ok()?.checked_sub(FIRST_MARKED)?;
    (at < 0x800).then_some(FIRST_HALF + at)
}

fn is_second(half: u16) -> bool {
    half >= 0xdc00
}

fn rewrite(json: &[u8], replace: impl Fn(u16, &mut String)) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(json);
    let may_have = |at: usize| matches!(text.as_bytes().get(at + 2), Some(b'd' | b'D'));
    // Escapes of other characters are common, these are rare: most texts end here.
    if !memmem::find_iter(text.as_bytes(), b"\\u").any(may_have) {
        return text;
    }
    match without_halves(&text, replace) {
        Some(it) => Cow::Owned(it),
        None => text,
    }
}

/// The text with each half replaced; `None`: it has none.
fn without_halves(text: &str, replace: impl Fn(u16, &mut String)) -> Option<String> {
    let mut res = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text.as_bytes().get(at..).and_then(|it| memchr(b'\\', it)) {
        let here = at + found;
        let unit = escaped_unit(text, here);
        let is_half = unit.is_some_and(|it| (0xd800..0xe000).contains(&it));
        let is_pair = is_half
            && unit.is_some_and(|it| !is_second(it))
            && escaped_unit(text, here + 6).is_some_and(|it| (0xdc00..0xe000).contains(&it));
        at = match (is_pair, unit) {
            (true, _) => here + 12,
            (false, Some(_)) => here + 6,
            // The escaped character may be a backslash itself.
            (false, None) => here + 2,
        };
        if let Some(half) = unit.filter(|_| is_half && !is_pair) {
            res += text.get(kept..here)?;
            replace(half, &mut res);
            kept = at;
        }
    }
    (kept > 0).then(|| res + text.get(kept..).unwrap_or_default())
}

/// The number of the escape `\uXXXX` that begins here.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{HalfJoiner, has_halves, mark_halves, readable};

    #[test]
    fn only_halves_are_replaced() {
        for (json, expected) in [
            (r#""cut \ud83c""#, Some("cut \u{fffd}")),
            (r#""\uDF89 tail""#, Some("\u{fffd} tail")),
            (r#""\ud83c\ud83c\udf89""#, Some("\u{fffd}\u{1f389}")),
            (r#""\udf89\ud83c""#, Some("\u{fffd}\u{fffd}")),
            (r#""\ud83cx\n\ud83c\n""#, Some("\u{fffd}x\n\u{fffd}\n")),
            (r#""\\\ud83c""#, Some("\\\u{fffd}")),
            (r#""\ud83c\\udf89""#, Some("\u{fffd}\\udf89")),
            (r#""\\ud83c \ud7ff \ud83c\udf89 \u00e9 \ue000""#, None),
        ] {
            let got = readable(json.as_bytes());
            assert_eq!(matches!(got, Cow::Borrowed(_)), expected.is_none(), "{json}");
            if let Some(expected) = expected {
                assert_eq!(serde_json::from_str::<String>(&got).unwrap(), expected, "{json}");
            }
        }
        for broken in [r#""\ud83""#, r#""\ud8zz""#, r#""\ud83c\"#, r"\u", r"\ud83é"] {
            let text = readable(broken.as_bytes());
            assert!(serde_json::from_str::<String>(&text).is_err(), "{broken}");
        }
        assert_eq!(readable(b"\"a\xff\xf0\x9f\""), "\"a\u{fffd}\u{fffd}\"");
    }

    /// The texts that pieces of JSON give, each piece joined with the ones before, and what is left.
    fn joined(pieces: &[&str]) -> Vec<String> {
        let mut joiner = HalfJoiner::default();
        let read = |it: &&str| serde_json::from_str::<String>(&mark_halves(format!("\"{it}\"").as_bytes())).unwrap();
        let mut res: Vec<String> = pieces.iter().map(|it| joiner.push(&read(it))).collect();
        res.extend(joiner.finish().map(String::from));
        res
    }

    #[test]
    fn halves_join_across_pieces() {
        for (pieces, expected) in [
            (&[r"party \ud83c", r"\udf89."][..], &["party ", "\u{1f389}."][..]),
            (&[r"\ud83c", "", r"\udf89"], &["", "", "\u{1f389}"]),
            (&[r"a\ud83c", "b"], &["a", "\u{fffd}b"]),
            (&[r"a\ud83c"], &["a", "\u{fffd}"]),
            (&[r"\ud83c", r"\ud83c", r"\udf89\ud83c"], &["", "\u{fffd}", "\u{1f389}", "\u{fffd}"]),
            (&[r"\udf89", r"x\udf89y"], &["\u{fffd}", "x\u{fffd}y"]),
            (&[r"\ud83c\udf89", "plain"], &["\u{1f389}", "plain"]),
        ] {
            assert_eq!(joined(pieces), expected, "{pieces:?}");
        }
        assert_eq!(HalfJoiner::join("a\u{ffff}b \u{ffff}"), "a\u{ffff}b \u{ffff}", "marks of nobody stay");
        let text: String = mark_halves(br#""\ud83c""#).parse().unwrap();
        assert!(has_halves(&serde_json::from_str::<String>(&text).unwrap()));
    }
}
