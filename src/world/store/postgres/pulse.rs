//! The pulse of a process: it says that it lives, and hears what changes in sessions.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_postgres::Client;

use super::{Inner, SharedStore, fault::Fault, link::ANSWER_LIMIT, lock};

/// How often it says so. Who was not heard for four seconds is taken for dead, by the database's clock.
const BEAT: Duration = Duration::from_secs(1);
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
        let beat = timeout(ANSWER_LIMIT, say_alive(&inner, &mut client, &tell)).await;
        let fault = match beat {
            Ok(Ok(())) => continue,
            Ok(Err(it)) => it,
            Err(_) => Fault::Passing("does not answer".to_owned()),
        };
        tracing::debug!("the session store {fault}; it may take this castor for dead");
        client = None;
    }
}

async fn say_alive(inner: &Inner, client: &mut Option<Client>, news: &UnboundedSender<String>) -> Result<(), Fault> {
    if client.as_ref().is_none_or(Client::is_closed) {
        let made = inner.target.connect(Some(news.clone())).await?;
        made.batch_execute("listen castor_news").await?;
        made.execute(FORGET, &[]).await?;
        // What was said before is not known.
        lock(&inner.news).n_gaps += 1;
        *client = Some(made);
    }
    if let Some(client) = client {
        let me = &inner.me;
        let name = lock(&me.client).clone();
        client.execute(SAY_ALIVE, &[&me.id, &me.host, &me.pid, &name]).await?;
    }
    Ok(())
}

async fn hear(inner: Arc<Inner>, mut told: UnboundedReceiver<String>) {
    while let Some(root) = told.recv().await {
        if let Some(it) = lock(&inner.news).watched.get_mut(&root) {
            *it += 1;
        }
    }
}
