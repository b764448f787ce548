//! The restore plan of one root: a step for each path and for each ref.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use super::{
    AbsPath, Buffers, Change, CheckpointId, Delta, Failure, Kind, Node, NotHeld, Part, RelPath, Store, Value,
    conflicts::Author, conflicts::SINCE, conflicts::StateChange, conflicts::judge, git, hash_of, in_parallel, node,
    refs,
};
use castor_base::checkpoint::{ChangeKind, OnConflict, RestoreOrder};

/// The steps of a restore in one root.
#[derive(Debug, Default)]
pub struct Plan {
    /// The calls of which something is held.
    pub known: BTreeSet<CheckpointId>,
    /// What they changed and was a file, whatever became of it since.
    pub files: Vec<RelPath>,
    /// Sorted by path, so that a folder comes before what is in it.
    pub steps: Vec<Change>,
    pub refs: Vec<Change<Value>>,
    pub conflicts: Vec<(Change, String)>,
    /// Files that a client has.
    pub to_client: Vec<Change>,
    pub not_kept: Vec<RelPath>,
}

const DAMAGED: &str = "the checkpoint is damaged";

type Chains = BTreeMap<RelPath, Vec<StateChange<Node>>>;

/// The calls of an order, against the log of a root.
struct Undo<'a> {
    store: &'a Store,
    order: &'a RestoreOrder,
    buffers: &'a Buffers,
    history: Vec<(Author, Delta)>,
    forced: bool,
}

pub fn plan(store: &Store, order: &RestoreOrder, buffers: &Buffers) -> Result<Plan, Failure> {
    let who = |it: Delta| Some((Author::of(&it, &store.session.id, |id| order.undo.contains(id))?, it));
    let history = store.history()?.into_iter().filter_map(who).collect();
    let undo = Undo { store, order, buffers, history, forced: order.on_conflict == OnConflict::Restore };
    let chains = undo.chains();
    let gits = undo.git_dirs(&chains);
    let calls = undo.history.iter().filter(|it| it.0.is_undone()).flat_map(|it| it.1.calls());
    let mut plan = Plan { known: calls.map(|it| it.id.clone()).collect(), ..Plan::default() };
    for (path, links) in &chains {
        let mut states = links.iter().flat_map(|it| [&it.old, &it.new]);
        let is_file = git::part(path).is_none() && states.any(|it| it.hash().is_some());
        plan.files.extend(is_file.then(|| path.clone()));
        undo.plan_path(path, links, &gits, &mut plan);
    }
    for dir in gits.iter().filter(|it| undo.is_wanted(it)) {
        let damaged = || vec![(Change { path: dir.clone(), ..Change::default() }, DAMAGED.to_owned())];
        let found = refs::plan(store, dir, &undo.history, undo.forced);
        let (refs, conflicts) = found.unwrap_or_else(|| (Vec::new(), damaged()));
        plan.refs.extend(refs);
        if !conflicts.is_empty() {
            // What is staged belongs to the branch.
            let index = node::join(dir, b"index");
            plan.steps.retain(|it| *it.path != *index);
        }
        plan.conflicts.extend(conflicts);
    }
    // What is deleted first makes room for names below it.
    plan.refs.sort_by_key(|it| it.new.is_some());
    undo.drop_damaged(&mut plan);
    undo.make_folders(&mut plan);
    undo.make_room(&mut plan);
    undo.drop_homeless(&mut plan);
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(plan)
}

