//! Which files of secrets git has a copy of: what stands in its index, `git show` and `git diff` print.

use std::collections::BTreeMap;

use memchr::{memchr, memmem};

use crate::{
    base::{path::AbsPath, tool::Tracked},
    world::disk,
};

/// Of a larger index nobody knows what is in it.
const MAX_INDEX: u64 = 64 * 1024 * 1024;
/// A path of the index stands behind this much of what is known of its file: times, numbers, size, hash, flags.
const ENTRY: usize = 62;
/// Two bytes more of flags stand in front of the path.
const MORE_FLAGS: u8 = 0x40;

/// Those of `secrets` that are in the index of the repository around them. Blocks.
pub fn tracked(secrets: &[AbsPath]) -> Vec<Tracked> {
    let mut read: BTreeMap<AbsPath, Index> = BTreeMap::new();
    let found = secrets.iter().filter_map(|path| {
        let (root, index) = around(path)?;
        let index = read.entry(index.clone()).or_insert_with(|| Index::read(&index));
        index.has(&root, path)
    });
    found.collect()
}

/// All that the index of a work tree knows, from its top; `None`: nobody can say. Blocks.
pub fn all(top: &AbsPath) -> Option<Vec<String>> {
    let (_, index) = around(&top.join("any"))?;
    let Index::Bytes(bytes) = Index::read(&index) else { return None };
    let count = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let (mut res, mut at) = (Vec::new(), 12);
    for _ in 0..count {
        let flags = bytes.get(at + ENTRY - 2)?;
        let start = at + ENTRY + if flags & MORE_FLAGS == 0 { 0 } else { 2 };
        let len = memchr(0, bytes.get(start..)?)?;
        res.push(String::from_utf8_lossy(bytes.get(start..start + len)?).into_owned());
        // Filled up to eight bytes, with one at least.
        at += (start + len - at + 8) & !7;
    }
    Some(res)
}

/// The work tree that a file is in, and the index of its repository.
fn around(path: &AbsPath) -> Option<(AbsPath, AbsPath)> {
    let root =
        std::iter::successors(path.parent(), AbsPath::parent).find(|it| disk::metadata(&it.join(".git")).is_ok())?;
    let git = root.join(".git");
    if disk::metadata(&git).is_ok_and(|it| it.is_dir) {
        return Some((root, git.join("index")));
    }
    // Of a work tree that was added to a repository: a file says where its own part of that is.
    let text = disk::read_head(&git, 4_096).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let folder = root.join(text.trim().strip_prefix("gitdir:")?.trim());
    Some((root, folder.join("index")))
}

enum Index {
    /// There is none: nothing was ever added.
    Nothing,
    Bytes(Vec<u8>),
    /// Too large, or in a form in which paths are not written out.
    Unknown,
}

impl Index {
    fn read(path: &AbsPath) -> Self {
        match disk::metadata(path) {
            Err(_) => return Self::Nothing,
            Ok(it) if it.len > MAX_INDEX => return Self::Unknown,
            Ok(_) => (),
        }
        let Ok(bytes) = disk::read(path) else { return Self::Unknown };
        match bytes.get(..8) {
            Some(b"DIRC\0\0\0\x02" | b"DIRC\0\0\0\x03") => Self::Bytes(bytes),
            _ => Self::Unknown,
        }
    }

    /// Whether git knows the file below `root`.
    fn has(&self, root: &AbsPath, path: &AbsPath) -> Option<Tracked> {
        let tracked = |changed| Tracked { path: path.clone(), changed };
        let bytes = match self {
            Self::Nothing => return None,
            Self::Unknown => return Some(tracked(true)),
            Self::Bytes(it) => it,
        };
        let mut name = path.as_path().strip_prefix(root.as_path()).ok()?.to_string_lossy().into_owned().into_bytes();
        name.push(0);
        let len = name.len() - 1;
        let at = memmem::find_iter(bytes, &name).find(|it| Self::begins(bytes, *it, len))?;
        Some(tracked(Self::stamp(bytes, at) != stamp_now(path)))
    }

