//! Ledger of one root: bytes that agents left in it, unseen. Pure but for the contents that it asks for.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use serde::{Deserialize, Serialize};

use super::{
    AgentCall, ChangeAuthor, ContentHash, ContentReader, PathBytes, State, Step,
    commits::{Commits, blob},
    filter::HashFilter,
    lines::{self, LineSet},
};
use crate::disk::{
    dirfd,
    disk_mark::DiskMark,
    git_objects::{ObjectId, brought_by},
};
use castor_base::path::AbsPath;

/// More files of one call are entries by folder.
const MAX_OF_CALL: usize = 1_000;
/// Entries of one root; beyond that they become folders.
const MAX_ENTRIES: usize = 4_096;
/// Bytes that were looked at, of one root.
const MAX_LOOKED: usize = 8_192;
/// Folders of one flood.
const MAX_FOLDERS: usize = 64;
/// Files that went, beside which a new one is compared.
const MAX_MOVED: usize = 32;
/// Beginnings of what git obeys in its folder.
const GIT_ORDERS: &[&str] = &["config", "hooks", "info", "rebase-", "sequencer", "gitdir", "commondir"];
const DROPPED: &str = "castor's record of what agents wrote here lacks a part";

/// The record as one castor has it. The holder of the root's lock changes it.
#[derive(Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Of the last delta that is in it.
    pub seq: u64,
    pub entries: BTreeMap<PathBytes, UnseenEntry>,
    /// Bytes that a person looked at, or that are a person's below a folder that is not known file by file.
    pub looked: BTreeMap<PathBytes, ContentHash>,
    pub commits: Commits,
    /// Why some of it is not known any more.
    pub lost: Option<String>,
    /// Hashes of what agents left before, in a file of their own.
    #[serde(skip)]
    pub past: HashFilter,
    /// What comes is a restore of the user's.
    #[serde(skip)]
    pub is_restore: bool,
    /// It differs from its file.
    #[serde(skip)]
    pub is_changed: bool,
    /// Of the file that was read or written last.
    #[serde(skip)]
    pub mark: Option<DiskMark>,
}

/// What an agent left at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenEntry {
    /// `None`: whatever is there, or below.
    pub bytes: Option<LeftBytes>,
    /// `None`: it is not known any more.
    pub by: Option<AgentCall>,
    /// The commits that may hold these bytes from before the session; 0: none.
    pub era: u32,
}

/// In `base`, the lines `own` are an agent's, and so is all that `base` lacks; without `own` everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBytes {
    hash: ContentHash,
    base: Option<ContentHash>,
    own: Option<LineSet>,
}

impl UnseenEntry {
    pub fn hash(&self) -> Option<ContentHash> {
        self.bytes.as_ref().map(|it| it.hash)
    }

    /// The agent's lines; `None`: all of it.
    pub fn lines(&self, contents: ContentReader) -> Option<LineSet> {
        let it = self.bytes.as_ref()?;
        let (now, base) = (contents(&it.hash)?, it.base.map_or(Some(Vec::new()), |it| contents(&it))?);
        lines::after_agent(&base, it.own.as_ref()?, &now)
    }

    /// What is left of it once a person has made other bytes of it; `None`: nothing.
    fn after_person(&self, hash: ContentHash, contents: ContentReader) -> Option<Self> {
        let own = || lines::after_person(&contents(&self.hash()?)?, &self.lines(contents)?, &contents(&hash)?);
        self.with(hash, own())
    }

    fn with(&self, hash: ContentHash, own: Option<LineSet>) -> Option<Self> {
        let is_clear = own.as_ref().is_some_and(BTreeSet::is_empty);
        let base = own.is_some().then_some(hash);
        (!is_clear).then(|| Self { bytes: Some(LeftBytes { hash, base, own }), ..self.clone() })
    }
}

impl State {
    pub fn hash(&self) -> Option<ContentHash> {
        if let Self::File(it) = self { Some(*it) } else { None }
    }
}