impl Undo<'_> {
    /// The states of all paths that the calls changed.
    fn chains(&self) -> Chains {
        let undone = self.history.iter().filter(|it| it.0.is_undone()).flat_map(|it| &it.1.changes);
        let wanted = undone.filter(|it| self.is_wanted(&it.path));
        let mut res: Chains = wanted.map(|it| (it.path.clone(), Vec::new())).collect();
        for (who, delta) in &self.history {
            for change in &delta.changes {
                if let Some(links) = res.get_mut(&change.path) {
                    links.push(StateChange { old: change.old.clone(), new: change.new.clone(), who: *who });
                }
            }
        }
        res
    }

    fn is_wanted(&self, path: &[u8]) -> bool {
        let Some(paths) = &self.order.paths else { return true };
        // A folder of git's goes as a whole.
        let path = absolute(&self.store.path, git::git_path(path).map_or(path, |it| it.dir));
        paths.iter().any(|it| path.starts_with(it))
    }

    /// Folders of git's whose refs are restored one by one: they are there now, and are to stay.
    fn git_dirs(&self, chains: &Chains) -> BTreeSet<RelPath> {
        let dirs = chains.keys().filter_map(|it| git::git_path(it)).map(|it| RelPath::from(it.dir));
        let stays = |dir: &RelPath| {
            let was = chains.get(dir).and_then(|it| it.iter().find(|it| it.who.is_undone()));
            self.store.manifest.get(dir).is_dir() && was.is_none_or(|it| it.old.is_dir())
        };
        dirs.filter(stays).collect()
    }

    fn plan_path(&self, path: &RelPath, links: &[StateChange<Node>], gits: &BTreeSet<RelPath>, plan: &mut Plan) {
        let found = git::git_path(path);
        let part = found.map(|it| it.part());
        // Of a repository that comes or goes as a whole every file counts.
        let whole = found.is_some_and(|it| !gits.contains(it.dir));
        let mut states = links.iter().flat_map(|it| [&it.old, &it.new]);
        if part == Some(Part::Ref) && !whole && !states.all(|it| it.is_absent() || it.is_dir()) {
            return;
        }
        if let Some(buffer) = self.buffer(path).filter(|_| part.is_none()) {
            return self.plan_open(path, links, buffer, plan);
        }
        let now = self.store.manifest.get(path).clone();
        let is_same = |a: &Node, b: &Node| a.is_same(b) || (part == Some(Part::Index) && self.is_same_index(a, b));
        let Some(verdict) = judge(links, &now, &is_same) else { return };
        let step = Change { path: path.clone(), old: now, new: verdict.target };
        if step.is_still() || (!whole && step.is_placeholder()) {
            return;
        }
        match step.new.why() {
            Some(NotHeld::Exempt) if !step.old.is_absent() => return,
            Some(_) => return plan.not_kept.push(path.clone()),
            None => (),
        }
        let lost = step.old.why().map(|_| "castor has no copy of the present file, so it could not be restored later");
        let conflict = verdict.conflict.or(lost).filter(|_| part != Some(Part::Object));
        match (part, conflict) {
            // Nothing of git's own needs it, or it was put there by somebody since.
            (Some(Part::Object | Part::ObjectDir), _) if !whole && step.kind() != ChangeKind::Added => (),
            (Some(Part::Other), Some(_)) if !whole => (),
            (_, Some(why)) if !self.forced => plan.conflicts.push((step, why.to_owned())),
            _ => plan.steps.push(step),
        }
    }

    /// A file that a client has. Whether it wrote its buffer to the disk is no change of anybody's.
    fn plan_open(&self, path: &RelPath, links: &[StateChange<Node>], buffer: Node, plan: &mut Plan) {
        let is_same = |a: &Node, b: &Node| a.hash() == b.hash() && (a.hash().is_some() || a.is_same(b));
        let last = links.iter().rposition(|it| it.who.is_undone()).unwrap_or_default();
        let links = links.get(..=last).unwrap_or_default();
        let disk = self.store.manifest.get(path).clone();
        let Some(verdict) = judge(links, &buffer, &is_same) else { return };
        let (is_back, is_text) = (is_same(&buffer, &verdict.target), verdict.target.hash().is_some());
        let is_known = links.iter().flat_map(|it| [&it.old, &it.new]).chain([&buffer]).any(|it| is_same(it, &disk));
        let conflict = if is_known { verdict.conflict.filter(|_| !is_back) } else { Some(SINCE) };
        let is_done = is_same(&disk, &verdict.target) && (is_back || !is_text);
        // A client is told what a file holds, and not that it is none any more.
        let step = Change { path: path.clone(), old: if is_text { buffer } else { disk }, new: verdict.target };
        match conflict {
            _ if is_done => (),
            _ if step.new.why().is_some() => plan.not_kept.push(path.clone()),
            Some(why) if !self.forced => plan.conflicts.push((step, why.to_owned())),
            _ if is_text => plan.to_client.push(step),
            _ => plan.steps.push(step),
        }
    }

    fn buffer(&self, path: &[u8]) -> Option<Node> {
        let bytes = self.buffers.0.get(&AbsPath::new(absolute(&self.store.path, path))?)?;
        Some(Node::unseen(Kind::File(hash_of(bytes)), 0o644, bytes.len() as u64))
    }

    /// Tells whether the same is staged; git notes the files' times anew whenever it looks.
    fn is_same_index(&self, a: &Node, b: &Node) -> bool {
        let read = |it: &Node| self.store.blobs.read(&it.hash()?).ok();
        let (Some(a), Some(b)) = (read(a), read(b)) else { return false };
        git::staged(&a).is_some_and(|it| Some(it) == git::staged(&b))
    }

    /// What is not held as it was costs no other path.
    fn drop_damaged(&self, plan: &mut Plan) {
        for steps in [&mut plan.steps, &mut plan.to_client] {
            let lost = in_parallel(steps, |it| (!self.store.has(it)).then(|| it.path.clone()));
            let lost: HashSet<RelPath> = lost.into_iter().flatten().collect();
            let damaged = steps.extract_if(.., |it| lost.contains(&it.path));
            plan.conflicts.extend(damaged.map(|it| (it, DAMAGED.to_owned())));
        }
    }

    /// Folders for what comes back. Those that must be opened are steps too, so that they are closed again.
    fn make_folders(&self, plan: &mut Plan) {
        let all = plan.steps.iter().flat_map(|it| node::ancestors(&it.path)).map(RelPath::from);
        let mut above: BTreeSet<RelPath> = all.collect();
        plan.steps.iter().for_each(|it| _ = above.remove(&it.path));
        for path in above {
            let old = self.store.manifest.get(&path).clone();
            let new = if old.is_absent() { Node::unseen(Kind::Dir, 0o755, 0) } else { old.clone() };
            if old.is_absent() || old.is_closed() {
                plan.steps.push(Change { path, old, new });
            }
        }
    }

    /// A folder that is to be removed: its contents outside of the plan.
    fn make_room(&self, plan: &mut Plan) {
        let gone = plan.steps.iter().filter(|it| it.new.is_absent());
        let mut gone: HashSet<RelPath> = gone.map(|it| it.path.clone()).collect();
        let is_swap = |it: &Change| it.old.is_dir() && !it.new.is_dir();
        let mut swaps: Vec<_> = plan.steps.extract_if(.., |it| is_swap(it)).collect();
        swaps.sort_by(|a, b| b.path.cmp(&a.path));
        for step in swaps {
            let below = self.store.manifest.below(&step.path);
            let stays: Vec<_> = below.filter(|it| !gone.contains(it.0)).collect();
            let all_held = stays.iter().all(|it| it.1.why().is_none());
            match step.new.is_absent() {
                _ if stays.is_empty() => plan.steps.push(step),
                true => _ = gone.remove(&step.path),
                false if self.forced && all_held => {
                    let removed = stays.into_iter().map(|(path, it)| (path.clone(), it.clone(), Node::default()));
                    plan.steps.extend(removed.map(|(path, old, new)| Change { path, old, new }));
                    plan.steps.push(step);
                }
                false => {
                    let why = "a folder stands there now, with files that the calls did not make";
                    plan.conflicts.push((step, why.to_owned()));
                }
            }
        }
    }

    /// What would have no folder: something else stands there, and stays.
    fn drop_homeless(&self, plan: &mut Plan) {
        let planned: HashMap<RelPath, bool> = plan.steps.iter().map(|it| (it.path.clone(), it.new.is_dir())).collect();
        let now = |it: &[u8]| self.store.manifest.get(it);
        let is_there = |it: &[u8]| now(it).is_dir() || now(it).is_passed_over();
        let is_folder = |it: &[u8]| planned.get(it).copied().unwrap_or_else(|| is_there(it));
        let is_homeless = |it: &Change| !it.new.is_absent() && !node::ancestors(&it.path).all(is_folder);
        let homeless = plan.steps.extract_if(.., |it| is_homeless(it));
        plan.conflicts.extend(homeless.map(|it| (it, "another entry is where its folder was".to_owned())));
    }
}

pub fn absolute(root: &AbsPath, path: &[u8]) -> PathBuf {
    root.as_path().join(OsStr::from_bytes(path)).components().collect()
}

/// What people are shown of a path: of git's folder only what git obeys, and the rest as the folder.
pub fn shown_path(path: &[u8]) -> &[u8] {
    match git::git_path(path) {
        Some(it) if it.part() != Part::Config => it.dir,
        _ => path,
    }
}
