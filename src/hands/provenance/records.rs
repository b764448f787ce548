//! Records of roots on the disk: read and saved, asked for what is unseen now, and told of looks.

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
use serde::de::DeserializeOwned;

use super::{
    AgentCall, ContentHash, LineSet, PathBytes, ProvenanceError, State, Step, Unseen, hash_of_link,
    ledger::{Ledger, UnseenEntry, below},
};
use crate::disk::{
    self,
    dirfd::{self, DirFd, ancestors, if_exists},
    disk_mark::DiskMark,
    frame::{frame, unframe},
    hash_of, hash_of_file, wait_for_lock,
};
use castor_base::path::AbsPath;

const LEDGER: &[u8] = b"provenance";
const PAST: &[u8] = b"provenance.past";
const DAMAGED: &str = "castor's record of what agents wrote here was damaged";
/// The longest wait for another castor.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest file that is compared line by line.
const MAX_COMPARED: u64 = 1 << 20;

/// What agents left below some roots and nobody looked at. Making one touches nothing.
pub struct Provenance {
    home: AbsPath,
    roots: Vec<AbsPath>,
    /// Answers about commits, which are slow to find: of a store and era, whether a path had these bytes.
    committed: Mutex<BTreeMap<(AbsPath, u32, PathBytes, ContentHash), bool>>,
}

/// What a person saw of a path.
pub struct LookedBytes {
    pub path: AbsPath,
    /// Exactly these bytes; `None`: whatever lies there, and below.
    pub hash: Option<ContentHash>,
    /// Of them; `None`: all.
    pub lines: Option<LineSet>,
}

/// The record of one root.
struct RootRecord {
    root: AbsPath,
    store: DirFd,
    ledger: Ledger,
    /// Whether a call that may write anything is under way, or was when its castor was killed.
    has_writers: bool,
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
        Ok(self.find(std::slice::from_ref(place), false)?.into_iter().next())
    }

    /// All that is unseen below the roots.
    ///
    /// # Errors
    /// As [`Self::first_unseen`].
    pub fn unseen(&self) -> Result<Vec<Unseen>, ProvenanceError> {
        self.find(&self.roots, true)
    }

    /// All that is unseen at or below a place, and the unseen folder that it lies in.
    ///
    /// # Errors
    /// As [`Self::first_unseen`].
    pub fn unseen_below(&self, place: &AbsPath) -> Result<Vec<Unseen>, ProvenanceError> {
        self.find(std::slice::from_ref(place), true)
    }

    /// The roots around and below a place, if anything there is unseen, or it cannot be known.
    pub fn roots_with_unseen(&self, place: &AbsPath) -> Vec<AbsPath> {
        let around = self.around(place).unwrap_or_default();
        let is_unseen = !around.is_empty() && !matches!(self.first_unseen(place), Ok(None));
        around.into_iter().filter(|_| is_unseen).map(|it| it.root).collect()
    }

    /// Without `all` one of them is enough.
    fn find(&self, places: &[AbsPath], all: bool) -> Result<Vec<Unseen>, ProvenanceError> {
        let mut res = Vec::new();
        for place in places {
            let real = disk::real_path(place).ok().filter(|it| it != place);
            for place in [place].into_iter().chain(&real) {
                for it in self.around(place)? {
                    it.find(self, place, all, &mut res)?;
                }
            }
        }
        res.sort_by(|a, b| a.path.cmp(&b.path));
        res.dedup_by(|b, a| a.path == b.path);
        Ok(res)
    }

    /// Whether a call that may write anything below the root of `place` is under way, in any castor.
    ///
    /// # Errors
    /// When it cannot be known: then one may be.
    pub fn has_writers(&self, place: &AbsPath) -> Result<bool, ProvenanceError> {
        Ok(self.around(place)?.iter().any(|it| it.has_writers))
    }

    /// A person looked, at this and nothing else.
    ///
    /// # Errors
    /// When it cannot be written down: then nobody looked.
    pub fn look(&self, seen: &[LookedBytes]) -> Result<(), ProvenanceError> {
        for mut it in self.records(|root| seen.iter().any(|it| it.path.is_within(root)))? {
            let lock = it.store.open_own(b"lock", OFlags::CREATE)?;
            if !wait_for_lock(&lock, PATIENCE, &|| false)? {
                return Err(io::Error::other("another castor is busy with it").into());
            }
            it.ledger.refresh(&it.store)?;
            for seen in seen.iter().filter(|seen| seen.path.is_within(&it.root)) {
                let path = relative(&it.root, &seen.path);
                it.ledger.look(path, seen.hash, seen.lines.as_ref(), &|hash| content(&it.store, hash));
            }
            it.ledger.save(&it.store)?;
        }
        Ok(())
    }

    /// The records of roots that a place lies in, or that lie in it.
    fn around(&self, place: &AbsPath) -> io::Result<Vec<RootRecord>> {
        self.records(|root| place.is_within(root) || root.is_within(place))
    }

    fn records(&self, is_wanted: impl Fn(&AbsPath) -> bool) -> io::Result<Vec<RootRecord>> {
        let Some(dir) = if_exists(DirFd::open(self.home.join("checkpoints").as_path()))? else { return Ok(Vec::new()) };
        let mut res = Vec::new();
        for name in dir.list(b"")? {
            let Some(store) = if_exists(dir.open_dir(&name))?.map(DirFd::from) else { continue };
            let root = store.read(b"root")?.and_then(|it| AbsPath::new(OsStr::from_bytes(&it)));
            let Some(root) = root.filter(&is_wanted) else { continue };
            let mut ledger = Ledger::default();
            ledger.refresh(&store)?;
            ledger.look_at_commits(&|it| content(&store, it));
            res.push(RootRecord { has_writers: has_writers(&store)?, root, store, ledger });
        }
        Ok(res)
    }
}

