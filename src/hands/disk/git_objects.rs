//! Git objects, loose or packed, read without git and checked by their hash.

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
use serde::{Deserialize, Serialize};

use crate::disk;
use castor_base::path::AbsPath;

/// The longest object that is read.
const MAX_OBJECT: u64 = 16 << 20;
/// How much is read in all, and what each object counts for beside its bytes: a repository may be made to be slow.
const BUDGET: u64 = 64 << 20;
const OBJECT_COST: u64 = 1 << 10;
/// Of objects that are told as what others are not.
const MAX_DEPTH: u8 = 250;
const MAX_PACKS: usize = 500;
/// Objects of a pack that are listed.
const MAX_LISTED: usize = 2_000;

/// An object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// As text has it.
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        let mut res = [0; 20];
        let digits = std::str::from_utf8(hex).ok().filter(|it| it.len() == 40 && it.is_ascii())?;
        for (to, two) in res.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *to = u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?;
        }
        Some(Self(res))
    }

    /// In the form of a content's hash, of which it is none.
    pub fn as_key(self) -> [u8; 32] {
        let mut res = [0; 32];
        res.iter_mut().zip(self.0).for_each(|(to, byte)| *to = byte);
        res
    }

    fn path(self) -> PathBuf {
        let hex = super::hex(&self.0);
        let (folder, name) = hex.split_at(2);
        Path::new(folder).join(name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// As git writes them; in packs they are counted from 1.
const KINDS: [(ObjectKind, &str); 4] =
    [(ObjectKind::Commit, "commit"), (ObjectKind::Tree, "tree"), (ObjectKind::Blob, "blob"), (ObjectKind::Tag, "tag")];

type Object = (ObjectKind, Vec<u8>);

/// The name that an object has by its content.
pub fn hash(kind: ObjectKind, bytes: &[u8]) -> ObjectId {
    let word = KINDS.iter().find(|it| it.0 == kind).map_or("", |it| it.1);
    let whole = [format!("{word} {}\0", bytes.len()).as_bytes(), bytes].concat();
    let mut res = [0; 20];
    res.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref());
    ObjectId(res)
}

/// Of a tree: mode, name and object of each entry.
pub fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], ObjectId)> {
    std::iter::from_fn(move || {
        let blank = bytes.iter().position(|it| *it == b' ')?;
        let end = bytes.iter().position(|it| *it == 0)?;
        let (mode, name) = (bytes.get(..blank)?, bytes.get(blank + 1..end)?);
        let (id, rest) = bytes.get(end + 1..)?.split_first_chunk()?;
        bytes = rest;
        Some((mode, name, ObjectId(*id)))
    })
}

