//! Claims of sessions: transactions that take one from an owner that is silent, or make one.

use tokio::time::timeout;
use tokio_postgres::Transaction;

use super::{
    Inner,
    fault::Fault,
    holder,
    lease::{Claim, Lease, claim},
    link::{ANSWER_LIMIT, Link},
    lock,
    pulse::{HEARD, SAY_ALIVE},
};
use crate::sessions::LockHolder;
use castor_base::ids::SessionId;

/// What became of a try to have a session.
pub enum HoldOutcome {
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

/// For what a session is claimed.
#[derive(Clone, Copy)]
pub struct Claimant {
    /// For a log that is not there yet.
    pub is_new: bool,
    /// This process has it open.
    pub is_open_here: bool,
}

/// Makes a log that this process has open without it. Its epoch, or what follows "the session".
pub async fn make(inner: &Inner, id: &SessionId) -> Result<Result<i64, String>, Fault> {
    let made = timeout(ANSWER_LIMIT, have(inner, id, Claimant { is_new: true, is_open_here: false })).await;
    Ok(match made.unwrap_or_else(|_| Err(Fault::Passing("does not answer".to_owned())))? {
        HoldOutcome::Held { epoch, .. } => Ok(epoch),
        HoldOutcome::Refused(Some(it)) => Err(format!("is open in another castor ({it})")),
        HoldOutcome::Refused(None) | HoldOutcome::Missing => Err("is below one that another castor has".to_owned()),
        HoldOutcome::Taken => Err("is in the store already; take another id, or load that one".to_owned()),
    })
}

pub async fn have(inner: &Inner, id: &SessionId, claimant: Claimant) -> Result<HoldOutcome, Fault> {
    let mut link = inner.leases.lock().await;
    let tried = try_have(inner, &mut link, id, claimant).await;
    if let Err(Fault::Passing(_)) = &tried {
        // It was idle for long, and the other end is gone: once more on a new one.
        link.drop_client();
        return try_have(inner, &mut link, id, claimant).await;
    }
    tried
}

async fn try_have(inner: &Inner, link: &mut Link, id: &SessionId, claimant: Claimant) -> Result<HoldOutcome, Fault> {
    let work = link.exclusive(&inner.target).await?.transaction().await?;
    let me = &inner.me;
    let client = lock(&me.client).clone();
    // Whoever has locked the session for longer holds up no other one.
    work.batch_execute("set local lock_timeout = '2s'").await?;
    work.execute(SAY_ALIVE, &[&me.id, &me.host, &me.pid, &client]).await?;
    let found = match claimant.is_new && insert(&work, inner, id).await? {
        true => held(&work, id, None).await?,
        false => take(&work, inner, id, claimant).await?,
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

async fn take(
    work: &Transaction<'_>,
    inner: &Inner,
    id: &SessionId,
    Claimant { is_new, is_open_here }: Claimant,
) -> Result<HoldOutcome, Fault> {
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
    let sql = format!("select host, pid, client, {HEARD} from castor_owners where id = $1");
    let owner = work.query_opt(&sql, &[&lease.owner]).await?;
    let is_heard = owner.as_ref().map(|it| it.try_get(3)).transpose()?.unwrap_or(false);
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
