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
    fs::{AtFlags, Mode, fchmod, linkat, readlinkat, renameat, symlinkat, unlinkat},
    io::Errno,
};

use super::{
    beneath::{self, if_there},
    blobs::{Blobs, hash_of_file},
    fault, git,
    node::{self, Kind, Mark, Node, RelPath},
    record::{Change, Journal},
    refs,
    store::Store,
    walk::in_parallel,
};

/// How a journal is worked off.
pub struct Apply<'a> {
    store: &'a Store,
    journal: &'a Journal,
    /// After a crash, and on the way back: some steps are done already, and what somebody else changed stays.
    again: bool,
    /// What does not stay a folder.
    moves: HashSet<&'a [u8]>,
    /// What somebody else changed meanwhile.
    passed: Vec<RelPath>,
}

/// With the name of its new content until that takes its place.
type Due<'a> = (Vec<u8>, &'a Change);

/// Works a journal off; what somebody else changed meanwhile, which stays if this is done `again`.
pub fn apply(store: &Store, journal: &Journal, again: bool) -> io::Result<Vec<RelPath>> {
    let moves = journal.steps.iter().filter(|it| !it.was_dir() || !it.becomes_dir()).map(|it| &*it.path).collect();
    let mut apply = Apply { store, journal, again, moves, passed: Vec::new() };
    let due = apply.due()?;
    apply.open_folders(&due)?;
    let res = apply.run(&due);
    if res.is_err() {
        // What is left is found by the next try.
        _ = apply.all().try_for_each(|it| apply.remove_temp(&it));
    }
    res.map(|()| apply.passed)
}

impl<'a> Apply<'a> {
    fn run(&mut self, due: &[Due]) -> io::Result<()> {
        in_parallel(due, |it| self.stage(it)).into_iter().collect::<io::Result<()>>()?;
        due.iter().rev().try_for_each(|it| self.clear(it.1))?;
        for it in due {
            self.put(it)?;
        }
        for step in &self.journal.refs {
            match refs::apply(&self.store.root, step, &self.temp(usize::MAX)) {
                Err(_) if self.again => self.passed.push(step.path.clone()),
                it => it?,
            }
        }
        for (_, step) in due.iter().rev() {
            if let Some(to) = step.new.as_ref().filter(|it| it.is_dir()) {
                fault::step("apply: mode")?;
                self.chmod(&step.path, to.mode)?;
            }
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = Due<'a>> {
        self.journal.steps.iter().enumerate().map(|(idx, it)| (self.temp(idx), it))
    }

    /// The steps that are not done yet, and whose places are as they should be.
    fn due(&mut self) -> io::Result<Vec<Due<'a>>> {
        let (mut res, mut passed) = (Vec::new(), Vec::new());
        for due in self.all() {
            let step = due.1;
            if self.again {
                self.remove_temp(&due)?;
                if self.is_at(&step.path, step.new.as_ref(), true)? {
                    continue;
                }
            }
            // A folder was made, and has no mode yet; or a swap took the old away, and did not make the new.
            let is_begun = self.again
                && (self.is_at(&step.path, None, false)?
                    || (step.becomes_dir() && self.is_at(&step.path, step.new.as_ref(), false)?));
            if is_begun || self.is_at(&step.path, step.old.as_ref(), false)? {
                res.push(due);
            } else if self.again {
                passed.push(step.path.clone());
            } else {
                return Err(changed(&step.path));
            }
        }
        self.passed.append(&mut passed);
        Ok(res)
    }

    /// Whether a path is as a node says. What has another mark is read.
    fn is_at(&self, path: &[u8], node: Option<&Node>, with_mode: bool) -> io::Result<bool> {
        let (stat, node) = match (self.store.root.stat(path)?, node) {
            (Some(stat), Some(node)) => (stat, node),
            (stat, node) => return Ok(stat.is_none() && node.is_none()),
        };
        let (mark, found) = (Mark::of(&stat), node::type_of(&stat));
        let has_mode = !with_mode || node.mode == (stat.st_mode & 0o1777) as u16;
        Ok(match &node.kind {
            Kind::Dir => found.is_dir() && has_mode,
            Kind::Link(to) => found.is_symlink() && self.leads_to(path, to),
            Kind::File(_) if !found.is_file() || mark.size != node.mark.size || !has_mode => false,
            Kind::File(_) if mark == node.mark && !node.young => true,
            Kind::File(hash) => match if_there(self.store.root.file(path)) {
                Ok(Some(it)) => hash_of_file(&it)? == *hash,
                Ok(None) => false,
                // The owner may read what is to be read again once the modes are back.
                Err(it) if it.kind() == io::ErrorKind::PermissionDenied => mark.is_same_content(&node.mark),
                Err(it) => return Err(it),
            },
            Kind::Skipped(_) => mark.is_same_content(&node.mark),
        })
    }

    fn leads_to(&self, path: &[u8], to: &[u8]) -> bool {
        let found = self.store.root.parent(path).ok().and_then(|(dir, name)| readlinkat(&dir, name, Vec::new()).ok());
        found.is_some_and(|it| it.as_bytes() == to)
    }

