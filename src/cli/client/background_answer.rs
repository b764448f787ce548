//! Answer of a terminal that was asked for its background (OSC 11), such as `11;rgb:1e1e/1e1e/2e2e`.

/// Bytes of an answer at most.
pub const MAX_ANSWER: usize = 64;

/// Whether the background is light; `None`: this is no such answer.
pub fn is_light(answer: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(answer).ok()?.strip_prefix("11;")?;
    let channels = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
    let mut shares = channels.split('/').map(share);
    let (red, green, blue) = (shares.next()??, shares.next()??, shares.next()??);
    // How bright the eye finds each of them.
    Some(red * 299 + green * 587 + blue * 114 > 500 * 1_000)
}

/// Of a channel, in thousandths: one to four hexadecimal digits, of which the terminal chooses how many.
fn share(digits: &str) -> Option<u32> {
    let most = match digits.len() {
        it @ 1..=4 => (1u32 << (4 * it)) - 1,
        _ => return None,
    };
    u32::from_str_radix(digits, 16).ok().map(|it| it * 1_000 / most)
}

#[cfg(test)]
mod tests {
    use super::is_light;

    #[test]
    fn backgrounds_are_light_or_dark() {
        for (answer, expected) in [
            ("11;rgb:ffff/ffff/ffff", Some(true)),
            ("11;rgb:fd/f6/e3", Some(true)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(false)),
            ("11;rgba:0/0/0/f", Some(false)),
            ("11;rgb:0000/0000/ffff", Some(false)),
            ("10;rgb:ffff/ffff/ffff", None),
            ("11;?", None),
            ("11;rgb:ffff/ffff", None),
            ("11;rgb:x/y/z", None),
            ("11;rgb:fffff/0/0", None),
        ] {
            assert_eq!(is_light(answer.as_bytes()), expected, "{answer}");
        }
    }
}
