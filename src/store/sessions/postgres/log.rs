//! Leases of sessions in Postgres: taken, kept by a pulse, and let go.

use std::sync::{Arc, OnceLock};

use super::{
    SharedStore,
    append::{AppendOrder, PendingAppend},
    claims::{Claimant, HoldOutcome, have},
    fault::Fault,
    lock, not_found,
};
use crate::sessions::{AppendError, StoreError};
use castor_base::ids::SessionId;

/// A log that this process may write, until another one takes it over.
#[derive(Debug)]
pub struct SharedLog {
    store: Arc<SharedStore>,
    id: SessionId,
    /// Not set before the database has made the log.
    epoch: Arc<OnceLock<i64>>,
    from: Option<String>,
    is_lost: bool,
}

impl SharedStore {
    /// A new, empty log, held by us.
    ///
    /// # Errors
    /// When there is one of that name with something in it, another castor holds it, or the store does not answer.
    pub fn create(self: &Arc<Self>, id: &SessionId) -> Result<SharedLog, StoreError> {
        self.have(id, true)
    }

    /// As [`Self::create`], without waiting for the store: it makes the log before the first append, which fails if it
    /// cannot.
    ///
    /// # Errors
    /// When this process has one of that name open.
    pub fn begin(self: &Arc<Self>, id: &SessionId) -> Result<SharedLog, StoreError> {
        self.start_pulse();
        if !lock(&self.inner.open).insert(id.clone()) {
            return Err(StoreError::Locked { id: id.clone(), holder: None });
        }
        Ok(SharedLog { store: self.clone(), id: id.clone(), epoch: Arc::default(), from: None, is_lost: false })
    }

    /// A log, held by us from now on. Whoever held it before, and is taken for dead, can write nothing more, neither to it
    /// nor to those of its sub-agents.
    ///
    /// # Errors
    /// When there is none, its holder lives, or the store does not answer.
    pub fn hold(self: &Arc<Self>, id: &SessionId) -> Result<SharedLog, StoreError> {
        self.have(id, false)
    }

    fn have(self: &Arc<Self>, id: &SessionId, is_new: bool) -> Result<SharedLog, StoreError> {
        self.start_pulse();
        let (inner, name) = (self.inner.clone(), id.clone());
        let found = self.wait(async move {
            let is_open_here = lock(&inner.open).contains(&name);
            have(&inner, &name, Claimant { is_new, is_open_here }).await
        })?;
        match found {
            HoldOutcome::Held { epoch, from } => {
                lock(&self.inner.open).insert(id.clone());
                let epoch = Arc::new(OnceLock::from(epoch));
                Ok(SharedLog { store: self.clone(), id: id.clone(), epoch, from, is_lost: false })
            }
            HoldOutcome::Missing => Err(not_found(id)),
            HoldOutcome::Refused(holder) => Err(StoreError::Locked { id: id.clone(), holder }),
            HoldOutcome::Taken => {
                Err(StoreError::Io { id: id.clone(), source: std::io::ErrorKind::AlreadyExists.into() })
            }
        }
    }

    /// Removes a session for good, with those of its sub-agents.
    ///
    /// # Errors
    /// When there is none, or anybody has it open.
    pub fn delete(self: &Arc<Self>, id: &SessionId) -> Result<(), StoreError> {
        let log = self.hold(id)?;
        let sql = "delete from castor_sessions where (root = $1 or id = $1) and exists (
            select from castor_sessions where id = $1 and epoch = $2)";
        let epoch = log.epoch.get().copied();
        self.query(sql, vec![Box::new(id.as_str().to_owned()), Box::new(epoch)]).map(|_| ())
    }
}

impl SharedLog {
    /// Who had it last, if that is another machine or a castor that died: a process, or a machine's name.
    pub fn moved_from(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// What is to be written behind so many bytes.
    ///
    /// # Errors
    /// When the log takes nothing more.
    pub fn order(&self, start: u64, lines: Vec<u8>) -> Result<AppendOrder, AppendError> {
        if self.is_lost {
            let why = "the session is in the store as another castor left it, or as nobody knows";
            return Err(AppendError::Lost(why.to_owned()));
        }
        let start = i64::try_from(start).unwrap_or(i64::MAX);
        Ok(AppendOrder { session: self.id.clone(), epoch: self.epoch.clone(), start, lines })
    }

    pub fn start(&self, orders: Vec<AppendOrder>) -> PendingAppend {
        self.store.start(orders)
    }

    /// Not waited for: others learn a little later that nothing is under way.
    pub fn set_quiet(&self, len: u64) {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let sql = "update castor_sessions set quiet = $3 where id = $1 and epoch = $2";
        self.tell(sql, Some(len));
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub fn set_lost(&mut self) {
        self.is_lost = true;
    }

    fn tell(&self, sql: &'static str, len: Option<i64>) {
        let (inner, id, epoch) = (self.store.inner.clone(), self.id.as_str().to_owned(), self.epoch.clone());
        self.store.spawn(async move {
            let mut link = inner.leases.lock().await;
            // There is nothing to say of a log that was never made.
            let Some(epoch) = epoch.get().copied() else { return };
            let told = async {
                let client = link.client(&inner.target).await?;
                match len {
                    Some(len) => client.execute(sql, &[&id, &epoch, &len]).await?,
                    None => client.execute(sql, &[&id, &epoch]).await?,
                };
                Ok::<_, Fault>(())
            };
            if let Err(it) = told.await {
                tracing::debug!("the session store {it}");
            }
        });
    }
}

impl Drop for SharedLog {
    fn drop(&mut self) {
        lock(&self.store.inner.open).remove(&self.id);
        // After all that was ordered before; whoever asks next in this process comes behind it.
        self.tell("update castor_sessions set owner = null where id = $1 and epoch = $2", None);
    }
}
