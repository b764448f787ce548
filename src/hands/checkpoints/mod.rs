//! Checkpoints: records files before a call, lists what the call changed, and restores them.
//!
//! Each root has a store of its own below castor's home: a manifest of what lies in the root, a log of what changed and
//! by whom, and contents by their hash. All calls block; call them on a blocking thread.

mod apply;
mod blobs;
mod changes;
mod conflicts;
mod folders;
mod git;
mod manifest;
mod node;
mod plan;
mod record;
mod refs;
mod restore;
mod retention;
mod rules;
mod store;
#[cfg(test)]
mod tests;
mod types;
mod walk;

pub use retention::{forget_session, recover_all, sweep};
pub use types::{
    Buffers, Failure, FileDiff, FirstWalk, Limits, PlannedPath, RestoreOutcome, RestorePlan, Result, Retention, Sweep,
};

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    disk::{
        dirfd::{self, DirFd},
        disk_mark::DiskMark,
        fault, frame, hash_of, hash_of_file,
        lasting::{self, new_files::NewFiles},
        parallel::in_parallel,
        try_lock, wait_for_lock,
    },
    provenance::{self, ChangeAuthor, Ledger, Step},
};
use castor_base::{
    checkpoint::{Changes, CheckpointResult, RestoreOrder, Scope},
    ids::{CheckpointId, SessionId},
    path::AbsPath,
};
// What all files here speak of.
use git::Part;
use node::{Hash, Kind, Node, NotHeld, RelPath};
use record::{Call, Cause, Change, Delta, Journal, Value};
use store::{Lock, Session, Store};
use walk::WalkScope;

/// Whether the caller wants a long walk to end.
pub type Cancel<'a> = &'a (dyn Fn() -> bool + Sync);

/// The content of one file that a client holds; `None`: it is not there.
pub type Content = (AbsPath, Option<Vec<u8>>);
type ClientFiles<'a> = Option<&'a [Content]>;

/// The checkpoints of one session. Making one touches nothing.
pub struct Checkpoints {
    session: Session,
    /// Sorted, so that all castors take their locks in one order.
    roots: Vec<AbsPath>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The stores, in the order of the roots.
    stores: Vec<Store>,
    /// The scopes of the calls that are running.
    scopes: BTreeMap<CheckpointId, Scope>,
    /// Calls that a running call is a part of.
    above: BTreeMap<CheckpointId, Vec<CheckpointId>>,
}

impl Checkpoints {
    /// `home` is castor's own folder; `roots` are real paths.
    pub fn new(home: &AbsPath, session: &SessionId, roots: &[AbsPath], limits: Limits) -> Self {
        let mut roots = roots.to_vec();
        roots.sort();
        // What lies in another root is held with that.
        roots.dedup_by(|b, a| b.is_within(a));
        let session = Session { home: home.clone(), id: session.clone(), limits };
        Self { session, roots, state: Mutex::default() }
    }

    /// The first walk of the session. Finishes, or takes back, a restore that a crash interrupted.
    ///
    /// # Errors
    /// When any step fails: then the session has no checkpoints.
    pub fn open(&self, cancel: Cancel) -> Result<FirstWalk> {
        self.open_and_tell(cancel, |_| ())
    }

