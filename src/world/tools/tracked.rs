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
/// At the end of an index.
const CHECKSUM: usize = 20;

/// Those of `secrets` that are in the index of the repository around them, or whose names git prints in `dir`. Blocks.
pub fn tracked(secrets: &[AbsPath], dir: &AbsPath) -> Vec<Tracked> {
    let mut read: BTreeMap<AbsPath, Index> = BTreeMap::new();
    // git may know a file of a repository that was made within its own; and some names it counts from its top
    // wherever it is asked.
    let own = around(&dir.join("any"));
    let found = secrets.iter().filter_map(|path| {
        let of_own = own.iter().flat_map(|(root, index)| [(root.clone(), index.clone()), (dir.clone(), index.clone())]);
        around(path).into_iter().chain(of_own).find_map(|(root, index)| {
            let index = read.entry(index).or_insert_with_key(Index::read);
            index.has(&root, path)
        })
    });
    found.collect()
}

/// All that the index of a work tree knows, from its top; `None`: nobody can say. Blocks.
#[cfg(test)]
pub fn all(top: &AbsPath) -> Option<Vec<String>> {
    let (_, index) = around(&top.join("any"))?;
    let Index::Bytes(bytes) = Index::read(&index) else { return None };
    let mut res = Vec::new();
    walk(&bytes, |path| res.push(String::from_utf8_lossy(path).into_owned()))?;
    Some(res)
}

/// Goes through the paths of an index, and says where what is behind them begins.
fn walk<'b>(bytes: &'b [u8], mut see: impl FnMut(&'b [u8])) -> Option<usize> {
    let count = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let mut at = 12;
    for _ in 0..count {
        let flags = bytes.get(at + ENTRY - 2)?;
        let start = at + ENTRY + if flags & MORE_FLAGS == 0 { 0 } else { 2 };
        let len = memchr(0, bytes.get(start..)?)?;
        see(bytes.get(start..start + len)?);
        // Filled up to eight bytes, with one at least.
        at += (start + len - at + 8) & !7;
    }
    Some(at)
}

/// Whether all paths of an index stand in it: git says by small letters behind them that it must be read in another way,
/// with those of a second file, or with folders for what is in them.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(mut at) = walk(bytes, |_| ()) else { return false };
    while let Some(it) = bytes.get(at..at + 8).filter(|_| at + 8 + CHECKSUM <= bytes.len()) {
        let Some(len) = it.get(4..).and_then(|it| it.try_into().ok()).map(u32::from_be_bytes) else { return false };
        if !it.first().is_some_and(u8::is_ascii_uppercase) {
            return false;
        }
        at += 8 + len as usize;
    }
    true
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
            Some(b"DIRC\0\0\0\x02" | b"DIRC\0\0\0\x03") if is_whole(&bytes) => Self::Bytes(bytes),
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
        if let Some(at) = memmem::find_iter(bytes, &name).find(|it| Self::begins(bytes, *it, len)) {
            return Some(tracked(Self::stamp(bytes, at) != stamp_now(path)));
        }
        // The shell makes `a .env b` three names.
        let blank = |at: Option<usize>| at.and_then(|it| bytes.get(it)) == Some(&b' ');
        let parts = memmem::find_iter(bytes, name.get(..len)?);
        parts.into_iter().any(|it| blank(it.checked_sub(1)) || blank(Some(it + len))).then(|| tracked(true))
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

    use super::{Index, all, tracked};
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
            tracked(&secrets, &ground.cwd).into_iter().map(|it| (it.path.shown_from(&ground.cwd), it.changed)).collect()
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

    #[test]
    fn names_that_git_prints_are_told_from_where_they_are_read() {
        let ground = Ground::new(&[("a/.env", "x"), ("a/b/.env", "x"), ("a/x", "x"), (".env", "x"), ("a .env b", "x")]);
        ground.write(".git/HEAD", b"ref: refs/heads/main");
        let got = |files: &[&str], dir: &str| -> Vec<String> {
            ground.write(".git/index", &index(&ground, files));
            let secrets = ["a/.env", "a/b/.env"].map(|it| ground.cwd.join(it));
            let all = tracked(&secrets, &ground.cwd.join(dir)).into_iter();
            all.map(|it| it.path.shown_from(&ground.cwd)).collect()
        };
        assert_eq!(got(&["a/x", ".env"], "."), [""; 0]);
        // `git diff --name-only` in a folder counts from the top.
        assert_eq!(got(&["a/x", ".env"], "a"), ["a/.env"]);
        assert_eq!(got(&["a .env b"], "a"), ["a/.env"]);
        // A repository was made around what this one knows.
        ground.write("a/b/.git/HEAD", b"ref: refs/heads/main");
        assert_eq!(got(&["a/b/.env"], "."), ["a/b/.env"]);
    }

    #[test]
    fn an_index_that_is_not_whole_is_not_known() {
        let ground = Ground::new(&[("x", "x"), (".git/HEAD", "x")]);
        let is_known = |more: &[u8]| {
            ground.write(".git/index", &[&index(&ground, &["x"]), more, &[0; 20]].concat());
            matches!(Index::read(&ground.cwd.join(".git/index")), Index::Bytes(_))
        };
        assert!(is_known(b""));
        assert!(is_known(b"TREE\0\0\0\x02ab"));
        assert!(!is_known(b"link\0\0\0\x02ab"));
        assert!(!is_known(b"TREE\0\0\0\x02absdir\0\0\0\0"));
    }
}
