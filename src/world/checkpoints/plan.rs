//! What a restore is to do in one root: a step for each path, and for each ref.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use super::{
    Buffers, Failure,
    blobs::hash_of,
    codec::Delta,
    git::{self, Part},
    judge::{Link, Who, judge},
    node::{self, Kind, Mark, Node, RelPath, Why},
    refs::{self, RefStep},
    store::Store,
};
use crate::base::{
    checkpoint::{OnConflict, RestoreOrder},
    path::AbsPath,
};

/// One path: what stands there, and what is to.
#[derive(Clone, Debug)]
pub struct Step {
    pub path: RelPath,
    pub now: Option<Node>,
    pub to: Option<Node>,
}

/// What is to be done in one root.
#[derive(Debug, Default)]
pub struct Plan {
    /// Sorted by path, so that a folder comes before what is in it.
    pub steps: Vec<Step>,
    pub refs: Vec<RefStep>,
    pub conflicts: Vec<(RelPath, Option<Node>, String)>,
    /// Files that a client has, and the content that it gets; `None`: it is as it should be.
    pub to_client: Vec<(RelPath, Option<Node>)>,
    pub not_kept: Vec<RelPath>,
}

type Chains = BTreeMap<RelPath, Vec<Link<Option<Node>>>>;

/// The calls of an order, against the log of a root.
pub struct Undo<'a> {
    pub store: &'a Store,
    pub order: &'a RestoreOrder,
    pub history: &'a [Delta],
    pub forced: bool,
}

impl<'a> Undo<'a> {
    pub fn new(store: &'a Store, order: &'a RestoreOrder, history: &'a [Delta]) -> Self {
        Self { store, order, history, forced: order.on_conflict == OnConflict::Restore }
    }

    pub fn who(&self, delta: &Delta) -> Option<Who> {
        Who::of(delta, &self.store.session, |id| self.order.undo.iter().any(|it| it.as_str() == id))
    }

    pub fn plan(&self, buffers: &Buffers) -> Result<Plan, Failure> {
        let chains = self.chains();
        let mut plan = Plan::default();
        let gits = self.gits(&chains);
        for (path, links) in &chains {
            self.plan_path(path, links, &gits, buffers, &mut plan);
        }
        for dir in &gits {
            let wanted = self.is_wanted(dir);
            let found = if wanted { refs::plan(self, dir)? } else { refs::Planned::default() };
            let clashes = !found.conflicts.is_empty();
            plan.conflicts.extend(found.conflicts.into_iter().map(|it| (dir.clone(), None, it)));
            plan.refs.extend(found.steps);
            if clashes {
                // What is staged belongs to the branch.
                let index = node::join(dir, b"index");
                plan.steps.retain(|it| *it.path != *index);
            }
        }
        self.make_room(&mut plan);
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(plan)
    }

    /// The states of all paths that the calls changed.
    fn chains(&self) -> Chains {
        let mut res = Chains::new();
        for delta in self.history {
            let undone = self.who(delta).is_some_and(Who::is_undone);
            for change in delta.changes.iter().filter(|it| undone && self.is_wanted(&it.path)) {
                res.entry(change.path.clone()).or_default();
            }
        }
        for delta in self.history {
            let Some(who) = self.who(delta) else { continue };
            for change in &delta.changes {
                if let Some(links) = res.get_mut(&change.path) {
                    links.push(Link { old: change.old.clone(), new: change.new.clone(), who });
                }
            }
        }
        res
    }

    fn is_wanted(&self, path: &[u8]) -> bool {
        let Some(paths) = &self.order.paths else { return true };
        // A folder of git's goes as a whole.
        let path = self.absolute(git::git_path(path).map_or(path, |it| it.dir));
        paths.iter().any(|it| path.starts_with(it))
    }

    pub fn absolute(&self, path: &[u8]) -> PathBuf {
        absolute(&self.store.path, path)
    }

