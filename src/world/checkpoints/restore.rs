//! A restore over all roots of a session: looked at, planned, checked, written down, done; or not done at all.

use std::{io, path::PathBuf};

use super::{
    Buffers, Failure, PlannedPath, RestoreOutcome, RestorePlan,
    apply::Apply,
    changes,
    codec::{Call, Cause, Change},
    git::{self, Part},
    journal::Journal,
    node::{self, Hash, Mark, Node, RelPath},
    plan::{Plan, Undo, absolute, shown},
    store::Store,
};
use crate::base::{
    checkpoint::{ChangeKind, Conflict, OnConflict, RestoreOrder, Restored},
    path::AbsPath,
};

/// What is to be done in each root, in the order of `stores`.
pub fn plan_all(stores: &[&mut Store], order: &RestoreOrder, buffers: &Buffers) -> Result<Vec<Plan>, Failure> {
    let one = |store: &&mut Store| {
        let history = store.history()?;
        Undo::new(store, order, &history).plan(buffers)
    };
    stores.iter().map(one).collect()
}

/// For people and clients.
pub fn describe(stores: &[&mut Store], plans: &[Plan]) -> RestorePlan {
    let mut res = RestorePlan::default();
    for (store, plan) in stores.iter().zip(plans) {
        let mut add = |path: &[u8], now: bool, to: Option<&Node>, conflict: Option<&String>| {
            let change = match (now, to) {
                (true, None) => ChangeKind::Removed,
                (false, _) => ChangeKind::Added,
                (true, Some(_)) => ChangeKind::Changed,
            };
            let file = to.and_then(Node::hash).map(|it| (store.path.clone(), *it));
            res.paths.push(PlannedPath {
                path: absolute(&store.path, path),
                change,
                conflict: conflict.cloned(),
                file,
            });
        };
        for step in plan.steps.iter().filter(|it| !is_still(it)) {
            add(shown(&step.path), step.now.is_some(), step.to.as_ref(), None);
        }
        for (path, to) in &plan.to_client {
            add(path, true, to.as_ref(), None);
        }
        for step in &plan.refs {
            add(&step.dir, true, None, None);
        }
        for (path, to, why) in &plan.conflicts {
            add(path, store.manifest.get(path).is_some(), to.as_ref(), Some(why));
        }
        res.not_kept.extend(plan.not_kept.iter().map(|it| absolute(&store.path, it)));
        res.notes.extend(note(store));
    }
    // A repository is one path, however many of its files come back.
    res.paths.sort_by(|a, b| (&a.path, &a.conflict).cmp(&(&b.path, &b.conflict)));
    res.paths.dedup_by(|b, a| a.path == b.path && a.conflict == b.conflict);
    for it in res.paths.iter_mut().filter(|it| it.path.ends_with(".git")) {
        it.change = ChangeKind::Changed;
    }
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

fn is_still(step: &super::plan::Step) -> bool {
    node::is_same(step.now.as_ref(), step.to.as_ref())
}

pub fn restore(stores: &mut [&mut Store], order: &RestoreOrder, buffers: &Buffers) -> Result<RestoreOutcome, Failure> {
    let plans = plan_all(stores, order, buffers)?;
    let found = describe(stores, &plans);
    let conflict = |it: &PlannedPath| Some(Conflict { path: it.path.clone(), reason: it.conflict.clone()? });
    let conflicts: Vec<Conflict> = found.paths.iter().filter_map(conflict).collect();
    let mut res = RestoreOutcome { notes: found.notes, ..RestoreOutcome::default() };
    res.restored = Restored { restored: Vec::new(), conflicts, not_kept: found.not_kept };
    if order.on_conflict == OnConflict::Fail && !res.restored.conflicts.is_empty() {
        return Ok(res);
    }
    for (store, plan) in stores.iter().zip(&plans) {
        for (path, to) in &plan.to_client {
            res.to_client.push(for_client(store, path, to.as_ref())?);
        }
    }
    let extra: Vec<Vec<Change>> = stores.iter().zip(&plans).map(|(store, it)| client_changes(store, it)).collect();
    let journals: Vec<Journal> = stores.iter().zip(plans).map(|(store, it)| journal(store, order, it)).collect();
    for (store, journal) in stores.iter().zip(&journals) {
        check(store, journal)?;
    }
    act(stores, &journals)?;
    let mut all = Vec::new();
    for ((store, journal), extra) in stores.iter_mut().zip(&journals).zip(extra) {
        let net = finish(store, journal, extra)?;
        all.push((store, net));
    }
    let mut paths: Vec<PathBuf> =
        found.paths.into_iter().filter(|it| it.conflict.is_none()).map(|it| it.path).collect();
    paths.dedup();
    res.restored.restored = paths;
    res.changes = changes::describe(all.iter().map(|(store, net)| (&***store, net.as_slice())));
    Ok(res)
}

fn for_client(store: &Store, path: &[u8], to: Option<&Node>) -> Result<(AbsPath, Vec<u8>), Failure> {
    let path = absolute(&store.path, path);
    let damaged = || Failure::Damaged { path: path.clone() };
    let bytes = to.and_then(Node::hash).and_then(|it| store.blobs.read(it).ok()).ok_or_else(damaged)?;
    Ok((AbsPath::new(&path).ok_or_else(damaged)?, bytes))
}

/// What the client will have written.
fn client_changes(store: &Store, plan: &Plan) -> Vec<Change> {
    let change = |(path, to): &(RelPath, Option<Node>)| {
        let new = to.clone().map(|it| Node { young: true, mark: Mark { size: it.mark.size, ..Mark::default() }, ..it });
        Change { path: path.clone(), old: store.manifest.get(path).cloned(), new }
    };
    plan.to_client.iter().map(change).collect()
}

/// Folders that must be opened for what is done in them are steps too, so that they are closed again.
fn journal(store: &Store, order: &RestoreOrder, plan: Plan) -> Journal {
    let mut steps = plan.steps;
    let known: std::collections::BTreeSet<RelPath> = steps.iter().map(|it| it.path.clone()).collect();
    let above: std::collections::BTreeSet<RelPath> =
        steps.iter().flat_map(|it| node::ancestors(&it.path)).map(RelPath::from).collect();
    for path in above.into_iter().filter(|it| !known.contains(it)) {
        let closed = store.manifest.get(&path).filter(|it| it.is_dir() && it.mode & 0o700 != 0o700);
        steps.extend(closed.map(|it| super::plan::Step { path, now: Some(it.clone()), to: Some(it.clone()) }));
    }
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    Journal { session: store.session.clone(), id: order.id.clone(), steps, refs: plan.refs }
}

/// Every content that comes back is what it was, or nothing is written.
fn check(store: &Store, journal: &Journal) -> Result<(), Failure> {
    let hashes = journal.hashes();
    let n = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 4);
    let find_bad = |part: &[Hash]| part.iter().copied().find(|it| !store.blobs.is_sound(it).unwrap_or(false));
    let bad = std::thread::scope(|scope| {
        let parts = hashes.chunks(hashes.len().div_ceil(n).max(1));
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || find_bad(part))).collect();
        threads.into_iter().map(|it| it.join().unwrap_or(Some(Hash::default()))).find_map(|it| it)
    });
    let Some(bad) = bad else { return Ok(()) };
    let step = journal.steps.iter().find(|it| it.to.as_ref().and_then(Node::hash) == Some(&bad));
    Err(Failure::Damaged { path: step.map(|it| absolute(&store.path, &it.path)).unwrap_or_default() })
}

