//! Text files: encodings, byte order marks and line ends survive a round trip.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::builtin::{ToolContext, paths};
use castor_base::{
    fs::FsError,
    path::AbsPath,
    tool::{BaseHash, FileKnowledge, ToolError},
};
use castor_hands::disk::{self, DiskFs};

/// Files above this are neither read nor edited.
pub const MAX_BYTES: u64 = 20 * 1024 * 1024;
/// How much of a file is looked at to tell text from binary.
pub const SNIFFED_BYTES: usize = 64 * 1024;
/// Git LFS takes no longer ones.
const MAX_LFS_POINTER: usize = 1024;

const GUESSED: &str = "[The encoding of this file is unknown. It is shown as Latin-1: signs beyond ASCII may be wrong; \
                       leave them as they are.]\n";
const LOSSY: &str = "[Some bytes of this file are no valid text; they are shown as \u{fffd}.]\n";

/// A decoded text file.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFile {
    /// As in the file, without a byte order mark; line ends untouched.
    pub text: String,
    pub encoding: Encoding,
    pub bom: bool,
    /// Something could not be decoded: writing the text back would lose it.
    pub lossy: bool,
}

/// A character that a file of unknown encoding cannot take.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is not UTF-8 and its encoding is not known, so '{0}' cannot be put into it. Use ASCII, or convert the file first \
     (iconv)"
)]
pub struct UnknownEncoding(char);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16 {
        big: bool,
    },
    Utf32 {
        big: bool,
    },
    /// Text, but not UTF-8: kept byte by byte, shown as Latin-1.
    Unknown,
}

/// A file as it was found.
pub struct LoadedFile {
    pub real: AbsPath,
    /// `None`: there is none.
    pub bytes: Option<Vec<u8>>,
    /// They are the editor's, and the disk has others.
    pub unsaved: bool,
}

/// The bytes of a file through `ctx.fs`. Pipes, devices and giants are refused unread.
pub async fn load(ctx: &ToolContext, path: &AbsPath) -> Result<LoadedFile, ToolError> {
    let real = paths::call_real_path(ctx, path).await?;
    let (asked, at, has_buffers) = (path.clone(), real.clone(), ctx.fs.has_buffers());
    // The disk is looked at once: each look waits for a thread.
    let on_disk = paths::run_blocking(move || {
        check_readable(&asked, &at)?;
        Ok(has_buffers.then(|| DiskFs.read_now(&at)))
    });
    let on_disk = on_disk.await??;
    let bytes = content(path, ctx.fs.read(&real).await)?;
    let Some(on_disk) = on_disk else {
        return Ok(LoadedFile { real, bytes, unsaved: false });
    };
    let disk = content(path, on_disk)?;
    // An editor hands out text: of the same text, only the disk knows encoding and line ends.
    let same = match (bytes.as_deref(), disk.as_deref()) {
        (Some(a), Some(b)) => a == b || is_same_text(a, b),
        (a, b) => a == b,
    };
    let bytes = if same { disk } else { bytes };
    Ok(LoadedFile { real, bytes, unsaved: !same })
}

fn content(path: &AbsPath, read: Result<Vec<u8>, FsError>) -> Result<Option<Vec<u8>>, ToolError> {
    match read {
        Ok(it) if it.len() as u64 > MAX_BYTES => Err(too_large(path, it.len() as u64)),
        Ok(it) => Ok(Some(it)),
        Err(FsError::NotFound(_)) => Ok(None),
        Err(it) => Err(paths::fs_error(&it, "read_content_failure")),
    }
}

fn is_same_text(a: &[u8], b: &[u8]) -> bool {
    match (decode(a), decode(b)) {
        (Some(a), Some(b)) => to_lf(&a.text) == to_lf(&b.text),
        _ => false,
    }
}

fn check_readable(path: &AbsPath, real: &AbsPath) -> Result<(), ToolError> {
    // What is not on disk may still be in the editor: `Fs` knows.
    let Ok(meta) = disk::metadata(real) else { return Ok(()) };
    if meta.is_dir {
        return Err(ToolError::new("target_is_directory", format!("Path is a directory, not a file: {path}")));
    }
    // A pipe would block and /dev/zero never end, whatever `Fs` does.
    if !real.as_path().is_file() {
        return Err(ToolError::new("read_content_failure", format!("Not a regular file: {path}")));
    }
    if meta.len > MAX_BYTES { Err(too_large(path, meta.len)) } else { Ok(()) }
}