/// A path below a root; the root itself for a place that the root lies in.
fn relative<'a>(root: &AbsPath, path: &'a AbsPath) -> &'a [u8] {
    path.as_path().strip_prefix(root.as_path()).unwrap_or(Path::new("")).as_os_str().as_bytes()
}

impl Ledger {
    /// Reads it, where another castor wrote it since.
    ///
    /// # Errors
    /// When it cannot be read. What is damaged is no error, and unseen as a whole.
    pub fn refresh(&mut self, dir: &DirFd) -> io::Result<()> {
        let mark = dir.stat(LEDGER)?.map(|it| DiskMark::of(&it));
        if mark != self.mark {
            let (ledger, past) = (read::<Self>(dir, LEDGER)?, read(dir, PAST)?);
            let is_damaged = ledger.is_none() || past.is_none();
            *self = Self { past: past.unwrap_or_default(), mark, ..ledger.unwrap_or_default() };
            is_damaged.then(|| self.lose(DAMAGED));
        }
        Ok(())
    }

    /// # Errors
    /// When it cannot be written.
    pub fn save(&mut self, dir: &DirFd) -> io::Result<()> {
        // The hashes first: what they have too much is unseen.
        if std::mem::take(&mut self.past.is_changed) {
            dir.replace(PAST, &frame(&self.past)?, false)?;
        }
        if std::mem::take(&mut self.is_changed) {
            dir.replace(LEDGER, &frame(self)?, false)?;
            self.mark = dir.stat(LEDGER)?.map(|it| DiskMark::of(&it));
        }
        Ok(())
    }
}

/// What a file holds; `None`: it is damaged.
fn read<T: Default + DeserializeOwned>(dir: &DirFd, name: &[u8]) -> io::Result<Option<T>> {
    Ok(dir.read(name)?.map_or_else(|| Some(T::default()), |it| Some(unframe(&it)?.0)))
}

/// Removes a store, but for the record of what nobody looked at.
///
/// # Errors
/// When it cannot be read or removed.
pub fn remove_store(all: &DirFd, name: &[u8]) -> io::Result<()> {
    let mut ledger = Ledger::default();
    let dir = if_exists(all.open_dir(name))?.map(DirFd::from);
    dir.iter().try_for_each(|it| ledger.refresh(it))?;
    let Some(dir) = dir.filter(|_| !ledger.entries.is_empty()) else { return all.remove_tree(name) };
    // The next log begins anew.
    (ledger.seq, ledger.is_changed) = (0, true);
    ledger.save(&dir)?;
    let kept: [&[u8]; 4] = [LEDGER, PAST, b"root", b"lock"];
    dir.list(b"")?.iter().filter(|it| !kept.contains(&&***it)).try_for_each(|it| dir.remove_tree(it))
}