/// The objects that a file of a repository brings: a loose one, or those that the index of a pack names.
pub fn brought_by(path: &[u8], bytes: impl FnOnce() -> Option<Vec<u8>>) -> Vec<ObjectId> {
    let mut parts = path.rsplit(|it| *it == b'/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(b"pack"), Some(b"objects")) if name.ends_with(b".idx") => {
            bytes().as_deref().and_then(packed_ids).unwrap_or_default()
        }
        (Some(name), Some(folder), Some(b"objects")) => {
            ObjectId::from_hex(&[folder, name].concat()).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// `None`: there are too many, or it is no index.
fn packed_ids(index: &[u8]) -> Option<Vec<ObjectId>> {
    let (head, ids) = index.split_at_checked(8 + 256 * 4).filter(|it| it.0.starts_with(b"\xfftOc\0\0\0\x02"))?;
    let n = usize::try_from(u32::from_be_bytes(*head.last_chunk()?)).ok().filter(|it| *it <= MAX_LISTED)?;
    Some(ids.get(..n * 20)?.as_chunks().0.iter().map(|it| ObjectId(*it)).collect())
}

pub struct Objects {
    folder: PathBuf,
    packs: Vec<(File, File)>,
    budget: Cell<u64>,
}

impl Objects {
    pub fn open(git: &Path) -> Self {
        let folder = git.join("objects");
        let names = fs::read_dir(folder.join("pack")).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
        let indexes = names.filter(|it| it.extension().is_some_and(|it| it == "idx")).take(MAX_PACKS);
        let packs = indexes.filter_map(|it| Some((open(&it)?, open(&it.with_extension("pack"))?))).collect();
        Self { folder, packs, budget: Cell::new(BUDGET) }
    }

    /// `None`: it is not there, is another one, or too much was read already.
    pub fn read(&self, id: ObjectId) -> Option<Object> {
        self.find(id, 0).filter(|(kind, bytes)| hash(*kind, bytes) == id)
    }

    fn find(&self, id: ObjectId, depth: u8) -> Option<Object> {
        let packed = || self.packs.iter().find_map(|(index, pack)| self.read_packed(pack, offset(index, id)?, depth));
        self.read_loose(id).or_else(packed)
    }

    fn read_loose(&self, id: ObjectId) -> Option<Object> {
        let whole = self.inflate(BufReader::new(open(&self.folder.join(id.path()))?))?;
        let end = whole.iter().position(|it| *it == 0)?;
        let word = whole.split(|it| *it == b' ').next()?;
        let kind = KINDS.iter().find(|it| it.1.as_bytes() == word)?.0;
        Some((kind, whole.get(end + 1..)?.to_vec()))
    }

    fn read_packed(&self, pack: &File, at: u64, depth: u8) -> Option<Object> {
        let mut from = BufReader::new(pack);
        from.seek(SeekFrom::Start(at)).ok()?;
        let first = read_byte(&mut from)?;
        read_varint(&mut from, first, 4)?;
        // Whole, or told as what another one is not: one that stands before it, or one by its name.
        let base: Box<dyn FnOnce(u8) -> Option<Object>> = match first >> 4 & 7 {
            6 => {
                let before = at.checked_sub(read_distance(&mut from)?)?;
                Box::new(move |depth| self.read_packed(pack, before, depth))
            }
            7 => {
                let mut id = [0; 20];
                from.read_exact(&mut id).ok()?;
                Box::new(move |depth| self.find(ObjectId(id), depth))
            }
            kind => {
                let kind = KINDS.get(usize::try_from(kind).ok()?.checked_sub(1)?)?.0;
                return Some((kind, self.inflate(from)?));
            }
        };
        // Who reads the base reads in the same file.
        let change = self.inflate(from)?;
        let (kind, base) = base(depth.checked_add(1).filter(|it| *it < MAX_DEPTH)?)?;
        Some((kind, apply_delta(&base, &change)?))
    }

    fn inflate(&self, from: impl BufRead) -> Option<Vec<u8>> {
        let mut res = Vec::new();
        let max = self.budget.get().min(MAX_OBJECT);
        ZlibDecoder::new(from).take(max).read_to_end(&mut res).ok()?;
        self.budget.set(self.budget.get().saturating_sub(res.len() as u64 + OBJECT_COST));
        ((res.len() as u64) < max).then_some(res)
    }
}

/// A regular file, through no link.
fn open(path: &Path) -> Option<File> {
    disk::open_real(&AbsPath::new(path)?).ok()
}

/// Where an object begins in a pack, by the pack's index.
fn offset(index: &File, id: ObjectId) -> Option<u64> {
    const PACK_INDEX_MAGIC: u64 = 0xff74_4f63;
    const IDS_OFFSET: u64 = 8 + 256 * 4;
    let word = |at: u64| {
        let mut res = [0; 4];
        index.read_exact_at(&mut res, at).ok()?;
        Some(u64::from(u32::from_be_bytes(res)))
    };
    let begun = |first: u64| word(8 + 4 * first);
    if (word(0)?, word(4)?) != (PACK_INDEX_MAGIC, 2) {
        return None;
    }
    let (first, all) = (u64::from(id.0[0]), begun(255)?);
    let mut within = first.checked_sub(1).map_or(Some(0), begun)?..begun(first)?;
    while !within.is_empty() {
        let mid = within.start.midpoint(within.end);
        let mut it = [0; 20];
        index.read_exact_at(&mut it, IDS_OFFSET + 20 * mid).ok()?;
        match it.cmp(&id.0) {
            Ordering::Less => within.start = mid + 1,
            Ordering::Greater => within.end = mid,
            Ordering::Equal => {
                let at = word(IDS_OFFSET + 24 * all + 4 * mid)?;
                let far = IDS_OFFSET + 28 * all + 8 * (at & 0x7fff_ffff);
                return if at >> 31 == 0 { Some(at) } else { Some(word(far)? << 32 | word(far + 4)?) };
            }
        }
    }
    None
}

fn read_byte(from: &mut impl Read) -> Option<u64> {
    let mut res = [0];
    from.read_exact(&mut res).ok()?;
    Some(u64::from(res[0]))
}

/// A number in pieces, the lowest first: the last bits of `first`, and seven of each that follows.
fn read_varint(from: &mut impl Read, first: u64, bits: u32) -> Option<u64> {
    let (mut res, mut shift, mut last) = (first & ((1 << bits) - 1), bits, first);
    while last & 0x80 != 0 {
        last = read_byte(from)?;
        res |= (last & 0x7f).checked_shl(shift)?;
        shift += 7;
    }
    Some(res)
}

/// How far before it an object's base begins.
fn read_distance(from: &mut impl Read) -> Option<u64> {
    let mut last = read_byte(from)?;
    let mut res = last & 0x7f;
    while last & 0x80 != 0 {
        last = read_byte(from)?;
        res = (res + 1).checked_mul(0x80)? | last & 0x7f;
    }
    Some(res)
}

/// What a change makes of its base.
fn apply_delta(base: &[u8], mut change: &[u8]) -> Option<Vec<u8>> {
    for _ in ["before", "after"] {
        let first = read_byte(&mut change)?;
        read_varint(&mut change, first, 7)?;
    }
    let mut res = Vec::new();
    while let Some(order) = read_byte(&mut change).filter(|_| res.len() as u64 <= MAX_OBJECT) {
        if order & 0x80 == 0 {
            let (new, rest) = change.split_at_checked(usize::try_from(order).ok()?)?;
            res.extend_from_slice(new);
            change = rest;
            continue;
        }
        let at = read_delta_number(&mut change, order, 0..4)?;
        let n = Some(read_delta_number(&mut change, order, 4..7)?).filter(|it| *it != 0).unwrap_or(0x1_0000);
        res.extend_from_slice(base.get(at..at.checked_add(n)?)?);
    }
    change.is_empty().then_some(res)
}

/// A number of which only those bytes are there that an order's bits tell of.
fn read_delta_number(change: &mut &[u8], order: u64, bits: Range<u32>) -> Option<usize> {
    let mut res = 0;
    for (at, bit) in bits.enumerate() {
        if order >> bit & 1 != 0 {
            res |= usize::try_from(read_byte(change)?).ok()? << (8 * at);
        }
    }
    Some(res)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, path::Path};

    use flate2::{Compression, write::ZlibEncoder};

    use super::{ObjectId, ObjectKind, Objects, apply_delta, entries, hash};

    fn write(git: &Path, id: ObjectId, text: &[u8]) {
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
        let id = ObjectId::from_hex(b"ce013625030ba8dba906f756967f9e9ca394464a").unwrap();
        assert_eq!((hash(ObjectKind::Blob, b"hello\n"), ObjectId::from_hex(b"ce01")), (id, None));
        assert!(Objects::open(&git).read(id).is_none());
        for (text, want) in [("blob 6\0hello\n", true), ("blob 6\0other\n", false), ("tree 6\0hello\n", false)] {
            write(&git, id, text.as_bytes());
            assert_eq!(Objects::open(&git).read(id).is_some(), want, "{text}");
        }
        let large = vec![0; 1 << 20];
        let name = hash(ObjectKind::Blob, &large);
        write(&git, name, &[b"blob 1048576\0", large.as_slice()].concat());
        let objects = Objects::open(&git);
        assert_eq!((0..100).filter(|_| objects.read(name).is_some()).count(), 63, "the budget has an end");
    }

    #[test]
    fn changes_and_trees_that_are_cut_off_say_nothing() {
        let change = [5, 8, 0x91, 1, 4, 2, b'x', b'y', 0x90, 2];
        assert_eq!(apply_delta(b"abcde", &change).unwrap(), b"bcdexyab");
        for end in [0, 1, 3, 4, 6, 9] {
            assert_eq!(apply_delta(b"abcde", &change[..end]), None, "{end}");
        }
        assert_eq!(apply_delta(b"abc", &change), None);
        let tree = [b"100644 a\0".as_slice(), &[1; 20], b"40000 b\0", &[2; 19]].concat();
        let names: Vec<_> = entries(&tree).map(|it| (it.0, it.1, it.2.0[0])).collect();
        assert_eq!(names, [(b"100644".as_slice(), b"a".as_slice(), 1)]);
    }
}
