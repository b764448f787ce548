//! Appends that the database has and its disk perhaps not yet: kept until they are there, and sent again after its death.
//!
//! A commit that waits for a disk takes milliseconds, and a turn has several. What a client is shown has to survive the death
//! of castor or of the database, as it survives castor's in files; before a call that changes something both wait for the
//! disk. Until then the lines are in two processes. A database that dies takes all its connections along: an append is on
//! the disk if a commit that waits was answered on a connection that is older than the append.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_postgres::Client;

use super::{
    Inner, SharedStore,
    append::{AppendOrder, Attempt, attempt, find},
    fault::Fault,
    lease::{Settlement, recall},
    link::ANSWER_LIMIT,
    lock,
};
use crate::{base::ids::SessionId, world::store::StoreError};

/// For the database's disk, while a call waits for it.
const FLUSH_LIMIT: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// Writes something, so that its commit waits for the disk; all commits before are there by then.
const FLUSH: &str = "select pg_logical_emit_message(true, 'castor', '')";

/// What is kept.
#[derive(Default)]
pub struct Unflushed {
    state: Mutex<UnflushedAppends>,
    /// There is something to flush.
    wake: Notify,
    /// All up to this number are on the disk, or of no use any more.
    flushed: watch::Sender<u64>,
}

#[derive(Default)]
struct UnflushedAppends {
    orders: VecDeque<UnflushedAppend>,
    last_number: u64,
    /// How often a connection was made that flushes.
    n_connections: u64,
    is_started: bool,
}

struct UnflushedAppend {
    number: u64,
    order: Arc<AppendOrder>,
    /// The connection that flushed when it was sent.
    connection: u64,
}

/// Until where something has to be on the disk.
pub struct FlushMark {
    store: Arc<SharedStore>,
    number: u64,
}

impl Unflushed {
    /// To be asked before an append is sent.
    pub fn connection(&self) -> u64 {
        lock(&self.state).n_connections
    }

    /// The database has taken it, which was sent at this connection's time.
    pub fn keep(&self, order: Arc<AppendOrder>, connection: u64) {
        let mut kept = lock(&self.state);
        kept.last_number += 1;
        let number = kept.last_number;
        kept.orders.push_back(UnflushedAppend { number, order, connection });
        self.wake.notify_one();
    }

    pub fn has(&self, id: &SessionId) -> bool {
        lock(&self.state).orders.iter().any(|it| it.order.session == *id)
    }

    /// Until all that was taken of a session and its sub-agents is on the disk.
    pub async fn wait_for_session(&self, root: &SessionId) {
        let is_its = |it: &&UnflushedAppend| it.order.session.root() == root.root();
        let Some(number) = lock(&self.state).orders.iter().filter(is_its).map(|it| it.number).next_back() else {
            return;
        };
        self.wait_for(number).await;
    }

    async fn wait_for(&self, number: u64) {
        _ = self.flushed.subscribe().wait_for(|it| *it >= number).await;
    }

    fn is_behind(&self) -> bool {
        *self.flushed.borrow() < lock(&self.state).last_number
    }

    /// Those that may have been lost before this connection was made, and the number of the last one.
    fn doubtful(&self) -> (Vec<(u64, Arc<AppendOrder>)>, u64) {
        let kept = lock(&self.state);
        let is_older = |it: &&UnflushedAppend| it.connection < kept.n_connections;
        let doubtful = kept.orders.iter().filter(is_older).map(|it| (it.number, it.order.clone())).collect();
        (doubtful, kept.last_number)
    }

    /// The database has it, by what this connection says.
    fn confirm(&self, number: u64) {
        let mut kept = lock(&self.state);
        let connection = kept.n_connections;
        kept.orders.iter_mut().filter(|it| it.number == number).for_each(|it| it.connection = connection);
    }

    fn forget(&self, number: u64) {
        lock(&self.state).orders.retain(|it| it.number != number);
    }

