//! Does what a journal says, in one root.
//!
//! New files are written beside their places first: a full disk is found out before anything is taken away. Then what
//! goes is removed, deepest first; folders are made; files and links take their names in one step each; refs are set;
//! and folders get their modes last, deepest first. Every step looks first whether what stands there is what it expects.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Mode, fchmod, linkat, mkdirat, readlinkat, renameat, symlinkat, unlinkat},
    io::Errno,
};

use super::{
    beneath::{self, Beneath, is_gone},
    blobs::{Blobs, hash_of_file},
    fault, git,
    journal::Journal,
    node::{self, Kind, Mark, Node, RelPath},
    plan::Step,
    refs,
};

/// How a journal is worked off.
pub struct Apply<'a> {
    pub root: &'a Beneath,
    pub blobs: &'a Blobs,
    pub journal: &'a Journal,
    /// After a crash, and on the way back: some steps are done already, and what somebody else changed stays.
    pub again: bool,
    stable: HashSet<&'a [u8]>,
    /// What somebody else changed meanwhile.
    pub passed: Vec<RelPath>,
}

impl<'a> Apply<'a> {
    pub fn new(root: &'a Beneath, blobs: &'a Blobs, journal: &'a Journal, again: bool) -> Self {
        let is_dir = |it: &Option<Node>| it.as_ref().is_some_and(Node::is_dir);
        let moves = journal.steps.iter().filter(|it| !is_dir(&it.now) || !is_dir(&it.to));
        let stable = moves.map(|it| &*it.path).collect();
        Self { root, blobs, journal, again, stable, passed: Vec::new() }
    }

    pub fn run(&mut self) -> io::Result<()> {
        let mut steps = self.due()?;
        self.open_folders(&steps)?;
        let res = self.change(&mut steps);
        if res.is_err() {
            self.remove_temps();
        }
        res
    }