    /// Folders of git's whose refs are restored one by one: they are there now, and are to stay.
    fn gits(&self, chains: &Chains) -> BTreeSet<RelPath> {
        let dirs = chains.keys().filter_map(|it| git::git_path(it)).map(|it| RelPath::from(it.dir));
        let stays = |dir: &RelPath| {
            let was = chains.get(dir).and_then(|it| it.iter().find(|it| it.who.is_undone()));
            let is_there = self.store.manifest.get(dir).is_some_and(Node::is_dir);
            is_there && was.is_none_or(|it| it.old.as_ref().is_some_and(Node::is_dir))
        };
        dirs.filter(stays).collect()
    }

    fn plan_path(
        &self,
        path: &RelPath,
        links: &[Link<Option<Node>>],
        gits: &BTreeSet<RelPath>,
        buffers: &Buffers,
        plan: &mut Plan,
    ) {
        let found = git::git_path(path);
        let whole = found.is_some_and(|it| !gits.contains(it.dir));
        let part = found.map(|it| it.part());
        if part == Some(Part::Ref) && !whole && !is_dir_link(links) {
            return;
        }
        let buffer = self.buffer(path, buffers);
        let now = buffer.clone().or_else(|| self.store.manifest.get(path).cloned());
        // A client may not have written its buffer to the disk: that is no change.
        let last = links.iter().rposition(|it| it.who.is_undone()).map_or(0, |it| it + 1);
        let links = if buffer.is_some() { links.get(..last).unwrap_or(links) } else { links };
        let is_same = |a: &Option<Node>, b: &Option<Node>| match part {
            _ if node::is_same(a.as_ref(), b.as_ref()) => true,
            Some(Part::Index) => self.is_same_index(a.as_ref(), b.as_ref()),
            _ if buffer.is_some() => {
                a.as_ref().and_then(Node::hash).is_some_and(|it| b.as_ref().and_then(Node::hash) == Some(it))
            }
            _ => false,
        };
        let Some(verdict) = judge(links, &now, &is_same) else { return };
        if node::is_same(now.as_ref(), verdict.target.as_ref()) {
            return;
        }
        let step = Step { path: path.clone(), now, to: verdict.target };
        if let Some(why) = step.to.as_ref().and_then(Node::why) {
            if why == Why::Exempt && step.now.is_some() {
                return;
            }
            return plan.not_kept.push(path.clone());
        }
        let conflict = self.conflict(&step, verdict.conflict, part);
        match (part, conflict) {
            // Nothing of git's own needs it, or it was put there by somebody since.
            (Some(Part::Object | Part::ObjectDir), _) if !whole && (step.to.is_none() || step.now.is_some()) => (),
            (Some(Part::Other), Some(_)) if !whole => (),
            (_, Some(why)) if !self.forced => plan.conflicts.push((path.clone(), step.to, why.to_owned())),
            _ if buffer.is_some() && step.to.as_ref().is_some_and(|it| it.hash().is_some()) => {
                plan.to_client.push((path.clone(), step.to));
            }
            _ => plan.steps.push(step),
        }
    }

