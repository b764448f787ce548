//! The git index: the files that a repository tracks.

/// A file in the index: times, numbers, mode, size, hash, flags and path.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// Where these are in the first part of an entry.
pub const MODE: std::ops::Range<usize> = 24..28;
pub const SIZE: std::ops::Range<usize> = 36..40;

/// A path stands behind this much; two bytes more of flags may be in front of it.
const HEADER_LEN: usize = 62;
const MORE_FLAGS: u8 = 0x40;

/// The entries of an index; `None`: nobody can say. Longer names of objects are rare, and so is the fourth form, whose
/// paths leave out how they begin.
pub fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    if !matches!(bytes.get(..8)?, b"DIRC\0\0\0\x02" | b"DIRC\0\0\0\x03") {
        return None;
    }
    let n = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let (mut res, mut rest) = (Vec::new(), bytes.get(12..)?);
    for _ in 0..n {
        let start = if rest.get(HEADER_LEN - 2)? & MORE_FLAGS == 0 { HEADER_LEN } else { HEADER_LEN + 2 };
        let path = rest.get(start..)?.split(|it| *it == 0).next()?;
        res.push((rest.get(..start)?, path));
        // Filled up to eight bytes, with one at least.
        rest = rest.get((start + path.len() + 8) & !7..)?;
    }
    Some(res)
}
