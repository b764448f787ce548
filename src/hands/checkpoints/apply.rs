//! Applies a journal of restore steps in one root.
//!
//! New files are written beside their places first: a full disk is found out before anything is taken away. Then what
//! goes is removed, deepest first; folders are made; files and links take their names in one step each; refs are set;
//! and folders get their modes last, deepest first. Every step looks first whether what stands there is what it expects.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::fs::{Mode, fchmod, mkdirat, renameat, symlinkat};

use super::{
    Change, DiskMark, Journal, Kind, Node, RelPath, Store, dirfd, dirfd::if_exists, fault, hash_of_file, in_parallel,
    lasting, node, refs,
};

/// Options for applying a journal.
pub struct Apply<'a> {
    store: &'a Store,
    journal: &'a Journal,
    /// After a crash, and on the way back: some steps are done already, and what another program changed stays.
    again: bool,
    /// What does not stay a folder.
    moves: HashSet<&'a [u8]>,
    /// What another program changed meanwhile.
    skipped: Vec<RelPath>,
}

/// With the name of its new content until that takes its place.
type Due<'a> = (Vec<u8>, &'a Change);

/// Applies a journal. Returns what another program changed meanwhile, which stays if this is done `again`.
pub fn apply(store: &Store, journal: &Journal, again: bool) -> io::Result<Vec<RelPath>> {
    let moves = journal.steps.iter().filter(|it| !it.old.is_dir() || !it.new.is_dir()).map(|it| &*it.path).collect();
    let mut apply = Apply { store, journal, again, moves, skipped: Vec::new() };
    let due = apply.due()?;
    let res = apply.run(&due);
    if res.is_err() {
        // What is left is found by the next try.
        _ = apply.all().try_for_each(|it| apply.remove_temp(&it));
    }
    res.map(|()| apply.skipped)
}

impl<'a> Apply<'a> {
    fn run(&mut self, due: &[Due]) -> io::Result<()> {
        in_parallel(due, |it| self.stage(it)).into_iter().collect::<io::Result<()>>()?;
        // No name comes to stand for torn bytes, and what the log says of the restore lasts.
        lasting::sync_disk(self.store.root.fd())?;
        due.iter().rev().try_for_each(|it| self.clear(it.1))?;
        due.iter().try_for_each(|it| self.put(it))?;
        for step in &self.journal.refs {
            match refs::apply(&self.store.root, step, &self.temp(usize::MAX)) {
                Err(_) if self.again => self.skipped.push(step.path.clone()),
                it => it?,
            }
        }
        for (_, step) in due.iter().rev().filter(|it| it.1.new.is_dir()) {
            fault::step("apply: mode")?;
            self.chmod(&step.path, step.new.mode)?;
        }
        lasting::sync_disk(self.store.root.fd())
    }

