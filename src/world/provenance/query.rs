//! Queries for unseen files, as the disk is now, and looks at them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::fs::{FileType, OFlags};

use super::{
    ContentHash, Ledger, PathBytes, ProvenanceError, Unseen,
    book::{UnseenEntry, What, below, hash_of_link},
    ledger::content,
    lines::{LineSet, ranges},
};
use crate::{
    base::{
        ids::{CheckpointId, SessionId},
        path::AbsPath,
    },
    world::disk::{
        self,
        dirfd::{self, DirFd, ancestors, if_exists},
        frame::unframe,
        hash_of, hash_of_file, try_lock,
    },
};

/// The longest wait for another castor.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(3);
/// Longest file that is compared line by line.
const MAX_COMPARED: u64 = 1 << 20;

/// What agents left below some roots and nobody looked at. Making one touches nothing.
pub struct Provenance {
    home: AbsPath,
    roots: Vec<AbsPath>,
    /// Answers about commits, which are slow to find: of a store and era, whether a path had these bytes.
    committed: Mutex<BTreeMap<(AbsPath, u32, PathBytes, ContentHash), bool>>,
}

/// The record of one root.
struct Opened {
    root: AbsPath,
    store: DirFd,
    ledger: Ledger,
    has_writers: bool,
}

/// What stands at a path now.
enum Present {
    Nothing,
    Folder,
    Bytes(ContentHash),
    /// A pipe, or what cannot be read.
    Unknown,
}

impl Provenance {
    /// `home` is castor's own folder; `roots` are real paths.
    pub fn new(home: &AbsPath, roots: &[AbsPath]) -> Self {
        Self { home: home.clone(), roots: roots.to_vec(), committed: Mutex::default() }
    }

