//! What a file tells a program to do, as a hash.
#![allow(clippy::disallowed_methods)]

use std::io;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::base::{path::AbsPath, trust::Bound};

/// Longest file that is looked at before it runs: more of them together is not trusted.
const MAX_BOUND: u64 = 64 << 20;
/// What changes in a `package.json` with every day's work, and runs nothing by itself.
const EVERYDAY: &[&str] = &[
    "version",
    "description",
    "keywords",
    "license",
    "author",
    "contributors",
    "repository",
    "bugs",
    "homepage",
    "files",
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "optionalDependencies",
];

/// The hash of a file with these bytes: a dependency more in a `package.json` makes it no other.
pub fn digest(path: &AbsPath, bytes: &[u8]) -> String {
    let is_manifest = path.as_path().file_name().is_some_and(|it| it == "package.json");
    let kept = is_manifest.then(|| kept(bytes)).flatten();
    hash(kept.as_deref().unwrap_or(bytes))
}

pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|it| format!("{it:02x}")).collect()
}

/// The hash of a file as it is now; `None`: there is none.
///
/// # Errors
/// A file that is there and cannot be read, or has more than `max` bytes.
pub fn digest_of(path: &AbsPath, max: u64) -> io::Result<Option<String>> {
    match super::read_head(path, max.saturating_add(1)) {
        Ok(bytes) if bytes.len() as u64 > max => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(bytes) => Ok(Some(digest(path, &bytes))),
        Err(it) => match it.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => Ok(None),
            _ => Err(it),
        },
    }
}

/// Why something must not run: the first of its files that is no longer what it was. Blocks.
pub fn changed(bound: &Bound) -> Option<String> {
    let is_same = |(path, hash): &&(AbsPath, Option<String>)| digest_of(path, MAX_BOUND).is_ok_and(|it| it == *hash);
    bound.iter().find(|it| !is_same(it)).map(|(path, _)| format!("{path} is not as it was when it was trusted"))
}

/// `None`: it cannot be read, so all of it counts.
fn kept(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(Value::Object(mut members)) = serde_json::from_slice(bytes) else { return None };
    members.retain(|name, _| !EVERYDAY.contains(&name.as_str()));
    serde_json::to_vec(&members).ok()
}

#[cfg(test)]
mod tests {
    use super::digest;
    use crate::base::path::AbsPath;

    #[test]
    fn a_manifest_is_what_it_would_run() {
        let of = |name: &str, text: &str| digest(&AbsPath::new(name).unwrap(), text.as_bytes());
        let (a, b) =
            (r#"{"scripts": {"x": "a"}, "version": "1"}"#, "{\"scripts\":{\"x\":\"a\"},\"dependencies\":{}}\n");
        assert_eq!(of("/w/package.json", a), of("/w/package.json", b));
        assert_ne!(of("/w/other.json", a), of("/w/other.json", b));
        for other in [r#"{"scripts": {"x": "b"}}"#, r#"{"scripts": {"x": "a"}, "type": "module"}"#, "{", "[]", ""] {
            assert_ne!(of("/w/package.json", a), of("/w/package.json", other), "{other}");
        }
    }
}
