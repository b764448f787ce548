//! Undo: puts files back in all roots of a session. The restore is planned, checked and journaled before it is applied.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt, path::Path};

use super::{
    AbsPath, Buffers, Cancel, Cause, Change, Failure, Journal, Lock, Part, PlannedPath, RelPath, RestoreOutcome,
    RestorePlan, Store, WalkScope, apply::apply, dirfd, fault, frame::frame, git, lasting, node, plan::Plan,
    plan::absolute, plan::plan, plan::shown_path,
};
use castor_base::checkpoint::{ChangeKind, Conflict, OnConflict, RestoreOrder};

/// What is to be done in each root, in the order of `stores`.
pub fn plan_all(stores: &[Store], order: &RestoreOrder, buffers: &Buffers) -> Result<Vec<Plan>, Failure> {
    stores.iter().map(|it| plan(it, order, buffers)).collect()
}

/// For people and clients.
pub fn describe(stores: &[Store], plans: &[Plan]) -> RestorePlan {
    let mut res = RestorePlan::default();
    for (store, plan) in stores.iter().zip(plans) {
        let planned = |path: &[u8], it: &Change, conflict| PlannedPath {
            path: absolute(&store.path, path),
            // A repository is one path, however many of its files come back.
            change: if path.ends_with(b".git") { ChangeKind::Changed } else { it.kind() },
            conflict,
            file: it.new.hash().filter(|_| !git::is_object(&it.path)).map(|it| (store.path.clone(), it)),
        };
        let steps = plan.steps.iter().filter(|it| !it.is_still()).chain(&plan.to_client);
        res.paths.extend(steps.map(|it| planned(shown_path(&it.path), it, None)));
        res.paths.extend(plan.refs.iter().map(|it| planned(shown_path(&it.path), &Change::default(), None)));
        res.paths.extend(plan.conflicts.iter().map(|(it, why)| planned(&it.path, it, Some(why.clone()))));
        res.files.extend(plan.files.iter().filter_map(|it| AbsPath::new(absolute(&store.path, it))));
        res.not_kept.extend(plan.not_kept.iter().map(|it| absolute(&store.path, it)));
        res.notes.extend(note(store));
    }
    res.paths.sort_by(|a, b| (&a.path, &a.conflict).cmp(&(&b.path, &b.conflict)));
    res.paths.dedup_by(|b, a| a.path == b.path && a.conflict == b.conflict);
    res
}

/// A repository that lies elsewhere is not restored.
fn note(store: &Store) -> Option<String> {
    let (git, root) = (store.manifest.get(b".git"), &store.path);
    let has = |it: &Path| it.join(".git").symlink_metadata().is_ok();
    let elsewhere = if git.is_absent() { root.as_path().ancestors().skip(1).any(has) } else { !git.is_dir() };
    let what = "castor does not restore branches, commits and the index";
    elsewhere.then(|| format!("The repository of {root} lies outside of it: {what}."))
}

pub fn restore(stores: &mut [Store], order: &RestoreOrder, buffers: &Buffers) -> Result<RestoreOutcome, Failure> {
    let plans = plan_all(stores, order, buffers)?;
    let n_known = order.undo.iter().filter(|it| plans.iter().any(|plan| plan.known.contains(*it))).count();
    if n_known == 0 {
        return Err(Failure::Gone);
    }
    let found = describe(stores, &plans);
    let mut res = RestoreOutcome { notes: found.notes, ..RestoreOutcome::default() };
    res.notes.extend((n_known < order.undo.len()).then(|| "Some of the calls have no checkpoint.".to_owned()));
    let conflict = |it: &PlannedPath| Some(Conflict { path: it.path.clone(), reason: it.conflict.clone()? });
    res.restored.conflicts = found.paths.iter().filter_map(conflict).collect();
    res.restored.not_kept = found.not_kept;
    if order.on_conflict == OnConflict::Fail && !res.restored.conflicts.is_empty() {
        return Ok(res);
    }
    let (mut journals, mut nets) = (Vec::new(), Vec::new());
    for (store, plan) in stores.iter().zip(plans) {
        for it in &plan.to_client {
            let path = store.path.join(OsStr::from_bytes(&it.path));
            // It may be nowhere else, and comes back with a redo.
            buffers.0.get(&path).map(|it| store.blobs.put(it)).transpose()?;
            let bytes = it.new.hash().map_or(Ok(Vec::new()), |it| store.blobs.read(&it))?;
            res.to_client.push((path, bytes));
        }
        nets.push(plan.to_client);
        store.blobs.settle()?;
        journals.push(Journal { call: store.call(&order.id), steps: plan.steps, refs: plan.refs });
    }
    act(stores, &journals)?;
    for ((store, journal), net) in stores.iter_mut().zip(&journals).zip(nets) {
        finish(store, journal, net)?;
    }
    for it in found.paths.into_iter().filter(|it| it.conflict.is_none()) {
        res.restored.add(it.path, it.change == ChangeKind::Removed);
    }
    Ok(res)
}

