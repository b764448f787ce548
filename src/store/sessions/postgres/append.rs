//! Appends to logs in Postgres: what waits is one statement, which takes each log's part once or not at all.
//!
//! A log that another transaction has locked is passed over and tried again: it holds up no other one.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Client;

use super::{
    Inner, SharedStore, claims,
    fault::Fault,
    lease::{Lease, Settlement, settle},
    link::{ANSWER_LIMIT, Link},
    lock,
};
use crate::sessions::{AppendError, LockHolder, chain::split_seal};
use castor_base::ids::SessionId;

/// How long a database that does not answer is waited for: it may start anew meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries; each is twice the one before, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LAST_PAUSE: Duration = Duration::from_millis(250);

/// Takes what fits: a session at this epoch, whose log is as long as its writer believes.
const APPEND: &str = "\
    with orders as (
        select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as it(session, epoch, start, added)
    ), free as (
        select s.id from castor_sessions s join orders o on o.session = s.id for no key update of s skip locked
    ), held as (
        update castor_sessions s set len = s.len + o.added, changed = now() from orders o, free
        where s.id = o.session and free.id = s.id and s.epoch = o.epoch and s.len = o.start
        returning s.id, s.root
    ), written as (
        insert into castor_entries (session, seq, line, sum)
        select l.session, l.seq, l.line, l.sum
        from unnest($5::text[], $6::bigint[], $7::text[], $8::text[]) as l(session, seq, line, sum)
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
    /// Not set before the database has made the log.
    pub epoch: Arc<OnceLock<i64>>,
    /// How long the log is before.
    pub start: i64,
    pub lines: Vec<u8>,
}

/// An order for the next statement, and its sender.
pub(super) struct QueuedAppend {
    order: Arc<AppendOrder>,
    tell: oneshot::Sender<Attempt>,
}

/// What became of a try to append.
#[derive(Clone, Debug)]
enum Attempt {
    Stored,
    /// For good.
    Failed(String),
    /// Nothing of it was written: another transaction had the log.
    Passed,
    /// Nobody knows.
    Fault(Fault),
}

/// Appends that the database has not answered yet.
#[derive(Debug)]
pub struct PendingAppend {
    told: Receiver<Vec<(SessionId, AppendError)>>,
    sessions: Vec<SessionId>,
}

impl AppendOrder {
    fn epoch(&self) -> i64 {
        // None has this one: such an order is taken by nobody.
        self.epoch.get().copied().unwrap_or(-1)
    }

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
            let stored = orders.into_iter().map(|it| store(&inner, it));
            _ = tell.send(join_all(stored).await.into_iter().flatten().collect());
            inner.stored.notify_one();
        });
        PendingAppend { told, sessions }
    }
}

