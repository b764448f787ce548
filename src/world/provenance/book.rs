//! Record of one root: bytes that agents left in it, unseen. Pure but for the contents that it asks for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{
    ChangeAuthor, ContentHash, PathBytes, State, Step,
    commits::Commits,
    filter::HashFilter,
    lines::{self, LineSet},
};
use crate::{
    base::ids::{CheckpointId, SessionId},
    world::disk::{dirfd, hash_of},
};

/// More files of one call are entries by folder.
pub const MAX_OF_CALL: usize = 1_000;
/// Entries of one root; beyond that they become folders.
const MAX_ENTRIES: usize = 4_096;
/// Bytes that were looked at, of one root.
const MAX_LOOKED: usize = 8_192;
/// Folders of one flood.
const MAX_FOLDERS: usize = 64;
/// Files that went, beside which a new one is compared.
const MAX_MOVED: usize = 32;

/// A content by its hash, while the store has it.
pub type ContentReader<'a> = &'a dyn Fn(&ContentHash) -> Option<Vec<u8>>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Book {
    /// Of the last delta that is in it.
    pub seq: u64,
    pub entries: BTreeMap<PathBytes, UnseenEntry>,
    /// Bytes that a person looked at, or that are a person's below a folder that is not known file by file.
    pub looked: BTreeMap<PathBytes, ContentHash>,
    pub commits: Commits,
    /// Why some of it is not known any more.
    pub lost: Option<String>,
}

/// What an agent left at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenEntry {
    pub what: What,
    pub session: SessionId,
    pub call: CheckpointId,
    /// The commits that may hold these bytes from before the session; 0: none.
    pub era: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// In `base`, the lines `own` are an agent's, and so is all that `base` lacks; `None`: everything is.
    Bytes { hash: ContentHash, base: Option<ContentHash>, own: Option<LineSet> },
    /// Whatever is there, or below.
    Whole,
}

impl UnseenEntry {
    pub fn hash(&self) -> Option<ContentHash> {
        match self.what {
            What::Bytes { hash, .. } => Some(hash),
            What::Whole => None,
        }
    }

    /// The agent's lines; `None`: all of it.
    pub fn lines(&self, contents: ContentReader) -> Option<LineSet> {
        let What::Bytes { hash, base, own: Some(own) } = &self.what else { return None };
        let (now, base) = (contents(hash)?, base.map_or(Some(Vec::new()), |it| contents(&it))?);
        lines::after_agent(&base, own, &now)
    }

    /// What is left of it once a person has made `new` of it; `None`: nothing.
    pub fn after_person(&self, hash: ContentHash, new: Option<&[u8]>, contents: ContentReader) -> Option<Self> {
        let old = self.hash().and_then(|it| contents(&it));
        let own = old.zip(new).and_then(|(old, new)| lines::after_person(&old, &self.lines(contents)?, new));
        self.with(hash, own)
    }

    fn with(&self, hash: ContentHash, own: Option<LineSet>) -> Option<Self> {
        let is_clear = own.as_ref().is_some_and(BTreeSet::is_empty);
        let base = own.is_some().then_some(hash);
        (!is_clear).then(|| Self { what: What::Bytes { hash, base, own }, ..self.clone() })
    }
}

/// Where bytes of a link are told from those of a file.
pub fn hash_of_link(to: &[u8]) -> ContentHash {
    hash_of(&[b"link\0", to].concat())
}

impl State<'_> {
    fn hash(&self) -> Option<ContentHash> {
        match self {
            Self::File(it) => Some(*it),
            Self::Link(to) => Some(hash_of_link(to)),
            _ => None,
        }
    }
}

/// A record with the hashes of what agents left before.
pub struct Pages<'a> {
    pub book: &'a mut Book,
    pub past: &'a mut HashFilter,
    pub contents: ContentReader<'a>,
}