/// All roots, or none.
fn act(stores: &[Store], journals: &[Journal]) -> Result<(), Failure> {
    let all = || stores.iter().zip(journals).filter(|it| !it.1.is_empty());
    let write = |(store, it): (&Store, &Journal)| store.dir.replace(Journal::NAME, &frame(it)?, true);
    let done =
        all().try_for_each(write).and_then(|()| all().try_for_each(|(store, it)| apply(store, it, false).map(drop)));
    let Err(source) = done else { return Ok(()) };
    let mut back = all().map(|(store, it)| {
        apply(store, &it.reversed(), true)?;
        remove_journal(store)
    });
    match back.try_for_each(|it: io::Result<()>| it) {
        Ok(()) => Err(Failure::Io { what: "the restore was undone".to_owned(), source }),
        Err(_) => Err(Failure::Half { source }),
    }
}

fn remove_journal(store: &Store) -> io::Result<()> {
    fault::step("journal: remove")?;
    dirfd::remove(store.dir.fd(), Journal::NAME)?;
    lasting::sync_dir(store.dir.fd())
}

/// Writes down what the restore changed: what it did, what the client is to do, and what became of refs.
fn finish(store: &mut Store, journal: &Journal, to_client: Vec<Change>) -> Result<(), Failure> {
    let cause = || Cause::Calls(vec![journal.call.clone()]);
    let packed = journal.refs.iter().filter_map(|it| Some(node::join(git::git_path(&it.path)?.dir, b"packed-refs")));
    let steps = journal.steps.iter().map(|it| &it.path).chain(journal.refs.iter().map(|it| &it.path));
    let paths: Vec<RelPath> = steps.cloned().chain(packed.map(RelPath::from)).collect();
    store.ledger.is_restore = true;
    let done =
        store.append(cause(), to_client).and_then(|()| store.look(&WalkScope::Paths(paths), Some(cause()), &|| false));
    store.ledger.is_restore = false;
    done?;
    Ok(remove_journal(store)?)
}

/// Takes the lock of a root again. Another castor may have been killed in a restore.
pub fn lock(store: &mut Store, cancel: Cancel) -> Result<Lock, Failure> {
    let lock = store.lock(cancel)?;
    recover(store)?.iter().for_each(|it| tracing::warn!("{it}"));
    Ok(lock)
}

/// Finishes what a crash interrupted, or takes it back. The caller has the root's lock.
pub fn recover(store: &mut Store) -> Result<Vec<String>, Failure> {
    let Some(journal) = store.dir.read_frame::<Journal>(Journal::NAME)? else { return Ok(Vec::new()) };
    // What is damaged by now cannot be finished.
    let is_whole = journal.steps.iter().all(|it| store.has(it));
    let done = is_whole.then(|| apply(store, &journal, true).ok()).flatten();
    let (what, passed) = match done {
        Some(it) => {
            finish(store, &journal, Vec::new())?;
            ("was finished", it)
        }
        None => {
            let passed = apply(store, &journal.reversed(), true).map_err(|source| Failure::Half { source })?;
            remove_journal(store)?;
            ("was undone", passed)
        }
    };
    let root = &store.path;
    let mut res = vec![format!("A restore in {root} that was interrupted {what}.")];
    let left = |it: &RelPath| format!("{} has changed since; castor leaves it.", absolute(root, it).display());
    res.extend(passed.iter().filter(|it| git::part(it) != Some(Part::Other)).map(left));
    Ok(res)
}
