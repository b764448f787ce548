//! Names that look alike: a path as a model or a person writes it, and its names as they are on the disk.
#![allow(clippy::disallowed_methods)]

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use icu_normalizer::ComposingNormalizerBorrowed;

use castor_base::{path::AbsPath, path_text};

/// The path with its names as they are on the disk. A name that is not there may be there with its accents composed in
/// another way, and one that is no UTF-8 is written as its text. Names that nobody has stay as they are. Blocks.
pub fn existing_path(path: AbsPath) -> AbsPath {
    let text = path.as_path().to_str();
    let is_plain = |it: &str| it.is_ascii() && matches!(path_text::from_text(it), Cow::Borrowed(_));
    if text.is_none_or(is_plain) {
        return path;
    }
    let mut res = PathBuf::new();
    let mut names = path.as_path().iter();
    for name in names.by_ref() {
        match existing_name(&res, name) {
            Some(found) => res.push(found),
            None => {
                res.push(name);
                break;
            }
        }
    }
    res.extend(names);
    AbsPath::new(res).unwrap_or(path)
}

/// A name with its accents composed, as most are written.
pub fn composed(name: &str) -> Cow<'_, str> {
    if name.is_ascii() { name.into() } else { ComposingNormalizerBorrowed::new_nfc().normalize(name) }
}

/// The name of what a folder has under it; the exact name comes before one that only looks the same.
fn existing_name(folder: &Path, name: &OsStr) -> Option<OsString> {
    let is_there = |it: &OsStr| match fs::symlink_metadata(folder.join(it)) {
        // Of a folder that cannot be searched nothing is known.
        Err(it) => !matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename),
        Ok(_) => true,
    };
    let text = name.to_str().unwrap_or_default();
    let marked = path_text::from_text(text);
    // Only the text that the name has: rules about a call's arguments see no other.
    if marked.as_os_str() != name && path_text::to_text(&marked) == text && is_there(marked.as_os_str()) {
        return Some(marked.into_owned().into_os_string());
    }
    if is_there(name) {
        return Some(name.to_owned());
    }
    if text.is_ascii() {
        return None;
    }
    let wanted = composed(text);
    let looks_same = |it: &str| composed(it) == wanted;
    let found = fs::read_dir(folder).ok()?.flatten().map(|it| it.file_name());
    let equal = found.filter(|it| it.to_str().is_some_and(looks_same));
    // Of several, always the same one.
    equal.min_by_key(|it| (it.to_str() != Some(&wanted), it.clone()))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

    use super::existing_path;
    use castor_base::path::AbsPath;

    /// Names of one look: composed, decomposed, and with the marks of one letter in two orders.
    const COMPOSED: &str = "r\u{e9}sum\u{e9}.txt";
    const DECOMPOSED: &str = "re\u{301}sume\u{301}.txt";
    const HALF: &str = "r\u{e9}sume\u{301}.txt";

    fn check(on_disk: &[&str], wanted: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in on_disk {
            let path = root.join(it);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(existing_path(root.join(wanted)), root.join(expected), "{on_disk:?} {wanted}");
    }

    #[test]
    fn names_that_look_the_same_are_found() {
        check(&[DECOMPOSED], COMPOSED, DECOMPOSED);
        check(&[COMPOSED], DECOMPOSED, COMPOSED);
        check(&[COMPOSED], HALF, COMPOSED);
        // Korean, and two marks below and above in either order.
        check(&["\u{1112}\u{1161}\u{11ab}.md"], "\u{d55c}.md", "\u{1112}\u{1161}\u{11ab}.md");
        check(&["a\u{323}\u{302}"], "a\u{302}\u{323}", "a\u{323}\u{302}");
        check(&["\u{1ead}"], "a\u{302}\u{323}", "\u{1ead}");
        // Folders on the way, and new files in them.
        check(&["de\u{301}/cafe\u{301}/a"], "d\u{e9}/caf\u{e9}/a", "de\u{301}/cafe\u{301}/a");
        check(&["de\u{301}/a"], "d\u{e9}/n\u{e9}w/b", "de\u{301}/n\u{e9}w/b");
    }

    #[test]
    fn other_names_stay_as_they_are() {
        check(&[COMPOSED, DECOMPOSED], COMPOSED, COMPOSED);
        check(&[COMPOSED, DECOMPOSED], DECOMPOSED, DECOMPOSED);
        check(&[COMPOSED, DECOMPOSED], HALF, COMPOSED);
        check(&[DECOMPOSED, HALF], COMPOSED, DECOMPOSED);
        check(&["resume.txt"], COMPOSED, COMPOSED);
        check(&["R\u{c9}SUM\u{c9}.TXT"], COMPOSED, COMPOSED);
        // Compatible is not equal: a ligature, a full-width letter.
        check(&["\u{fb01}le", "\u{ff41}"], "file", "file");
        check(&["file"], "\u{fb01}le", "\u{fb01}le");
        check(&["f"], "f/\u{e9}", "f/\u{e9}");
        check(&[], COMPOSED, COMPOSED);
    }

    #[test]
    fn names_that_are_no_text_are_found_by_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let odd = root.join(OsStr::from_bytes(b"\xb2\xe2/bad\xff.txt"));
        fs::create_dir_all(odd.parent().unwrap()).unwrap();
        fs::write(&odd, "x").unwrap();
        let typed = AbsPath::new(odd.to_string()).unwrap();
        assert_ne!(typed, odd);
        assert_eq!(existing_path(typed.clone()), odd);
        assert_eq!(existing_path(typed.parent().unwrap().join("new")), odd.parent().unwrap().join("new"));
        assert_eq!(existing_path(root.join("\\xff")), root.join("\\xff"));
        fs::write(root.join("\u{e9}"), "").unwrap();
        assert_eq!(existing_path(root.join("\\xc3\\xa9")), root.join("\\xc3\\xa9"), "text has no marks");
        // A file that is really called so has a text of its own.
        fs::create_dir_all(typed.parent().unwrap()).unwrap();
        fs::write(&typed, "y").unwrap();
        assert_eq!(existing_path(typed.clone()), odd);
        assert_eq!(existing_path(AbsPath::new(typed.to_string()).unwrap()), typed);
    }
}