fn too_large(path: &AbsPath, len: u64) -> ToolError {
    let mb = len as f64 / (1024.0 * 1024.0);
    let message = format!("File size exceeds the 20MB limit: {path} ({mb:.2}MB). Use grep_search or a shell command.");
    ToolError::new("file_too_large", message)
}

pub fn hash(loaded: &LoadedFile) -> BaseHash {
    let path = loaded.real.as_path().as_os_str().as_encoded_bytes();
    let digest = |it: &[u8]| Sha256::new().chain_update(path).chain_update([0]).chain_update(it).finalize().into();
    BaseHash(loaded.bytes.as_deref().map(digest))
}

/// Refuses when the file is no longer what the user was shown.
pub fn check_base(path: &AbsPath, base: Option<&BaseHash>, now: &LoadedFile) -> Result<(), ToolError> {
    match base.is_some_and(|it| *it != hash(now)) {
        true => {
            let what = format!("{path} changed after this edit was prepared; nothing was written.");
            let for_model = format!("{what} Read it again.");
            Err(ToolError::new("file_changed", what).with_model_text(for_model))
        }
        false => Ok(()),
    }
}

/// Refuses to write over what the model has not seen: what somebody else wrote since it was read. A file that is gone can
/// be made again.
pub fn check_seen(path: &AbsPath, seen: &[(AbsPath, BaseHash)], now: &LoadedFile) -> Result<(), ToolError> {
    let seen = seen.iter().find(|(real, _)| *real == now.real);
    match now.bytes.is_some() && seen.is_some_and(|(_, it)| *it != hash(now)) {
        true => {
            let what = format!("{path} changed since it was read; nothing was written.");
            let for_model = format!("{what} Read it again.");
            Err(ToolError::new("file_changed", what).with_model_text(for_model))
        }
        false => Ok(()),
    }
}

/// What the model knows of a file that was read.
pub fn file_knowledge(loaded: &LoadedFile) -> Option<Box<FileKnowledge>> {
    Some(Box::new(FileKnowledge {
        path: loaded.real.clone(),
        hash: hash(loaded).to_hex()?,
        before: None,
        others: Vec::new(),
    }))
}

/// `None`: binary.
pub fn decode(bytes: &[u8]) -> Option<TextFile> {
    if let Some(it) = decode_marked(bytes) {
        return Some(it);
    }
    if is_binary(bytes) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(TextFile { text: text.to_owned(), encoding: Encoding::Utf8, bom: false, lossy: false });
    }
    // A broken UTF-8 file has mostly good multi-byte characters; a Latin-1 file has next to none.
    let text = String::from_utf8_lossy(bytes);
    let bad = text.chars().filter(|it| *it == char::REPLACEMENT_CHARACTER).count();
    let good = text.chars().filter(|it| !it.is_ascii()).count() - bad;
    if good > bad {
        return Some(TextFile { text: text.into_owned(), encoding: Encoding::Utf8, bom: false, lossy: true });
    }
    let text = bytes.iter().map(|it| char::from(*it)).collect();
    Some(TextFile { text, encoding: Encoding::Unknown, bom: false, lossy: false })
}

