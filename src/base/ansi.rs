//! Terminal escape sequences (ECMA-48): strips them from text.

/// `text` without escape sequences and control characters, and the sequence at its end that is not complete yet.
///
/// They would reach terminals that show our updates: colours are no loss, but titles, clipboard and cursor are not
/// a command's to change.
pub fn plain(text: &str) -> (String, &str) {
    let mut res = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, sequence) = rest.split_at(at);
        push_printable(&mut res, before);
        match sequence_len(sequence.as_bytes()) {
            Some(len) => rest = sequence.get(len..).unwrap_or_default(),
            None => return (res, sequence),
        }
    }
    push_printable(&mut res, rest);
    (res, "")
}

fn push_printable(res: &mut String, text: &str) {
    let printable = |it: &char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    match text.chars().all(|it| printable(&it)) {
        true => res.push_str(text),
        false => res.extend(text.chars().filter(printable)),
    }
}

/// Length of the escape sequence that `bytes` begin with (ECMA-48); `None`: it goes on. Ends between characters.
fn sequence_len(bytes: &[u8]) -> Option<usize> {
    /// Nothing serious is longer: an unfinished one must not swallow the rest.
    const LONGEST: usize = 4096;
    let too_long = (bytes.len() > LONGEST).then_some(1);
    match bytes.get(1)? {
        // CSI: parameters and intermediates, then one final byte.
        b'[' => {
            let end = bytes.iter().skip(2).position(|it| !(0x20..=0x3f).contains(it));
            let Some(at) = end.map(|it| it + 2) else { return too_long };
            // Anything else breaks it off and is text again.
            Some(if bytes.get(at).is_some_and(|it| (0x40..=0x7e).contains(it)) { at + 1 } else { at })
        }
        // OSC, DCS, SOS, PM, APC: a string up to BEL or ESC \.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let Some(at) = bytes.iter().skip(2).position(|it| matches!(it, 0x07 | 0x1b)) else { return too_long };
            let at = at + 2;
            match bytes.get(at..) {
                Some([0x07, ..]) => Some(at + 1),
                Some([0x1b, b'\\', ..]) => Some(at + 2),
                Some([0x1b]) => too_long,
                _ => Some(at),
            }
        }
        // Two or three bytes: intermediates, then a final one.
        0x20..=0x2f => bytes.get(2).map(|it| if it.is_ascii() { 3 } else { 2 }),
        0x30..=0x7e => Some(2),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn escape_sequences_go() {
        let check = |text: &str, shown: &str, rest: &str| assert_eq!(plain(text), (shown.to_owned(), rest), "{text:?}");
        check("a\x1b[1;31mred\x1b[0m b", "ared b", "");
        check("\x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y", "xy", "");
        check("\x1b(Bx\x1b=y\x1bMz", "xyz", "");
        check("a\x07b\x08c\td\r\n\u{9b}e", "abc\td\r\ne", "");
        check("cut \x1b[3", "cut ", "\x1b[3");
        check("cut \x1b", "cut ", "\x1b");
        check("\x1b[31\nx", "\nx", "");
        check("\x1b[é\x1bé\x1b(é", "ééé", "");
    }
}
