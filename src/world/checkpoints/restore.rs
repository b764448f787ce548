//! A restore over all roots of a session: looked at, planned, checked, written down, done; or not done at all.

use std::{collections::BTreeSet, io};

use super::{
    Buffers, Failure, PlannedPath, RestoreOutcome, RestorePlan,
    apply::apply,
    beneath, changes, fault,
    git::{self, Part},
    node::{self, Hash, Node, RelPath},
    plan::{Plan, absolute, plan, shown},
    record::{Cause, Change, Journal, frame},
    store::{Sight, Store, now},
    walk::in_parallel,
};
use crate::base::{
    checkpoint::{ChangeKind, Conflict, OnConflict, RestoreOrder, Restored},
    ids::CheckpointId,
    path::AbsPath,
};

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
            file: it.new.as_ref().and_then(Node::hash).map(|it| (store.path.clone(), *it)),
        };
        let steps = plan.steps.iter().filter(|it| !it.is_still()).chain(&plan.to_client);
        res.paths.extend(steps.map(|it| planned(shown(&it.path), it, None)));
        let refs = plan.refs.iter().map(|it| Change { path: shown(&it.path).into(), old: None, new: None });
        res.paths.extend(refs.map(|it| planned(&it.path, &it, None)));
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
    let git = store.manifest.get(b".git");
    let is_above = || store.path.as_path().ancestors().skip(1).any(|it| it.join(".git").symlink_metadata().is_ok());
    let elsewhere = git.map_or_else(is_above, |it| !it.is_dir());
    elsewhere.then(|| {
        let root = &store.path;
        format!("The repository of {root} lies outside of it: branches, commits and what is staged are not restored.")
    })
}

pub fn restore(stores: &mut [Store], order: &RestoreOrder, buffers: &Buffers) -> Result<RestoreOutcome, Failure> {
    let plans = plan_all(stores, order, buffers)?;
    let is_known = |it: &&CheckpointId| plans.iter().any(|plan| plan.known.contains(*it));
    let n_known = order.undo.iter().filter(is_known).count();
    if n_known == 0 {
        return Err(Failure::Gone);
    }
    let found = describe(stores, &plans);
    let conflict = |it: &PlannedPath| Some(Conflict { path: it.path.clone(), reason: it.conflict.clone()? });
    let conflicts: Vec<Conflict> = found.paths.iter().filter_map(conflict).collect();
    let mut res = RestoreOutcome { notes: found.notes, ..RestoreOutcome::default() };
    res.notes.extend((n_known < order.undo.len()).then(|| "Of some of the calls nothing is held.".to_owned()));
    res.restored = Restored { restored: Vec::new(), conflicts, not_kept: found.not_kept };
    if order.on_conflict == OnConflict::Fail && !res.restored.conflicts.is_empty() {
        return Ok(res);
    }
    let (mut journals, mut nets) = (Vec::new(), Vec::new());
    for (store, mut plan) in stores.iter().zip(plans) {
        for it in &plan.to_client {
            res.to_client.push(for_client(store, it)?);
            // It may be nowhere else, and comes back with a redo.
            let path = AbsPath::new(absolute(&store.path, &it.path));
            path.and_then(|it| buffers.0.get(&it)).map(|it| store.blobs.put(it)).transpose()?;
        }
        nets.push(std::mem::take(&mut plan.to_client));
        journals.push(Journal { call: store.call(&order.id), steps: plan.steps, refs: plan.refs });
    }
    stores.iter().zip(&journals).try_for_each(|(store, it)| check(store, it))?;
    act(stores, &journals)?;
    for ((store, journal), net) in stores.iter_mut().zip(&journals).zip(&mut nets) {
        finish(store, journal, net)?;
    }
    res.restored.restored = found.paths.into_iter().filter(|it| it.conflict.is_none()).map(|it| it.path).collect();
    res.restored.restored.dedup();
    res.changes = changes::describe(stores.iter().zip(nets.iter().map(Vec::as_slice)));
    Ok(res)
}

