//! File hashes, and whether files still have them.
#![allow(clippy::disallowed_methods)]

use sha2::{Digest, Sha256};

use crate::base::trust::ScriptHashes;

/// What is read of a file before it runs: more of them together is not trusted.
const MAX_BOUND: u64 = 64 << 20;

pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two lower-case digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |it: u8| char::from_digit(it.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}

/// Why something must not run: the first of its files that is no longer what it was. Blocks.
pub fn changed_file(bound: &ScriptHashes) -> Option<String> {
    let is_same = |path, hashed: &str| super::read_head(path, MAX_BOUND).is_ok_and(|it| hash(&it) == hashed);
    let other = bound.iter().find(|(path, hash)| !is_same(path, hash))?;
    Some(format!("{} has changed since you trusted it", other.0))
}