    /// The first unseen file at or below `place`, or the unseen folder that it lies in, as the disk is now.
    ///
    /// # Errors
    /// When it cannot be known: then it counts as unseen.
    pub fn first_unseen(&self, place: &AbsPath) -> Result<Option<Unseen>, ProvenanceError> {
        let real = disk::real_path(place).ok().filter(|it| it != place);
        for place in [place].into_iter().chain(&real) {
            for it in self.around(place)? {
                if let Some(found) = it.all_unseen(self, &it.relative(place), false)?.pop() {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// All that is unseen below the roots.
    ///
    /// # Errors
    /// As [`Self::first_unseen`].
    pub fn unseen(&self) -> Result<Vec<Unseen>, ProvenanceError> {
        let mut res = Vec::new();
        for place in &self.roots {
            res.extend(self.unseen_below(place)?);
        }
        res.sort_by(|a: &Unseen, b| a.path.cmp(&b.path));
        res.dedup_by(|b, a| a.path == b.path);
        Ok(res)
    }

    /// All that is unseen at or below a place, and the unseen folder that it lies in.
    ///
    /// # Errors
    /// As [`Self::first_unseen`].
    pub fn unseen_below(&self, place: &AbsPath) -> Result<Vec<Unseen>, ProvenanceError> {
        let mut res = Vec::new();
        for it in self.around(place)? {
            res.extend(it.all_unseen(self, &it.relative(place), true)?);
        }
        res.sort_by(|a: &Unseen, b| a.path.cmp(&b.path));
        res.dedup_by(|b, a| a.path == b.path);
        Ok(res)
    }

    /// Whether one file has unseen bytes.
    ///
    /// # Errors
    /// As [`Self::first_unseen`].
    pub fn is_unseen(&self, file: &AbsPath) -> Result<bool, ProvenanceError> {
        Ok(self.first_unseen(file)?.is_some())
    }

    /// Whether a call that may write anything below the root of `place` is under way, in any castor.
    ///
    /// # Errors
    /// When it cannot be known: then one may be.
    pub fn has_writers(&self, place: &AbsPath) -> Result<bool, ProvenanceError> {
        Ok(self.around(place)?.iter().any(|it| it.has_writers))
    }

    /// A person looked at exactly these bytes.
    ///
    /// # Errors
    /// When it cannot be written down: then nobody looked.
    pub fn look(&self, bytes: &[(AbsPath, ContentHash)]) -> Result<(), ProvenanceError> {
        let all: Vec<_> = bytes.iter().map(|(path, hash)| (path.clone(), *hash, None)).collect();
        self.look_at_lines(&all)
    }

    /// A person saw these lines of these bytes; `None`: all of them.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn look_at_lines(&self, seen: &[(AbsPath, ContentHash, Option<LineSet>)]) -> Result<(), ProvenanceError> {
        self.change(seen.iter().map(|it| &it.0), |it| {
            let store = &it.store;
            for (path, hash, lines) in seen.iter().filter(|seen| seen.0.is_within(&it.root)) {
                let path = relative(&it.root, path);
                it.ledger.look(&path, hash, lines.as_ref(), &|it| content(store, it));
            }
        })
    }

    /// A person answers for whatever lies in these folders, and in files that are known as a whole only.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn look_at_whole(&self, folders: &[AbsPath]) -> Result<(), ProvenanceError> {
        self.change(folders.iter(), |it| {
            for path in folders.iter().filter(|path| path.is_within(&it.root)) {
                it.ledger.look_at_whole(&relative(&it.root, path));
            }
        })
    }

    /// Changes the records that paths lie in, under the locks of their stores.
    fn change<'a>(
        &self,
        paths: impl Iterator<Item = &'a AbsPath>,
        act: impl Fn(&mut Opened),
    ) -> Result<(), ProvenanceError> {
        let paths: Vec<_> = paths.collect();
        for (root, store) in self.stores()? {
            if !paths.iter().any(|it| it.is_within(&root)) {
                continue;
            }
            let _lock = lock(&store)?;
            let mut opened = Opened::open(root, store)?;
            act(&mut opened);
            opened.ledger.save(&opened.store)?;
        }
        Ok(())
    }

    /// The records of roots that a place lies in, or that lie in it.
    fn around(&self, place: &AbsPath) -> Result<Vec<Opened>, ProvenanceError> {
        let stores = self.stores()?.into_iter().filter(|it| place.is_within(&it.0) || it.0.is_within(place));
        stores.map(|(root, store)| Ok(Opened::open(root, store)?)).collect()
    }

    fn stores(&self) -> io::Result<Vec<(AbsPath, DirFd)>> {
        let all = self.home.join("checkpoints");
        let Some(dir) = if_exists(DirFd::open(all.as_path()))? else { return Ok(Vec::new()) };
        let mut res = Vec::new();
        for name in dir.list(b"")? {
            let Some(store) = if_exists(dir.open_dir(&name))?.map(DirFd::from) else { continue };
            let root = store.read(b"root")?.and_then(|it| AbsPath::new(OsStr::from_bytes(&it)));
            res.extend(root.map(|it| (it, store)));
        }
        Ok(res)
    }
}

/// The lock of a store, as checkpoints take it.
fn lock(store: &DirFd) -> Result<std::fs::File, ProvenanceError> {
    let file = store.open_own(b"lock", OFlags::CREATE)?;
    let mut waited = Duration::ZERO;
    while !try_lock(&file)? {
        if waited >= PATIENCE {
            return Err(ProvenanceError::Busy);
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
    Ok(file)
}

fn relative(root: &AbsPath, path: &AbsPath) -> PathBytes {
    let below = path.as_path().strip_prefix(root.as_path()).unwrap_or(Path::new(""));
    below.as_os_str().as_bytes().into()
}

impl Opened {
    fn open(root: AbsPath, store: DirFd) -> io::Result<Self> {
        let mut ledger = Ledger::default();
        ledger.refresh(&store)?;
        ledger.look_at_commits(&|it| content(&store, it));
        let has_writers = has_writers(&store)?;
        Ok(Self { root, store, ledger, has_writers })
    }

    /// A place below the root; the root itself for one that the root lies in.
    fn relative(&self, place: &AbsPath) -> PathBytes {
        relative(&self.root, place)
    }

    /// What is unseen at or below a path, and what it lies in. Without `all` one of them is enough.
    fn all_unseen(&self, of: &Provenance, path: &[u8], all: bool) -> Result<Vec<Unseen>, ProvenanceError> {
        let Some(root) = if_exists(DirFd::open_real(&self.root))? else { return Ok(Vec::new()) };
        let entries = &self.ledger.book.entries;
        let above: Vec<&[u8]> = ancestors(path).filter(|_| !path.is_empty()).collect();
        let above = above.into_iter().chain([path]).filter_map(|it| entries.get_key_value(it));
        let mut res = Vec::new();
        for (at, entry) in above.chain(below(entries, path)) {
            // A person's file, or one that they looked at, in a folder that is known as a whole.
            let is_seen = || match (self.ledger.book.looked.get(path), present(&root, path)) {
                (Some(seen), Ok(Present::Bytes(now))) => now == *seen,
                _ => false,
            };
            if entry.what == What::Whole && **at != *path && dirfd::is_within(path, at) && is_seen() {
                continue;
            }
            res.extend(self.unseen(of, &root, (at, entry), all)?);
            if !all && !res.is_empty() {
                break;
            }
        }
        Ok(res)
    }

    fn unseen(
        &self,
        of: &Provenance,
        root: &DirFd,
        (path, entry): (&PathBytes, &UnseenEntry),
        with_lines: bool,
    ) -> Result<Option<Unseen>, ProvenanceError> {
        let now = present(root, path)?;
        let mut entry = entry.clone();
        match (&now, entry.hash()) {
            (Present::Nothing, _) => return Ok(None),
            // A folder in its place is another thing.
            (Present::Folder, Some(_)) => return Ok(None),
            (Present::Bytes(now), Some(_)) if self.ledger.book.looked.get(path) == Some(now) => return Ok(None),
            (Present::Bytes(now), Some(left)) if *now == left && self.is_committed(of, path, &entry) => {
                return Ok(None);
            }
            // Nobody but a person changed it since.
            (Present::Bytes(now), Some(left)) if *now != left && !self.has_writers => {
                let bytes = read_head(root, path).filter(|it| hash_of(it) == *now);
                match entry.after_person(*now, bytes.as_deref(), &|it| content(&self.store, it)) {
                    Some(it) => entry = it,
                    None => return Ok(None),
                }
            }
            _ => (),
        }
        let lines = with_lines.then(|| entry.lines(&|it| content(&self.store, it).or_else(|| read_head(root, path))));
        Ok(Some(Unseen {
            path: self.root.join(OsStr::from_bytes(path)).as_path().to_owned(),
            is_folder: matches!(now, Present::Folder),
            lines: lines.flatten().map(|it| ranges(&it)),
            hash: if let (Present::Bytes(it), Some(_)) = (&now, entry.hash()) { Some(*it) } else { None },
            note: self.ledger.book.lost.clone().filter(|_| path.is_empty()),
            session: entry.session,
            call: entry.call,
        }))
    }

    fn is_committed(&self, of: &Provenance, path: &PathBytes, entry: &UnseenEntry) -> bool {
        let Some(hash) = entry.hash().filter(|_| entry.era != 0) else { return false };
        let key = (self.root.clone(), entry.era, path.clone(), hash);
        let mut known = of.committed.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert_with(|| {
            let bytes = content(&self.store, &hash);
            let search = self.ledger.book.commits.search(entry.era);
            bytes.zip(search).is_some_and(|(bytes, mut search)| search.has(path, &bytes))
        })
    }
}

/// Whether a call that may write anything is under way, or was when its castor was killed.
fn has_writers(store: &DirFd) -> io::Result<bool> {
    type OpenCall = ((SessionId, CheckpointId), bool);
    for name in store.list(b"sessions")? {
        let bytes = store.read(&dirfd::join(b"sessions", &name))?.unwrap_or_default();
        if unframe::<Vec<OpenCall>>(&bytes).is_some_and(|it| it.0.iter().any(|it| it.1)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What stands at a path now. No link is followed.
fn present(root: &DirFd, path: &[u8]) -> io::Result<Present> {
    let Some(stat) = root.stat(path)? else { return Ok(Present::Nothing) };
    let found = match dirfd::file_type(&stat) {
        FileType::Directory => return Ok(Present::Folder),
        FileType::Symlink => if_exists(root.at(path, |dir, name| Ok(hash_of_link(&dirfd::read_link(dir, name)?))))?,
        FileType::RegularFile => if_exists(root.open_file(path).and_then(|it| hash_of_file(&it)))?,
        _ => None,
    };
    Ok(found.map_or(Present::Unknown, Present::Bytes))
}

fn read_head(root: &DirFd, path: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut res = Vec::new();
    root.open_file(path).ok()?.take(MAX_COMPARED).read_to_end(&mut res).ok()?;
    Some(res)
}
