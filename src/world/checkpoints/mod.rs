//! Checkpoints: what the roots hold before a call, what the call changed, and the way back.
//!
//! Each root has a store of its own below castor's home: a manifest of what lies in the root, a log of what changed and
//! by whom, and contents by their hash. All calls block; whoever calls is on a thread that may.

mod apply;
mod beneath;
mod blobs;
mod changes;
mod codec;
mod fault;
mod git;
mod journal;
mod judge;
mod manifest;
mod node;
mod place;
mod plan;
mod refs;
mod restore;
mod retention;
mod rules;
mod sessions;
mod store;
#[cfg(test)]
mod tests;
mod walk;
mod words;

pub use retention::{forget_session, recover, recover_all, sweep};
pub use words::{
    Buffers, Failure, FileDiff, Limits, Opened, PlannedPath, RestoreOutcome, RestorePlan, Retention, Swept,
};

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::base::{
    checkpoint::{Changes, Held, RestoreOrder, Scope},
    ids::{CheckpointId, SessionId},
    path::AbsPath,
};
use codec::{Call, Cause, Change, Delta};
use node::{Node, RelPath};
use store::{Lock, Store};

/// Whether the caller wants a long walk to end.
pub type Cancel<'a> = &'a (dyn Fn() -> bool + Sync);

/// The content of one file that a client holds; `None`: it is not there.
pub type Content = (AbsPath, Option<Vec<u8>>);

/// The checkpoints of one session. Making one touches nothing.
pub struct Checkpoints {
    home: AbsPath,
    session: SessionId,
    limits: Limits,
    /// Sorted, so that all castors take their locks in one order.
    roots: Vec<AbsPath>,
    stores: Mutex<Vec<Store>>,
    /// Of the calls that are running.
    scopes: Mutex<BTreeMap<CheckpointId, Scope>>,
}

/// What a checkpoint is about, by root.
type Paths = Vec<Option<Vec<RelPath>>>;

impl Checkpoints {
    /// `home` is castor's own folder; `roots` are real paths.
    pub fn new(home: &AbsPath, session: &SessionId, roots: &[AbsPath], limits: Limits) -> Self {
        let mut sorted = roots.to_vec();
        sorted.sort();
        // What lies in another root is held with that.
        sorted.dedup_by(|b, a| b.is_within(a));
        Self {
            home: home.clone(),
            session: session.clone(),
            limits,
            roots: sorted,
            stores: Mutex::default(),
            scopes: Mutex::default(),
        }
    }

    /// The first walk of the session. Finishes, or takes back, a restore that a crash interrupted.
    ///
    /// # Errors
    /// When any step fails: then the session has no checkpoints.
    pub fn open(&self, cancel: Cancel) -> Result<Opened, Failure> {
        let mut stores = self.stores();
        let notices = self.open_stores(&mut stores, cancel)?;
        Ok(Opened { notices, held: held(&stores) })
    }