    fn change(&mut self, steps: &mut [(usize, &'a Step)]) -> io::Result<()> {
        self.stage_all(steps)?;
        for (_, step) in steps.iter().rev() {
            self.clear(step)?;
        }
        for (idx, step) in steps.iter() {
            self.put(*idx, step)?;
        }
        for step in &self.journal.refs {
            match refs::apply(self.root, step, &self.temp(usize::MAX)) {
                Err(_) if self.again => self.passed.push(node::join(&step.dir, &step.name).into()),
                it => it?,
            }
        }
        for (_, step) in steps.iter().rev() {
            self.set_folder_mode(step)?;
        }
        Ok(())
    }

    /// The steps that are not done yet, and whose places are as they should be.
    fn due(&mut self) -> io::Result<Vec<(usize, &'a Step)>> {
        let mut res = Vec::new();
        for (idx, step) in self.journal.steps.iter().enumerate() {
            if self.again {
                self.remove_temp(idx, step)?;
            }
            if self.again && self.is_at(&step.path, step.to.as_ref(), true)? {
                continue;
            }
            // The way back of a swap may find nothing: the old is gone, and the new was not made yet.
            let is_free = self.again && self.is_at(&step.path, None, false)?;
            // It was made, and has no mode yet.
            let is_begun = self.again
                && step.to.as_ref().is_some_and(Node::is_dir)
                && self.is_at(&step.path, step.to.as_ref(), false)?;
            if is_free || is_begun || self.is_at(&step.path, step.now.as_ref(), false)? {
                res.push((idx, step));
            } else if self.again {
                self.passed.push(step.path.clone());
            } else {
                return Err(changed(&step.path));
            }
        }
        Ok(res)
    }

    /// Whether a path is as a node says. What has another mark is read.
    fn is_at(&self, path: &[u8], node: Option<&Node>, with_mode: bool) -> io::Result<bool> {
        let Some(stat) = self.root.stat(path)? else { return Ok(node.is_none()) };
        let Some(node) = node else { return Ok(false) };
        let mark = Mark::of(&stat);
        let found = node::type_of(&stat);
        let has_mode = !with_mode || node.mode == (stat.st_mode & 0o1777) as u16;
        Ok(match &node.kind {
            Kind::Dir => found.is_dir() && has_mode,
            Kind::Link(to) => found.is_symlink() && self.leads_to(path)?.as_deref() == Some(to),
            Kind::File(_) if !found.is_file() || mark.size != node.mark.size || !has_mode => false,
            Kind::File(_) if mark == node.mark && !node.young => true,
            Kind::File(hash) => match self.root.file(path) {
                Ok(it) => hash_of_file(&it)? == *hash,
                // The owner may read what is to be read again once the modes are back.
                Err(it) if it.kind() == io::ErrorKind::PermissionDenied => mark.is_same_content(&node.mark),
                Err(it) if is_gone(&it) => false,
                Err(it) => return Err(it),
            },
            Kind::Skipped(_) => mark.is_same_content(&node.mark),
        })
    }

    fn leads_to(&self, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let (dir, name) = self.root.parent(path)?;
        match readlinkat(&dir, name, Vec::new()) {
            Ok(it) => Ok(Some(it.into_bytes())),
            Err(Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(it) => Err(it.into()),
        }
    }

    /// Folders that their owner may not change get that right until the end.
    fn open_folders(&self, steps: &[(usize, &Step)]) -> io::Result<()> {
        for (_, step) in steps {
            let closed = |it: &Node| it.is_dir() && it.mode & 0o700 != 0o700;
            if step.now.as_ref().is_some_and(closed) && self.is_at(&step.path, step.now.as_ref(), false)? {
                fault::step("apply: open folder")?;
                self.chmod(&step.path, 0o700)?;
            }
        }
        Ok(())
    }

    fn stage_all(&self, steps: &[(usize, &Step)]) -> io::Result<()> {
        // Tests end a thread at one of its steps.
        let n = if cfg!(test) { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(4) };
        let stage = |part: &[(usize, &Step)]| part.iter().try_for_each(|(idx, step)| self.stage(*idx, step));
        let (first, rest) = steps.split_at(steps.len().div_ceil(n));
        std::thread::scope(|scope| {
            let parts = rest.chunks(first.len().max(1));
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || stage(part))).collect();
            let mut res = stage(first);
            for it in threads {
                res = res.and(it.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended"))));
            }
            res
        })
    }

    fn stage(&self, idx: usize, step: &Step) -> io::Result<()> {
        let Some(to) = &step.to else { return Ok(()) };
        let (dir, temp) = (self.stage_folder(&step.path)?, self.temp(idx));
        match &to.kind {
            Kind::File(hash) if step.now.as_ref().and_then(Node::hash) != Some(hash) => {
                fault::step("apply: stage")?;
                beneath::remove(dir.as_fd(), &temp)?;
                let is_object = git::is_object(&step.path);
                let from = Blobs::name(hash);
                if is_object && linkat(self.blobs.fd(), &from, &dir, &*temp, AtFlags::empty()).is_ok() {
                    return Ok(());
                }
                let file = beneath::create(dir.as_fd(), &temp, 0o600)?;
                fault::step("apply: write")?;
                self.blobs.copy_to(hash, &file)?;
                Ok(fchmod(&file, Mode::from_raw_mode(to.mode.into()))?)
            }
            Kind::Link(to) => {
                fault::step("apply: link")?;
                beneath::remove(dir.as_fd(), &temp)?;
                Ok(symlinkat(&**to, &dir, &*temp)?)
            }
            _ => Ok(()),
        }
    }

    /// Takes away what a folder replaces, what a folder was, and what is to be nothing.
    fn clear(&self, step: &Step) -> io::Result<()> {
        let was_dir = step.now.as_ref().is_some_and(Node::is_dir);
        let is_dir = step.to.as_ref().is_some_and(Node::is_dir);
        let goes = step.now.is_some() && (step.to.is_none() || was_dir != is_dir);
        if !goes {
            return Ok(());
        }
        fault::step("apply: remove")?;
        if !self.is_at(&step.path, step.now.as_ref(), false)? {
            return if self.again { Ok(()) } else { Err(changed(&step.path)) };
        }
        let (dir, name) = self.root.parent(&step.path)?;
        let flags = if was_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match unlinkat(&dir, name, flags) {
            // Somebody put something into it meanwhile: it stays, and so does that.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.again => Ok(()),
            it => Ok(it?),
        }
    }

    fn put(&mut self, idx: usize, step: &Step) -> io::Result<()> {
        let Some(to) = &step.to else { return Ok(()) };
        if step.path.is_empty() {
            return Ok(());
        }
        fault::step("apply: put")?;
        let (dir, name) = self.root.parent(&step.path)?;
        match &to.kind {
            Kind::Dir => match mkdirat(&dir, name, Mode::RWXU) {
                Err(Errno::EXIST) if step.now.as_ref().is_some_and(Node::is_dir) || self.again => Ok(()),
                it => Ok(it?),
            },
            Kind::File(hash) if step.now.as_ref().and_then(Node::hash) == Some(hash) => self.chmod(&step.path, to.mode),
            Kind::File(_) | Kind::Link(_) => self.rename(idx, step, dir.as_fd(), name),
            Kind::Skipped(_) => Ok(()),
        }
    }

    fn rename(&mut self, idx: usize, step: &Step, dir: BorrowedFd, name: &[u8]) -> io::Result<()> {
        let (from, temp) = (self.stage_folder(&step.path)?, self.temp(idx));
        let replaces = step.now.as_ref().is_some_and(|it| !it.is_dir());
        if !replaces {
            return beneath::rename_new((from.as_fd(), &temp), (dir, name));
        }
        let is_free = self.again && self.is_at(&step.path, None, false)?;
        if !is_free && !self.is_at(&step.path, step.now.as_ref(), false)? {
            if self.again {
                self.passed.push(step.path.clone());
                return beneath::remove(from.as_fd(), &temp).map(drop);
            }
            return Err(changed(&step.path));
        }
        Ok(renameat(&from, &*temp, dir, name)?)
    }

    fn set_folder_mode(&self, step: &Step) -> io::Result<()> {
        match &step.to {
            Some(to) if to.is_dir() => {
                fault::step("apply: mode")?;
                self.chmod(&step.path, to.mode)
            }
            _ => Ok(()),
        }
    }

    /// Of what stands there, whatever its own mode is; a link is not followed.
    fn chmod(&self, path: &[u8], mode: u16) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode.into());
        if path.is_empty() {
            return Ok(fchmod(self.root.fd(), mode)?);
        }
        let (dir, name) = self.root.parent(path)?;
        chmod_at(dir.as_fd(), name, mode)
    }

