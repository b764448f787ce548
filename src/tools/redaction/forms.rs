//! Encodings of a secret in output: plain, escaped, hex, URL-encoded and base64.

use std::{collections::BTreeSet, fmt::Write};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE},
};

/// All texts that say `value`.
pub fn forms(value: &str) -> BTreeSet<String> {
    let mut res = BTreeSet::from([value.to_owned()]);
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    res.extend([json.to_owned(), json.replace('/', "\\/")]);
    let hex = |upper: bool| value.bytes().fold(String::new(), |it, byte| push_hex(it, byte, upper));
    res.extend([hex(false), hex(true)]);
    for upper in [false, true] {
        let text = value.bytes().fold(String::new(), |it, byte| push_percent(it, byte, upper));
        res.extend([text.replace("%20", "+"), text]);
    }
    res.extend([BASE64_STANDARD.encode(value), BASE64_URL_SAFE.encode(value)]);
    for before in 0..3 {
        res.extend(within(value, before).into_iter().flat_map(|it| [it.replace('+', "-").replace('/', "_"), it]));
    }
    res.retain(|it| !it.is_empty());
    res
}

/// What all base64 has in common in which `before` bytes, or three more, stand in front of the value.
fn within(value: &str, before: usize) -> Option<String> {
    let bytes = [vec![0; before], value.as_bytes().to_vec()].concat();
    let text = BASE64_STANDARD.encode(&bytes);
    let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    // Little of a short value stands in characters of its own, and so little may stand anywhere.
    text.get(start..end).filter(|it| it.len() >= 8).map(str::to_owned)
}

fn push_hex(mut text: String, byte: u8, upper: bool) -> String {
    // Writing to a string does not fail.
    _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
    text
}

fn push_percent(mut text: String, byte: u8, upper: bool) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        text.push(char::from(byte));
        return text;
    }
    text.push('%');
    push_hex(text, byte, upper)
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::forms;

    #[test]
    fn everyday_encodings() {
        let value = "p/ss \"w0rd+ü";
        let all = forms(value);
        for it in [
            value,
            "p/ss \\\"w0rd+ü",
            "p\\/ss \\\"w0rd+ü",
            "702f73732022773072642bc3bc",
            "702F73732022773072642BC3BC",
            "p%2Fss%20%22w0rd%2B%C3%BC",
            "p%2fss%20%22w0rd%2b%c3%bc",
            "p%2Fss+%22w0rd%2B%C3%BC",
            "cC9zcyAidzByZCvDvA==",
        ] {
            assert!(all.contains(it), "{it}: {all:?}");
        }
        for before in 0..7 {
            for behind in 0..4 {
                let text = BASE64_STANDARD.encode(format!("{}{value}{}", "x".repeat(before), "y".repeat(behind)));
                assert!(all.iter().any(|it| it.len() > 12 && text.contains(it)), "{text}");
            }
        }
        assert!(forms("u:p@").iter().all(|it| it.len() >= 4));
    }
}
