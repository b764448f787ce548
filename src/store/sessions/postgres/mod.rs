//! The session store on Postgres: a row for each line of a log, and for each session a lease with an epoch.
//!
//! Its own thread talks to the database. Whoever asks it waits, but for appends of the loop, which are answered later.

mod append;
mod claims;
mod fault;
mod lease;
mod link;
mod log;
mod migrations;
mod pulse;
mod tls;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicBool, mpsc::channel},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    time::timeout,
};
use tokio_postgres::{Row, types::ToSql};

use self::{
    append::QueuedAppend,
    fault::Fault,
    link::{ANSWER_LIMIT, Link, Target},
};
use super::{LockHolder, StoreError, chain::join_seal, shared_row::SharedRow};
use castor_base::ids::SessionId;

pub use self::{
    append::{AppendOrder, PendingAppend},
    log::SharedLog,
};

/// How long the end of a process waits for the database.
const LEAVE_LIMIT: Duration = Duration::from_millis(500);
/// Sessions whose heads are read with one question.
const HEADS_AT_A_TIME: usize = 200;
/// A session and whether somebody is at work in it; `$1` is what follows.
const ROW: &str = "\
    select s.id, s.len, (extract(epoch from s.changed) * 1000)::bigint, s.metadata,
        s.quiet < s.len and exists (
            select from castor_owners o where o.id = s.owner and o.heartbeat > now() - interval '4 seconds')
    from castor_sessions s";