    /// As [`Self::open`]; `tell` comes before any call goes on that waits for this walk.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_and_tell(&self, cancel: Cancel, tell: impl FnOnce(&FirstWalk)) -> Result<FirstWalk> {
        let mut state = self.state();
        let notices = self.open_stores(&mut state, cancel)?;
        let is_full = |it: &&Store| it.manifest.below(b"").any(|it| it.1.why() == Some(NotHeld::Full));
        let full = state.stores.iter().filter(is_full).map(|it| it.path.clone()).collect();
        let walk = FirstWalk { notices, full, held: not_held(&state.stores) };
        tell(&walk);
        Ok(walk)
    }

    /// Holds what a call may write, before it runs.
    ///
    /// # Errors
    /// When any step fails: then there is no checkpoint.
    pub fn before(&self, id: &CheckpointId, scope: &Scope, cancel: Cancel) -> Result<CheckpointResult> {
        self.begin(id, scope, None, cancel)
    }

    /// A call of a sub-agent is a part of the calls `above`: what it changes is theirs, too.
    pub fn nest(&self, id: &CheckpointId, above: &[CheckpointId]) {
        self.state().above.insert(id.clone(), above.to_vec());
    }

    /// What changed since [`Checkpoints::before`] of the same checkpoint, which is the call's from now on.
    ///
    /// # Errors
    /// When the roots cannot be read, or the store cannot be written.
    pub fn after(&self, id: &CheckpointId) -> Result<Changes> {
        self.end(id, None)
    }

    /// As [`Checkpoints::before`] for files that a client holds: they are what the client says.
    ///
    /// # Errors
    /// As [`Checkpoints::before`].
    pub fn before_content(&self, id: &CheckpointId, files: &[Content]) -> Result<CheckpointResult> {
        let scope = Scope::Files(files.iter().map(|it| it.0.clone()).collect());
        self.begin(id, &scope, Some(files), &|| false)
    }

    /// As [`Checkpoints::after`] for files that a client holds.
    ///
    /// # Errors
    /// As [`Checkpoints::after`].
    pub fn after_content(&self, id: &CheckpointId, files: &[Content]) -> Result<Changes> {
        self.end(id, Some(files))
    }

    fn begin(&self, id: &CheckpointId, scope: &Scope, said: ClientFiles, cancel: Cancel) -> Result<CheckpointResult> {
        let mut state = self.state();
        self.open_stores(&mut state, cancel)?;
        let (mut locks, mut opened) = (Vec::new(), Vec::new());
        for store in &mut state.stores {
            let Some(sight) = scope_in(store, scope, said) else { continue };
            locks.push(restore::lock(store, cancel)?);
            store.look(&sight, said.map(|_| Cause::User), cancel)?;
            opened.push(store);
        }
        opened.into_iter().try_for_each(|it| it.begin_call(id, *scope == Scope::Roots))?;
        state.scopes.insert(id.clone(), scope.clone());
        Ok(match scope {
            Scope::Roots => not_held(&state.stores),
            Scope::Files(files) => files_not_held(&state.stores, files, said.is_none()),
        })
    }

    fn end(&self, id: &CheckpointId, said: ClientFiles) -> Result<Changes> {
        let mut state = self.state();
        let scope = state.scopes.remove(id).ok_or_else(|| Failure::Unknown { id: id.clone() })?;
        let calls = [vec![id.clone()], state.above.remove(id).unwrap_or_default()].concat();
        let mut nets = Vec::new();
        for store in state.stores.iter_mut().filter(|it| it.is_open(id)) {
            let _lock = restore::lock(store, &|| false)?;
            // What a file tool did lies between its two looks; commands beside it did not write this file then.
            let cause = (scope != Scope::Roots).then(|| Cause::Calls(calls.iter().map(|it| store.call(it)).collect()));
            let sight = scope_in(store, &scope, said).unwrap_or(WalkScope::Root);
            let seen = store.look(&sight, cause, &|| false);
            // Where it failed, the call is over all the same: what comes is not its own.
            let deltas = store.end_call(id)?;
            seen?;
            nets.push((&*store, changes::net_changes(&deltas)));
        }
        Ok(changes::describe(nets.iter().map(|(store, it)| (*store, it.as_slice()))))
    }

    /// What [`Checkpoints::restore`] would do now.
    ///
    /// # Errors
    /// When the roots or the store cannot be read.
    pub fn plan(&self, order: &RestoreOrder, buffers: &Buffers) -> Result<RestorePlan> {
        self.with_all(|stores| Ok(restore::describe(stores, &restore::plan_all(stores, order, buffers)?)))
    }

    /// What a planned path would hold; `None`: no file.
    ///
    /// # Errors
    /// When the store does not have it any more, or has other bytes.
    pub fn content(&self, path: &PlannedPath) -> Result<Option<Vec<u8>>> {
        let Some((root, hash)) = &path.file else { return Ok(None) };
        let state = self.state();
        let bytes = state.stores.iter().find(|it| it.path == *root).and_then(|it| it.blobs.read(hash).ok());
        bytes.map(Some).ok_or_else(|| Failure::Damaged { path: path.path.clone() })
    }

    /// Takes calls back. Files in `buffers` are the client's: they are compared by that content, and what they become
    /// is in `to_client`; the caller has the client write it.
    ///
    /// # Errors
    /// When any step fails: then the roots are as they were, or the next [`Checkpoints::open`] makes them so.
    pub fn restore(&self, order: &RestoreOrder, buffers: &Buffers) -> Result<RestoreOutcome> {
        self.with_all(|stores| restore::restore(stores, order, buffers))
    }

    /// The net effect of these checkpoints, by path. Also of a session that another castor has open.
    ///
    /// # Errors
    /// When the store cannot be read, or has nothing of them.
    pub fn diff(&self, ids: &[CheckpointId]) -> Result<Vec<FileDiff>> {
        let (mut res, mut is_known) = (Vec::new(), ids.is_empty());
        for root in &self.roots {
            let (store, _lock) = Store::open(&self.session, root, &|| false)?;
            let mut history = store.history()?;
            history.retain(|it| it.calls().iter().any(|it| it.session == self.session.id && ids.contains(&it.id)));
            is_known |= !history.is_empty();
            res.extend(changes::diff(&store, &changes::net_changes(&history))?);
        }
        res.sort_by(|a, b| a.path.cmp(&b.path));
        is_known.then_some(res).ok_or(Failure::Gone)
    }

    /// The session ends, or this castor does.
    pub fn close(&self) {
        for mut store in self.state().stores.drain(..) {
            let closed = restore::lock(&mut store, &|| false).and_then(|_lock| Ok(store.close()?));
            _ = closed.inspect_err(|it| tracing::debug!("{it}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stores, and returns remarks on them.
    fn open_stores(&self, state: &mut State, cancel: Cancel) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        // Somebody may have removed one: what is held from now on is held in a new one.
        let is_there = |it: &Store| it.dir.stat(b"lock").is_ok_and(|it| it.is_some());
        if !state.stores.is_empty() && state.stores.iter().all(is_there) {
            return Ok(notices);
        }
        *state = State::default();
        let mut all = Vec::new();
        for root in &self.roots {
            let (mut store, lock) = Store::open(&self.session, root, cancel)?;
            let _lock = store.register(lock, cancel)?;
            notices.extend(restore::recover(&mut store)?);
            store.begin(|it| it.look(&WalkScope::Root, None, cancel))?;
            all.push(store);
        }
        state.stores = all;
        Ok(notices)
    }

    /// Walks all roots, then acts on them under their locks.
    fn with_all<T>(&self, act: impl FnOnce(&mut [Store]) -> Result<T>) -> Result<T, Failure> {
        let mut state = self.state();
        self.open_stores(&mut state, &|| false)?;
        let mut locks = Vec::new();
        for store in &mut state.stores {
            locks.push(restore::lock(store, &|| false)?);
            store.look(&WalkScope::Root, None, &|| false)?;
        }
        act(&mut state.stores)
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.close();
    }
}

/// The scope in a root; `None`: nothing.
fn scope_in<'a>(store: &Store, scope: &Scope, said: ClientFiles<'a>) -> Option<WalkScope<'a>> {
    let Scope::Files(files) = scope else { return Some(WalkScope::Root) };
    let paths: Vec<_> = files.iter().filter_map(|it| store.relative(it)).collect();
    (!paths.is_empty()).then(|| said.map_or(WalkScope::Paths(paths), WalkScope::Contents))
}

/// Files in the roots that are not held; those that are built again are no loss.
fn not_held(stores: &[Store]) -> CheckpointResult {
    let all = stores.iter().flat_map(|store| store.manifest.below(b"").map(move |it| (store, it)));
    let lost = all.filter(|it| it.1.1.why().is_some_and(|it| it != NotHeld::Exempt));
    CheckpointResult { not_kept: lost.map(|(store, it)| plan::absolute(&store.path, it.0)).collect() }
}

/// Files of a scope that are not held, or lie in what is not, or in no root. What a client has is held all the same.
fn files_not_held(stores: &[Store], files: &[AbsPath], is_on_disk: bool) -> CheckpointResult {
    let is_held = |file: &AbsPath| {
        stores.iter().filter_map(|it| Some((it, it.relative(file)?))).any(|(store, path)| {
            let node = |it: &[u8]| store.manifest.get(it);
            let is_kept = |it: &[u8]| node(it).why().is_none() || node(it).is_passed_over();
            !is_on_disk || (node(&path).why().is_none() && node::ancestors(&path).all(is_kept))
        })
    };
    let lost = files.iter().filter(|it| !is_held(it)).map(|it| it.as_path().to_owned());
    CheckpointResult { not_kept: lost.collect() }
}