impl Pages<'_> {
    pub fn apply(&mut self, author: ChangeAuthor, steps: &[Step]) {
        match author {
            ChangeAuthor::Agent(session, call) => self.apply_agent(session, call, steps),
            ChangeAuthor::Person => self.apply_person(steps),
            ChangeAuthor::Nobody => (),
        }
        self.bound();
    }

    fn apply_agent(&mut self, session: &SessionId, call: &CheckpointId, steps: &[Step]) {
        let mut left = Vec::new();
        for it in steps.iter().filter(|it| is_obeyed(it.path)) {
            match it.new.hash() {
                Some(hash) if it.old.hash() != Some(hash) => left.push((it.path, hash)),
                Some(_) => (),
                None if it.new == State::NotHeld => self.add_whole(it.path, session, call),
                None => _ = self.remove(it.path),
            }
        }
        let is_of_call = |it: &&UnseenEntry| it.call == *call && it.session == *session;
        let n_before = self.book.entries.values().filter(is_of_call).count();
        if left.len() + n_before > MAX_OF_CALL && !self.drop_committed(&mut left, MAX_OF_CALL.saturating_sub(n_before))
        {
            return self.flood(session, call, steps, &left);
        }
        let old: BTreeMap<&[u8], &State> = steps.iter().map(|it| (it.path, &it.old)).collect();
        for (path, hash) in left {
            let base = old.get(path).and_then(|it| if let State::File(it) = it { Some(*it) } else { None });
            self.leave(path, hash, base, (session, call));
        }
    }

    /// Drops what commits from before have; whether few enough are left.
    fn drop_committed(&mut self, left: &mut Vec<(&[u8], ContentHash)>, most: usize) -> bool {
        let Some(mut search) = self.book.commits.search(self.book.commits.era()) else { return left.len() <= most };
        let mut res = Vec::new();
        for it in left.iter() {
            let has = |bytes: Vec<u8>| search.has(it.0, &bytes);
            if self.past.has(&it.1) || !(self.contents)(&it.1).is_some_and(has) {
                res.push(*it);
            }
            if res.len() > most {
                return false;
            }
        }
        *left = res;
        true
    }

    fn leave(&mut self, path: &[u8], hash: ContentHash, base: Option<ContentHash>, by: (&SessionId, &CheckpointId)) {
        let is_known = self.is_known(&hash);
        let era = if is_known { 0 } else { self.book.commits.era() };
        let base_and_own = match self.book.entries.get(path).map(|it| &it.what) {
            Some(What::Bytes { base, own, .. }) => Some((*base, own.clone())),
            _ => None,
        };
        let was_left = self.remove(path);
        if self.book.looked.get(path) == Some(&hash) {
            return;
        }
        if self.whole_above(path) {
            return self.past.insert(&hash);
        }
        let (base, own) = base_and_own.filter(|_| was_left).unwrap_or((base, Some(LineSet::new())));
        // It is as it was before.
        if base == Some(hash) && own.as_ref().is_some_and(BTreeSet::is_empty) {
            return;
        }
        let what = What::Bytes { hash, base, own };
        self.book.entries.insert(path.into(), UnseenEntry { what, session: by.0.clone(), call: by.1.clone(), era });
    }

    /// Takes an entry out, and remembers its bytes.
    fn remove(&mut self, path: &[u8]) -> bool {
        let Some(it) = self.book.entries.remove(path) else { return false };
        it.hash().inspect(|it| self.past.insert(it));
        it.hash().is_some()
    }

    pub fn add_whole(&mut self, path: &[u8], session: &SessionId, call: &CheckpointId) {
        if self.whole_above(path) || self.book.entries.get(path).is_some_and(|it| it.what == What::Whole) {
            return;
        }
        let below: Vec<PathBytes> = below(&self.book.entries, path).map(|it| it.0.clone()).collect();
        below.iter().for_each(|it| _ = self.remove(it));
        self.remove(path);
        let entry = UnseenEntry { what: What::Whole, session: session.clone(), call: call.clone(), era: 0 };
        self.book.entries.insert(path.into(), entry);
    }

    fn whole_above(&self, path: &[u8]) -> bool {
        dirfd::ancestors(path).any(|it| self.book.entries.get(it).is_some_and(|it| it.what == What::Whole))
    }

    /// Folders for so many files: those that the call made, else those that the files lie in.
    fn flood(&mut self, session: &SessionId, call: &CheckpointId, steps: &[Step], left: &[(&[u8], ContentHash)]) {
        let is_new = |it: &&Step| it.old == State::Absent && it.new == State::Dir;
        let made: BTreeSet<&[u8]> = steps.iter().filter(is_new).map(|it| it.path).collect();
        let parent = |path: &[u8]| dirfd::split(path).map_or(&[][..], |it| it.0).to_vec();
        let top = |path: &[u8]| dirfd::ancestors(path).filter(|it| made.contains(it)).last().map(<[u8]>::to_vec);
        let mut folders: BTreeSet<Vec<u8>> = left.iter().map(|it| top(it.0).unwrap_or_else(|| parent(it.0))).collect();
        let depth = |it: &Vec<u8>| if it.is_empty() { 0 } else { it.split(|it| *it == b'/').count() };
        while folders.len() > MAX_FOLDERS {
            let deepest = folders.iter().map(depth).max().unwrap_or_default();
            let cut = |it: Vec<u8>| if depth(&it) == deepest { parent(&it) } else { it };
            folders = folders.into_iter().map(cut).collect();
        }
        left.iter().for_each(|it| self.past.insert(&it.1));
        folders.iter().for_each(|it| self.add_whole(it, session, call));
    }

    /// Whether an agent left these bytes somewhere, and nobody looked.
    fn is_known(&self, hash: &ContentHash) -> bool {
        self.past.has(hash) || self.book.entries.values().any(|it| it.hash().as_ref() == Some(hash))
    }

    fn apply_person(&mut self, steps: &[Step]) {
        let stands: HashMap<ContentHash, UnseenEntry> =
            self.book.entries.values().filter_map(|it| Some((it.hash()?, it.clone()))).collect();
        let looked: BTreeSet<ContentHash> = self.book.looked.values().copied().collect();
        let is_gone = |it: &&Step| it.new.hash().is_none();
        let gone: Vec<UnseenEntry> = steps
            .iter()
            .filter(is_gone)
            .filter_map(|it| self.book.entries.get(it.path))
            .take(MAX_MOVED)
            .cloned()
            .collect();
        for it in steps.iter().filter(|it| is_obeyed(it.path)) {
            let old = self.book.entries.get(it.path).cloned();
            let hash = it.new.hash();
            if old.as_ref().is_some_and(|it| it.what == What::Whole) {
                // Whoever removed it removed what an agent left.
                if it.new == State::Absent {
                    self.book.entries.remove(it.path);
                }
                continue;
            }
            if old.is_some() && old.as_ref().and_then(UnseenEntry::hash) == hash {
                continue;
            }
            self.remove(it.path);
            let next = match hash {
                Some(hash) if self.book.looked.get(it.path) == Some(&hash) => None,
                Some(hash) => self.after_person(it, hash, old, (&stands, &looked, &gone)),
                None if it.new == State::NotHeld => {
                    let moved = gone.iter().find(|it| it.what == What::Whole).or(old.as_ref());
                    moved.map(|it| UnseenEntry { what: What::Whole, era: 0, ..it.clone() })
                }
                None => None,
            };
            if let Some(next) = next {
                self.book.entries.insert(it.path.into(), next);
            } else if let (Some(hash), true) = (hash, it.old == State::Absent && self.whole_above(it.path)) {
                self.book.looked.insert(it.path.into(), hash);
            }
        }
    }

    fn after_person(
        &self,
        step: &Step,
        hash: ContentHash,
        old: Option<UnseenEntry>,
        (stands, looked, gone): (&HashMap<ContentHash, UnseenEntry>, &BTreeSet<ContentHash>, &[UnseenEntry]),
    ) -> Option<UnseenEntry> {
        // They are the agent's, wherever a person puts them.
        if !looked.contains(&hash) && (stands.contains_key(&hash) || self.past.has(&hash)) {
            let last = || self.book.entries.values().next_back().cloned();
            let known = stands.get(&hash).cloned().or_else(|| old.clone()).or_else(last);
            let nobody = || UnseenEntry { what: What::Whole, session: "".into(), call: "".into(), era: 0 };
            let entry = known.unwrap_or_else(nobody);
            return match stands.get(&hash) {
                Some(same) => Some(UnseenEntry { what: same.what.clone(), ..entry }),
                None => entry.with(hash, None).map(|it| UnseenEntry { era: 0, ..it }),
            };
        }
        let bytes = (self.contents)(&hash);
        if let Some(old) = old {
            return old.after_person(hash, bytes.as_deref(), self.contents);
        }
        if step.old != State::Absent {
            return None;
        }
        // Moved and changed: half of the agent's lines are enough.
        gone.iter().find_map(|it| {
            let n_own = it.lines(self.contents)?.len();
            let next = it.after_person(hash, Some(bytes.as_deref()?), self.contents)?;
            matches!(&next.what, What::Bytes { own: Some(own), .. } if own.len() * 2 >= n_own).then_some(next)
        })
    }

    /// A person saw these lines of these bytes; `None`: all of them. Whether anything became looked at.
    pub fn look(&mut self, path: &[u8], hash: &ContentHash, shown: Option<&LineSet>) -> bool {
        let entry = self.book.entries.get(path).filter(|it| it.hash().as_ref() == Some(hash)).cloned();
        let left = match (&entry, shown) {
            (Some(entry), Some(shown)) => {
                let Some(own) = entry.lines(self.contents) else { return false };
                entry.with(*hash, Some(own.difference(shown).copied().collect()))
            }
            (None, Some(_)) => return false,
            (_, None) => None,
        };
        match left {
            Some(it) => _ = self.book.entries.insert(path.into(), it),
            None => {
                if entry.is_some() {
                    self.book.entries.remove(path);
                }
                self.book.looked.insert(path.into(), *hash);
            }
        }
        self.bound();
        true
    }

    /// What there are too many of becomes coarser, which never makes anything looked at.
    fn bound(&mut self) {
        while self.book.looked.len() > MAX_LOOKED {
            self.book.looked.pop_first();
        }
        while self.book.entries.len() > MAX_ENTRIES {
            let mut folders: BTreeMap<&[u8], usize> = BTreeMap::new();
            for path in self.book.entries.keys() {
                *folders.entry(dirfd::split(path).map_or(&[], |it| it.0)).or_default() += 1;
            }
            let Some(most) = folders.into_iter().max_by_key(|it| it.1).map(|it| it.0.to_vec()) else { return };
            let Some(one) = below(&self.book.entries, &most).next().map(|it| it.1.clone()) else { return };
            self.add_whole(&most, &one.session, &one.call);
        }
    }
}