    fn conflict(&self, step: &Step, found: Option<&'static str>, part: Option<Part>) -> Option<&'static str> {
        if part == Some(Part::Object) {
            return None;
        }
        let held = step.now.as_ref().is_none_or(|it| it.why().is_none());
        found.or((!held).then_some("what is there now is not held, and could not be brought back"))
    }

    fn buffer(&self, path: &[u8], buffers: &Buffers) -> Option<Node> {
        let path = AbsPath::new(self.absolute(path))?;
        let bytes = buffers.0.get(&path)?;
        let mark = Mark { size: bytes.len() as u64, ..Mark::default() };
        Some(Node { kind: Kind::File(hash_of(bytes)), mode: 0o644, mark, young: true })
    }

    /// Whether the same is staged; git notes the files' times anew whenever it looks.
    fn is_same_index(&self, a: Option<&Node>, b: Option<&Node>) -> bool {
        let staged = |it: Option<&Node>| git::staged(&self.store.blobs.read(it?.hash()?).ok()?);
        staged(a).is_some_and(|it| staged(b).as_ref() == Some(&it))
    }

    /// Folders for what comes back; and where a folder is to go, what is in it that nobody asked about.
    fn make_room(&self, plan: &mut Plan) {
        self.make_folders(plan);
        let mut to: BTreeMap<RelPath, Option<Node>> = BTreeMap::new();
        to.extend(plan.steps.iter().map(|it| (it.path.clone(), it.to.clone())));
        let swaps = |it: &Step| it.now.as_ref().is_some_and(Node::is_dir) && !it.to.as_ref().is_some_and(Node::is_dir);
        let (mut dropped, mut more) = (HashSet::new(), Vec::new());
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        for step in plan.steps.iter().rev().filter(|it| swaps(it)) {
            let stays = |it: &(&RelPath, &Node)| match to.get(it.0) {
                Some(to) => to.is_some() || dropped.contains(it.0),
                None => true,
            };
            let rest: Vec<_> = self.store.manifest.below(&step.path).filter(stays).collect();
            let all_held = rest.iter().all(|it| it.1.why().is_none());
            if rest.is_empty() {
                continue;
            }
            match &step.to {
                Some(_) if self.forced && all_held => {
                    let gone = |it: (&RelPath, &Node)| Step { path: it.0.clone(), now: Some(it.1.clone()), to: None };
                    more.extend(rest.into_iter().map(gone));
                    continue;
                }
                Some(_) => {
                    let why = "a folder stands there now, with files that the calls did not make".to_owned();
                    plan.conflicts.push((step.path.clone(), step.to.clone(), why));
                }
                None => (),
            }
            dropped.insert(step.path.clone());
        }
        plan.steps.retain(|it| !dropped.contains(&it.path));
        plan.steps.extend(more);
        self.drop_homeless(plan);
    }

    fn make_folders(&self, plan: &mut Plan) {
        let planned: HashSet<RelPath> = plan.steps.iter().map(|it| it.path.clone()).collect();
        let comes = plan.steps.iter().filter(|it| it.to.is_some());
        let above: BTreeSet<RelPath> = comes.flat_map(|it| node::ancestors(&it.path)).map(RelPath::from).collect();
        let missing = |it: &RelPath| !planned.contains(it) && self.store.manifest.get(it).is_none();
        for path in above.into_iter().filter(missing) {
            plan.steps.push(Step {
                path,
                now: None,
                to: Some(Node { kind: Kind::Dir, mode: 0o755, mark: Mark::default(), young: true }),
            });
        }
    }

    /// What would have no folder: something else stands there, and stays.
    fn drop_homeless(&self, plan: &mut Plan) {
        let to: BTreeMap<RelPath, bool> =
            plan.steps.iter().map(|it| (it.path.clone(), it.to.as_ref().is_some_and(Node::is_dir))).collect();
        let is_folder = |it: &[u8]| match to.get(it) {
            Some(res) => *res,
            None => self.store.manifest.get(it).is_some_and(Node::is_dir),
        };
        let is_homeless = |it: &Step| it.to.is_some() && !node::ancestors(&it.path).all(is_folder);
        let (homeless, rest) = std::mem::take(&mut plan.steps).into_iter().partition(is_homeless);
        plan.steps = rest;
        for step in homeless {
            plan.conflicts.push((step.path, step.to, "something else stands where its folder was".to_owned()));
        }
    }
}

/// Whether a path was a folder at all times.
fn is_dir_link(links: &[Link<Option<Node>>]) -> bool {
    links.iter().flat_map(|it| [&it.old, &it.new]).flatten().all(Node::is_dir)
}

pub fn absolute(root: &AbsPath, path: &[u8]) -> PathBuf {
    match path.is_empty() {
        true => root.as_path().to_owned(),
        false => root.as_path().join(OsStr::from_bytes(path)),
    }
}

/// What people are shown of a path: of git's folder only what git obeys, and the rest as the folder.
pub fn shown(path: &[u8]) -> &[u8] {
    match git::git_path(path) {
        Some(it) if it.part() != Part::Config => it.dir,
        _ => path,
    }
}
