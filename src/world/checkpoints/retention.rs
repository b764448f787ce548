//! What of the stores is kept, and what goes: sessions that are deleted, and the oldest when there is too much.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    time::UNIX_EPOCH,
};

use super::{
    Failure, Limits, Retention, Swept,
    beneath::Beneath,
    codec::{Writer, frame},
    node::{Hash, Node},
    place, restore, sessions,
    store::{Lock, Store},
};
use crate::base::{ids::SessionId, path::AbsPath};

/// Finishes, or takes back, what a crash left half done in a root; what there is to say about it.
///
/// # Errors
/// When the store or the root cannot be read or written.
pub fn recover(home: &AbsPath, root: &AbsPath) -> Result<Vec<String>, Failure> {
    let (mut store, _lock) = open(home, root)?;
    restore::recover(&mut store)
}

/// As [`recover`], of all roots that have a store.
///
/// # Errors
/// As [`recover`].
pub fn recover_all(home: &AbsPath) -> Result<Vec<String>, Failure> {
    let mut res = Vec::new();
    for (_, root) in stores(home)? {
        if let Some(root) = root.filter(|it| it.as_path().is_dir()) {
            res.extend(recover(home, &root)?);
        }
    }
    Ok(res)
}

/// Removes the checkpoints of a session that is deleted.
///
/// # Errors
/// When the store cannot be read or written.
pub fn forget_session(home: &AbsPath, session: &SessionId) -> Result<(), Failure> {
    for (name, root) in stores(home)? {
        if let Some(root) = root.filter(|it| it.as_path().is_dir()) {
            let (mut store, _lock) = open(home, &root)?;
            forget(&mut store, std::slice::from_ref(session))?;
        } else {
            remove_store(home, &name)?;
        }
    }
    Ok(())
}

/// Removes what no session needs, then the oldest closed sessions until the store fits. Sessions that are open lose
/// nothing.
///
/// # Errors
/// When the store cannot be read or written.
pub fn sweep(home: &AbsPath, retention: &Retention, keep: &dyn Fn(&SessionId) -> bool) -> Result<Swept, Failure> {
    let mut res = Swept::default();
    let mut closed: Vec<(i64, SessionId, AbsPath)> = Vec::new();
    let since = retention.used_since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().cast_signed();
    for (name, root) in stores(home)? {
        let Some(root) = root.filter(|it| it.as_path().is_dir()) else {
            res.bytes += remove_store(home, &name)?;
            continue;
        };
        let (mut store, lock) = open(home, &root)?;
        let known = known_sessions(&store)?;
        let (kept, gone): (Vec<_>, Vec<_>) = known.into_iter().partition(|it| keep(&it.0));
        let gone: Vec<SessionId> = gone.into_iter().map(|it| it.0).collect();
        res.n_sessions += gone.len();
        res.bytes += forget(&mut store, &gone)?;
        let others = sessions::others(&store.dir, None).map_err(|it| store.failed(it))?;
        if kept.is_empty() && !others.others && store.used_at().map_err(|it| store.failed(it))? < since {
            drop(lock);
            res.bytes += remove_store(home, &name)?;
        } else if !others.others {
            closed.extend(kept.into_iter().map(|(session, at)| (at, session, root.clone())));
        }
    }
    closed.sort_by(|a, b| (a.0, a.1.as_str()).cmp(&(b.0, b.1.as_str())));
    for (_, session, root) in closed {
        let (mut store, _lock) = open(home, &root)?;
        if place::used(&store.dir).map_err(|it| store.failed(it))? <= retention.store {
            break;
        }
        res.n_sessions += 1;
        res.bytes += forget(&mut store, &[session])?;
    }
    res.bytes += remove_idle(home, retention.store)?;
    Ok(res)
}

/// Stores that hold nobody's changes go when there is still too much: a root can be walked anew.
fn remove_idle(home: &AbsPath, limit: u64) -> Result<u64, Failure> {
    let mut freed = 0;
    for (name, root) in stores(home)? {
        let Some(root) = root.filter(|it| it.as_path().is_dir()) else { continue };
        let (store, lock) = open(home, &root)?;
        let fits = place::used(&store.dir).map_err(|it| store.failed(it))? <= limit;
        let others = sessions::others(&store.dir, None).map_err(|it| store.failed(it))?;
        if fits || others.others || !known_sessions(&store)?.is_empty() {
            continue;
        }
        drop(lock);
        freed += remove_store(home, &name)?;
    }
    Ok(freed)
}

fn stores(home: &AbsPath) -> Result<Vec<(String, Option<AbsPath>)>, Failure> {
    place::all(home).map_err(Failure::io("the store of checkpoints"))
}

fn open(home: &AbsPath, root: &AbsPath) -> Result<(Store, Lock), Failure> {
    let session = SessionId::from("");
    let (mut store, lock) = Store::open(home, root, &session, Limits::default(), &|| false)?;
    store.load()?;
    Ok((store, lock))
}

/// The sessions that changed something, and when they did last.
fn known_sessions(store: &Store) -> Result<BTreeMap<SessionId, i64>, Failure> {
    let mut res = BTreeMap::new();
    for delta in store.history()? {
        for call in delta.calls() {
            res.insert(call.session.clone(), delta.at);
        }
    }
    Ok(res)
}

/// Forgets what these sessions, and nobody else, changed; how many bytes went.
fn forget(store: &mut Store, gone: &[SessionId]) -> Result<u64, Failure> {
    let mut history = store.history()?;
    let before = history.len();
    let is_needed = |calls: &[super::codec::Call]| calls.iter().any(|it| !gone.contains(&it.session));
    let last = history.iter().rposition(|it| is_needed(it.calls()));
    let first = history.iter().position(|it| is_needed(it.calls()));
    let mut idx = 0;
    history.retain(|it| {
        let is_inside = first.is_some_and(|it| it <= idx) && last.is_some();
        idx += 1;
        // What is nobody's matters only to those calls that were before it.
        is_needed(it.calls()) || (it.calls().is_empty() && is_inside)
    });
    if history.len() < before {
        let mut out = Vec::new();
        for delta in &history {
            let mut writer = Writer::default();
            writer.delta(delta);
            out.extend(frame(&writer.0));
        }
        store.replace_log(&out)?;
    }
    let mut live: HashSet<Hash> = store.manifest.iter().filter_map(|it| it.1.hash()).copied().collect();
    let nodes = history.iter().flat_map(|it| &it.changes).flat_map(|it| [&it.old, &it.new]);
    live.extend(nodes.flatten().filter_map(Node::hash));
    let freed = store.blobs.collect(&live).map_err(|it| store.failed(it))?;
    place::add_used(&store.dir, -freed.cast_signed()).map_err(|it| store.failed(it))?;
    Ok(freed)
}

/// Removes a store with all that is in it.
fn remove_store(home: &AbsPath, name: &str) -> Result<u64, Failure> {
    let remove = || -> io::Result<u64> {
        let all = Beneath::open(place::folder(home).as_path())?;
        let size = all.read(format!("{name}/size").as_bytes())?;
        all.remove_tree(name.as_bytes())?;
        Ok(size.and_then(|it| str::from_utf8(&it).ok()?.parse().ok()).unwrap_or_default())
    };
    remove().map_err(Failure::io("the store of checkpoints"))
}
