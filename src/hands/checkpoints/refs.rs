//! Git refs in a restore: changed one by one, each under git's own lock.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, Write},
    os::fd::BorrowedFd,
};

use rustix::{
    fs::{AtFlags, linkat, renameat},
    io::Errno,
};

use super::{
    Change, Delta, DirFd, Hash, Part, RelPath, Store, Value, conflicts::Author, conflicts::StateChange,
    conflicts::judge, dirfd, fault, git, git::Refs, node,
};

type Files = BTreeMap<RelPath, Hash>;

/// What is to be done with refs, and what conflicts.
type RefsPlan = (Vec<Change<Value>>, Vec<(Change, String)>);

/// What is to become of the refs of one repository. `None`: what was held of them is damaged.
pub fn plan(store: &Store, dir: &[u8], history: &[(Author, Delta)], forced: bool) -> Option<RefsPlan> {
    let is_ref = |path: &[u8]| git::git_path(path).is_some_and(|it| it.dir == dir && it.part() == Part::Ref);
    let below = store.manifest.below(dir).filter(|it| is_ref(it.0));
    let mut files: Files = below.filter_map(|(path, it)| Some((path.clone(), it.hash()?))).collect();
    let (mut read, mut plan) = (HashMap::new(), RefsPlan::default());
    let now = refs(store, dir, &files, &mut read)?;
    // From now back to the first of the calls.
    let (mut after, mut chains) = (now.clone(), BTreeMap::<Vec<u8>, Vec<StateChange<Value>>>::new());
    let touched = |it: &Delta| it.changes.iter().any(|it| is_ref(&it.path));
    for (who, delta) in history.iter().rev().filter(|it| touched(&it.1)) {
        for change in delta.changes.iter().filter(|it| is_ref(&it.path)) {
            files.remove(&change.path);
            files.extend(change.old.hash().map(|it| (change.path.clone(), it)));
        }
        let before = refs(store, dir, &files, &mut read)?;
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        for name in names.into_iter().filter(|it| before.get(*it) != after.get(*it)) {
            let link = StateChange { old: before.get(name).cloned(), new: after.get(name).cloned(), who: *who };
            chains.entry(name.clone()).or_default().push(link);
        }
        after = before;
    }
    for (name, mut links) in chains {
        links.reverse();
        let old = now.get(&name).cloned();
        let Some(verdict) = judge(&links, &old, &|a, b| a == b).filter(|it| it.target != old) else { continue };
        match verdict.conflict.filter(|_| !forced) {
            Some(why) => {
                let why = words(&name, old.as_deref(), verdict.left.as_deref(), why);
                plan.1.push((Change { path: dir.into(), ..Change::default() }, why));
            }
            None => plan.0.push(Change { path: node::join(dir, &name).into(), old, new: verdict.target }),
        }
    }
    Some(plan)
}

/// The branch, and both commits.
fn words(name: &[u8], now: Option<&[u8]>, left: Option<&[u8]>, why: &str) -> String {
    let text = |it: Option<&[u8]>| {
        let it = it.unwrap_or(b"nothing");
        String::from_utf8_lossy(it.get(..12).filter(|_| it.len() >= 40).unwrap_or(it)).into_owned()
    };
    let name = String::from_utf8_lossy(name);
    let what = name.strip_prefix("refs/heads/").map_or_else(|| name.to_string(), |it| format!("branch {it}"));
    format!("{what} is at {}, and the calls left it at {}: {why}", text(now), text(left))
}

/// What the refs are, by files that are held.
fn refs(store: &Store, dir: &[u8], files: &Files, read: &mut HashMap<Hash, Vec<u8>>) -> Option<Refs> {
    for hash in files.values() {
        if !read.contains_key(hash) {
            read.insert(*hash, store.blobs.read(hash).ok()?);
        }
    }
    let known = files.iter().filter_map(|(path, hash)| Some((node::strip_dir(path, dir), read.get(hash)?.as_slice())));
    Some(git::refs(known))
}

