//! Stores that several castors share: their address, what is asked of them beyond what files can do, and copies both ways.

use std::{fmt, sync::Arc};

use serde::de::IgnoredAny;
use tokio::sync::Notify;

use super::{
    AppendOrder, PendingAppend, SessionStore, StoreError, chain::without_nul, io_error, postgres::SharedStore,
};
use castor_base::{ids::SessionId, path::AbsPath};
use castor_hands::disk;

/// How long a watched session in a shared store may be without a look, in milliseconds: nobody tells of a holder that died.
const MAX_UNSEEN_MS: u64 = 1000;

/// Where sessions are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// Below castor's own folder.
    Files,
    /// The address may hold a password; else `password` counts.
    Postgres { url: String, password: Option<String> },
}

/// Until where a watcher of a session has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewsMark {
    seen: u64,
    at_ms: u64,
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    New,
    /// It is there already, with these lines and perhaps more.
    Exists,
    /// Another session of this id is there.
    Conflict,
}

impl StoreAddress {
    /// `password`: for an address that has none.
    ///
    /// # Errors
    /// What it should be, without a word of what it is.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, String> {
        match text {
            "files" => Ok(Self::Files),
            it if it.starts_with("postgres://") || it.starts_with("postgresql://") => {
                Ok(Self::Postgres { url: it.to_owned(), password: password.map(str::to_owned) })
            }
            _ => Err("a session store is files, or postgres://USER@HOST/DATABASE".to_owned()),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Files { "files" } else { "postgres" })
    }
}

impl SessionStore {
    /// The store at an address. A database is asked at once, and its tables are made or brought up to date.
    ///
    /// # Errors
    /// When it cannot be reached, or a newer castor made its tables.
    pub fn at(home: AbsPath, address: &StoreAddress) -> Result<Self, StoreError> {
        let shared = match address {
            StoreAddress::Files => None,
            StoreAddress::Postgres { url, password } => Some(Arc::new(SharedStore::connect(url, password.as_deref())?)),
        };
        Ok(Self { shared, ..Self::new(home) })
    }

    /// Tells whether other machines have it, too.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Woken when what [`Self::start_appends`] began is done; `None`: files need no waiting.
    pub fn stored(&self) -> Option<Arc<Notify>> {
        self.shared.as_ref().map(|it| it.stored())
    }

    /// Lets the shared store take what logs ordered.
    pub fn start_appends(&self, orders: Vec<AppendOrder>) -> Option<PendingAppend> {
        self.shared.as_ref().filter(|_| !orders.is_empty()).map(|it| it.start(orders))
    }

    /// Tells whether there may be something new in a session since `mark`, which is then now.
    pub fn has_news(&self, id: &SessionId, mark: &mut NewsMark, now_ms: u64) -> bool {
        let Some(shared) = &self.shared else { return true };
        let seen = shared.news(id);
        if seen == mark.seen && now_ms.saturating_sub(mark.at_ms) < MAX_UNSEEN_MS {
            return false;
        }
        *mark = NewsMark { seen, at_ms: now_ms };
        true
    }

    /// Lets go of all that this process holds in a shared store.
    pub fn leave(&self) {
        if let Some(it) = &self.shared {
            it.leave();
        }
    }

    /// Copies a session and its sub-agents into another store, line by line. What is there already stays.
    ///
    /// # Errors
    /// When one of the two stores fails, or somebody is at work in the session.
    pub fn copy_to(&self, target: &Self, id: &SessionId) -> Result<CopyOutcome, StoreError> {
        // Nobody writes it meanwhile.
        let _held = self.hold(id)?;
        let outcome = self.copy_log(target, id)?;
        if outcome == CopyOutcome::New {
            self.copy_metadata(target, id)?;
        }
        if outcome != CopyOutcome::Conflict {
            for child in self.children(id) {
                self.copy_log(target, &child)?;
            }
        }
        Ok(outcome)
    }

    fn copy_log(&self, target: &Self, id: &SessionId) -> Result<CopyOutcome, StoreError> {
        let lines = self.whole_lines(id)?;
        match target.whole_lines(id) {
            Ok(known) if known.starts_with(&lines) => return Ok(CopyOutcome::Exists),
            Ok(_) => return Ok(CopyOutcome::Conflict),
            Err(StoreError::NotFound { .. }) => (),
            Err(it) => return Err(it),
        }
        let mut log = target.create(id)?;
        let written = log.append_lines(&lines).and_then(|()| log.sync());
        drop(log);
        written.map_err(|source| StoreError::Io { id: id.clone(), source }).inspect_err(|_| _ = target.delete(id))?;
        Ok(CopyOutcome::New)
    }

    /// The lines of a log that are lines, also those of a newer castor.
    fn whole_lines(&self, id: &SessionId) -> Result<Vec<u8>, StoreError> {
        let path = self.log_path(id)?;
        let bytes = match &self.shared {
            Some(it) => it.read(id, 0..u64::MAX)?,
            None => disk::read(&path).map_err(|it| io_error(id, it))?,
        };
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |it| it + 1);
        let lines = bytes.get(..whole).unwrap_or_default().split(|it| *it == b'\n').map(without_nul);
        let mut res = Vec::with_capacity(whole);
        for line in lines.filter(|it| serde_json::from_slice::<IgnoredAny>(it).is_ok()) {
            res.extend_from_slice(line);
            res.push(b'\n');
        }
        Ok(res)
    }
}
