//! Retention of checkpoint stores: drops deleted sessions, and the oldest ones above the size limit.

use std::{collections::BTreeMap, time::UNIX_EPOCH};

use rustix::fs::OFlags;

use super::{
    AbsPath, Delta, DirFd, Failure, Limits, Lock, Node, Retention, Session, SessionId, Store, Sweep, folders,
    provenance, restore,
};

/// Finishes, or takes back, what a crash left half done in any root; what there is to say about it.
///
/// # Errors
/// When a store or its root cannot be read or written.
pub fn recover_all(home: &AbsPath) -> Result<Vec<String>, Failure> {
    let mut res = Vec::new();
    for root in folders::all_stores(home)?.into_iter().filter_map(|it| it.1) {
        let (mut store, _lock) = open(home, &root)?;
        res.extend(restore::recover(&mut store)?);
    }
    Ok(res)
}

/// Removes the checkpoints of a session that is deleted.
///
/// # Errors
/// When the store cannot be read or written.
pub fn forget_session(home: &AbsPath, session: &SessionId) -> Result<(), Failure> {
    for (name, root) in folders::all_stores(home)? {
        match root {
            Some(root) => {
                let (mut store, _lock) = open(home, &root)?;
                forget(&mut store, std::slice::from_ref(session))?;
            }
            None => _ = remove_orphan(home, &name)?,
        }
    }
    Ok(())
}

/// Removes what no session needs, then the oldest closed sessions until the store fits. Sessions that are open lose
/// nothing.
///
/// # Errors
/// When the store cannot be read or written.
pub fn sweep(home: &AbsPath, retention: &Retention, keep: &dyn Fn(&SessionId) -> bool) -> Result<Sweep, Failure> {
    let mut res = Sweep::default();
    let mut closed: Vec<(i64, Option<SessionId>, String, AbsPath)> = Vec::new();
    let since = retention.used_since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().cast_signed();
    for (name, root) in folders::all_stores(home)? {
        let Some(root) = root else {
            res.bytes += remove_orphan(home, &name)?;
            continue;
        };
        let (mut store, _lock) = open(home, &root)?;
        let history = store.history()?;
        let calls = history.iter().flat_map(|delta| delta.calls().iter().map(|it| (it.session.clone(), delta.at)));
        // Of a session what comes last counts.
        let (kept, gone): (Vec<_>, Vec<_>) = calls.collect::<BTreeMap<_, _>>().into_iter().partition(|it| keep(&it.0));
        let gone: Vec<SessionId> = gone.into_iter().map(|it| it.0).collect();
        res.n_sessions += gone.len();
        res.bytes += forget(&mut store, &gone)?;
        if folders::other_calls(&store.dir, &store.session.id)?.others {
            continue;
        }
        if kept.is_empty() && store.used_at() < since {
            res.bytes += remove_store(home, &name)?;
            continue;
        }
        closed.extend(kept.into_iter().map(|(session, at)| (at, Some(session), name.clone(), root.clone())));
        // A root whose store holds nobody's changes can be walked anew.
        closed.push((i64::MAX, None, name, root));
    }
    closed.sort();
    for (_, session, name, root) in closed {
        let (mut store, _lock) = open(home, &root)?;
        if folders::used_bytes(&store.dir)? <= retention.store {
            break;
        }
        if folders::other_calls(&store.dir, &store.session.id)?.others {
            continue;
        }
        res.n_sessions += usize::from(session.is_some());
        res.bytes += match session {
            Some(it) => forget(&mut store, &[it])?,
            None => remove_store(home, &name)?,
        };
    }
    Ok(res)
}

fn open(home: &AbsPath, root: &AbsPath) -> Result<(Store, Lock), Failure> {
    let nobody = Session { home: home.clone(), id: "".into(), limits: Limits::default() };
    Store::open(&nobody, root, &|| false)
}

/// Forgets changes of these sessions alone. Returns the freed bytes.
fn forget(store: &mut Store, gone: &[SessionId]) -> Result<u64, Failure> {
    let mut history = store.history()?;
    let before = history.len();
    let is_needed = |it: &Delta| it.calls().iter().any(|it| !gone.contains(&it.session));
    // What is nobody's matters only to those calls that were before it.
    let mut any = false;
    history.retain(|it| {
        any |= is_needed(it);
        any && (is_needed(it) || it.calls().is_empty())
    });
    if history.len() < before {
        store.replace_log(&history)?;
    }
    let nodes = history.iter().flat_map(|it| &it.changes).flat_map(|it| [&it.old, &it.new]);
    let live = nodes.chain(store.manifest.below(b"").map(|it| it.1)).filter_map(Node::hash).collect();
    let freed = store.blobs.collect(&live)?;
    folders::add_used(&store.dir, -freed.cast_signed())?;
    Ok(freed)
}

/// As [`remove_store`], of one whose root is gone. One that was just being made has its root by now.
fn remove_orphan(home: &AbsPath, name: &str) -> Result<u64, Failure> {
    let all = DirFd::open(folders::folder(home).as_path())?;
    // None in what is no folder.
    let lock = all.open_own(format!("{name}/lock").as_bytes(), OFlags::CREATE).ok();
    let is_orphan = lock.as_ref().map_or(Ok(true), super::try_lock)? && folders::root_of(&all, name)?.is_none();
    if is_orphan { remove_store(home, name) } else { Ok(0) }
}

/// Removes a store with all that is in it. The caller has its lock.
fn remove_store(home: &AbsPath, name: &str) -> Result<u64, Failure> {
    let all = DirFd::open(folders::folder(home).as_path())?;
    let size = folders::read_size(&all, format!("{name}/size").as_bytes())?;
    provenance::remove_store(&all, name.as_bytes())?;
    Ok(size)
}