    /// Folders that their owner may not change get that right until the end.
    fn open_folders(&self, due: &[Due]) -> io::Result<()> {
        for (_, step) in due {
            let is_closed = step.old.as_ref().is_some_and(Node::is_closed);
            if is_closed && self.is_at(&step.path, step.old.as_ref(), false)? {
                fault::step("apply: open folder")?;
                self.chmod(&step.path, 0o700)?;
            }
        }
        Ok(())
    }

    fn stage(&self, (temp, step): &Due) -> io::Result<()> {
        let Some(to) = step.new.as_ref().filter(|_| step.is_new_content()) else { return Ok(()) };
        let dir = self.stage_folder(&step.path)?;
        fault::step("apply: stage")?;
        match &to.kind {
            Kind::Link(to) => {
                beneath::remove(dir.as_fd(), temp)?;
                Ok(symlinkat(&**to, &dir, &**temp)?)
            }
            Kind::File(hash) => {
                beneath::remove(dir.as_fd(), temp)?;
                let link = || linkat(self.store.blobs.fd(), Blobs::name(hash), &dir, &**temp, AtFlags::empty());
                if git::is_object(&step.path) && link().is_ok() {
                    return Ok(());
                }
                let file = beneath::create(dir.as_fd(), temp, 0o600)?;
                fault::step("apply: write")?;
                self.store.blobs.copy_to(hash, &file)?;
                Ok(fchmod(&file, Mode::from_raw_mode(to.mode.into()))?)
            }
            Kind::Dir | Kind::Skipped(_) => Ok(()),
        }
    }

    /// Takes away what a folder replaces, what a folder was, and what is to be nothing.
    fn clear(&self, step: &Change) -> io::Result<()> {
        let is_dir = step.was_dir();
        if step.old.is_none() || (step.new.is_some() && is_dir == step.becomes_dir()) {
            return Ok(());
        }
        fault::step("apply: remove")?;
        if !self.is_at(&step.path, step.old.as_ref(), false)? {
            return if self.again { Ok(()) } else { Err(changed(&step.path)) };
        }
        let (dir, name) = self.store.root.parent(&step.path)?;
        match unlinkat(&dir, name, if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() }) {
            // Somebody put something into it meanwhile: it stays, and so does that.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.again => Ok(()),
            it => Ok(it?),
        }
    }

    fn put(&mut self, due: &Due) -> io::Result<()> {
        let step = due.1;
        let Some(to) = step.new.as_ref().filter(|_| !step.path.is_empty()) else { return Ok(()) };
        fault::step("apply: put")?;
        let (dir, name) = self.store.root.parent(&step.path)?;
        match &to.kind {
            Kind::Dir if step.was_dir() || self.again => beneath::make_dir(dir.as_fd(), name, 0o700),
            Kind::Dir => Ok(rustix::fs::mkdirat(&dir, name, Mode::RWXU)?),
            Kind::File(_) if !step.is_new_content() => self.chmod(&step.path, to.mode),
            Kind::File(_) | Kind::Link(_) => self.rename(due, dir.as_fd(), name),
            Kind::Skipped(_) => Ok(()),
        }
    }

    fn rename(&mut self, (temp, step): &Due, dir: BorrowedFd, name: &[u8]) -> io::Result<()> {
        let from = self.stage_folder(&step.path)?;
        if step.old.is_none() || step.was_dir() {
            return beneath::rename_new((from.as_fd(), temp), (dir, name));
        }
        let is_free = self.again && self.is_at(&step.path, None, false)?;
        if is_free || self.is_at(&step.path, step.old.as_ref(), false)? {
            return Ok(renameat(&from, &**temp, dir, name)?);
        }
        if !self.again {
            return Err(changed(&step.path));
        }
        self.passed.push(step.path.clone());
        beneath::remove(from.as_fd(), temp)
    }

    /// Of what stands there, whatever its own mode is; a link is not followed.
    fn chmod(&self, path: &[u8], mode: u16) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode.into());
        if path.is_empty() {
            return Ok(fchmod(self.store.root.fd(), mode)?);
        }
        let (dir, name) = self.store.root.parent(path)?;
        chmod_at(dir.as_fd(), name, mode)
    }

    /// The nearest folder above that stays one: what is written there survives what is done on the way.
    fn stage_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let stays = |it: &&[u8]| !node::ancestors(it).chain([*it]).any(|it| self.moves.contains(it));
        self.store.root.dir(node::ancestors(path).find(stays).unwrap_or_default())
    }

    fn temp(&self, idx: usize) -> Vec<u8> {
        let id = self.journal.call.id.as_str().chars().filter(char::is_ascii_alphanumeric);
        format!(".castor-restore-{}-{idx:x}", id.take(40).collect::<String>()).into_bytes()
    }

    fn remove_temp(&self, (temp, step): &Due) -> io::Result<()> {
        let dir = if_there(self.stage_folder(&step.path))?;
        dir.map_or(Ok(()), |it| beneath::remove(it.as_fd(), temp))
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