impl Ledger {
    /// Takes in a delta of the checkpoints' log.
    pub fn apply(&mut self, seq: u64, author: ChangeAuthor, steps: &[Step], contents: ContentReader) {
        if seq <= self.seq {
            return;
        }
        self.finish(seq - 1);
        match author {
            ChangeAuthor::Agent(by) => self.apply_agent(&by, steps, contents),
            ChangeAuthor::Person => self.apply_person(steps, contents),
            ChangeAuthor::Nobody => (),
        }
        self.bound();
        (self.seq, self.is_changed) = (seq, true);
    }

    /// All deltas up to there were taken in, as far as there are any.
    pub fn finish(&mut self, seq: u64) {
        if self.seq < seq {
            self.lose(DROPPED);
            self.seq = seq;
        }
    }

    /// What cannot be known counts as unseen.
    pub fn lose(&mut self, why: &str) {
        self.add_whole(b"", None);
        (self.lost, self.is_changed) = (Some(why.to_owned()), true);
    }

    /// The first session opens a root, or the last one closes it: what a person committed meanwhile, they looked at.
    pub fn open_root(&mut self, root: &AbsPath, is_open: bool, contents: ContentReader) {
        self.look_at_commits(contents);
        self.commits.open_root(root, is_open);
        self.is_changed = true;
    }

    pub fn look_at_commits(&mut self, contents: ContentReader) {
        let left = self.entries.iter().filter_map(|(path, it)| Some((path, it.hash()?)));
        for (path, hash) in self.commits.looked(left, contents) {
            self.look(&path, Some(hash), None, contents);
        }
    }

    /// A person saw these lines of these bytes; without lines all of them, without a hash whatever is there and below.
    pub fn look(&mut self, path: &[u8], hash: Option<ContentHash>, seen: Option<&LineSet>, contents: ContentReader) {
        let entry = self.entries.get(path).filter(|it| hash.is_none() || it.hash() == hash);
        let left = seen.map_or(Some(LineSet::new()), |seen| Some(&entry?.lines(contents)? - seen));
        let Some(left) = left else { return };
        let left = entry.zip(hash).and_then(|(it, hash)| it.with(hash, Some(left)));
        if entry.is_some() {
            self.entries.remove(path);
        }
        match (left, hash) {
            (Some(it), _) => _ = self.entries.insert(path.into(), it),
            (None, Some(hash)) => _ = self.looked.insert(path.into(), hash),
            (None, None) if path.is_empty() => self.lost = None,
            (None, None) => (),
        }
        self.bound();
        self.is_changed = true;
    }

    fn apply_agent(&mut self, by: &AgentCall, steps: &[Step], contents: ContentReader) {
        self.remember_stored(steps, contents);
        let mut left = Vec::new();
        for it in steps.iter().filter(|it| is_obeyed(it.path)) {
            match it.new.hash() {
                Some(hash) if it.old.hash() != Some(hash) => left.push((it, hash)),
                Some(_) => (),
                None if it.new == State::NotHeld => self.add_whole(it.path, Some(by)),
                None => self.remove(it.path),
            }
        }
        let most = MAX_OF_CALL.saturating_sub(self.entries.values().filter(|it| it.by.as_ref() == Some(by)).count());
        if let Some(search) = self.commits.search(self.commits.last).filter(|_| left.len() > most) {
            // What commits from before have is dropped, until it is clear that too much is left.
            let mut n_left = 0;
            left.retain(|(step, hash)| {
                let has = |bytes: Vec<u8>| search.has(&[(step.path, &bytes, None)]);
                let is_committed = n_left <= most && !self.past.has(hash) && contents(hash).is_some_and(has);
                n_left += usize::from(!is_committed);
                !is_committed
            });
        }
        if left.len() <= most {
            return left.into_iter().for_each(|(step, hash)| self.leave(step, hash, by));
        }
        left.iter().for_each(|it| self.past.insert(&it.1));
        let mut folders: BTreeSet<PathBytes> = left.iter().map(|it| parent(it.0.path)).collect();
        let depth = |it: &PathBytes| dirfd::ancestors(it).count();
        while folders.len() > MAX_FOLDERS {
            let deepest = folders.iter().map(depth).max().unwrap_or_default();
            folders = folders.into_iter().map(|it| if depth(&it) == deepest { parent(&it) } else { it }).collect();
        }
        folders.iter().for_each(|it| self.add_whole(it, Some(by)));
    }

