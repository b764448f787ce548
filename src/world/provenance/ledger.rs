//! The record's files in a root's store: read, brought up to date with each delta, and written whole.

use std::io;

use super::{ChangeAuthor, ContentHash, PathBytes, Step, book::Book, book::Pages, filter::HashFilter};
use crate::{
    base::{
        ids::{CheckpointId, SessionId},
        path::AbsPath,
    },
    world::disk::{dirfd::DirFd, frame::frame, frame::unframe, hash_of},
};

const BOOK: &[u8] = b"provenance";
const PAST: &[u8] = b"provenance.past";
const DAMAGED: &str = "castor's record of what agents wrote here was damaged";
const DROPPED: &str = "castor's record of what agents wrote here lacks a part";

/// The record as one castor has it. The holder of the root's lock changes it.
#[derive(Default)]
pub struct Ledger {
    pub book: Book,
    /// What comes is a restore of the user's.
    pub is_restore: bool,
    past: HashFilter,
    /// Of the file that was read or written last.
    mark: Option<(u64, i64, i64, u64)>,
    is_changed: bool,
}

impl Ledger {
    /// Reads it, where another castor wrote it since.
    pub fn refresh(&mut self, dir: &DirFd) -> io::Result<()> {
        let mark = mark(dir)?;
        if mark == self.mark {
            return Ok(());
        }
        *self = Self { mark, ..Self::default() };
        if let Some(bytes) = dir.read(BOOK)? {
            match unframe(&bytes) {
                Some((book, _)) => self.book = book,
                None => self.lose(DAMAGED),
            }
        }
        match dir.read(PAST)?.map(|it| unframe(&it).map(|it| it.0)) {
            Some(Some(it)) => self.past = it,
            Some(None) => self.lose(DAMAGED),
            None => (),
        }
        Ok(())
    }

    /// What cannot be known counts as unseen.
    fn lose(&mut self, why: &str) {
        self.pages(&|_| None).add_whole(b"", &"".into(), &"".into());
        (self.book.lost, self.is_changed) = (Some(why.to_owned()), true);
    }

    fn pages<'a>(&'a mut self, contents: super::book::ContentReader<'a>) -> Pages<'a> {
        Pages { book: &mut self.book, past: &mut self.past, contents }
    }

    /// Takes in a delta of the checkpoints' log.
    pub fn apply(
        &mut self,
        seq: u64,
        author: ChangeAuthor,
        steps: &[Step],
        contents: &dyn Fn(&ContentHash) -> Option<Vec<u8>>,
    ) {
        if seq <= self.book.seq {
            return;
        }
        if seq > self.book.seq + 1 {
            self.lose(DROPPED);
        }
        self.pages(contents).apply(author, steps);
        (self.book.seq, self.is_changed) = (seq, true);
    }

    /// All deltas up to there were taken in, as far as there are any.
    pub fn finish(&mut self, seq: u64) {
        if self.book.seq < seq {
            self.lose(DROPPED);
            self.book.seq = seq;
        }
    }

    /// A command may write what checkpoints do not hold.
    pub fn add_built<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a PathBytes>,
        session: &SessionId,
        call: &CheckpointId,
    ) {
        for path in paths.filter(|it| !self.book.entries.contains_key(*it)).collect::<Vec<_>>() {
            self.pages(&|_| None).add_whole(path, session, call);
            self.is_changed = true;
        }
    }

    /// A session opens a root that no other has open: what the person committed meanwhile, they looked at.
    pub fn begin(&mut self, root: &AbsPath, contents: &dyn Fn(&ContentHash) -> Option<Vec<u8>>) {
        self.look_at_commits(contents);
        self.book.commits.begin(root);
        self.is_changed = true;
    }

    pub fn look_at_commits(&mut self, contents: &dyn Fn(&ContentHash) -> Option<Vec<u8>>) {
        let left = self.book.entries.iter().filter_map(|(path, it)| Some((path, it.hash()?)));
        for (path, hash) in self.book.commits.looked(left, contents) {
            self.look(&path, &hash, None, contents);
        }
    }

    /// The last session that had the root open closes it.
    pub fn end(&mut self, root: &AbsPath) {
        self.book.commits.end(root);
        self.is_changed = true;
    }

    pub fn look(
        &mut self,
        path: &[u8],
        hash: &ContentHash,
        shown: Option<&super::lines::LineSet>,
        contents: &dyn Fn(&ContentHash) -> Option<Vec<u8>>,
    ) -> bool {
        let done = self.pages(contents).look(path, hash, shown);
        self.is_changed |= done;
        done
    }

    /// A person answers for all that is there, and below.
    pub fn look_at_whole(&mut self, path: &[u8]) -> bool {
        let done = self.book.entries.remove(path).is_some();
        if done && path.is_empty() {
            self.book.lost = None;
        }
        self.is_changed |= done;
        done
    }

    pub fn save(&mut self, dir: &DirFd) -> io::Result<()> {
        // The hashes first: what they have too much is unseen.
        if std::mem::take(&mut self.past.is_changed) {
            dir.replace(PAST, &frame(&self.past)?, false)?;
        }
        if std::mem::take(&mut self.is_changed) {
            dir.replace(BOOK, &frame(&self.book)?, false)?;
            self.mark = mark(dir)?;
        }
        Ok(())
    }
}

fn mark(dir: &DirFd) -> io::Result<Option<(u64, i64, i64, u64)>> {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // The types differ between systems.
    let mark =
        |it: rustix::fs::Stat| (it.st_ino as u64, it.st_mtime as i64, it.st_mtime_nsec as i64, it.st_size as u64);
    Ok(dir.stat(BOOK)?.map(mark))
}

/// A content of a store, if it is what its name says.
pub fn content(store: &DirFd, hash: &ContentHash) -> Option<Vec<u8>> {
    let name = format!("blobs/{}", crate::world::disk::hex(hash));
    store.read(name.as_bytes()).ok()?.filter(|it| hash_of(it) == *hash)
}

/// Removes a store, but for the record of what nobody looked at.
///
/// # Errors
/// When it cannot be read or removed.
pub fn remove_store(all: &DirFd, name: &[u8]) -> io::Result<()> {
    let mut ledger = Ledger::default();
    let dir = crate::world::disk::dirfd::if_exists(all.open_dir(name))?.map(DirFd::from);
    dir.iter().try_for_each(|it| ledger.refresh(it))?;
    let Some(dir) = dir.filter(|_| !ledger.book.entries.is_empty()) else { return all.remove_tree(name) };
    // The next log begins anew.
    (ledger.book.seq, ledger.is_changed) = (0, true);
    ledger.save(&dir)?;
    let kept: [&[u8]; 4] = [BOOK, PAST, b"root", b"lock"];
    dir.list(b"")?.iter().filter(|it| !kept.contains(&&***it)).try_for_each(|it| dir.remove_tree(it))
}
