//! Refs of a repository: one by one, each under git's own lock.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, Write},
    os::fd::AsFd,
};

use rustix::fs::{AtFlags, linkat, mkdirat, renameat, unlinkat};

use super::{
    Failure,
    beneath::{self, Beneath},
    fault,
    git::{self, Part, Refs},
    judge::{Link, judge},
    node::{self, Hash, Node, RelPath},
    plan::Undo,
};

/// One ref: what it has to be, and what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefStep {
    /// Git's folder.
    pub dir: RelPath,
    pub name: Vec<u8>,
    pub now: Option<Vec<u8>>,
    pub to: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub struct Planned {
    pub steps: Vec<RefStep>,
    /// In words: the branch, and both commits.
    pub conflicts: Vec<String>,
}

type Files = BTreeMap<RelPath, Hash>;
type Value = Option<Vec<u8>>;

/// What is to become of the refs of one repository.
pub fn plan(undo: &Undo, dir: &[u8]) -> Result<Planned, Failure> {
    let mut reader = Reader { undo, dir, read: HashMap::new() };
    let mut files = reader.files();
    let now = reader.refs(&files)?;
    // From now back to the first of the calls.
    let (mut after, mut chains) = (now.clone(), BTreeMap::<Vec<u8>, Vec<Link<Value>>>::new());
    for delta in undo.history.iter().rev() {
        let Some(who) = undo.who(delta) else { continue };
        let own = delta.changes.iter().filter(|it| is_ref(dir, &it.path));
        let mut any = false;
        for change in own {
            any = true;
            match change.old.as_ref().and_then(Node::hash) {
                Some(hash) => files.insert(change.path.clone(), *hash),
                None => files.remove(&change.path),
            };
        }
        if !any {
            continue;
        }
        let before = reader.refs(&files)?;
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        for name in names.into_iter().filter(|it| before.get(*it) != after.get(*it)) {
            let link = Link { old: before.get(name).cloned(), new: after.get(name).cloned(), who };
            chains.entry(name.clone()).or_default().push(link);
        }
        after = before;
    }
    let mut res = Planned::default();
    for (name, mut links) in chains {
        links.reverse();
        let current = now.get(&name).cloned();
        let Some(verdict) = judge(&links, &current, &|a, b| a == b) else { continue };
        if current == verdict.target {
            continue;
        }
        match verdict.conflict.filter(|_| !undo.forced) {
            Some(why) => res.conflicts.push(words(&name, current.as_ref(), verdict.left.as_ref(), why)),
            None => res.steps.push(RefStep { dir: dir.into(), name, now: current, to: verdict.target }),
        }
    }
    // What is deleted first makes room for names below it.
    res.steps.sort_by_key(|it| it.to.is_some());
    Ok(res)
}

fn words(name: &[u8], now: Option<&Vec<u8>>, left: Option<&Vec<u8>>, why: &str) -> String {
    let text = |it: Option<&Vec<u8>>| match it {
        Some(it) => String::from_utf8_lossy(it.get(..12).filter(|_| it.len() >= 40).unwrap_or(it)).into_owned(),
        None => "nothing".to_owned(),
    };
    let name = String::from_utf8_lossy(name);
    let what = name.strip_prefix("refs/heads/").map_or_else(|| name.to_string(), |it| format!("branch {it}"));
    format!("{what} is at {}, and the calls left it at {}: {why}", text(now), text(left))
}

fn is_ref(dir: &[u8], path: &[u8]) -> bool {
    git::git_path(path).is_some_and(|it| it.dir == dir && it.part() == Part::Ref)
}

struct Reader<'a> {
    undo: &'a Undo<'a>,
    dir: &'a [u8],
    read: HashMap<Hash, Vec<u8>>,
}

impl Reader<'_> {
    /// The files that hold refs now.
    fn files(&self) -> Files {
        let all = self.undo.store.manifest.below(self.dir).filter(|it| is_ref(self.dir, it.0));
        all.filter_map(|(path, it)| Some((path.clone(), *it.hash()?))).collect()
    }

    fn refs(&mut self, files: &Files) -> Result<Refs, Failure> {
        for (path, hash) in files {
            if !self.read.contains_key(hash) {
                let path = self.undo.absolute(path);
                let bytes = self.undo.store.blobs.read(hash).map_err(|_| Failure::Damaged { path })?;
                self.read.insert(*hash, bytes);
            }
        }
        let at = self.dir.len() + 1;
        let known = files.iter().filter_map(|(path, hash)| Some((path.get(at..)?, self.read.get(hash)?.as_slice())));
        Ok(git::refs(known))
    }
}