    /// What an agent put into a repository is its own wherever it comes out: by a merge, a checkout, a stash. What was in
    /// the files before, and is another's, is not.
    fn remember_stored(&mut self, steps: &[Step], contents: ContentReader) {
        let new =
            steps.iter().filter_map(|it| Some((it, it.new.hash()?))).filter(|(it, new)| it.old.hash() != Some(*new));
        let stored: Vec<ObjectId> = new.flat_map(|(it, new)| brought_by(it.path, || contents(&new))).collect();
        if stored.is_empty() {
            return;
        }
        let is_left = |it: &&Step| self.entries.get(it.path).is_some_and(|entry| entry.hash() == it.old.hash());
        let of_others = steps.iter().filter(|it| is_obeyed(it.path) && !is_left(it));
        let of_others: BTreeSet<ObjectId> = of_others.filter_map(|it| blob(&it.old.hash()?, contents)).collect();
        stored.iter().filter(|it| !of_others.contains(it)).for_each(|it| self.past.insert(&it.as_key()));
    }

    fn leave(&mut self, step: &Step, hash: ContentHash, by: &AgentCall) {
        let is_known = self.past.has(&hash) || self.entries.values().any(|it| it.hash() == Some(hash));
        let era = if is_known { 0 } else { self.commits.last };
        let before = self.entries.get(step.path).and_then(|it| it.bytes.clone());
        self.remove(step.path);
        if self.looked.get(step.path) == Some(&hash) {
            return;
        }
        if self.is_whole(step.path) {
            return self.past.insert(&hash);
        }
        let (base, own) = before.map_or((step.old.hash(), Some(LineSet::new())), |it| (it.base, it.own));
        // It may be as it was before.
        if base != Some(hash) || own.as_ref().is_none_or(|it| !it.is_empty()) {
            let bytes = Some(LeftBytes { hash, base, own });
            self.entries.insert(step.path.into(), UnseenEntry { bytes, by: Some(by.clone()), era });
        }
    }

    /// Takes an entry out, and remembers its bytes.
    fn remove(&mut self, path: &[u8]) {
        let hash = self.entries.remove(path).and_then(|it| it.hash());
        hash.iter().for_each(|it| self.past.insert(it));
    }

    /// Whatever is there, and below, is unseen.
    pub fn add_whole(&mut self, path: &[u8], by: Option<&AgentCall>) {
        if !self.is_whole(path) {
            let below: Vec<PathBytes> = below(&self.entries, path).map(|it| it.0.clone()).collect();
            below.iter().for_each(|it| self.remove(it));
            self.remove(path);
            self.entries.insert(path.into(), UnseenEntry { bytes: None, by: by.cloned(), era: 0 });
            self.is_changed = true;
        }
    }

    /// Whether a path, or a folder that it lies in, is known as a whole only.
    fn is_whole(&self, path: &[u8]) -> bool {
        let mut around = dirfd::ancestors(path).chain([path]);
        around.any(|it| self.entries.get(it).is_some_and(|it| it.bytes.is_none()))
    }

    fn apply_person(&mut self, steps: &[Step], contents: ContentReader) {
        let is_gone = |it: &&Step| it.new.hash().is_none();
        let gone = steps.iter().filter(is_gone).filter_map(|it| self.entries.get(it.path).cloned());
        let gone: Vec<UnseenEntry> = gone.take(MAX_MOVED).collect();
        for step in steps.iter().filter(|it| is_obeyed(it.path)) {
            let next = self.after_person(step, &gone, contents);
            if next.is_some() && self.entries.get(step.path) == next.as_ref() {
                continue;
            }
            self.remove(step.path);
            match (next, step.new.hash()) {
                (Some(next), _) => _ = self.entries.insert(step.path.into(), next),
                (None, Some(hash)) if step.old == State::Absent && self.is_whole(step.path) => {
                    self.looked.insert(step.path.into(), hash);
                }
                _ => (),
            }
        }
    }

