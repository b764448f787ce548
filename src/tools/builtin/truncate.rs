//! Truncation of long tool results: the model gets both ends, and a file holds the whole.

use std::{borrow::Cow, fmt::Write, io};

use sha2::{Digest, Sha256};

use crate::builtin::private_files;
use castor_base::{ids::CallId, path::AbsPath, text::grouped};

/// The longest result that goes to the model whole, in characters.
pub const THRESHOLD: usize = 40_000;

/// Longest part of a call's id in a file name.
const NAME_LEN: usize = 100;

/// A text in three parts; the middle one is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedText<'a> {
    pub head: &'a str,
    pub tail: &'a str,
    /// In characters, as all numbers here.
    pub head_len: usize,
    pub tail_len: usize,
    pub omitted: usize,
}

/// The first fifth and the last four fifths of `max` characters, since ends of outputs say more than beginnings;
/// `None` when `text` fits, or when `max` is 0: no limit.
pub fn cut_middle(text: &str, max: usize) -> Option<TruncatedText<'_>> {
    // No text has more characters than bytes: most are done here.
    if max == 0 || text.len() <= max {
        return None;
    }
    let count = text.chars().count();
    let omitted = count.checked_sub(max).filter(|it| *it > 0)?;
    let head_len = max / 5;
    let tail_len = max - head_len;
    let head = text.char_indices().nth(head_len).and_then(|(at, _)| text.get(..at))?;
    let tail = text.char_indices().nth(count - tail_len).and_then(|(at, _)| text.get(at..))?;
    Some(TruncatedText { head, tail, head_len, tail_len, omitted })
}

impl TruncatedText<'_> {
    /// The text for the model; `whole` says where all of it is.
    pub fn text(&self, whole: &str) -> String {
        format!(
            "Output too large. Showing first {} and last {} characters. {whole}\n{}\n\n... [{} characters omitted] ...\n\n{}",
            grouped(self.head_len as u64),
            grouped(self.tail_len as u64),
            self.head,
            grouped(self.omitted as u64),
            self.tail
        )
    }
}

/// Where the whole result of a call goes: known before it is written.
pub fn path_for(scratch: &AbsPath, call: &CallId) -> AbsPath {
    let id = call.as_str();
    let safe = |it: char| if it.is_ascii_alphanumeric() || it == '-' || it == '_' { it } else { '_' };
    let mut name: String = id.chars().take(NAME_LEN).map(safe).collect();
    if name != id || name.is_empty() {
        // Two ids must not share a file because they differ only in what was replaced or cut.
        name.push('-');
        Sha256::digest(id.as_bytes()).iter().take(4).for_each(|it| _ = write!(name, "{it:02x}"));
    }
    scratch.join(format!("{name}.txt"))
}

/// `text`, or what the model gets in its place when it has more than `max` characters. Blocks while it writes.
pub fn truncate<'a>(text: &'a str, max: usize, scratch: &AbsPath, call: &CallId) -> Cow<'a, str> {
    let Some(cut) = cut_middle(text, max) else { return Cow::Borrowed(text) };
    let path = path_for(scratch, call);
    let whole = match save(scratch, &path, text) {
        Ok(()) => format!("For full output see: {path}"),
        Err(error) => format!("The full output could not be saved ({error})."),
    };
    Cow::Owned(cut.text(&whole))
}

fn save(scratch: &AbsPath, path: &AbsPath, text: &str) -> io::Result<()> {
    private_files::create_private_dir(scratch.as_path())?;
    private_files::write_private(path.as_path(), text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::{borrow::Cow, os::unix::fs::PermissionsExt};

    use super::{THRESHOLD, cut_middle, path_for, truncate};
    use castor_base::{ids::CallId, path::AbsPath};

    #[test]
    fn cuts_by_characters() {
        assert_eq!(cut_middle("0123456789", 10), None);
        assert_eq!(cut_middle("0123456789", 0), None);
        let ten = "ñ€🦫abcdefg";
        assert_eq!(cut_middle(ten, 10), None, "more bytes, but not more characters");
        let it = cut_middle(ten, 5).unwrap();
        assert_eq!((it.head, it.tail, it.omitted), ("ñ", "defg", 5));
        for max in 1..10 {
            let it = cut_middle(ten, max).unwrap();
            assert_eq!(it.head.chars().count() + it.tail.chars().count() + it.omitted, 10);
        }
    }

    #[test]
    fn says_where_the_whole_is() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = AbsPath::new(dir.path()).unwrap().join("out");
        let call = CallId::from("run_shell_command__1");
        let long = format!("{}{}", "a".repeat(50_000), "z".repeat(50_000));
        let text = truncate(&long, THRESHOLD, &scratch, &call);
        let path = scratch.join("run_shell_command__1.txt");
        let header = "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: ";
        assert!(text.starts_with(&format!("{header}{path}\naaa")), "{}", &text[..200]);
        assert!(text.contains("a\n\n... [60,000 characters omitted] ...\n\nz"));
        assert!(text.ends_with("zzz"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), long);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&scratch).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(matches!(truncate("short", THRESHOLD, &scratch, &call), Cow::Borrowed("short")));
    }

    #[test]
    fn a_full_disk_does_not_lose_the_cut() {
        let nowhere = AbsPath::new("/proc/nowhere").unwrap();
        let text = truncate("0123456789", 5, &nowhere, &CallId::from("c"));
        assert!(text.contains("The full output could not be saved ("), "{text}");
        assert!(text.ends_with("6789"));
    }

    /// No name of a call leads outside of the folder.
    #[test]
    fn names_stay_inside_and_differ() {
        let scratch = AbsPath::new("/s").unwrap();
        let name = |id: &str| path_for(&scratch, &CallId::from(id)).to_string();
        assert_eq!(name("call_1-a"), "/s/call_1-a.txt");
        assert!(name("../../etc/passwd").starts_with("/s/______etc_passwd-"));
        assert_ne!(name("a/b"), name("a:b"));
        assert_ne!(name(&format!("{}1", "x".repeat(200))), name(&format!("{}2", "x".repeat(200))));
        assert!(name("").starts_with("/s/-"));
    }
}