/// A content of a store, or an object of git's there, if it is what its name says.
fn content(store: &DirFd, hash: &ContentHash) -> Option<Vec<u8>> {
    let read = |end| store.read(format!("blobs/{}{end}", disk::hex(hash)).as_bytes()).ok().flatten();
    ["", ".git"].into_iter().find_map(read).filter(|it| hash_of(it) == *hash)
}

impl RootRecord {
    /// What is unseen at or below a place, and what it lies in.
    fn find(&self, of: &Provenance, place: &AbsPath, all: bool, res: &mut Vec<Unseen>) -> io::Result<()> {
        let Some(root) = if_exists(DirFd::open_real(&self.root))? else { return Ok(()) };
        let (path, Ledger { entries, looked, .. }) = (relative(&self.root, place), &self.ledger);
        // A person's file, or one that they looked at, in a folder that is known as a whole.
        let is_same = |seen: &ContentHash| present(&root, path).is_ok_and(|it| it == State::File(*seen));
        let is_seen = || looked.get(path).is_some_and(is_same);
        let above = ancestors(path).filter_map(|it| entries.get_key_value(it)).filter(|_| !is_seen());
        for (at, entry) in above.chain(entries.get_key_value(path)).chain(below(entries, path)) {
            if all || res.is_empty() {
                res.extend(self.unseen(of, &root, (at, entry))?);
            }
        }
        Ok(())
    }

    fn unseen(
        &self,
        of: &Provenance,
        root: &DirFd,
        (path, entry): (&PathBytes, &UnseenEntry),
    ) -> io::Result<Option<Unseen>> {
        let now = present(root, path)?;
        let place = self.root.join(OsStr::from_bytes(path));
        let on_disk =
            |hash: &ContentHash| disk::read_real_head(&place, MAX_COMPARED).ok().filter(|it| hash_of(it) == *hash);
        let contents = |hash: &ContentHash| content(&self.store, hash).or_else(|| on_disk(hash));
        let step = Step { path, old: State::NotHeld, new: now };
        // Without a writer nobody but a person changed it since.
        let by_person = now.hash().is_none() || !self.has_writers;
        let entry = if by_person { self.ledger.after_person(&step, &[], &contents) } else { Some(entry.clone()) };
        let is_same = |it: &UnseenEntry| it.hash().map(State::File) == Some(now);
        let entry = entry.filter(|it| !is_same(it) || !self.is_committed(of, path, it));
        Ok(entry.map(|it| Unseen {
            path: place.as_path().to_owned(),
            is_folder: now == State::Dir,
            lines: it.lines(&contents),
            hash: it.hash().and(now.hash()),
            note: self.ledger.lost.clone().filter(|_| path.is_empty()),
            by: it.by,
        }))
    }

    fn is_committed(&self, of: &Provenance, path: &PathBytes, entry: &UnseenEntry) -> bool {
        let Some(hash) = entry.hash().filter(|_| entry.era != 0) else { return false };
        let key = (self.root.clone(), entry.era, path.clone(), hash);
        let mut known = of.committed.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert_with(|| {
            let search = content(&self.store, &hash).zip(self.ledger.commits.search(entry.era));
            search.is_some_and(|(bytes, search)| search.has(&[(path, &bytes, None)]))
        })
    }
}

fn has_writers(store: &DirFd) -> io::Result<bool> {
    for name in store.list(b"sessions")? {
        let open: Option<Vec<(AgentCall, bool)>> = store.read_frame(&dirfd::join(b"sessions", &name))?;
        if open.is_some_and(|it| it.iter().any(|it| it.1)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What stands at a path now. No link is followed. A pipe, or what cannot be read, is not held.
fn present(root: &DirFd, path: &[u8]) -> io::Result<State> {
    let Some(stat) = root.stat(path)? else { return Ok(State::Absent) };
    let hash = match dirfd::file_type(&stat) {
        FileType::Directory => return Ok(State::Dir),
        FileType::Symlink => if_exists(root.at(path, |dir, name| Ok(hash_of_link(&dirfd::read_link(dir, name)?))))?,
        FileType::RegularFile => if_exists(root.open_file(path).and_then(|it| hash_of_file(&it)))?,
        _ => None,
    };
    Ok(hash.map_or(State::NotHeld, State::File))
}
