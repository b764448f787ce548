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

/// The contents of a file or of stdin.
#[derive(Debug, PartialEq, Eq)]
pub enum Contents {
    Text(String),
    Media(&'static str),
    /// Neither; why not text.
    Binary(String),
}

/// `is_cut`: more bytes follow, so the last character may be half of one.
pub fn classify(bytes: &[u8], is_cut: bool) -> Contents {
    let media = media_type(bytes);
    let why = match (read_text(bytes, is_cut), media) {
        // A PDF may well be all ASCII; other magic in a text is a word of it.
        (_, Some(PDF)) => return Contents::Media(PDF),
        (Ok(text), _) => return Contents::Text(text.to_owned()),
        (Err(_), Some(media)) => return Contents::Media(media),
        (Err(why), None) => why,
    };
    Contents::Binary(why)
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
        let is_binary = |bytes| matches!(classify(bytes, false), Binary(_));
        assert!(is_binary(b"a\0b") && is_binary(b"caf\xe9") && is_binary("né".as_bytes().split_last().unwrap().1));
        assert_eq!(classify(b"caf\xe9s", true), Binary("byte 0xe9 at offset 3 is not UTF-8".to_owned()));
    }
}
