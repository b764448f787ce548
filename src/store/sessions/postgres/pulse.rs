//! The pulse of a process: it says that it lives, and hears what changes in sessions.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_postgres::{Client, types::ToSql};

use super::{Inner, SharedStore, fault::Fault, link::ANSWER_LIMIT, lock};

/// How often it says so. One that was not heard for three seconds is taken for dead, by the database's clock; after half of
/// that already, if its connection is gone, too: see `HEARD`.
const BEAT: Duration = Duration::from_millis(500);
/// For one beat on a connection that is there: another one must be made before the lease ends.
const BEAT_LIMIT: Duration = Duration::from_millis(1200);
/// Whether the owner in this row lives. A process that dies takes its connection along, and with it the lock. One that lives
/// makes a new connection with its next beat; after a start of the database, too.
pub const HEARD: &str = "\
    greatest(heartbeat, pg_postmaster_start_time()) > now() - interval '3 seconds'
    and (greatest(heartbeat, pg_postmaster_start_time()) > now() - interval '1500 milliseconds'
        or not pg_try_advisory_xact_lock(hashtextextended(id, 0)))";
/// Until the connection ends. Only who asks for [`HEARD`] has it for itself, for a moment.
const SHOW_CONNECTION: &str = "select pg_advisory_lock_shared(hashtextextended($1, 0))";
/// What a process does first when it takes a session, and then with each beat.
pub const SAY_ALIVE: &str = "\
    insert into castor_owners (id, host, pid, client, heartbeat) values ($1, $2, $3, $4, now())
    on conflict (id) do update set heartbeat = now(), client = excluded.client";
/// Of processes that died long ago.
const FORGET: &str = "delete from castor_owners where heartbeat < now() - interval '1 day'";

impl SharedStore {
    /// As if it were dead: for tests.
    #[cfg(test)]
    pub fn silence(&self) {
        self.inner.is_silent.store(true, Ordering::Relaxed);
    }

    pub(super) fn start_pulse(&self) {
        if self.inner.has_pulse.set(()).is_ok() {
            let inner = self.inner.clone();
            self.spawn(beat(inner));
        }
    }
}

async fn beat(inner: Arc<Inner>) {
    let (tell, told) = unbounded_channel();
    tokio::spawn(hear(inner.clone(), told));
    let mut client = None;
    let mut ticks = interval(BEAT);
    // After a pause one beat says all.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if inner.is_silent.load(Ordering::Relaxed) {
            continue;
        }
        let was_connected = client.is_some();
        if let Err(fault) = say_alive(&inner, &mut client, &tell).await {
            tracing::debug!("the session store {fault}; it may take this castor for dead");
            client = None;
            if was_connected {
                ticks.reset_immediately();
            }
        }
    }
}

async fn say_alive(inner: &Inner, client: &mut Option<Client>, news: &UnboundedSender<String>) -> Result<(), Fault> {
    let silent = |_| Fault::Passing("does not answer".to_owned());
    if client.as_ref().is_none_or(Client::is_closed) {
        *client = Some(timeout(ANSWER_LIMIT, connect(inner, news)).await.map_err(silent)??);
    }
    if let Some(client) = client {
        let me = &inner.me;
        let name = lock(&me.client).clone();
        let params: &[&(dyn ToSql + Sync)] = &[&me.id, &me.host, &me.pid, &name];
        timeout(BEAT_LIMIT, client.execute(SAY_ALIVE, params)).await.map_err(silent)??;
    }
    Ok(())
}

async fn connect(inner: &Inner, news: &UnboundedSender<String>) -> Result<Client, Fault> {
    let made = inner.target.connect(Some(news.clone())).await?;
    // A beat that a database forgets with its death said nothing of its next life.
    made.batch_execute("set synchronous_commit = off; listen castor_news").await?;
    made.execute(FORGET, &[]).await?;
    made.execute(SHOW_CONNECTION, &[&inner.me.id]).await?;
    // What was said before is not known.
    lock(&inner.news).n_gaps += 1;
    Ok(made)
}

async fn hear(inner: Arc<Inner>, mut told: UnboundedReceiver<String>) {
    while let Some(root) = told.recv().await {
        if let Some(it) = lock(&inner.news).watched.get_mut(&root) {
            *it += 1;
        }
    }
}
