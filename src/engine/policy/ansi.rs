//! `$'…'` of bash: text in which characters are written by their numbers.

/// What `text`, which begins behind `$'`, says up to its closing quote, and what comes behind that. `None`: that cannot
/// be told.
pub(super) fn decode(text: &str) -> (Option<String>, &str) {
    let mut chars = text.chars();
    // Bytes: `\xc3\xa9` is one letter.
    let mut res = Vec::new();
    while let Some(it) = chars.next() {
        match it {
            '\'' => return (said(res), chars.as_str()),
            '\\' => {
                let rest = escape(chars.as_str(), &mut res);
                chars = rest.chars();
            }
            it => res.extend(it.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    (None, "")
}

/// bash ends the text at a NUL.
fn said(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    text.split('\0').next().map(str::to_owned)
}

/// Reads what stands behind a backslash; returns the rest.
fn escape<'t>(text: &'t str, out: &mut Vec<u8>) -> &'t str {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return "" };
    let rest = chars.as_str();
    let plain = |out: &mut Vec<u8>, it: u8| {
        out.push(it);
        rest
    };
    match first {
        'a' => plain(out, 7),
        'b' => plain(out, 8),
        'e' | 'E' => plain(out, 27),
        'f' => plain(out, 12),
        'n' => plain(out, b'\n'),
        'r' => plain(out, b'\r'),
        't' => plain(out, b'\t'),
        'v' => plain(out, 11),
        '\\' | '\'' | '"' | '?' => plain(out, first as u8),
        'x' => number(rest, 16, 2, false, out),
        'u' => number(rest, 16, 4, true, out),
        'U' => number(rest, 16, 8, true, out),
        '0'..='7' => number(text, 8, 3, false, out),
        'c' => {
            let mut behind = rest.chars();
            out.extend(behind.next().map(|it| (it as u32 & 0x1f) as u8));
            behind.as_str()
        }
        _ => {
            out.push(b'\\');
            text
        }
    }
}

/// A byte, or a letter of Unicode, by its number. Without a digit it stays what is written.
fn number<'t>(text: &'t str, radix: u32, max: usize, letter: bool, out: &mut Vec<u8>) -> &'t str {
    let len = text.chars().take(max).take_while(|it| it.is_digit(radix)).count();
    let (digits, rest) = text.split_at(len);
    match u32::from_str_radix(digits, radix) {
        Ok(it) if letter => {
            let it = char::from_u32(it).unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend(it.encode_utf8(&mut [0; 4]).bytes());
        }
        Ok(it) => out.push((it & 0xff) as u8),
        // Not a byte of any name that means something.
        Err(_) => out.push(b'\\'),
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn says_what_bash_says() {
        let check = |text: &str, want: Option<&str>, rest: &str| {
            assert_eq!(decode(text), (want.map(str::to_owned), rest), "{text}");
        };
        check(r".\x65nv' b", Some(".env"), " b");
        check(r"\56\145\u006ev'x", Some(".env"), "x");
        check(r"a\'b'", Some("a'b"), "");
        check(r"\U0001F600\t'", Some("\u{1f600}\t"), "");
        check(r"\xc3\xa9'", Some("é"), "");
        check(r"\xff'", None, "");
        check(r".env\0x'", Some(".env"), "");
        check("open", None, "");
    }
}