    /// What is unseen at a path once a person has left it so; `None`: nothing. `gone` stood where nothing is by now.
    pub fn after_person(&self, step: &Step, gone: &[UnseenEntry], contents: ContentReader) -> Option<UnseenEntry> {
        let old = self.entries.get(step.path);
        let Some(hash) = step.new.hash().filter(|_| old.is_none_or(|it| it.bytes.is_some())) else {
            // Whoever removes a folder removes what an agent left in it.
            let stays = old.filter(|it| it.bytes.is_none() && step.new != State::Absent);
            let moved = || gone.iter().find(|it| it.bytes.is_none()).or(old).filter(|_| step.new == State::NotHeld);
            return stays.or_else(moved).map(|it| UnseenEntry { bytes: None, ..it.clone() });
        };
        let stays = old.filter(|it| it.hash() == Some(hash));
        if stays.is_some() || self.looked.get(step.path) == Some(&hash) {
            return stays.cloned();
        }
        // They are the agent's, wherever a person puts them. Of a file that was moved and changed half of its lines are enough.
        let same = self.entries.values().find(|it| it.hash() == Some(hash)).cloned();
        let moved = |it: &UnseenEntry| {
            let next = it.after_person(hash, contents).filter(|_| step.old == State::Absent)?;
            let n_left = next.bytes.as_ref()?.own.as_ref()?.len();
            (n_left * 2 >= it.lines(contents)?.len()).then_some(next)
        };
        let left = |era| {
            let bytes = Some(LeftBytes { hash, base: None, own: None });
            UnseenEntry { bytes, by: old.and_then(|it| it.by.clone()), era }
        };
        let before = || self.past.has(&hash).then(|| left(0));
        let stored = || {
            let id = Some(hash).filter(|_| !self.past.is_empty()).and_then(|it| blob(&it, contents))?;
            self.past.has(&id.as_key()).then(|| left(self.commits.last))
        };
        let known = same.or_else(|| gone.iter().find_map(moved)).or_else(before).or_else(stored);
        let known = known.filter(|_| !self.looked.values().any(|it| *it == hash));
        known.or_else(|| old?.after_person(hash, contents))
    }

    /// What there are too many of becomes coarser, which never makes anything looked at.
    fn bound(&mut self) {
        while self.looked.len() > MAX_LOOKED {
            self.looked.pop_first();
        }
        while self.entries.len() > MAX_ENTRIES {
            let mut folders: BTreeMap<PathBytes, usize> = BTreeMap::new();
            self.entries.keys().for_each(|it| *folders.entry(parent(it)).or_default() += 1);
            let fullest = folders.into_iter().max_by_key(|it| it.1).unwrap_or_default().0;
            let by = below(&self.entries, &fullest).next().and_then(|it| it.1.by.clone());
            self.add_whole(&fullest, by.as_ref());
        }
    }
}

fn parent(path: &[u8]) -> PathBytes {
    dirfd::ancestors(path).next().unwrap_or_default().into()
}

/// All that is below a folder, sorted by bytes.
pub fn below<'a, T>(all: &'a BTreeMap<PathBytes, T>, dir: &[u8]) -> impl Iterator<Item = (&'a PathBytes, &'a T)> {
    let start = if dir.is_empty() { Vec::new() } else { [dir, b"/"].concat() };
    let range = all.range::<[u8], _>((Bound::Excluded(&*start), Bound::Unbounded));
    range.take_while(move |it| it.0.starts_with(&start))
}

/// Whether anybody obeys what stands at a path. Most of git's own files are data, and change with every command of git.
fn is_obeyed(path: &[u8]) -> bool {
    let below = path.split(|it| *it == b'/').skip_while(|it| *it != b".git").skip(1);
    let parts: Vec<Cow<str>> = below.map(String::from_utf8_lossy).collect();
    let is_data = parts.iter().any(|it| matches!(&**it, "objects" | "refs" | "logs"));
    let is_order = |it: &Cow<str>| GIT_ORDERS.iter().any(|order| it.starts_with(order));
    parts.is_empty() || !is_data && parts.iter().any(is_order)
}
