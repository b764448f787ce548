//! The connection to an MCP server: up, down until the next call, or closed for good.

use std::time::Duration;

use rmcp::{Peer, RoleClient};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::error::PeerError;

/// A server that crashes again and again is left alone.
pub const MAX_RESTARTS: u32 = 3;
/// Between a crash and the first start after it; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a call waits for a server that is started again.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_secs(30);
/// How long who noticed its end waits for what it had to say at that.
const END_REASON_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone)]
enum State {
    Up(Peer<RoleClient>),
    /// Why, and how many times it was down by now.
    Down(String, u32),
    Closed(String),
}

/// The end that calls hold.
#[derive(Clone)]
pub struct ServerLink {
    state: watch::Receiver<State>,
    /// Up to which crash somebody wants the server back.
    wanted: watch::Sender<u32>,
}

/// The end that the server's task holds.
pub struct ConnectionGuard {
    state: watch::Sender<State>,
    wanted: watch::Receiver<u32>,
    n_down: u32,
}

pub fn open_link(peer: Peer<RoleClient>) -> (ConnectionGuard, ServerLink) {
    let (plug, state) = watch::channel(State::Up(peer));
    let (wanted, wants) = watch::channel(0);
    (ConnectionGuard { state: plug, wanted: wants, n_down: 0 }, ServerLink { state, wanted })
}

impl ConnectionGuard {
    pub fn mark_up(&self, peer: Peer<RoleClient>) {
        self.state.send_replace(State::Up(peer));
    }

    /// Whoever called is told at once.
    pub fn mark_down(&mut self, why: &str) {
        self.n_down += 1;
        self.state.send_replace(State::Down(why.to_owned(), self.n_down));
    }

    pub fn close(&self, why: &str) {
        self.state.send_replace(State::Closed(why.to_owned()));
    }

    pub fn may_restart(&self) -> bool {
        self.n_down <= MAX_RESTARTS
    }

    /// Until a call wants the server, and a while has gone by since it crashed. Never ends when nobody can call.
    pub async fn wait_until_wanted(&mut self) {
        let crashed = Instant::now();
        if self.wanted.wait_for(|it| *it >= self.n_down).await.is_err() {
            std::future::pending::<()>().await;
        }
        let pause = PAUSE * 2_u32.saturating_pow(self.n_down.saturating_sub(1));
        sleep_until(crashed + pause).await;
    }
}

impl ServerLink {
    /// Whom to speak to. A server that is down is started again.
    ///
    /// # Errors
    /// Why there is nobody; or the call was cancelled.
    pub async fn peer(&mut self, cancel: &CancellationToken) -> Result<Peer<RoleClient>, PeerError> {
        let (why, nth) = match self.state.borrow_and_update().clone() {
            State::Up(peer) => return Ok(peer),
            State::Closed(why) => return Err(PeerError::Gone(why)),
            State::Down(why, nth) => (why, nth),
        };
        self.wanted.send_if_modified(|it| {
            let is_more = *it < nth;
            *it = nth.max(*it);
            is_more
        });
        let changed = timeout(RESTART_TIMEOUT, self.state.changed());
        match cancel.run_until_cancelled(changed).await {
            None => return Err(PeerError::Cancelled),
            Some(Ok(Ok(()))) => (),
            Some(Ok(Err(_))) => return Err(PeerError::Gone(why)),
            Some(Err(_)) => return Err(PeerError::NotReady { why, seconds: RESTART_TIMEOUT.as_secs() }),
        }
        match self.state.borrow_and_update().clone() {
            State::Up(peer) => Ok(peer),
            State::Closed(why) | State::Down(why, _) => Err(PeerError::Gone(why)),
        }
    }

    /// Why the server that [`Self::peer`] returned is gone.
    pub async fn end_reason(&mut self) -> Option<String> {
        _ = timeout(END_REASON_WAIT, self.state.changed()).await;
        match &*self.state.borrow() {
            State::Up(_) => None,
            State::Down(why, _) | State::Closed(why) => Some(why.clone()),
        }
    }
}