/// What a ref is on the disk.
fn current(root: &Beneath, dir: &[u8], name: &[u8]) -> io::Result<Value> {
    let mut files = Vec::new();
    for file in [b"packed-refs".as_slice(), name] {
        files.extend(root.read(&node::join(dir, file))?.map(|it| (file, it)));
    }
    Ok(git::refs(files.iter().map(|(name, bytes)| (*name, bytes.as_slice()))).remove(name))
}

/// Sets or deletes a ref, if it is still what it has to be. `temp` is a name that nobody else uses.
pub fn apply(root: &Beneath, step: &RefStep, temp: &[u8]) -> io::Result<()> {
    if current(root, &step.dir, &step.name)? == step.to {
        return unlock(root, step);
    }
    let path = node::join(&step.dir, &step.name);
    make_folders(root, &path)?;
    let (folder, name) = root.parent(&path)?;
    let lock = [name, b".lock"].concat();
    // A lock that has its content from the start can be told from git's own after a crash.
    beneath::remove(folder.as_fd(), temp)?;
    fault::step("ref: temp")?;
    let mut file = beneath::create(folder.as_fd(), temp, 0o644)?;
    file.write_all(&content(step))?;
    fault::step("ref: lock")?;
    unlock(root, step)?;
    let locked = linkat(&folder, temp, &folder, &*lock, AtFlags::empty());
    beneath::remove(folder.as_fd(), temp)?;
    locked.map_err(|it| match it {
        rustix::io::Errno::EXIST => io::Error::other("git is at work in this repository: it holds a lock on a ref"),
        it => it.into(),
    })?;
    let res = set_locked(root, step, &lock);
    if res.is_err() {
        beneath::remove(folder.as_fd(), &lock)?;
    }
    res
}

fn set_locked(root: &Beneath, step: &RefStep, lock: &[u8]) -> io::Result<()> {
    let path = node::join(&step.dir, &step.name);
    let (folder, name) = root.parent(&path)?;
    if current(root, &step.dir, &step.name)? != step.now {
        return Err(io::Error::other("a ref was changed by somebody else meanwhile"));
    }
    fault::step("ref: set")?;
    if step.to.is_some() {
        return Ok(renameat(&folder, lock, &folder, name)?);
    }
    delete_packed(root, step)?;
    beneath::remove(folder.as_fd(), name)?;
    fault::step("ref: unlock")?;
    beneath::remove(folder.as_fd(), lock)?;
    Ok(())
}

fn delete_packed(root: &Beneath, step: &RefStep) -> io::Result<()> {
    let folder = root.dir(&step.dir)?;
    let Some(bytes) = root.read(&node::join(&step.dir, b"packed-refs"))? else { return Ok(()) };
    let Some(rest) = git::without_ref(&bytes, &step.name) else { return Ok(()) };
    let mut file = beneath::create(folder.as_fd(), b"packed-refs.lock", 0o644)?;
    file.write_all(&rest)?;
    Ok(renameat(&folder, "packed-refs.lock", &folder, "packed-refs")?)
}

fn content(step: &RefStep) -> Vec<u8> {
    match &step.to {
        Some(it) => [it, b"\n".as_slice()].concat(),
        None => b"castor takes this ref back\n".to_vec(),
    }
}

/// Removes a lock that a killed castor left: one with the content that this step gives it.
fn unlock(root: &Beneath, step: &RefStep) -> io::Result<()> {
    let lock = [&*node::join(&step.dir, &step.name), b".lock"].concat();
    if root.read(&lock)? == Some(content(step)) {
        let (folder, name) = root.parent(&lock)?;
        beneath::remove(folder.as_fd(), name)?;
    }
    Ok(())
}

/// Folders above a ref; empty ones in its place go.
fn make_folders(root: &Beneath, path: &[u8]) -> io::Result<()> {
    let mut above: Vec<&[u8]> = node::ancestors(path).filter(|it| !it.is_empty()).collect();
    above.reverse();
    for dir in above {
        let (folder, name) = root.parent(dir)?;
        match mkdirat(&folder, name, rustix::fs::Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => (),
            Err(it) => return Err(it.into()),
        }
    }
    remove_empty(root, path)
}

/// Removes folders without files, where one stands in a ref's place.
fn remove_empty(root: &Beneath, path: &[u8]) -> io::Result<()> {
    let (folder, name) = root.parent(path)?;
    let is_dir = beneath::stat(folder.as_fd(), name)?.is_some_and(|it| node::type_of(&it).is_dir());
    if !is_dir {
        return Ok(());
    }
    for (inner, is_dir) in root.list(path)? {
        if is_dir {
            remove_empty(root, &node::join(path, &inner))?;
        }
    }
    Ok(unlinkat(&folder, name, AtFlags::REMOVEDIR)?)
}
