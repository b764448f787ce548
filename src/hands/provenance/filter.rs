//! A filter of hashes that never forgets one: sometimes it has one that was never put in, which counts as unseen.

use serde::{Deserialize, Serialize};

use super::ContentHash;

const BYTES: usize = 128 << 10;

#[derive(Default, Serialize, Deserialize)]
pub struct HashFilter {
    bits: Vec<u8>,
    #[serde(skip)]
    pub is_changed: bool,
}

impl HashFilter {
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    pub fn insert(&mut self, hash: &ContentHash) {
        self.is_changed |= !self.has(hash);
        self.bits.resize(BYTES, 0);
        places(hash).for_each(|(at, bit)| self.bits.get_mut(at).into_iter().for_each(|it| *it |= bit));
    }

    pub fn has(&self, hash: &ContentHash) -> bool {
        places(hash).all(|(at, bit)| self.bits.get(at).is_some_and(|it| it & bit != 0))
    }
}

fn places(hash: &ContentHash) -> impl Iterator<Item = (usize, u8)> {
    hash.as_chunks::<4>().0.iter().take(4).map(|it| {
        let bit = u32::from_le_bytes(*it) as usize % (BYTES * 8);
        (bit / 8, 1 << (bit % 8))
    })
}
