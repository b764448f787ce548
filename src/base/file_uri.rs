//! File URIs: the path that one names, and the URI of a path. Escapes, host and fragment are read here and nowhere else.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use url::Url;

/// The scheme with the start of a path; `file:name` names no place.
const START: &str = "file:/";

/// The path on this machine that a URI names. A name need not be text.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    parse(uri)?.to_file_path().ok()
}

/// `path` is absolute.
pub fn from_path(path: &Path) -> String {
    Url::from_file_path(path).map_or_else(|()| path.to_string_lossy().into_owned(), String::from)
}

/// What people and models read in place of a URI: of a file its path, with the place within it behind, else the URI.
pub fn describe_uri(uri: &str) -> Cow<'_, str> {
    let Some((url, path)) = parse(uri).and_then(|it| it.to_file_path().ok().map(|path| (it, path))) else {
        return uri.into();
    };
    let path = path.to_string_lossy();
    // A folder is one by its end.
    let end = if url.path().ends_with('/') && !path.ends_with('/') { "/" } else { "" };
    match url.fragment().filter(|it| !it.is_empty()) {
        Some(place) => format!("{path}{end} ({})", decode(place)).into(),
        None => format!("{path}{end}").into(),
    }
}

fn parse(uri: &str) -> Option<Url> {
    let is_file = uri.get(..START.len()).is_some_and(|it| it.eq_ignore_ascii_case(START));
    Url::parse(uri).ok().filter(|_| is_file)
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{describe_uri, from_path, to_path};

    #[test]
    fn uris_name_paths() {
        for (uri, path) in [
            ("file:///ws/with%20space.txt", Some("/ws/with space.txt")),
            ("file:///ws/100%25.txt", Some("/ws/100%.txt")),
            ("file:///ws/a%23b%3Fc.txt", Some("/ws/a#b?c.txt")),
            ("file:///ws/%E6%B5%8B%E8%AF%95.rs", Some("/ws/测试.rs")),
            ("file:///ws/测试.rs", Some("/ws/测试.rs")),
            ("file:///ws/with space.txt", Some("/ws/with space.txt")),
            ("file:///ws/100%.txt", Some("/ws/100%.txt")),
            ("file:///ws/a.rs#L10-20", Some("/ws/a.rs")),
            ("file:///ws/a.rs?symbol=b#L1", Some("/ws/a.rs")),
            ("file://localhost/ws/a", Some("/ws/a")),
            ("file:/ws/a", Some("/ws/a")),
            ("FILE:///ws/a", Some("/ws/a")),
            ("file:///ws/a/../b", Some("/ws/b")),
            ("file://elsewhere/ws/a", None),
            ("file:ws/a", None),
            ("https://a.b/c", None),
            ("/ws/a", None),
            ("", None),
        ] {
            assert_eq!(to_path(uri), path.map(PathBuf::from), "{uri}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn every_name_comes_back() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        let odd: &[u8] = b"/w/bad\xff\xfe.txt";
        let names = ["/", "/w/a b", "/w/100%25", "/w/#?%;:@&=+$,[]{}|^`\"<>\\", "/w/ü 日本語 👍", "/w/a\nb", "/w/..."];
        let names = names.iter().map(|it| it.as_bytes()).chain([odd]);
        for name in names {
            let path = Path::new(OsStr::from_bytes(name));
            let uri = from_path(path);
            assert_eq!(to_path(&uri).as_deref(), Some(path), "{uri}");
            assert!(uri.is_ascii() && !uri.contains([' ', '#', '?']), "{uri}");
        }
    }

    #[test]
    fn people_read_paths() {
        for (uri, expected) in [
            ("file:///ws/with%20space.txt", "/ws/with space.txt"),
            ("file:///ws/folder/", "/ws/folder/"),
            ("file:///", "/"),
            ("file:///ws/a.rs#L10-20", "/ws/a.rs (L10-20)"),
            ("file:///ws/bad%FF.txt", "/ws/bad\u{fffd}.txt"),
            ("file://elsewhere/a%20b", "file://elsewhere/a%20b"),
            ("zed:///agent/thread/1", "zed:///agent/thread/1"),
            ("mem:1 2", "mem:1 2"),
        ] {
            assert_eq!(describe_uri(uri), expected);
        }
    }
}
