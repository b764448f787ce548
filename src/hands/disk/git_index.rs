//! The git index: the files that a repository tracks.

use std::borrow::Cow;

/// A file in the index: times, numbers, mode, size, hash, flags and path.
pub type Entry<'a> = (&'a [u8], Cow<'a, [u8]>);

/// Where these are in the first part of an entry.
pub const MODE: std::ops::Range<usize> = 24..28;
pub const SIZE: std::ops::Range<usize> = 36..40;

/// A path stands behind this much; two bytes more of flags may be in front of it.
const HEADER_LEN: usize = 62;
const MORE_FLAGS: u8 = 0x40;
/// The longest path, and all of them together, where paths leave out how they begin: a few bytes can say much there.
const MAX_PATH: usize = 4096;
const MAX_PATHS: usize = 256 << 20;

/// The entries of an index, in its second, third or fourth form; `None`: nobody can say. Longer names of objects are rare.
pub fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let is_cut = match bytes.get(..8)? {
        b"DIRC\0\0\0\x02" | b"DIRC\0\0\0\x03" => false,
        b"DIRC\0\0\0\x04" => true,
        _ => return None,
    };
    let n = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let (mut res, mut rest, mut path, mut n_bytes) = (Vec::new(), bytes.get(12..)?, Vec::new(), 0);
    for _ in 0..n {
        let start = if rest.get(HEADER_LEN - 2)? & MORE_FLAGS == 0 { HEADER_LEN } else { HEADER_LEN + 2 };
        let (head, more) = rest.split_at_checked(start)?;
        if is_cut {
            let (n_gone, more) = number(more)?;
            let end = more.iter().position(|it| *it == 0)?;
            path.truncate(path.len().checked_sub(n_gone)?);
            path.extend_from_slice(more.get(..end)?);
            n_bytes += path.len();
            if path.len() > MAX_PATH || n_bytes > MAX_PATHS {
                return None;
            }
            res.push((head, Cow::Owned(path.clone())));
            rest = more.get(end + 1..)?;
        } else {
            let path = more.split(|it| *it == 0).next()?;
            res.push((head, Cow::Borrowed(path)));
            // Filled up to eight bytes, with one at least.
            rest = rest.get((start + path.len() + 8) & !7..)?;
        }
    }
    Some(res)
}

/// A number as git writes it, and what follows: seven bits a byte, and behind each byte but the last one more.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut res = 0;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        res = (res << 7) + usize::from(byte & 127);
        if byte & 128 == 0 {
            return Some((res, bytes.get(at + 1..)?));
        }
        res += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{entries, number};

    /// Numbers as git's `encode_varint` has them.
    #[test]
    fn numbers_are_gits() {
        for (bytes, want) in [(&[0_u8][..], 0), (&[127], 127), (&[128, 0], 128), (&[128, 127], 255), (&[129, 0], 256)] {
            assert_eq!(number(bytes), Some((want, &[][..])), "{bytes:?}");
        }
        assert_eq!((number(&[]), number(&[128]), number(&[255; 9])), (None, None, None));
    }

    #[test]
    fn paths_of_the_fourth_form_go_on_from_those_before() {
        let index = |paths: &[(u8, &str)]| {
            let head = [&b"DIRC\0\0\0\x04"[..], &u32::try_from(paths.len()).unwrap().to_be_bytes()].concat();
            let entry = |it: &(u8, &str)| [&[0; 62][..], &[it.0], it.1.as_bytes(), &[0]].concat();
            [head, paths.iter().flat_map(entry).collect()].concat()
        };
        let check = |paths: &[(u8, &str)], want: Option<&[&str]>| {
            let bytes = index(paths);
            let found = entries(&bytes);
            let found = found.map(|it| it.into_iter().map(|it| it.1.into_owned()).collect::<Vec<_>>());
            assert_eq!(found, want.map(|it| it.iter().map(|it| it.as_bytes().to_vec()).collect()), "{paths:?}");
        };
        check(&[], Some(&[]));
        check(&[(0, "a/b"), (1, "c"), (0, "x"), (4, "b")], Some(&["a/b", "a/c", "a/cx", "b"]));
        check(&[(0, "a"), (2, "b")], None);
        let long = "x".repeat(3000);
        check(&[(0, &long), (0, &long)], None);
        assert!(entries(&index(&[(0, "a")])[..70]).is_none());
    }
}