    fn note_flushed(&self, number: u64) {
        lock(&self.state).orders.retain(|it| it.number > number);
        self.flushed.send_replace(number);
    }
}

impl SharedStore {
    /// Everything that was taken by now.
    pub fn flush_mark(self: &Arc<Self>) -> FlushMark {
        FlushMark { store: self.clone(), number: lock(&self.inner.unflushed.state).last_number }
    }

    pub(super) fn start_flushing(&self) {
        if !std::mem::replace(&mut lock(&self.inner.unflushed.state).is_started, true) {
            let inner = self.inner.clone();
            self.spawn(flush_all(inner));
        }
    }
}

impl FlushMark {
    /// # Errors
    /// When the database does not say so for long.
    pub fn wait(&self) -> Result<(), StoreError> {
        let (inner, number) = (self.store.inner.clone(), self.number);
        self.store.wait_for(FLUSH_LIMIT, async move {
            inner.unflushed.wait_for(number).await;
            Ok(())
        })
    }
}

async fn flush_all(inner: Arc<Inner>) {
    let mut client = None;
    loop {
        inner.unflushed.wake.notified().await;
        while inner.unflushed.is_behind() {
            if inner.is_silent.load(Ordering::Relaxed) {
                sleep(PAUSE).await;
                continue;
            }
            let flushed = timeout(ANSWER_LIMIT, flush(&inner, &mut client)).await;
            if let Err(fault) = flushed.unwrap_or_else(|_| Err(Fault::Passing("does not answer".to_owned()))) {
                tracing::debug!("the session store {fault}; it is asked again what it has");
                client = None;
                sleep(PAUSE).await;
            }
        }
    }
}

async fn flush(inner: &Inner, client: &mut Option<Client>) -> Result<(), Fault> {
    if client.as_ref().is_none_or(Client::is_closed) {
        *client = Some(inner.target.connect(None).await?);
        lock(&inner.unflushed.state).n_connections += 1;
    }
    let Some(client) = client else { return Ok(()) };
    let (doubtful, number) = inner.unflushed.doubtful();
    send_lost(inner, client, doubtful).await?;
    client.batch_execute(FLUSH).await?;
    inner.unflushed.note_flushed(number);
    Ok(())
}

/// Asks what the database has of these, and sends again what it has not.
async fn send_lost(inner: &Inner, client: &Client, doubtful: Vec<(u64, Arc<AppendOrder>)>) -> Result<(), Fault> {
    if doubtful.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = doubtful.iter().map(|(_, it)| it.session.as_str()).collect();
    let mut found: HashMap<String, _> = find(client, &ids).await?.into_iter().map(|(id, it)| (id, it.0)).collect();
    for (number, order) in doubtful {
        // Deleted since.
        let Some(lease) = found.get_mut(order.session.as_str()) else {
            inner.unflushed.forget(number);
            continue;
        };
        match recall(lease, order.epoch(), order.start, order.added()) {
            Settlement::Stored => inner.unflushed.confirm(number),
            Settlement::Again => match attempt(inner, &order).await {
                Attempt::Stored => {
                    tracing::info!("the database had lost the end of session {}, which was sent again", order.session);
                    lease.len += order.added();
                    inner.unflushed.confirm(number);
                }
                Attempt::Failed(why) => forget_lost(inner, number, &order, &why),
                Attempt::Passed => return Err(Fault::Passing("has locked a session".to_owned())),
                Attempt::Fault(it) => return Err(it),
            },
            Settlement::Lost => forget_lost(inner, number, &order, "has another owner"),
            Settlement::Behind | Settlement::Broken => forget_lost(inner, number, &order, "is shorter in the store"),
        }
    }
    Ok(())
}

fn forget_lost(inner: &Inner, number: u64, order: &AppendOrder, why: &str) {
    tracing::warn!("session {} {why}; its end may be lost with the database that died", order.session);
    inner.unflushed.forget(number);
}