    /// The nearest folder above that stays one: what is written there survives what is done on the way.
    fn stage_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let stays = |it: &&[u8]| !node::ancestors(it).chain([*it]).any(|it| self.stable.contains(it));
        let found = node::ancestors(path).find(stays).unwrap_or_default();
        self.root.dir(found)
    }

    fn temp(&self, idx: usize) -> Vec<u8> {
        let id: String = self.journal.id.as_str().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        format!(".castor-restore-{id}-{idx:x}").into_bytes()
    }

    fn remove_temps(&self) {
        for (idx, step) in self.journal.steps.iter().enumerate() {
            // The next try looks for it again.
            _ = self.remove_temp(idx, step);
        }
    }

    fn remove_temp(&self, idx: usize, step: &Step) -> io::Result<()> {
        match self.stage_folder(&step.path) {
            Ok(dir) => beneath::remove(dir.as_fd(), &self.temp(idx)).map(drop),
            Err(it) if is_gone(&it) => Ok(()),
            Err(it) => Err(it),
        }
    }
}

#[cfg(target_os = "linux")]
fn chmod_at(dir: BorrowedFd, name: &[u8], mode: Mode) -> io::Result<()> {
    use rustix::fs::{CWD, OFlags, chmodat, openat};
    // What is open like this needs no right to be read, and stays the same whatever takes its name.
    let place = openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if node::type_of(&rustix::fs::fstat(&place)?).is_symlink() {
        return Err(changed(name));
    }
    use std::os::fd::AsRawFd;
    Ok(chmodat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), mode, AtFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn chmod_at(dir: BorrowedFd, name: &[u8], mode: Mode) -> io::Result<()> {
    Ok(rustix::fs::chmodat(dir, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn changed(path: &[u8]) -> io::Error {
    io::Error::other(format!("{} was changed while it was restored", String::from_utf8_lossy(path)))
}