    /// Whether a path begins there, and not only the end of one: its length stands in front of it, or more flags do.
    fn begins(bytes: &[u8], at: usize, len: usize) -> bool {
        let says = |back: usize| {
            let flags = bytes.get(at.checked_sub(back)?..)?.first_chunk::<2>()?;
            Some(usize::from(u16::from_be_bytes(*flags) & 0xfff) == len.min(0xfff))
        };
        says(2) == Some(true) || says(4) == Some(true)
    }

    /// When the file was changed last and how large it was then, as far as its entry says it.
    fn stamp(bytes: &[u8], at: usize) -> Option<(u32, u32)> {
        let entry = bytes.get(at.checked_sub(ENTRY)?..at)?;
        let number = |from: usize| Some(u32::from_be_bytes(entry.get(from..from + 4)?.try_into().ok()?));
        Some((number(8)?, number(36)?))
    }
}

/// git keeps the last four bytes of each.
fn stamp_now(path: &AbsPath) -> Option<(u32, u32)> {
    let meta = disk::metadata(path).ok()?;
    Some(((meta.modified_ms / 1_000) as u32, meta.len as u32))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::{all, tracked};
    use crate::world::tools::testing::Ground;

    /// An index in git's second form with these files as they are.
    #[allow(clippy::disallowed_methods)]
    fn index(ground: &Ground, paths: &[&str]) -> Vec<u8> {
        let mut res = b"DIRC\0\0\0\x02".to_vec();
        res.extend((paths.len() as u32).to_be_bytes());
        for path in paths {
            let meta = std::fs::metadata(ground.cwd.join(path)).unwrap();
            let (time, size) = (meta.mtime() as u32, meta.size() as u32);
            for it in [time, 0, time, 0, 0, 0, 0, 0, 0, size] {
                res.extend(it.to_be_bytes());
            }
            res.extend([7; 20]);
            res.extend((path.len() as u16).to_be_bytes());
            res.extend(path.as_bytes());
            res.extend(vec![0; 8 - (62 + path.len()) % 8]);
        }
        res
    }

    #[test]
    fn what_git_has_is_told_from_its_index() {
        let ground = Ground::new(&[("a/.env", "x=1"), ("b/.env", "x=2"), (".env", "x"), ("src/main.rs", "x")]);
        let secrets = ["a/.env", "b/.env", ".env"].map(|it| ground.cwd.join(it));
        let got = || -> Vec<(String, bool)> {
            tracked(&secrets).into_iter().map(|it| (it.path.shown_from(&ground.cwd), it.changed)).collect()
        };
        assert_eq!(got(), [], "no repository");
        ground.write(".git/HEAD", b"ref: refs/heads/main");
        assert_eq!(got(), [], "nothing was added");
        ground.write(".git/index", &index(&ground, &["a/.env", "b/.env", "src/main.rs"]));
        let names = |all: &[(&str, bool)]| all.iter().map(|it| (it.0.to_owned(), it.1)).collect::<Vec<_>>();
        assert_eq!(got(), names(&[("a/.env", false), ("b/.env", false)]));
        assert_eq!(all(&ground.cwd).unwrap(), ["a/.env", "b/.env", "src/main.rs"]);
        ground.write("b/.env", b"another");
        assert_eq!(got()[1], ("b/.env".to_owned(), true));
        // A form in which paths are cut short.
        ground.write(".git/index", b"DIRC\0\0\0\x04\0\0\0\x01");
        assert!(got().len() == 3 && got().iter().all(|it| it.1));
        ground.write(".git/index", &index(&ground, &["src/main.rs"]));
        assert_eq!(got(), []);
        // A work tree of a repository elsewhere.
        ground.write("b/.git", b"gitdir: ../.git/worktrees/b\n");
        ground.write(".git/worktrees/b/index", &index(&ground, &[".env"]));
        assert_eq!(got(), names(&[("b/.env", true)]));
    }
}