fn for_client(store: &Store, change: &Change) -> Result<(AbsPath, Vec<u8>), Failure> {
    let path = absolute(&store.path, &change.path);
    let bytes = change.new.as_ref().and_then(Node::hash).and_then(|it| store.blobs.read(it).ok());
    AbsPath::new(&path).zip(bytes).ok_or(Failure::Damaged { path })
}

/// Every content that comes back is what it was, or nothing is written.
fn check(store: &Store, journal: &Journal) -> Result<(), Failure> {
    let hash = |it: &Change| it.new.as_ref().and_then(Node::hash).copied();
    let hashes: BTreeSet<Hash> = journal.steps.iter().filter_map(hash).collect();
    let hashes: Vec<Hash> = hashes.into_iter().collect();
    let bad = in_parallel(&hashes, |it| (!store.blobs.is_sound(it)).then_some(*it)).into_iter().flatten().next();
    let step = bad.and_then(|bad| journal.steps.iter().find(|it| hash(it) == Some(bad)));
    step.map_or(Ok(()), |it| Err(Failure::Damaged { path: absolute(&store.path, &it.path) }))
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
        Ok(()) => Err(Failure::Io { what: "the restore was taken back".to_owned(), source }),
        Err(_) => Err(Failure::Half { source }),
    }
}

fn remove_journal(store: &Store) -> io::Result<()> {
    fault::step("journal: remove")?;
    beneath::remove(store.dir.fd(), Journal::NAME)
}

/// Writes down what the restore changed: what it did, and what became of refs.
fn finish(store: &mut Store, journal: &Journal, changes: &mut Vec<Change>) -> Result<(), Failure> {
    for step in journal.steps.iter().filter(|it| !it.is_still()) {
        let stat = store.root.stat(&step.path)?;
        let new = step.new.as_ref().zip(stat).map(|(to, stat)| Node::new(to.kind.clone(), &stat, now()));
        let change = Change { path: step.path.clone(), old: store.manifest.get(&step.path).cloned(), new };
        changes.extend(Some(change).filter(|it| !it.is_still()));
    }
    let cause = || Cause::Calls(vec![journal.call.clone()]);
    store.append(cause(), changes.clone())?;
    let packed = journal.refs.iter().filter_map(|it| Some(node::join(git::git_path(&it.path)?.dir, b"packed-refs")));
    let refs: BTreeSet<RelPath> =
        packed.map(RelPath::from).chain(journal.refs.iter().map(|it| it.path.clone())).collect();
    if !refs.is_empty() {
        changes.extend(store.look(&Sight::Paths(refs.into_iter().collect()), Some(cause()), &|| false)?);
    }
    Ok(remove_journal(store)?)
}

/// Finishes what a crash interrupted, or takes it back. The caller has the root's lock.
pub fn recover(store: &mut Store) -> Result<Vec<String>, Failure> {
    let Some(journal) = store.dir.read_frame::<Journal>(Journal::NAME)? else { return Ok(Vec::new()) };
    // What is damaged by now cannot be finished.
    let done = check(store, &journal).ok().and_then(|()| apply(store, &journal, true).ok());
    let (what, passed) = match done {
        Some(it) => {
            finish(store, &journal, &mut Vec::new())?;
            ("was finished", it)
        }
        None => {
            let passed = apply(store, &journal.reversed(), true).map_err(|source| Failure::Half { source })?;
            remove_journal(store)?;
            ("was taken back", passed)
        }
    };
    let root = &store.path;
    let mut res = vec![format!("A restore in {root} that was interrupted {what}.")];
    let left = |it: &RelPath| format!("{} was changed since, and stays as it is.", absolute(root, it).display());
    res.extend(passed.iter().filter(|it| git::part(it) != Some(Part::Other)).map(left));
    Ok(res)
}
