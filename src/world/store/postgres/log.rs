//! Leases of sessions in Postgres: taken, kept by a pulse, and let go.

use std::sync::Arc;

use tokio_postgres::Transaction;

use super::{
    Inner, SharedStore,
    append::{AppendOrder, PendingAppend},
    fault::Fault,
    holder,
    lease::{Claim, Lease, claim},
    lock, not_found,
    pulse::SAY_ALIVE,
};
use crate::{
    base::ids::SessionId,
    world::store::{AppendError, LockHolder, StoreError},
};

/// A log that this process may write, until another one takes it over.
#[derive(Debug)]
pub struct SharedLog {
    store: Arc<SharedStore>,
    id: SessionId,
    epoch: i64,
    from: Option<String>,
    is_lost: bool,
}

/// What became of a try to have a session.
enum HoldOutcome {
    /// `from`: who had it last, if its files are elsewhere or its processes are gone.
    Held {
        epoch: i64,
        from: Option<String>,
    },
    Missing,
    Refused(Option<LockHolder>),
    /// There is something in it already.
    Taken,
}

impl SharedStore {
    /// A new, empty log, held by us.
    ///
    /// # Errors
    /// When there is one of that name with something in it, another castor holds it, or the store does not answer.
    pub fn create(self: &Arc<Self>, id: &SessionId) -> Result<SharedLog, StoreError> {
        self.have(id, true)
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
        let found = self.wait(async move { have(&inner, &name, is_new).await })?;
        match found {
            HoldOutcome::Held { epoch, from } => {
                lock(&self.inner.open).insert(id.clone());
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
        self.query(sql, vec![Box::new(id.as_str().to_owned()), Box::new(log.epoch)]).map(|_| ())
    }
}

async fn have(inner: &Inner, id: &SessionId, is_new: bool) -> Result<HoldOutcome, Fault> {
    let mut link = inner.write.lock().await;
    let tried = try_have(inner, &mut link, id, is_new).await;
    if let Err(Fault::Passing(_)) = &tried {
        // It was idle for long, and the other end is gone: once more on a new one.
        link.drop_client();
        return try_have(inner, &mut link, id, is_new).await;
    }
    tried
}

async fn try_have(
    inner: &Inner,
    link: &mut super::link::Link,
    id: &SessionId,
    is_new: bool,
) -> Result<HoldOutcome, Fault> {
    let work = link.exclusive(&inner.target).await?.transaction().await?;
    let me = &inner.me;
    let client = lock(&me.client).clone();
    work.execute(SAY_ALIVE, &[&me.id, &me.host, &me.pid, &client]).await?;
    let found = match is_new && insert(&work, inner, id).await? {
        true => held(&work, id, None).await?,
        false => take(&work, inner, id, is_new).await?,
    };
    work.commit().await?;
    Ok(found)
}

async fn held(work: &Transaction<'_>, id: &SessionId, from: Option<String>) -> Result<HoldOutcome, Fault> {
    let row = work.query_one("select epoch from castor_sessions where id = $1", &[&id.as_str()]).await?;
    Ok(HoldOutcome::Held { epoch: row.try_get(0)?, from })
}

/// Whether there was none. A sub-agent's is made only below a session that nobody else has.
async fn insert(work: &Transaction<'_>, inner: &Inner, id: &SessionId) -> Result<bool, Fault> {
    let root = id.root();
    let sql = "insert into castor_sessions (id, root, epoch, owner, host, len, quiet, changed)
        select $1, $2, nextval('castor_epochs'), $3, $4, 0, 0, now()
        where not exists (select from castor_sessions where id = $2 and id <> $1 and owner is not null and owner <> $3)
        on conflict (id) do nothing";
    Ok(work.execute(sql, &[&id.as_str(), &root.as_str(), &inner.me.id, &inner.me.host]).await? == 1)
}

async fn take(work: &Transaction<'_>, inner: &Inner, id: &SessionId, is_new: bool) -> Result<HoldOutcome, Fault> {
    // Those of sub-agents are locked with it, in an order that is the same for all.
    let sql =
        "select id, epoch, owner, len, host from castor_sessions where id = $1 or root = $1 order by id for update";
    let rows = work.query(sql, &[&id.as_str()]).await?;
    let mut own = None;
    for row in &rows {
        if row.try_get::<_, &str>(0)? == id.as_str() {
            let lease = Lease { epoch: row.try_get(1)?, owner: row.try_get(2)?, len: row.try_get(3)? };
            own = Some((lease, row.try_get::<_, Option<String>>(4)?));
        }
    }
    let Some((lease, host)) = own else {
        return Ok(if is_new { HoldOutcome::Refused(None) } else { HoldOutcome::Missing });
    };
    let sql = "select host, pid, client, heartbeat > now() - interval '4 seconds' from castor_owners where id = $1";
    let owner = work.query_opt(sql, &[&lease.owner]).await?;
    let is_heard = owner.as_ref().map(|it| it.try_get(3)).transpose()?.unwrap_or(false);
    let is_open_here = lock(&inner.open).contains(id);
    if claim(&lease, &inner.me.id, is_heard, is_open_here) == Claim::Refuse {
        return Ok(HoldOutcome::Refused(owner.map(|it| holder(&it, 0)).transpose()?.flatten()));
    }
    if is_new && lease.len > 0 {
        return Ok(HoldOutcome::Taken);
    }
    let sql = "update castor_sessions set epoch = nextval('castor_epochs'), quiet = len, host = $3,
        owner = case when id = $1 then $2 end where id = $1 or root = $1";
    work.execute(sql, &[&id.as_str(), &inner.me.id, &inner.me.host]).await?;
    let died = owner.as_ref().map(|it| holder(it, 0)).transpose()?.flatten().filter(|it| !is_me(it, inner));
    let from = died.map(|it| it.to_string()).or(host.filter(|it| *it != inner.me.host));
    held(work, id, from).await
}

fn is_me(it: &LockHolder, inner: &Inner) -> bool {
    i64::from(it.pid) == inner.me.pid && it.host.as_ref() == Some(&inner.me.host)
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
        Ok(AppendOrder { session: self.id.clone(), epoch: self.epoch, start, lines })
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
        let (inner, id, epoch) = (self.store.inner.clone(), self.id.as_str().to_owned(), self.epoch);
        self.store.spawn(async move {
            let mut link = inner.write.lock().await;
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