fn decode_marked(bytes: &[u8]) -> Option<TextFile> {
    // UTF-32 first: its little-endian mark begins with that of UTF-16.
    let marks: [(&[u8], Encoding); 5] = [
        (&[0xff, 0xfe, 0, 0], Encoding::Utf32 { big: false }),
        (&[0, 0, 0xfe, 0xff], Encoding::Utf32 { big: true }),
        (&[0xef, 0xbb, 0xbf], Encoding::Utf8),
        (&[0xff, 0xfe], Encoding::Utf16 { big: false }),
        (&[0xfe, 0xff], Encoding::Utf16 { big: true }),
    ];
    let (rest, encoding) = marks.iter().find_map(|(mark, it)| Some((bytes.strip_prefix(*mark)?, *it)))?;
    let (text, lossy) = match encoding {
        Encoding::Utf16 { big } => {
            let units = rest.as_chunks::<2>();
            let units16 = units.0.iter().map(|it| if big { u16::from_be_bytes(*it) } else { u16::from_le_bytes(*it) });
            collect(char::decode_utf16(units16).map(Result::ok), !units.1.is_empty())
        }
        Encoding::Utf32 { big } => {
            let units = rest.as_chunks::<4>();
            let units32 = units.0.iter().map(|it| if big { u32::from_be_bytes(*it) } else { u32::from_le_bytes(*it) });
            collect(units32.map(char::from_u32), !units.1.is_empty())
        }
        _ => {
            let text = String::from_utf8_lossy(rest);
            let lossy = matches!(text, Cow::Owned(_));
            (text.into_owned(), lossy)
        }
    };
    Some(TextFile { text, encoding, bom: true, lossy })
}