/// All roots, or none.
fn act(stores: &[&mut Store], journals: &[Journal]) -> Result<(), Failure> {
    let all = || stores.iter().zip(journals);
    let write = || all().filter(|it| !it.1.is_empty()).try_for_each(|(store, it)| it.write(store));
    let mut res = write();
    if res.is_ok() {
        res = all().try_for_each(|(store, it)| Apply::new(&store.root, &store.blobs, it, false).run());
    }
    let Err(source) = res else { return Ok(()) };
    let back = || -> io::Result<()> {
        for (store, journal) in all() {
            let back = journal.reversed();
            Apply::new(&store.root, &store.blobs, &back, true).run()?;
            Journal::remove(store)?;
        }
        Ok(())
    };
    match back() {
        Ok(()) => Err(Failure::Io { what: "the restore was taken back".to_owned(), source }),
        Err(_) => Err(Failure::Half { source }),
    }
}

/// Writes down what the restore changed: what it did, and what became of refs.
fn finish(store: &mut Store, journal: &Journal, extra: Vec<Change>) -> Result<Vec<Change>, Failure> {
    let mut changes = extra;
    let now = super::store::now();
    for step in journal.steps.iter().filter(|it| !is_still(it)) {
        let stat = store.root.stat(&step.path).map_err(|it| store.failed(it))?;
        let new = step.to.as_ref().zip(stat).map(|(to, stat)| Node::new(to.kind.clone(), &stat, now));
        let old = store.manifest.get(&step.path).cloned();
        if !node::is_same(old.as_ref(), new.as_ref()) {
            changes.push(Change { path: step.path.clone(), old, new });
        }
    }
    let cause = || Cause::Calls(vec![Call { session: journal.session.clone(), id: journal.id.clone() }]);
    store.append(cause(), changes.clone())?;
    let files = |it: &super::refs::RefStep| [b"packed-refs".as_slice(), &it.name].map(|name| node::join(&it.dir, name));
    let refs: Vec<RelPath> = journal.refs.iter().flat_map(files).map(RelPath::from).collect();
    if !refs.is_empty() {
        let capture = store.look(Some(&refs), &|| false)?;
        changes.extend(capture.changes.iter().cloned());
        store.commit(capture, cause())?;
    }
    Journal::remove(store).map_err(|it| store.failed(it))?;
    Ok(changes)
}

/// Finishes what a crash interrupted, or takes it back. The caller has the root's lock.
pub fn recover(store: &mut Store) -> Result<Vec<String>, Failure> {
    let Some(journal) = Journal::read(store).map_err(|it| store.failed(it))? else { return Ok(Vec::new()) };
    let root = store.path.clone();
    // What is damaged by now cannot be finished.
    let sound = check(store, &journal).is_ok();
    let mut passed = Vec::new();
    let mut run = |store: &Store, journal: &Journal| {
        let mut apply = Apply::new(&store.root, &store.blobs, journal, true);
        let res = apply.run();
        passed = std::mem::take(&mut apply.passed);
        res
    };
    let what = if sound && run(store, &journal).is_ok() {
        finish(store, &journal, Vec::new())?;
        "was finished"
    } else {
        run(store, &journal.reversed()).map_err(|source| Failure::Half { source })?;
        Journal::remove(store).map_err(|it| store.failed(it))?;
        "was taken back"
    };
    let mut res = vec![format!("A restore in {root} that was interrupted {what}.")];
    let left = |it: &RelPath| format!("{} was changed since, and stays as it is.", absolute(&root, it).display());
    res.extend(passed.iter().filter(|it| git::part(it) != Some(Part::Other)).map(left));
    Ok(res)
}