/// What a ref is on the disk.
fn current(root: &DirFd, path: &[u8]) -> io::Result<Value> {
    let Some(at) = git::git_path(path) else { return Ok(None) };
    let mut files = Vec::new();
    for file in [b"packed-refs".as_slice(), at.inner] {
        files.extend(root.read(&node::join(at.dir, file))?.map(|it| (file, it)));
    }
    Ok(git::refs(files.iter().map(|(name, bytes)| (*name, bytes.as_slice()))).remove(at.inner))
}

/// Sets or deletes a ref, if it is still what it has to be. `temp` is a unique name.
pub fn apply(root: &DirFd, step: &Change<Value>, temp: &[u8]) -> io::Result<()> {
    if current(root, &step.path)? == step.new {
        return unlock(root, step);
    }
    make_folders(root, &step.path)?;
    root.at(&step.path, |folder, name| {
        // A lock that has its content from the start can be told from git's own after a crash.
        fault::step("ref: temp")?;
        dirfd::create(folder, temp, 0o644)?.write_all(&content(step))?;
        fault::step("ref: lock")?;
        unlock(root, step)?;
        let lock = [name, b".lock"].concat();
        let locked = linkat(folder, temp, folder, &*lock, AtFlags::empty());
        dirfd::remove(folder, temp)?;
        locked.map_err(|it| match it {
            Errno::EXIST => io::Error::other("git is at work in this repository: it holds a lock on a ref"),
            it => it.into(),
        })?;
        set(root, step, (folder, name, &lock)).inspect_err(|_| _ = dirfd::remove(folder, &lock))
    })
}

/// Under the lock.
fn set(root: &DirFd, step: &Change<Value>, (folder, name, lock): (BorrowedFd, &[u8], &[u8])) -> io::Result<()> {
    if current(root, &step.path)? != step.old {
        return Err(io::Error::other("a ref was changed by somebody else meanwhile"));
    }
    fault::step("ref: set")?;
    if step.new.is_some() {
        return Ok(renameat(folder, lock, folder, name)?);
    }
    delete_packed(root, &step.path)?;
    dirfd::remove(folder, name)?;
    fault::step("ref: unlock")?;
    dirfd::remove(folder, lock)
}

fn delete_packed(root: &DirFd, path: &[u8]) -> io::Result<()> {
    let Some(at) = git::git_path(path) else { return Ok(()) };
    let packed = node::join(at.dir, b"packed-refs");
    let rest = root.read(&packed)?.and_then(|it| git::without_ref(&it, at.inner));
    rest.map_or(Ok(()), |rest| {
        root.at(&packed, |folder, name| {
            dirfd::create_new(folder, b"packed-refs.lock", 0o644)?.write_all(&rest)?;
            Ok(renameat(folder, "packed-refs.lock", folder, name)?)
        })
    })
}

fn content(step: &Change<Value>) -> Vec<u8> {
    let text = step.new.as_deref().unwrap_or(b"castor takes this ref back");
    [text, b"\n"].concat()
}

/// Removes a lock that a killed castor left: one with the content that this step gives it.
fn unlock(root: &DirFd, step: &Change<Value>) -> io::Result<()> {
    let lock = [&*step.path, b".lock"].concat();
    let is_own = root.read(&lock)? == Some(content(step));
    if is_own { root.at(&lock, dirfd::remove) } else { Ok(()) }
}

/// Folders above a ref; empty ones in its place go.
fn make_folders(root: &DirFd, path: &[u8]) -> io::Result<()> {
    let above: Vec<&[u8]> = node::ancestors(path).filter(|it| !it.is_empty()).collect();
    for dir in above.into_iter().rev() {
        root.at(dir, |folder, name| dirfd::make_dir(folder, name, 0o755))?;
    }
    root.remove_empty(path)
}