/// Returns why it was not taken.
async fn store(inner: &Inner, order: AppendOrder) -> Option<(SessionId, AppendError)> {
    let deadline = Instant::now() + PATIENCE;
    let (id, mut pause) = (order.session.clone(), FIRST_PAUSE);
    // It would fail with all that are sent beside it.
    if let Err(it) = std::str::from_utf8(&order.lines) {
        return Some((id, AppendError::Unreachable(format!("takes no line that is not UTF-8: {it}"))));
    }
    let order = Arc::new(order);
    loop {
        let fault = match attempt(inner, &order).await {
            Attempt::Stored => return None,
            Attempt::Failed(why) => return Some((id, AppendError::Lost(format!("the session {why}")))),
            Attempt::Passed => Fault::Passing("has locked the session for another castor".to_owned()),
            Attempt::Fault(it) => it,
        };
        if matches!(fault, Fault::Refused(_)) || Instant::now() >= deadline {
            return Some((id, AppendError::Unreachable(fault.to_string())));
        }
        tracing::debug!("the session store {fault}; what is to be written is sent again");
        sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Puts it among those that wait, and sees to it that they are sent. Whose turn it is sends all that wait by then.
async fn attempt(inner: &Inner, order: &Arc<AppendOrder>) -> Attempt {
    if order.epoch.get().is_none() {
        match claims::make(inner, &order.session).await {
            Ok(Ok(epoch)) => _ = order.epoch.set(epoch),
            Ok(Err(why)) => return Attempt::Failed(why),
            Err(it) => return Attempt::Fault(it),
        }
    }
    let (tell, told) = oneshot::channel();
    lock(&inner.queue).push(QueuedAppend { order: order.clone(), tell });
    send_queued(inner).await;
    told.await.unwrap_or_else(|_| Attempt::Fault(Fault::Passing("ended".to_owned())))
}

async fn send_queued(inner: &Inner) {
    let mut link = inner.write.lock().await;
    let batch = std::mem::take(&mut *lock(&inner.queue));
    if batch.is_empty() {
        return;
    }
    let (orders, askers): (Vec<_>, Vec<_>) = batch.into_iter().map(|it| (it.order, it.tell)).unzip();
    let tried = timeout(ANSWER_LIMIT, try_all(inner, &mut link, &orders)).await;
    let attempts =
        tried.unwrap_or_else(|_| Err(Fault::Passing("does not answer".to_owned()))).unwrap_or_else(|fault| {
            link.drop_client();
            vec![Attempt::Fault(fault); orders.len()]
        });
    // Who asked is gone only at exit.
    askers.into_iter().zip(attempts).for_each(|(to, it)| _ = to.send(it));
}

/// What became of each.
async fn try_all(inner: &Inner, link: &mut Link, orders: &[Arc<AppendOrder>]) -> Result<Vec<Attempt>, Fault> {
    let (client, append) = link.prepared(&inner.target, APPEND).await?;
    let Columns { sessions, epochs, starts, added, of, seqs, lines, sums } = &Columns::of(orders)?;
    let rows = client.query(&append, &[sessions, epochs, starts, added, of, seqs, lines, sums]).await?;
    let taken: BTreeSet<String> = rows.iter().map(|it| it.try_get(0)).collect::<Result<_, _>>()?;
    let is_taken = |it: &AppendOrder| taken.contains(it.session.as_str());
    let ids: Vec<&str> = orders.iter().filter(|it| !is_taken(it.as_ref())).map(|it| it.session.as_str()).collect();
    let found = if ids.is_empty() { HashMap::new() } else { find(&client, &ids).await? };
    let outcome = |order: &Arc<AppendOrder>| match found.get(order.session.as_str()) {
        _ if is_taken(order) => Attempt::Stored,
        None => Attempt::Failed("was deleted by another castor".to_owned()),
        Some((lease, holder)) => match settle(lease, order.epoch(), order.start, order.added()) {
            Settlement::Stored => Attempt::Stored,
            Settlement::Again => Attempt::Passed,
            Settlement::Lost => Attempt::Failed(match holder {
                Some(it) => format!("was taken over by another castor ({it})"),
                None => "was taken over by another castor, which has closed it by now".to_owned(),
            }),
            Settlement::Broken => Attempt::Failed("has another length in the store than was written".to_owned()),
        },
    };
    Ok(orders.iter().map(outcome).collect())
}

/// Who has these sessions, and how long they are.
async fn find(client: &Client, ids: &[&str]) -> Result<HashMap<String, (Lease, Option<LockHolder>)>, Fault> {
    let mut res = HashMap::new();
    for row in client.query(FIND, &[&ids]).await? {
        let lease = Lease { epoch: row.try_get(1)?, owner: row.try_get(2)?, len: row.try_get(3)? };
        res.insert(row.try_get::<_, String>(0)?, (lease, super::holder(&row, 4)?));
    }
    Ok(res)
}

/// What the statement takes.
struct Columns<'a> {
    sessions: Vec<&'a str>,
    epochs: Vec<i64>,
    starts: Vec<i64>,
    added: Vec<i64>,
    /// Of each line: whose it is, where it begins, and the line without its checksum, which is apart.
    of: Vec<&'a str>,
    seqs: Vec<i64>,
    lines: Vec<Cow<'a, str>>,
    sums: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(orders: &'a [Arc<AppendOrder>]) -> Result<Self, Fault> {
        let mut res = Self {
            sessions: orders.iter().map(|it| it.session.as_str()).collect(),
            epochs: orders.iter().map(|it| it.epoch()).collect(),
            starts: orders.iter().map(|it| it.start).collect(),
            added: orders.iter().map(|it| it.added()).collect(),
            of: Vec::new(),
            seqs: Vec::new(),
            lines: Vec::new(),
            sums: Vec::new(),
        };
        for order in orders {
            let mut seq = order.start;
            for whole in order.lines.split_inclusive(|it| *it == b'\n') {
                let line = std::str::from_utf8(whole.strip_suffix(b"\n").unwrap_or(whole));
                let line = line.map_err(|it| Fault::Refused(format!("takes no line that is not UTF-8: {it}")))?;
                let (line, sum) = split_seal(line);
                res.of.push(order.session.as_str());
                res.seqs.push(seq);
                res.lines.push(line);
                res.sums.push(sum);
                seq += i64::try_from(whole.len()).unwrap_or(i64::MAX);
            }
        }
        Ok(res)
    }
}