    /// Holds what a call may write, before it runs.
    ///
    /// # Errors
    /// When any step fails: then there is no checkpoint.
    pub fn before(&self, id: &CheckpointId, scope: &Scope, cancel: Cancel) -> Result<Held, Failure> {
        let mut stores = self.stores();
        self.open_stores(&mut stores, cancel)?;
        let (paths, mut outside) = self.paths(scope);
        let wide = *scope == Scope::Roots;
        let mut locks = Vec::new();
        for (store, paths) in stores.iter_mut().zip(&paths).filter(|it| wide || it.1.is_some()) {
            locks.push(lock(store, cancel)?);
            look(store, paths.as_deref(), cancel)?;
        }
        for (store, _) in stores.iter_mut().zip(&paths).filter(|it| wide || it.1.is_some()) {
            store.begin_call(id, wide)?;
        }
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), scope.clone());
        let mut res = match wide {
            true => held(&stores),
            false => unheld(&stores, &paths),
        };
        res.not_kept.append(&mut outside);
        Ok(res)
    }

    /// What changed since [`Checkpoints::before`] of the same checkpoint, which is the call's from now on.
    ///
    /// # Errors
    /// When the roots cannot be read, or the store cannot be written.
    pub fn after(&self, id: &CheckpointId) -> Result<Changes, Failure> {
        let mut stores = self.stores();
        let scope = self.scopes.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let scope = scope.ok_or_else(|| Failure::Unknown { id: id.clone() })?;
        let (paths, _) = self.paths(&scope);
        self.end(&mut stores, id, |store, idx| {
            let paths = paths.get(idx).and_then(Option::as_deref);
            let capture = store.look(paths, &|| false)?;
            let cause = match &scope {
                Scope::Roots => store.cause_between(Vec::new())?,
                // What a file tool did lies between its two looks; commands beside it did not write this file then.
                Scope::Files(_) => Cause::Calls(vec![Call { session: self.session.clone(), id: id.clone() }]),
            };
            store.commit(capture, cause)
        })
    }

    /// As [`Checkpoints::before`] for files that a client holds: they are what the client says.
    ///
    /// # Errors
    /// As [`Checkpoints::before`].
    pub fn before_content(&self, id: &CheckpointId, files: &[Content]) -> Result<Held, Failure> {
        let mut stores = self.stores();
        self.open_stores(&mut stores, &|| false)?;
        let scope = Scope::Files(files.iter().map(|it| it.0.clone()).collect());
        let (paths, outside) = self.paths(&scope);
        let mut locks = Vec::new();
        for (store, _) in stores.iter_mut().zip(&paths).filter(|it| it.1.is_some()) {
            locks.push(lock(store, &|| false)?);
            put(store, files, Cause::User)?;
            store.begin_call(id, false)?;
        }
        Ok(Held { not_kept: outside })
    }

    /// As [`Checkpoints::after`] for files that a client holds.
    ///
    /// # Errors
    /// As [`Checkpoints::after`].
    pub fn after_content(&self, id: &CheckpointId, files: &[Content]) -> Result<Changes, Failure> {
        let mut stores = self.stores();
        self.end(&mut stores, id, |store, _| {
            put(store, files, Cause::Calls(vec![Call { session: self.session.clone(), id: id.clone() }]))
        })
    }

    /// What [`Checkpoints::restore`] would do now.
    ///
    /// # Errors
    /// When the roots or the store cannot be read.
    pub fn plan(&self, order: &RestoreOrder) -> Result<RestorePlan, Failure> {
        self.with_all(|stores| {
            let plans = restore::plan_all(stores, order, &Buffers::default())?;
            Ok(restore::describe(stores, &plans))
        })
    }

    /// What a planned path would hold; `None`: no file.
    ///
    /// # Errors
    /// When the store does not have it any more, or has other bytes.
    pub fn content(&self, path: &PlannedPath) -> Result<Option<Vec<u8>>, Failure> {
        let Some((root, hash)) = &path.file else { return Ok(None) };
        let damaged = || Failure::Damaged { path: path.path.clone() };
        let stores = self.stores();
        let store = stores.iter().find(|it| it.path == *root).ok_or_else(damaged)?;
        store.blobs.read(hash).map(Some).map_err(|_| damaged())
    }

    /// Takes calls back. Files in `buffers` are the client's: they are compared by that content, and what they become
    /// is in `to_client`; the caller has the client write it.
    ///
    /// # Errors
    /// When any step fails: then the roots are as they were, or the next [`Checkpoints::open`] makes them so.
    pub fn restore(&self, order: &RestoreOrder, buffers: &Buffers) -> Result<RestoreOutcome, Failure> {
        self.with_all(|stores| restore::restore(stores, order, buffers))
    }

    /// The net effect of these checkpoints, by path.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn diff(&self, ids: &[CheckpointId]) -> Result<Vec<FileDiff>, Failure> {
        let mut stores = self.stores();
        self.open_stores(&mut stores, &|| false)?;
        let mut res = Vec::new();
        for store in stores.iter_mut() {
            let _lock = lock(store, &|| false)?;
            let own = |it: &Call| it.session == self.session && ids.contains(&it.id);
            let mut history = store.history()?;
            history.retain(|it| it.calls().iter().any(own));
            res.extend(changes::diff(store, &changes::net(&history))?);
        }
        res.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(res)
    }

    /// The session ends, or this castor does.
    pub fn close(&self) {
        for mut store in self.stores().drain(..) {
            let closed = lock(&mut store, &|| false).and_then(|_lock| store.close());
            if let Err(it) = closed {
                tracing::debug!("{it}");
            }
        }
    }

    /// As a kill leaves it.
    #[cfg(test)]
    fn abandon(self) {
        self.stores().clear();
    }

    fn stores(&self) -> MutexGuard<'_, Vec<Store>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to say about it.
    fn open_stores(&self, stores: &mut Vec<Store>, cancel: Cancel) -> Result<Vec<String>, Failure> {
        let mut notices = Vec::new();
        if !stores.is_empty() {
            return Ok(notices);
        }
        let mut all = Vec::new();
        for root in &self.roots {
            let (mut store, _lock) = Store::open(&self.home, root, &self.session, self.limits, cancel)?;
            store.load()?;
            let left = store.register()?;
            notices.extend(restore::recover(&mut store)?);
            let decided = store.choose_rules()?;
            let capture = store.look(None, cancel)?;
            let cause = store.cause_between(left)?;
            store.commit(capture, cause)?;
            if !decided {
                store.decide_rules()?;
            }
            store.save_index()?;
            all.push(store);
        }
        *stores = all;
        Ok(notices)
    }

    /// The files of a scope, by root; and those that lie in none.
    fn paths(&self, scope: &Scope) -> (Paths, Vec<std::path::PathBuf>) {
        let mut res: Paths = self.roots.iter().map(|_| None).collect();
        let mut outside = Vec::new();
        let Scope::Files(files) = scope else { return (res, outside) };
        for file in files {
            let found = self.roots.iter().position(|it| file.is_within(it));
            match found.and_then(|idx| Some((res.get_mut(idx)?, relative(self.roots.get(idx)?, file)?))) {
                Some((paths, path)) => paths.get_or_insert_default().push(path),
                None => outside.push(file.as_path().to_owned()),
            }
        }
        (res, outside)
    }

    fn end(
        &self,
        stores: &mut [Store],
        id: &CheckpointId,
        see: impl Fn(&mut Store, usize) -> Result<(), Failure>,
    ) -> Result<Changes, Failure> {
        let (mut net, mut any) = (Vec::new(), stores.is_empty());
        for (idx, store) in stores.iter_mut().enumerate().filter(|it| it.1.is_open(id)) {
            any = true;
            let _lock = lock(store, &|| false)?;
            let seen = see(store, idx);
            // Where it failed, the call is over all the same: what comes is not its own.
            let deltas: Vec<Delta> = store.end_call(id)?;
            seen?;
            net.push((&*store, changes::net(&deltas)));
        }
        match any {
            true => Ok(changes::describe(net.iter().map(|(store, it)| (*store, it.as_slice())))),
            false => Err(Failure::Unknown { id: id.clone() }),
        }
    }

    /// Looks at all roots, and does something with them while nobody else can.
    fn with_all<T>(&self, act: impl FnOnce(&mut [&mut Store]) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut stores = self.stores();
        self.open_stores(&mut stores, &|| false)?;
        let mut locks: Vec<Lock> = Vec::new();
        for store in stores.iter_mut() {
            locks.push(lock(store, &|| false)?);
            look(store, None, &|| false)?;
        }
        let mut all: Vec<&mut Store> = stores.iter_mut().collect();
        act(&mut all)
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock(store: &mut Store, cancel: Cancel) -> Result<Lock, Failure> {
    let lock = store.lock(cancel)?;
    // Another castor may have been killed in a restore.
    for it in restore::recover(store)? {
        tracing::warn!("{it}");
    }
    Ok(lock)
}

/// What nobody claimed is noted as whose it is.
fn look(store: &mut Store, paths: Option<&[RelPath]>, cancel: Cancel) -> Result<(), Failure> {
    let capture = store.look(paths, cancel)?;
    let cause = store.cause_between(Vec::new())?;
    store.commit(capture, cause)
}

/// Notes contents that a client holds.
fn put(store: &mut Store, files: &[Content], cause: Cause) -> Result<(), Failure> {
    let mut changes = Vec::new();
    for (path, content) in files {
        let Some(path) = relative(&store.path, path) else { continue };
        let new = content.as_deref().map(|it| store.put(it)).transpose()?;
        let old = store.manifest.get(&path).cloned();
        let new = new.map(|it| Node { mode: old.as_ref().map_or(it.mode, |old| old.mode), ..it });
        if !node::is_same(old.as_ref(), new.as_ref()) {
            changes.push(Change { path, old, new });
        }
    }
    store.append(cause, changes)
}

fn relative(root: &AbsPath, path: &AbsPath) -> Option<RelPath> {
    let below = path.as_path().strip_prefix(root.as_path()).ok()?;
    Some(below.as_os_str().as_bytes().into()).filter(|it: &RelPath| !it.is_empty())
}

/// What lies in the roots and is not held; what is built again is no loss.
fn held(stores: &[Store]) -> Held {
    let skipped = |store: &Store| -> Vec<_> {
        let lost = store.manifest.skipped().filter(|it| it.1.why() != Some(node::Why::Exempt));
        lost.map(|it| plan::absolute(&store.path, it.0)).collect()
    };
    Held { not_kept: stores.iter().flat_map(skipped).collect() }
}

/// Files of a scope that are not held, or lie in what is not.
fn unheld(stores: &[Store], paths: &Paths) -> Held {
    let mut res = Held::default();
    for (store, paths) in stores.iter().zip(paths) {
        let is_skipped = |it: &[u8]| store.manifest.get(it).is_some_and(|it| it.why().is_some());
        let lost = paths.iter().flatten().filter(|it| is_skipped(it) || node::ancestors(it).any(is_skipped));
        res.not_kept.extend(lost.map(|it| plan::absolute(&store.path, it)));
    }
    res
}
