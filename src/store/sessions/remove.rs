//! Session deletion: on the user's command, or by age and number.

use std::io::ErrorKind;

use crate::sessions::{SessionStore, StoreError, io_error, log_end, session_lock};
use castor_base::{ids::SessionId, path::AbsPath};
use castor_hands::disk;

/// Limits on the age and number of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRetention {
    /// Since the last change, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// The newest so many.
    pub max_count: Option<usize>,
    /// What is younger than this is never swept as a leftover, in milliseconds.
    pub min_age_ms: u64,
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSweep {
    pub sessions: Vec<SessionId>,
    /// Folders with long outputs, and notes, of sessions that are gone.
    pub n_leftovers: usize,
}

/// How long temporary files stay after their session was closed.
const MAX_TMP_AGE_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

impl SessionStore {
    /// Removes a session for good: its log, copies of it, and the files of its tools.
    ///
    /// # Errors
    /// When there is none, when a process has it open, this one included, or when the disk refuses.
    pub fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let path = self.log_path(id)?;
        if let Some(it) = &self.shared {
            it.delete(id)?;
            self.remove_rest(id);
            return Ok(());
        }
        let file = disk::open_append(&path).map_err(|it| io_error(id, it))?;
        session_lock::lock_file(id, &file, &self.note_path(id))?;
        disk::remove_file(&path).map_err(|it| io_error(id, it))?;
        // Without its log the session is gone: what of it cannot be removed now, a sweep will.
        self.remove_rest(id);
        Ok(())
    }

    /// Where a session's tools keep what is too long for the model.
    pub fn scratch_dir(&self, id: &SessionId) -> AbsPath {
        self.scratch_root().join(id.as_str())
    }

    /// The folder for temporary files of a session's commands and file tools, which they see as `/tmp`.
    pub fn tmp_dir(&self, id: &SessionId) -> AbsPath {
        self.scratch_dir(id).join("tmp")
    }

    /// Removes temporary files of sessions that were closed a week ago, or earlier; of how many.
    pub fn sweep_temporary(&self, now_ms: u64) -> usize {
        let entries = disk::read_dir(&self.scratch_root()).unwrap_or_default().into_iter().filter(|it| it.is_dir);
        let ids = entries.map(|it| SessionId::from(it.name)).filter(SessionId::is_safe);
        ids.filter(|id| self.is_long_closed(id, now_ms) && disk::remove_tree(&self.tmp_dir(id)).is_ok()).count()
    }

    /// Nobody has it open, and nothing of it changed for a week. What a shared store has says no time here: its folders do.
    fn is_long_closed(&self, id: &SessionId, now_ms: u64) -> bool {
        let changed_ms = |path: &AbsPath| disk::metadata(path).ok().map(|it| it.modified_ms);
        let Some(made_ms) = changed_ms(&self.tmp_dir(id)) else { return false };
        let log = self.log_path(id).ok().filter(|_| self.shared.is_none());
        let last = log.as_ref().and_then(changed_ms).into_iter().chain([made_ms]).max().unwrap_or(now_ms);
        let file = || log.and_then(|it| disk::open_append(&it).ok());
        let is_closed = || file().is_none_or(|it| session_lock::lock_file(id, &it, &self.note_path(id)).is_ok());
        now_ms.saturating_sub(last) > MAX_TMP_AGE_MS && is_closed()
    }

    /// Removes what is older or more than `keep` says. Logs that any process has open stay, whatever their age. What a
    /// shared store has is not one machine's to sweep.
    pub fn sweep(&self, keep: &SessionRetention, now_ms: u64) -> SessionSweep {
        if self.shared.is_some() {
            return SessionSweep::default();
        }
        let mut logs: Vec<(u64, SessionId)> = self.logs();
        logs.sort_by(|a, b| b.cmp(a));
        let mut res = SessionSweep::default();
        for (rank, (changed_ms, id)) in logs.into_iter().enumerate() {
            let too_old = keep.max_age_ms.is_some_and(|it| now_ms.saturating_sub(changed_ms) > it);
            let too_many = keep.max_count.is_some_and(|it| rank >= it);
            if !too_old && !too_many {
                continue;
            }
            match self.delete(&id) {
                Ok(()) => res.sessions.push(id),
                Err(StoreError::Locked { .. } | StoreError::NotFound { .. }) => (),
                Err(it) => tracing::warn!("{it}"),
            }
        }
        res.n_leftovers = self.sweep_leftovers(keep.min_age_ms, now_ms);
        res
    }

    fn logs(&self) -> Vec<(u64, SessionId)> {
        let folder = self.folder();
        let files = disk::read_dir(&folder).unwrap_or_default();
        let dated = files.into_iter().filter_map(|it| {
            let id = SessionId::from(it.name.strip_suffix(".jsonl")?);
            let changed = disk::metadata(&folder.join(&it.name)).ok()?.modified_ms;
            id.is_safe().then_some((changed, id))
        });
        dated.collect()
    }

    /// Folders in `tmp` that bear the name of a session that is not there. A session's log is made before its folder.
    fn sweep_leftovers(&self, min_age_ms: u64, now_ms: u64) -> usize {
        let folder = self.scratch_root();
        let mut n = 0;
        for entry in disk::read_dir(&folder).unwrap_or_default().into_iter().filter(|it| it.is_dir) {
            let id = SessionId::from(entry.name);
            let Ok(log) = self.log_path(&id) else { continue };
            let gone = disk::metadata(&log).is_err_and(|it| it.kind() == ErrorKind::NotFound);
            let changed_ms = disk::metadata(&folder.join(id.as_str())).map_or(now_ms, |it| it.modified_ms);
            if gone && now_ms.saturating_sub(changed_ms) > min_age_ms {
                self.remove_rest(&id);
                n += 1;
            }
        }
        n
    }

    fn remove_rest(&self, id: &SessionId) {
        let prefix = format!("{id}.jsonl.");
        let folder = self.folder();
        let files = disk::read_dir(&folder).unwrap_or_default();
        let copies = files.iter().filter(|it| it.name.starts_with(&prefix)).map(|it| folder.join(&it.name));
        let results = copies
            .chain([self.note_path(id), self.metadata_path(id), self.end_path(id)])
            .map(|it| disk::remove_file(&it));
        let below = [self.folder(), self.home().join(log_end::FOLDER)].map(|it| it.join(id.as_str()));
        let trees = below.iter().chain([&self.scratch_dir(id)]).map(disk::remove_tree).collect::<Vec<_>>();
        for it in results.chain(trees) {
            match it {
                Err(it) if it.kind() != ErrorKind::NotFound => tracing::warn!("a rest of session {id}: {it}"),
                _ => (),
            }
        }
    }

    fn scratch_root(&self) -> AbsPath {
        self.home().join("tmp")
    }
}