#[derive(Debug)]
pub struct SharedStore {
    inner: Arc<Inner>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

struct Inner {
    target: Target,
    me: Owner,
    /// Appends for the next statement.
    queue: Mutex<Vec<QueuedAppend>>,
    write: tokio::sync::Mutex<Link>,
    leases: tokio::sync::Mutex<Link>,
    read: tokio::sync::Mutex<Link>,
    /// Sessions that are open in this process.
    open: Mutex<BTreeSet<SessionId>>,
    news: Mutex<News>,
    stored: Arc<Notify>,
    has_pulse: OnceLock<()>,
    is_silent: AtomicBool,
}

/// This process, as the database knows it.
struct Owner {
    id: String,
    host: String,
    pid: i64,
    client: Mutex<Option<String>>,
}

/// How often something changed in the sessions that are watched.
#[derive(Default)]
struct News {
    watched: BTreeMap<String, u64>,
    /// Notifications may have been missed so often.
    n_gaps: u64,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("me", &self.me.id).finish_non_exhaustive()
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedStore {
    /// # Errors
    /// When the address cannot be understood, the database cannot be reached, or a newer castor made its tables.
    pub fn connect(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        let target = Target::new(url, password).map_err(shared_error)?;
        let built = Builder::new_multi_thread().worker_threads(1).thread_name("castor-store").enable_all().build();
        let runtime = built.map_err(|it| StoreError::Shared(format!("has no thread: {it}")))?;
        let me = Owner {
            id: uuid::Uuid::now_v7().to_string(),
            host: nix::unistd::gethostname().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default(),
            pid: i64::from(std::process::id()),
            client: Mutex::default(),
        };
        let inner = Inner {
            target,
            me,
            queue: Mutex::default(),
            write: tokio::sync::Mutex::default(),
            leases: tokio::sync::Mutex::default(),
            read: tokio::sync::Mutex::default(),
            open: Mutex::default(),
            news: Mutex::default(),
            stored: Arc::default(),
            has_pulse: OnceLock::new(),
            is_silent: AtomicBool::new(false),
        };
        let res = Self { inner: Arc::new(inner), runtime: Some(runtime) };
        res.query("select", Vec::new())?;
        Ok(res)
    }

    /// For the sessions that it opens from now on.
    pub fn set_client(&self, client: Option<String>) {
        *lock(&self.inner.me.client) = client;
    }

    /// The lines that begin in these bytes of a log.
    pub fn read(&self, id: &SessionId, part: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let (name, missing) = (id.as_str().to_owned(), not_found(id));
        let [from, to] = [part.start, part.end].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
        let sql = "select line, sum from castor_entries where session = $1 and seq >= $2 and seq < $3 order by seq";
        let rows = self.query(sql, vec![Box::new(name), Box::new(from), Box::new(to)])?;
        let mut res = Vec::new();
        for row in &rows {
            res.extend_from_slice(join_seal(column(row, 0)?, column(row, 1)?).as_bytes());
            res.push(b'\n');
        }
        match res.is_empty() {
            // It may be empty, or none.
            true => {
                self.row(id).map(|_| res).map_err(|it| if let StoreError::NotFound { .. } = it { missing } else { it })
            }
            false => Ok(res),
        }
    }

    /// # Errors
    /// When there is no such session.
    pub fn row(&self, id: &SessionId) -> Result<SharedRow, StoreError> {
        let rows = self.query(&format!("{ROW} where s.id = $1"), vec![Box::new(id.as_str().to_owned())])?;
        shared_row(rows.first().ok_or_else(|| not_found(id))?)
    }

    /// All sessions without those of sub-agents.
    pub fn rows(&self) -> Result<Vec<SharedRow>, StoreError> {
        self.query(&format!("{ROW} where s.id = s.root"), Vec::new())?.iter().map(shared_row).collect()
    }

    /// The lines that begin in the first so many bytes of these logs.
    pub fn heads(&self, ids: &[SessionId], end: u64) -> Result<HashMap<SessionId, Vec<u8>>, StoreError> {
        let sql = "select session, line from castor_entries where session = any($1) and seq < $2 order by session, seq";
        let mut res: HashMap<SessionId, Vec<u8>> = ids.iter().map(|it| (it.clone(), Vec::new())).collect();
        for some in ids.chunks(HEADS_AT_A_TIME) {
            let names: Vec<String> = some.iter().map(|it| it.as_str().to_owned()).collect();
            let end = i64::try_from(end).unwrap_or(i64::MAX);
            for row in &self.query(sql, vec![Box::new(names), Box::new(end)])? {
                let head = res.entry(SessionId::from(column::<&str>(row, 0)?)).or_default();
                head.extend_from_slice(column::<&str>(row, 1)?.as_bytes());
                head.push(b'\n');
            }
        }
        Ok(res)
    }

    /// The sessions of the sub-agents below a session, by name.
    pub fn children(&self, id: &SessionId) -> Vec<SessionId> {
        let sql = "select id from castor_sessions where root = $1 and id <> $1";
        let rows = self.query(sql, vec![Box::new(id.as_str().to_owned())]).unwrap_or_default();
        let mut res: Vec<SessionId> = rows.iter().filter_map(|it| column::<&str>(it, 0).ok().map(Into::into)).collect();
        res.sort();
        res
    }

    /// The caller holds the session.
    pub fn set_metadata(&self, id: &SessionId, text: &[u8]) -> Result<(), StoreError> {
        let text = String::from_utf8_lossy(text).into_owned();
        let sql = "update castor_sessions set metadata = $2 where id = $1 returning id";
        let rows = self.query(sql, vec![Box::new(id.as_str().to_owned()), Box::new(text)])?;
        if rows.is_empty() { Err(not_found(id)) } else { Ok(()) }
    }

    /// A number that is another one when something may have changed in a session or its sub-agents.
    pub fn news(&self, id: &SessionId) -> u64 {
        self.start_pulse();
        let mut news = lock(&self.inner.news);
        let n_gaps = news.n_gaps;
        n_gaps + *news.watched.entry(id.root().as_str().to_owned()).or_default()
    }

    /// Woken when appends were answered.
    pub fn stored(&self) -> Arc<Notify> {
        self.inner.stored.clone()
    }

    /// Lets go of everything, if the database answers soon.
    pub fn leave(&self) {
        let inner = self.inner.clone();
        let work = async move {
            let mut link = inner.leases.lock().await;
            let client = link.client(&inner.target).await?;
            client.execute("update castor_sessions set owner = null where owner = $1", &[&inner.me.id]).await?;
            client.execute("delete from castor_owners where id = $1", &[&inner.me.id]).await?;
            Ok(())
        };
        // Nothing was held without one.
        if self.inner.has_pulse.get().is_some()
            && let Err(it) = self.wait_for(LEAVE_LIMIT, work)
        {
            tracing::debug!("{it}");
        }
    }

    /// A question that changes nothing when it is asked twice.
    fn query(&self, sql: &str, params: Vec<Box<dyn ToSql + Send + Sync>>) -> Result<Vec<Row>, StoreError> {
        let (inner, sql) = (self.inner.clone(), sql.to_owned());
        self.wait(async move {
            match ask(&inner, &sql, &params).await {
                Err(Fault::Passing(why)) => {
                    tracing::debug!("the session store {why}; it is asked again");
                    inner.read.lock().await.drop_client();
                    ask(&inner, &sql, &params).await
                }
                other => other,
            }
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(it) = &self.runtime {
            it.spawn(work);
        }
    }

    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.wait_for(ANSWER_LIMIT, work)
    }

    fn wait_for<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = channel();
        self.spawn(async move {
            let silent = |_| Err(Fault::Passing("does not answer".to_owned()));
            _ = tell.send(timeout(limit, work).await.unwrap_or_else(silent));
        });
        told.recv().unwrap_or_else(|_| Err(Fault::Passing("ended".to_owned()))).map_err(shared_error)
    }
}

impl Drop for SharedStore {
    fn drop(&mut self) {
        self.leave();
        // The thread may be in the middle of a question to a database that is gone.
        if let Some(it) = self.runtime.take() {
            it.shutdown_background();
        }
    }
}

async fn ask(inner: &Inner, sql: &str, params: &[Box<dyn ToSql + Send + Sync>]) -> Result<Vec<Row>, Fault> {
    let client = inner.read.lock().await.client(&inner.target).await?;
    let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|it| &**it as &(dyn ToSql + Sync)).collect();
    Ok(client.query(sql, &params).await?)
}

fn shared_error(it: Fault) -> StoreError {
    StoreError::Shared(it.to_string())
}

fn not_found(id: &SessionId) -> StoreError {
    StoreError::NotFound { id: id.clone() }
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|it| shared_error(it.into()))
}

fn shared_row(row: &Row) -> Result<SharedRow, StoreError> {
    let unsigned = |at| column::<i64>(row, at).map(|it| u64::try_from(it).unwrap_or_default());
    Ok(SharedRow {
        id: SessionId::from(column::<&str>(row, 0)?),
        len: unsigned(1)?,
        changed_ms: unsigned(2)?,
        metadata: column(row, 3)?,
        is_at_work: column(row, 4)?,
    })
}

/// Of the columns host, pid and client, from `at` on.
fn holder(row: &Row, at: usize) -> Result<Option<LockHolder>, Fault> {
    let Some(pid) = row.try_get::<_, Option<i64>>(at + 1)? else { return Ok(None) };
    let pid = u32::try_from(pid).unwrap_or_default();
    Ok(Some(LockHolder { pid, host: row.try_get(at)?, client: row.try_get(at + 2)?, quiet_len: 0 }))
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
