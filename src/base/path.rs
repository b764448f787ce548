//! Absolute, lexically normal paths, for the protocol and the tools.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::path_text;

/// A path that is absolute and has no `.` or `..` in it. Symlinks are not resolved here: that needs a disk. As text,
/// for people, models, clients and logs, it is that of [`path_text`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct AbsPath(#[schemars(with = "PathBuf")] Arc<Path>);

impl AbsPath {
    /// `None` unless the path is absolute.
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        path.is_absolute().then(|| Self(normalize(path)))
    }

    /// Of the text of a path, as a client or a log has it; `None` unless it is absolute.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::new(path_text::from_text(text))
    }

    /// A path as people write it in settings: absolute, or `~/` and what is below `home`.
    pub fn written(path: &str, home: Option<&Self>) -> Option<Self> {
        match path.strip_prefix("~/") {
            Some(rest) => home.map(|it| it.join(rest.trim_start_matches('/'))),
            None => Self::new(path),
        }
    }

    /// A word of a command line as a shell reads it: `~/` in front of it is this folder, the home.
    pub fn expand_word(&self, word: &str) -> String {
        match Self::written(word, Some(self)).filter(|_| word.starts_with("~/")) {
            // Programs look at the end of a folder's name.
            Some(path) if word.ends_with('/') => format!("{path}/"),
            Some(path) => path.to_string(),
            None => word.to_owned(),
        }
    }

    /// `path` as seen from here: absolute ones stay, relative ones are joined. NUL bytes are dropped.
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        match path.as_os_str().as_encoded_bytes().contains(&0) {
            true => Self(normalize(&self.0.join(path.to_string_lossy().replace('\0', "")))),
            false => Self(normalize(&self.0.join(path))),
        }
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|it| Self(it.into()))
    }

    /// Tells whether this is `root` or below it, by components.
    pub fn is_within(&self, root: &Self) -> bool {
        self.0.starts_with(&root.0)
    }

    /// Relative to `root` where it is below it, else whole: for titles and messages.
    pub fn relative_to(&self, root: &Self) -> String {
        match self.0.strip_prefix(&root.0) {
            Ok(it) if it.as_os_str().is_empty() => ".".to_owned(),
            Ok(it) => path_text::to_text(it).into_owned(),
            Err(_) => self.to_string(),
        }
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for AbsPath {
    type Error = String;

    fn try_from(it: String) -> Result<Self, String> {
        Self::from_text(&it).ok_or_else(|| format!("{it} is not an absolute path"))
    }
}

impl From<AbsPath> for PathBuf {
    fn from(it: AbsPath) -> Self {
        it.0.to_path_buf()
    }
}

impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        path_text::serialize(&self.0, to)
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        path_text::to_text(&self.0).fmt(f)
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn normalize(path: &Path) -> Arc<Path> {
    if is_normal(path) {
        return path.into();
    }
    let mut res = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => (),
            Component::ParentDir => _ = res.pop(),
            _ => res.push(part),
        }
    }
    res.into()
}

/// Tells whether it is surely as `normalize` would make it. Nearly all are, and each prompt joins some dozens.
fn is_normal(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let is_plain = |it: &[u8]| !matches!(it, b"" | b"." | b"..");
    cfg!(unix) && bytes.strip_prefix(b"/").is_some_and(|it| it.split(|it| *it == b'/').all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::AbsPath;

    #[test]
    fn joins_and_normalizes() {
        let root = AbsPath::new("/w/./a/..").unwrap();
        assert_eq!(root.to_string(), "/w");
        assert_eq!(root.join("x/../y\0z").to_string(), "/w/yz");
        assert_eq!(root.join("/etc/passwd").to_string(), "/etc/passwd");
        assert_eq!(root.join("../../..").to_string(), "/");
        for (path, normal) in
            [("/", "/"), ("//a//b/", "/a/b"), ("/a/./b/.", "/a/b"), ("/.a/..b", "/.a/..b"), ("/..", "/")]
        {
            assert_eq!(AbsPath::new(path).unwrap().to_string(), normal);
        }
        assert!(AbsPath::new("relative").is_none());
        assert!(!AbsPath::new("/work").unwrap().is_within(&root));
        assert_eq!(root.join("a/b").relative_to(&root), "a/b");
    }
}
