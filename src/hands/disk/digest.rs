//! File hashes, and whether files still have them.
#![allow(clippy::disallowed_methods)]

use std::{
    fs::File,
    io::{self, Read},
};

use ring::digest;
use sha2::{Digest, Sha256};

use castor_base::trust::ScriptHashes;

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

/// SHA-256 of a file's bytes.
pub type ContentHash = [u8; 32];

const CHUNK: usize = 256 << 10;

pub fn hash_of(bytes: &[u8]) -> ContentHash {
    whole(&digest::digest(&digest::SHA256, bytes))
}

/// The hash of what is left to read of a file.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of_file(mut file: &File) -> io::Result<ContentHash> {
    let (mut context, mut buffer) = (digest::Context::new(&digest::SHA256), vec![0; CHUNK]);
    loop {
        let n = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..n).filter(|it| !it.is_empty()) else { return Ok(whole(&context.finish())) };
        context.update(bytes);
    }
}

fn whole(digest: &digest::Digest) -> ContentHash {
    digest.as_ref().try_into().unwrap_or_default()
}