    fn all(&self) -> impl Iterator<Item = Due<'a>> {
        self.journal.steps.iter().enumerate().map(|(idx, it)| (self.temp(idx), it))
    }

    /// The steps that are not done yet, and whose places are as they should be. Folders that their owner may not change
    /// get that right until the end.
    fn due(&mut self) -> io::Result<Vec<Due<'a>>> {
        let (mut res, mut passed) = (Vec::new(), Vec::new());
        for due in self.all() {
            let step = due.1;
            let is_old = self.is_at(&step.path, &step.old, false)?;
            // A folder was made, and has no mode yet; or a swap took the old away, and did not make the new.
            let is_begun = self.again
                && (self.is_at(&step.path, &Node::default(), false)?
                    || (step.new.is_dir() && self.is_at(&step.path, &step.new, false)?));
            let is_closed = (is_old || is_begun) && (step.old.is_closed() || step.new.is_closed());
            if is_closed && self.is_at(&step.path, &Node::unseen(Kind::Dir, 0, 0), false)? {
                fault::step("apply: open folder")?;
                self.chmod(&step.path, 0o700)?;
            }
            if self.again {
                self.remove_temp(&due)?;
                if self.is_at(&step.path, &step.new, true)? {
                    continue;
                }
            }
            match is_old || is_begun {
                true => res.push(due),
                false if self.again => passed.push(step.path.clone()),
                false => return Err(changed_error(&step.path)),
            }
        }
        self.skipped = passed;
        Ok(res)
    }

    /// Whether a path is as a node says. What has another mark is read.
    fn is_at(&self, path: &[u8], node: &Node, with_mode: bool) -> io::Result<bool> {
        let root = &self.store.root;
        let Some(stat) = root.stat(path)? else { return Ok(node.is_absent()) };
        let (mark, found) = (DiskMark::of(&stat), node::file_type(&stat));
        let has_mode = !with_mode || node.mode == node::bits(&stat);
        Ok(match &node.kind {
            Kind::Absent => false,
            Kind::Dir => found.is_dir() && has_mode,
            Kind::Link(to) => found.is_symlink() && root.at(path, dirfd::read_link).is_ok_and(|it| it == *to),
            Kind::File(_) if !found.is_file() || mark.size != node.mark.size || !has_mode => false,
            Kind::File(_) if mark == node.mark && !node.young => true,
            Kind::File(hash) => match if_exists(root.at(path, dirfd::open_owner_file))? {
                Some(it) => hash_of_file(&it)? == *hash,
                None => false,
            },
            Kind::Skipped(_) => mark == node.mark,
        })
    }

    fn stage(&self, (temp, step): &Due) -> io::Result<()> {
        if !step.is_new_content() || !matches!(step.new.kind, Kind::File(_) | Kind::Link(_)) {
            return Ok(());
        }
        let (dir, blobs) = (self.stage_folder(&step.path)?, &self.store.blobs);
        fault::step("apply: stage")?;
        match &step.new.kind {
            Kind::Link(to) => symlinkat(&**to, &dir, &**temp)?,
            Kind::File(hash) => {
                let file = dirfd::create_new(dir.as_fd(), temp, 0o600)?;
                fault::step("apply: write")?;
                blobs.copy_to(hash, &file)?;
                fchmod(&file, Mode::from_raw_mode(step.new.mode.into()))?;
            }
            _ => (),
        }
        Ok(())
    }

    /// Takes away what a folder replaces, what a folder was, and what is to be nothing.
    fn clear(&self, step: &Change) -> io::Result<()> {
        let is_dir = step.old.is_dir();
        if step.old.is_absent() || (!step.new.is_absent() && is_dir == step.new.is_dir()) {
            return Ok(());
        }
        fault::step("apply: remove")?;
        if !self.is_at(&step.path, &step.old, false)? {
            return if self.again { Ok(()) } else { Err(changed_error(&step.path)) };
        }
        match self.store.root.at(&step.path, if is_dir { dirfd::remove_dir } else { dirfd::remove }) {
            // Somebody put something into it meanwhile: it stays, and so does that.
            Err(it) if self.again && it.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            it => it,
        }
    }

    fn put(&mut self, due: &Due) -> io::Result<()> {
        let (step, root) = (due.1, &self.store.root);
        if step.path.is_empty() || step.new.is_absent() {
            return Ok(());
        }
        fault::step("apply: put")?;
        match &step.new.kind {
            Kind::Dir if step.old.is_dir() || self.again => {
                root.at(&step.path, |dir, name| dirfd::make_dir(dir, name, 0o700))
            }
            Kind::Dir => root.at(&step.path, |dir, name| Ok(mkdirat(dir, name, Mode::RWXU)?)),
            Kind::File(_) if !step.is_new_content() => self.chmod(&step.path, step.new.mode),
            Kind::File(_) | Kind::Link(_) => self.rename(due),
            Kind::Absent | Kind::Skipped(_) => Ok(()),
        }
    }

    fn rename(&mut self, (temp, step): &Due) -> io::Result<()> {
        let (root, from) = (&self.store.root, self.stage_folder(&step.path)?);
        if step.old.is_absent() || step.old.is_dir() {
            return root.at(&step.path, |dir, name| dirfd::rename_noreplace((from.as_fd(), temp), (dir, name)));
        }
        let is_free = self.again && self.is_at(&step.path, &Node::default(), false)?;
        if is_free || self.is_at(&step.path, &step.old, false)? {
            return root.at(&step.path, |dir, name| Ok(renameat(&from, &**temp, dir, name)?));
        }
        if !self.again {
            return Err(changed_error(&step.path));
        }
        self.skipped.push(step.path.clone());
        dirfd::remove(from.as_fd(), temp)
    }

    /// Of what stands there, whatever its own mode is; a link is not followed.
    fn chmod(&self, path: &[u8], mode: u16) -> io::Result<()> {
        self.store.root.at(path, |dir, name| dirfd::chmod(dir, name, mode.into()))
    }

    /// The nearest folder above that stays one: what is written there survives what is done on the way.
    fn stage_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let stays = |it: &&[u8]| !node::ancestors(it).chain([*it]).any(|it| self.moves.contains(it));
        self.store.root.open_dir(node::ancestors(path).find(stays).unwrap_or_default())
    }

    fn temp(&self, idx: usize) -> Vec<u8> {
        let id = self.journal.call.id.as_str().chars().filter(char::is_ascii_alphanumeric);
        format!(".castor-restore-{}-{idx:x}", id.take(40).collect::<String>()).into_bytes()
    }

    fn remove_temp(&self, (temp, step): &Due) -> io::Result<()> {
        let dir = if_exists(self.stage_folder(&step.path))?;
        dir.map_or(Ok(()), |it| dirfd::remove(it.as_fd(), temp))
    }
}

fn changed_error(path: &[u8]) -> io::Error {
    io::Error::other(format!("{} was changed while it was restored", String::from_utf8_lossy(path)))
}
