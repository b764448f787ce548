//! Git's objects, read in its files: loose ones and packs. What is found is checked by its hash.

use std::{
    cell::Cell,
    cmp::Ordering,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use flate2::bufread::ZlibDecoder;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::{base::path::AbsPath, world::disk};

/// The longest object that is read.
const MAX: u64 = 16 << 20;
/// How much is read in all, and what each object counts for beside its bytes: a repository may be made to be slow.
const BUDGET: u64 = 64 << 20;
const EACH: u64 = 1 << 10;
/// Of objects that are told as what others are not.
const MAX_DEPTH: u8 = 250;
const MAX_PACKS: usize = 500;

/// An object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id([u8; 20]);

impl Id {
    /// As text has it.
    pub fn read(hex: &[u8]) -> Option<Self> {
        let mut res = [0; 20];
        let digits = std::str::from_utf8(hex).ok().filter(|it| it.len() == 40 && it.is_ascii())?;
        for (to, two) in res.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *to = u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?;
        }
        Some(Self(res))
    }

    fn path(self) -> PathBuf {
        let hex: String = self.0.iter().map(|it| format!("{it:02x}")).collect();
        let (folder, name) = hex.split_at(2);
        Path::new(folder).join(name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// As git writes them; in packs they are counted from 1.
const KINDS: [(Kind, &str); 4] =
    [(Kind::Commit, "commit"), (Kind::Tree, "tree"), (Kind::Blob, "blob"), (Kind::Tag, "tag")];

type Object = (Kind, Vec<u8>);

/// The name that an object has by its content.
pub fn hash(kind: Kind, bytes: &[u8]) -> Id {
    let word = KINDS.iter().find(|it| it.0 == kind).map_or("", |it| it.1);
    let whole = [format!("{word} {}\0", bytes.len()).as_bytes(), bytes].concat();
    let mut res = [0; 20];
    res.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref());
    Id(res)
}

/// Of a tree: mode, name and object of each entry.
pub fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], Id)> {
    std::iter::from_fn(move || {
        let blank = bytes.iter().position(|it| *it == b' ')?;
        let end = bytes.iter().position(|it| *it == 0)?;
        let (mode, name) = (bytes.get(..blank)?, bytes.get(blank + 1..end)?);
        let (id, rest) = bytes.get(end + 1..)?.split_first_chunk()?;
        bytes = rest;
        Some((mode, name, Id(*id)))
    })
}

pub struct Objects {
    folder: PathBuf,
    packs: Vec<(File, File)>,
    left: Cell<u64>,
}

impl Objects {
    pub fn of(git: &Path) -> Self {
        let folder = git.join("objects");
        let names = fs::read_dir(folder.join("pack")).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
        let indexes = names.filter(|it| it.extension().is_some_and(|it| it == "idx")).take(MAX_PACKS);
        let packs = indexes.filter_map(|it| Some((open(&it)?, open(&it.with_extension("pack"))?))).collect();
        Self { folder, packs, left: Cell::new(BUDGET) }
    }

    /// `None`: it is not there, is another one, or too much was read already.
    pub fn read(&self, id: Id) -> Option<Object> {
        self.found(id, 0).filter(|(kind, bytes)| hash(*kind, bytes) == id)
    }

    fn found(&self, id: Id, depth: u8) -> Option<Object> {
        let packed = || self.packs.iter().find_map(|(index, pack)| self.packed(pack, offset(index, id)?, depth));
        self.loose(id).or_else(packed)
    }

    fn loose(&self, id: Id) -> Option<Object> {
        let whole = self.inflated(BufReader::new(open(&self.folder.join(id.path()))?))?;
        let end = whole.iter().position(|it| *it == 0)?;
        let word = whole.split(|it| *it == b' ').next()?;
        let kind = KINDS.iter().find(|it| it.1.as_bytes() == word)?.0;
        Some((kind, whole.get(end + 1..)?.to_vec()))
    }

    fn packed(&self, pack: &File, at: u64, depth: u8) -> Option<Object> {
        let mut from = BufReader::new(pack);
        from.seek(SeekFrom::Start(at)).ok()?;
        let first = byte(&mut from)?;
        number(&mut from, first, 4)?;
        // Whole, or told as what another one is not: one that stands before it, or one by its name.
        let base: Box<dyn FnOnce(u8) -> Option<Object>> = match first >> 4 & 7 {
            6 => {
                let before = at.checked_sub(distance(&mut from)?)?;
                Box::new(move |depth| self.packed(pack, before, depth))
            }
            7 => {
                let mut id = [0; 20];
                from.read_exact(&mut id).ok()?;
                Box::new(move |depth| self.found(Id(id), depth))
            }
            kind => {
                let kind = KINDS.get(usize::try_from(kind).ok()?.checked_sub(1)?)?.0;
                return Some((kind, self.inflated(from)?));
            }
        };
        // Who reads the base reads in the same file.
        let change = self.inflated(from)?;
        let (kind, base) = base(depth.checked_add(1).filter(|it| *it < MAX_DEPTH)?)?;
        Some((kind, changed(&base, &change)?))
    }

    fn inflated(&self, from: impl BufRead) -> Option<Vec<u8>> {
        let mut res = Vec::new();
        let max = self.left.get().min(MAX);
        ZlibDecoder::new(from).take(max).read_to_end(&mut res).ok()?;
        self.left.set(self.left.get().saturating_sub(res.len() as u64 + EACH));
        ((res.len() as u64) < max).then_some(res)
    }
}

/// A regular file, through no link.
fn open(path: &Path) -> Option<File> {
    disk::open_real(&AbsPath::new(path)?).ok()
}

