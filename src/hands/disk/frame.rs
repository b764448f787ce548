//! Values on the disk in frames with a checksum: a torn frame is none.

use std::io;

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

const CHECK: usize = 8;

/// A frame: how long, the beginning of its hash, the bytes.
/// # Errors
/// When the value cannot be written down.
pub fn frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let payload = postcard::to_allocvec(value).map_err(io::Error::other)?;
    Ok([&(payload.len() as u64).to_le_bytes(), Sha256::digest(&payload).split_at(CHECK).0, &payload].concat())
}

/// What the frame at the start of `bytes` holds, and what follows it; `None`: it is torn.
pub fn unframe<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let (check, rest) = rest.split_first_chunk::<CHECK>()?;
    let (payload, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let is_whole = Sha256::digest(payload).starts_with(check);
    Some((is_whole.then(|| postcard::from_bytes(payload).ok())??, rest))
}
