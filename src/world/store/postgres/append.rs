//! Appends to logs in Postgres: those of a loop turn are one statement, which is taken once or not at all.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use super::{
    Inner, SharedStore,
    fault::Fault,
    lease::{Lease, Settlement, settle},
    link::ANSWER_LIMIT,
};
use crate::{base::ids::SessionId, world::store::AppendError};

/// How long a database that does not answer is waited for: it may start anew meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Takes what fits: a session at this epoch, whose log is as long as its writer believes.
const APPEND: &str = "\
    with orders as (
        select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as it(session, epoch, start, added)
    ), held as (
        update castor_sessions s set len = s.len + o.added, changed = now() from orders o
        where s.id = o.session and s.epoch = o.epoch and s.len = o.start
        returning s.id, s.root
    ), written as (
        insert into castor_entries (session, seq, line)
        select l.session, l.seq, l.line from unnest($5::text[], $6::bigint[], $7::text[]) as l(session, seq, line)
        join held on held.id = l.session
    )
    select id, pg_notify('castor_news', root) from held";
const FIND: &str = "\
    select s.id, s.epoch, s.owner, s.len, o.host, o.pid, o.client
    from castor_sessions s left join castor_owners o on o.id = s.owner where s.id = any($1)";

/// Whole lines for the end of a log.
#[derive(Clone, Debug)]
pub struct AppendOrder {
    pub session: SessionId,
    pub epoch: i64,
    /// How long the log is before.
    pub start: i64,
    pub lines: Vec<u8>,
}

/// Appends that the database has not answered yet.
#[derive(Debug)]
pub struct PendingAppend {
    told: Receiver<Vec<(SessionId, AppendError)>>,
    sessions: Vec<SessionId>,
}

impl AppendOrder {
    fn added(&self) -> i64 {
        i64::try_from(self.lines.len()).unwrap_or(i64::MAX)
    }
}

impl PendingAppend {
    /// The logs that did not take it, and why; `None`: not known within this time.
    pub fn within(&mut self, limit: Duration) -> Option<Vec<(SessionId, AppendError)>> {
        match self.told.recv_timeout(limit) {
            Ok(it) => Some(it),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(self.forgotten()),
        }
    }

    /// As [`Self::within`], however long it takes.
    pub fn wait(&mut self) -> Vec<(SessionId, AppendError)> {
        self.told.recv().unwrap_or_else(|_| self.forgotten())
    }

    fn forgotten(&self) -> Vec<(SessionId, AppendError)> {
        let why = || AppendError::Unreachable("ended".to_owned());
        self.sessions.iter().map(|it| (it.clone(), why())).collect()
    }
}

impl SharedStore {
    /// Begins to write; orders of one session one after the other.
    pub fn start(&self, orders: Vec<AppendOrder>) -> PendingAppend {
        let sessions = orders.iter().map(|it| it.session.clone()).collect();
        let (tell, told) = channel();
        let inner = self.inner.clone();
        self.spawn(async move {
            _ = tell.send(store(&inner, orders).await);
            inner.stored.notify_one();
        });
        PendingAppend { told, sessions }
    }
}

/// Returns what was not taken.
async fn store(inner: &Arc<Inner>, mut orders: Vec<AppendOrder>) -> Vec<(SessionId, AppendError)> {
    let mut failed = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let mut link = inner.write.lock().await;
    loop {
        let tried = timeout(ANSWER_LIMIT, try_all(inner, &mut link, &mut orders, &mut failed)).await;
        let fault = match tried {
            Ok(Ok(())) if orders.is_empty() => return failed,
            // Nobody else can have changed them: what is left is sent again.
            Ok(Ok(())) => Fault::Passing("took none of it".to_owned()),
            Ok(Err(it)) => it,
            Err(_) => Fault::Passing("does not answer".to_owned()),
        };
        link.drop_client();
        if matches!(fault, Fault::Refused(_)) || Instant::now() >= deadline {
            let why = || AppendError::Unreachable(fault.to_string());
            failed.extend(orders.drain(..).map(|it| (it.session, why())));
            return failed;
        }
        tracing::debug!("the session store {fault}; what is to be written is sent again");
        sleep(PAUSE).await;
    }
}

/// Removes from `orders` what is settled.
async fn try_all(
    inner: &Inner,
    link: &mut super::link::Link,
    orders: &mut Vec<AppendOrder>,
    failed: &mut Vec<(SessionId, AppendError)>,
) -> Result<(), Fault> {
    let (client, append) = link.prepared(&inner.target, APPEND).await?;
    let columns = Columns::of(orders)?;
    let Columns { sessions, epochs, starts, added, of, seqs, lines } = &columns;
    let rows = client.query(&append, &[sessions, epochs, starts, added, of, seqs, lines]).await?;
    let taken: BTreeSet<String> = rows.iter().map(|it| it.try_get(0)).collect::<Result<_, _>>()?;
    drop(columns);
    orders.retain(|it| !taken.contains(it.session.as_str()));
    if orders.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = orders.iter().map(|it| it.session.as_str()).collect();
    let rows = client.query(FIND, &[&ids]).await?;
    let mut found = HashMap::new();
    for row in rows {
        let lease = Lease { epoch: row.try_get(1)?, owner: row.try_get(2)?, len: row.try_get(3)? };
        found.insert(row.try_get::<_, String>(0)?, (lease, super::holder(&row, 4)?));
    }
    orders.retain(|order| {
        let why = match found.get(order.session.as_str()) {
            None => "was deleted by another castor".to_owned(),
            Some((lease, holder)) => match settle(lease, order.epoch, order.start, order.added()) {
                Settlement::Stored => return false,
                Settlement::Again => return true,
                Settlement::Lost => match holder {
                    Some(it) => format!("was taken over by another castor ({it})"),
                    None => "was taken over by another castor, which has closed it by now".to_owned(),
                },
                Settlement::Broken => "has another length in the store than was written".to_owned(),
            },
        };
        failed.push((order.session.clone(), AppendError::Lost(format!("the session {why}"))));
        false
    });
    Ok(())
}

/// What the statement takes.
struct Columns<'a> {
    sessions: Vec<&'a str>,
    epochs: Vec<i64>,
    starts: Vec<i64>,
    added: Vec<i64>,
    /// Of each line: whose it is, where it begins, and the line.
    of: Vec<&'a str>,
    seqs: Vec<i64>,
    lines: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(orders: &'a [AppendOrder]) -> Result<Self, Fault> {
        let mut res = Self {
            sessions: orders.iter().map(|it| it.session.as_str()).collect(),
            epochs: orders.iter().map(|it| it.epoch).collect(),
            starts: orders.iter().map(|it| it.start).collect(),
            added: orders.iter().map(AppendOrder::added).collect(),
            of: Vec::new(),
            seqs: Vec::new(),
            lines: Vec::new(),
        };
        for order in orders {
            let mut seq = order.start;
            for whole in order.lines.split_inclusive(|it| *it == b'\n') {
                let line = std::str::from_utf8(whole.strip_suffix(b"\n").unwrap_or(whole));
                res.of.push(order.session.as_str());
                res.seqs.push(seq);
                res.lines.push(line.map_err(|it| Fault::Refused(format!("takes no line that is not UTF-8: {it}")))?);
                seq += i64::try_from(whole.len()).unwrap_or(i64::MAX);
            }
        }
        Ok(res)
    }
}