/// All that is below a folder, sorted by bytes.
pub fn below<'a, T>(all: &'a BTreeMap<PathBytes, T>, dir: &[u8]) -> impl Iterator<Item = (&'a PathBytes, &'a T)> {
    // `0` follows `/`.
    let (start, end) = ([dir, b"/"].concat(), [dir, b"0"].concat());
    let is_top = dir.is_empty();
    let range = all.range::<[u8], _>((
        std::ops::Bound::Excluded(if is_top { &[][..] } else { &*start }),
        std::ops::Bound::Unbounded,
    ));
    range.take_while(move |it| is_top || **it.0 < *end).map(|it| (it.0, it.1)).collect::<Vec<_>>().into_iter()
}

/// Whether anybody obeys what stands at a path. Most of git's own files are data, and change with every command of git.
fn is_obeyed(path: &[u8]) -> bool {
    let mut parts = path.split(|it| *it == b'/').skip_while(|it| *it != b".git").skip(1).peekable();
    let is_data = |it: &[u8]| matches!(it, b"objects" | b"refs" | b"logs");
    let is_order = |it: &[u8]| {
        let text = String::from_utf8_lossy(it);
        ["config", "hooks", "info", "rebase-", "sequencer", "gitdir", "commondir"].iter().any(|it| text.starts_with(it))
    };
    if parts.peek().is_none() {
        return true;
    }
    let parts: Vec<&[u8]> = parts.collect();
    !parts.iter().any(|it| is_data(it)) && parts.iter().any(|it| is_order(it))
}