fn collect(chars: impl Iterator<Item = Option<char>>, mut lossy: bool) -> (String, bool) {
    let mut text = String::new();
    for it in chars {
        lossy |= it.is_none();
        text.push(it.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    (text, lossy)
}

fn is_binary(bytes: &[u8]) -> bool {
    let head = bytes.get(..SNIFFED_BYTES).unwrap_or(bytes);
    let odd = head.iter().filter(|it| it.is_ascii_control() && !b"\t\n\r\x0c\x08\x1b".contains(it)).count();
    memchr::memchr(0, head).is_some() || odd * 10 > head.len() * 3
}

impl TextFile {
    /// For a file that does not exist yet.
    pub fn new_utf8(text: String) -> Self {
        Self { text, encoding: Encoding::Utf8, bom: false, lossy: false }
    }

    /// What a reader has to know of this text; empty for most.
    pub fn note(&self) -> String {
        if let Some(size) = lfs_size(&self.text) {
            return format!(
                "[This is a Git LFS pointer, not the file: its content of {size} bytes is not here. `git lfs pull` \
                 brings it.]\n"
            );
        }
        match self.encoding {
            Encoding::Unknown => GUESSED.to_owned(),
            _ if self.lossy => LOSSY.to_owned(),
            _ => String::new(),
        }
    }

    /// `text` in this file's encoding, with its mark. `new` is what the edit put into it: into a file whose encoding
    /// nobody knows only ASCII goes, which nearly all encodings have in common, and what stands there already.
    pub fn encode(&self, text: &str, new: &str) -> Result<Vec<u8>, UnknownEncoding> {
        let mark = if self.bom { "\u{feff}" } else { "" };
        let chars = mark.chars().chain(text.chars());
        Ok(match self.encoding {
            Encoding::Utf8 => [mark, text].concat().into_bytes(),
            Encoding::Utf16 { big } => [mark, text]
                .concat()
                .encode_utf16()
                .flat_map(|it| if big { it.to_be_bytes() } else { it.to_le_bytes() })
                .collect(),
            Encoding::Utf32 { big } => chars
                .flat_map(|it| if big { u32::from(it).to_be_bytes() } else { u32::from(it).to_le_bytes() })
                .collect(),
            Encoding::Unknown => {
                let foreign = new.chars().find(|it| !it.is_ascii() && !self.text.contains(*it));
                foreign.map_or(Ok(()), |it| Err(UnknownEncoding(it)))?;
                chars.map(|it| u8::try_from(it).map_err(|_| UnknownEncoding(it))).collect::<Result<_, _>>()?
            }
        })
    }

    /// Tells whether most lines end in CR LF.
    pub fn is_crlf(&self) -> bool {
        let crlf = self.text.matches("\r\n").count();
        crlf > 0 && crlf * 2 >= self.text.matches('\n').count()
    }
}

/// How many bytes the file has that a pointer of Git LFS stands for; `None`: it is none.
fn lfs_size(text: &str) -> Option<u64> {
    let text =
        text.strip_prefix("version https://git-lfs.github.com/spec/").filter(|_| text.len() < MAX_LFS_POINTER)?;
    let value = |key: &str| text.lines().find_map(|it| it.strip_prefix(key));
    value("oid ")?;
    value("size ")?.trim().parse().ok()
}

/// Every CR LF as LF.
pub fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Every line end as CR LF.
pub fn to_crlf(text: &str) -> String {
    to_lf(text).replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::{Encoding, LoadedFile, check_base, decode, hash};
    use castor_base::path::AbsPath;

    /// What was shown of one file is no base for another, whatever it holds.
    #[test]
    fn a_base_is_of_a_place_and_its_content() {
        let loaded = |path: &str, bytes: Option<&[u8]>| LoadedFile {
            real: AbsPath::new(path).unwrap(),
            bytes: bytes.map(<[u8]>::to_vec),
            unsaved: false,
        };
        let shown = loaded("/w/a", Some(b"x"));
        let base = hash(&shown);
        let check = |now: &LoadedFile| check_base(&now.real, Some(&base), now).map_err(|it| it.kind.to_string());
        assert_eq!(check(&shown), Ok(()));
        for now in [loaded("/w/b", Some(b"x")), loaded("/w/a", Some(b"y")), loaded("/w/a", None)] {
            assert_eq!(check(&now), Err("file_changed".to_owned()));
        }
        assert_ne!(hash(&loaded("/w/a", Some(b"bx"))), hash(&loaded("/w/ab", Some(b"x"))));
    }

    #[test]
    fn encodings_round_trip() {
        let check = |bytes: &[u8], text: &str, encoding: Encoding| {
            let file = decode(bytes).unwrap();
            assert_eq!((file.text.as_str(), file.encoding, file.lossy), (text, encoding, false));
            assert_eq!(file.encode(&file.text, "").unwrap(), bytes);
        };
        check(b"a\r\n\xc3\xb1", "a\r\nñ", Encoding::Utf8);
        check(b"\xef\xbb\xbfa\n", "a\n", Encoding::Utf8);
        check(b"\xff\xfea\0\n\0=\xd8\0\xde", "a\n😀", Encoding::Utf16 { big: false });
        check(b"\xfe\xff\0a", "a", Encoding::Utf16 { big: true });
        check(b"\xff\xfe\0\0a\0\0\0", "a", Encoding::Utf32 { big: false });
        check(b"\0\0\xfe\xff\0\0\0a", "a", Encoding::Utf32 { big: true });
        check(b"caf\xe9\n", "café\n", Encoding::Unknown);
        check(b"", "", Encoding::Utf8);
    }

    #[test]
    fn what_is_odd_is_said() {
        let note = |bytes: &[u8]| decode(bytes).unwrap().note();
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        assert!(
            note(pointer.as_bytes()).contains("Git LFS pointer") && note(pointer.as_bytes()).contains("12345 bytes")
        );
        for no_pointer in [pointer.replace("size", "sizes"), pointer.replace("oid", "id"), pointer.repeat(20)] {
            assert_eq!(note(no_pointer.as_bytes()), "", "{no_pointer}");
        }
        assert!(note(b"caf\xe9").contains("encoding of this file is unknown"));
        assert!(note(b"\xb2\xe2\xca\xd4\n").contains("encoding of this file is unknown"));
        assert!(note("\u{e9}\u{e9}\u{e9}\u{e9}".as_bytes().split_last().unwrap().1).contains("no valid text"));
        assert_eq!(note("caf\u{e9}".as_bytes()), "");
        assert_eq!(note(b"\xff\xfea\0"), "");
    }

    #[test]
    fn tells_binary_and_broken() {
        assert_eq!(decode(b"\x7fELF\0\0"), None);
        assert_eq!(decode(b"\x01\x02\x03\x04abc"), None);
        assert!(decode("ééé\u{feff}".as_bytes().split_last().unwrap().1).unwrap().lossy);
        let file = decode(b"caf\xe9").unwrap();
        assert_eq!(file.encode("\u{e9}", "\u{e9}").unwrap(), b"\xe9");
        assert!(file.encode("caf\u{e8}", "\u{e8}").is_err());
        assert!(file.encode("\u{4e2d}", "").is_err());
    }
}