/// Where an object begins in a pack, by the pack's index.
fn offset(index: &File, id: Id) -> Option<u64> {
    const HEAD: u64 = 0xff74_4f63;
    const IDS: u64 = 8 + 256 * 4;
    let word = |at: u64| {
        let mut res = [0; 4];
        index.read_exact_at(&mut res, at).ok()?;
        Some(u64::from(u32::from_be_bytes(res)))
    };
    let begun = |first: u64| word(8 + 4 * first);
    if (word(0)?, word(4)?) != (HEAD, 2) {
        return None;
    }
    let (first, all) = (u64::from(id.0[0]), begun(255)?);
    let mut within = first.checked_sub(1).map_or(Some(0), begun)?..begun(first)?;
    while !within.is_empty() {
        let mid = within.start.midpoint(within.end);
        let mut it = [0; 20];
        index.read_exact_at(&mut it, IDS + 20 * mid).ok()?;
        match it.cmp(&id.0) {
            Ordering::Less => within.start = mid + 1,
            Ordering::Greater => within.end = mid,
            Ordering::Equal => {
                let at = word(IDS + 24 * all + 4 * mid)?;
                let far = IDS + 28 * all + 8 * (at & 0x7fff_ffff);
                return if at >> 31 == 0 { Some(at) } else { Some(word(far)? << 32 | word(far + 4)?) };
            }
        }
    }
    None
}

fn byte(from: &mut impl Read) -> Option<u64> {
    let mut res = [0];
    from.read_exact(&mut res).ok()?;
    Some(u64::from(res[0]))
}

/// A number in pieces, the lowest first: the last bits of `first`, and seven of each that follows.
fn number(from: &mut impl Read, first: u64, bits: u32) -> Option<u64> {
    let (mut res, mut shift, mut last) = (first & ((1 << bits) - 1), bits, first);
    while last & 0x80 != 0 {
        last = byte(from)?;
        res |= (last & 0x7f).checked_shl(shift)?;
        shift += 7;
    }
    Some(res)
}

/// How far before it an object's base begins.
fn distance(from: &mut impl Read) -> Option<u64> {
    let mut last = byte(from)?;
    let mut res = last & 0x7f;
    while last & 0x80 != 0 {
        last = byte(from)?;
        res = (res + 1).checked_mul(0x80)? | last & 0x7f;
    }
    Some(res)
}

/// What a change makes of its base.
fn changed(base: &[u8], mut change: &[u8]) -> Option<Vec<u8>> {
    for _ in ["before", "after"] {
        let first = byte(&mut change)?;
        number(&mut change, first, 7)?;
    }
    let mut res = Vec::new();
    while let Some(order) = byte(&mut change).filter(|_| res.len() as u64 <= MAX) {
        if order & 0x80 == 0 {
            let (new, rest) = change.split_at_checked(usize::try_from(order).ok()?)?;
            res.extend_from_slice(new);
            change = rest;
            continue;
        }
        let at = sparse(&mut change, order, 0..4)?;
        let n = Some(sparse(&mut change, order, 4..7)?).filter(|it| *it != 0).unwrap_or(0x1_0000);
        res.extend_from_slice(base.get(at..at.checked_add(n)?)?);
    }
    change.is_empty().then_some(res)
}

/// A number of which only those bytes are there that an order's bits tell of.
fn sparse(change: &mut &[u8], order: u64, bits: Range<u32>) -> Option<usize> {
    let mut res = 0;
    for (at, bit) in bits.enumerate() {
        if order >> bit & 1 != 0 {
            res |= usize::try_from(byte(change)?).ok()? << (8 * at);
        }
    }
    Some(res)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, path::Path};

    use flate2::{Compression, write::ZlibEncoder};

    use super::{Id, Kind, Objects, changed, entries, hash};

    fn write(git: &Path, id: Id, text: &[u8]) {
        let path = git.join("objects").join(id.path());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = ZlibEncoder::new(fs::File::create(path).unwrap(), Compression::default());
        file.write_all(text).unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn an_object_is_what_its_name_says() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().canonicalize().unwrap();
        // As git names it.
        let id = Id::read(b"ce013625030ba8dba906f756967f9e9ca394464a").unwrap();
        assert_eq!((hash(Kind::Blob, b"hello\n"), Id::read(b"ce01")), (id, None));
        assert!(Objects::of(&git).read(id).is_none());
        for (text, want) in [("blob 6\0hello\n", true), ("blob 6\0other\n", false), ("tree 6\0hello\n", false)] {
            write(&git, id, text.as_bytes());
            assert_eq!(Objects::of(&git).read(id).is_some(), want, "{text}");
        }
        let large = vec![0; 1 << 20];
        let name = hash(Kind::Blob, &large);
        write(&git, name, &[b"blob 1048576\0", large.as_slice()].concat());
        let objects = Objects::of(&git);
        assert_eq!((0..100).filter(|_| objects.read(name).is_some()).count(), 63, "the budget has an end");
    }

    #[test]
    fn changes_and_trees_that_are_cut_off_say_nothing() {
        let change = [5, 8, 0x91, 1, 4, 2, b'x', b'y', 0x90, 2];
        assert_eq!(changed(b"abcde", &change).unwrap(), b"bcdexyab");
        for end in [0, 1, 3, 4, 6, 9] {
            assert_eq!(changed(b"abcde", &change[..end]), None, "{end}");
        }
        assert_eq!(changed(b"abc", &change), None);
        let tree = [b"100644 a\0".as_slice(), &[1; 20], b"40000 b\0", &[2; 19]].concat();
        let names: Vec<_> = entries(&tree).map(|it| (it.0, it.1, it.2.0[0])).collect();
        assert_eq!(names, [(b"100644".as_slice(), b"a".as_slice(), 1)]);
    }
}
