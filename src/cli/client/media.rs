//! Media types by magic bytes: images, PDF and audio; and what is text.

/// What models take as it is: the beginning, where more of the magic stands, and that.
const MAGIC: &[(&[u8], usize, &[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", 0, b"", "image/png"),
    (b"\xff\xd8\xff", 0, b"", "image/jpeg"),
    (b"GIF87a", 0, b"", "image/gif"),
    (b"GIF89a", 0, b"", "image/gif"),
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"%PDF-", 0, b"", PDF),
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"FORM", 8, b"AIFF", "audio/aiff"),
    (b"ID3", 0, b"", "audio/mp3"),
    (b"\xff\xfb", 0, b"", "audio/mp3"),
    (b"\xff\xf3", 0, b"", "audio/mp3"),
    (b"\xff\xf2", 0, b"", "audio/mp3"),
    (b"\xff\xf1", 0, b"", "audio/aac"),
    (b"\xff\xf9", 0, b"", "audio/aac"),
    (b"fLaC", 0, b"", "audio/flac"),
    (b"OggS", 0, b"", "audio/ogg"),
    (b"", 4, b"ftypM4A ", "audio/mp4"),
];
const PDF: &str = "application/pdf";
/// Of so many bytes one may be damaged.
const MAX_DAMAGE: usize = 4;

/// The contents of a file or of stdin.
#[derive(Debug, PartialEq, Eq)]
pub enum Contents {
    Text(String),
    /// Text with so many places that are not UTF-8; they are marked by U+FFFD.
    Damaged(String, usize),
    Media(&'static str),
    /// Neither; why not text.
    Binary(String),
}

/// `is_cut`: more bytes follow, so the last character may be half of one.
pub fn classify(bytes: &[u8], is_cut: bool) -> Contents {
    let media = media_type(bytes);
    match (read_text(bytes, is_cut), media) {
        // A PDF may well be all ASCII; other magic in a text is a word of it.
        (_, Some(PDF)) => Contents::Media(PDF),
        (Ok(text), _) => Contents::Text(text.to_owned()),
        (Err(_), Some(media)) => Contents::Media(media),
        (Err(why), None) => read_damaged(bytes).map_or(Contents::Binary(why), |(text, n)| Contents::Damaged(text, n)),
    }
}

/// Logs of builds have names and quotations in old encodings. `None`: so much is odd that it is no text.
fn read_damaged(bytes: &[u8]) -> Option<(String, usize)> {
    let mut damaged = 0;
    for chunk in bytes.utf8_chunks() {
        let is_odd =
            |it: char| it == '\0' || it.is_control() && !it.is_whitespace() && !matches!(it, '\u{1b}' | '\u{8}');
        if chunk.valid().contains(is_odd) {
            return None;
        }
        damaged += usize::from(!chunk.invalid().is_empty());
    }
    // In any 8-bit encoding of a language with Latin letters most characters are ASCII.
    (damaged <= bytes.len() / MAX_DAMAGE).then(|| (String::from_utf8_lossy(bytes).into_owned(), damaged))
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is_it = |(start, at, more, _): &&(&[u8], usize, &[u8], &str)| {
        bytes.starts_with(start) && bytes.get(*at..).is_some_and(|it| it.starts_with(more))
    };
    MAGIC.iter().find(is_it).map(|it| it.3)
}

fn read_text(bytes: &[u8], is_cut: bool) -> Result<&str, String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(it) => it,
        Err(error) => {
            let (whole, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
            if error.error_len().is_some() || !is_cut {
                let byte = rest.first().copied().unwrap_or_default();
                return Err(format!("byte 0x{byte:02x} at offset {} is not UTF-8", whole.len()));
            }
            std::str::from_utf8(whole).unwrap_or_default()
        }
    };
    match text.find('\0') {
        Some(at) => Err(format!("a NUL byte stands at offset {at}")),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Contents::{self, Binary, Media, Text},
        classify,
    };

    fn text(it: &str) -> Contents {
        Text(it.to_owned())
    }

    #[test]
    fn media_are_known_by_their_magic() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a\x01\0\x01\0", "image/gif"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            (b"%PDF-1.4\nall of it ASCII", "application/pdf"),
            (b"ID3\x03\0\0", "audio/mp3"),
            (b"\0\0\0\x20ftypM4A \0", "audio/mp4"),
        ] {
            assert_eq!(classify(bytes, false), Media(expected));
        }
    }

    #[test]
    fn text_is_text_whatever_it_begins_with() {
        for it in ["ID3 tags are odd", "GIF89a", "RIFF", "", "fLaC", "é\n"] {
            assert_eq!(classify(it.as_bytes(), false), text(it));
        }
        assert_eq!(classify("né".as_bytes().split_last().unwrap().1, true), text("n"));
    }

    #[test]
    fn a_stray_byte_does_not_make_a_text_binary() {
        let damaged = |it: &str, n| Contents::Damaged(it.to_owned(), n);
        for (bytes, expected) in [
            (&b"a.c: caf\xe9: error\n"[..], damaged("a.c: caf\u{fffd}: error\n", 1)),
            (b"\x93quoted\x94 in cp1252", damaged("\u{fffd}quoted\u{fffd} in cp1252", 2)),
            (b"\x1b[31mr\xe9sum\xe9\x1b[0m of it", damaged("\u{1b}[31mr\u{fffd}sum\u{fffd}\u{1b}[0m of it", 2)),
            (b"10%\r20%\r\xa0done", damaged("10%\r20%\r\u{fffd}done", 1)),
            ("a whole n\u{e9}".as_bytes().split_last().unwrap().1, damaged("a whole n\u{fffd}", 1)),
        ] {
            assert_eq!(classify(bytes, false), expected);
        }
        for bytes in [
            &b"a\0b"[..],
            b"caf\xe9\0\0",
            b"\x7fELF\x02\x01\x01\xff",
            b"\xff\xfea\0b\0",
            b"\x1f\x8b\x08\x04\xff\xfe\xfd",
            b"\xff\xfe\xfd\xfc",
        ] {
            assert!(matches!(classify(bytes, false), Binary(_)), "{bytes:?}");
        }
    }
}
