//! The connection to an MCP server: up, down until the next call, or closed for good.

use std::time::Duration;

use rmcp::{Peer, RoleClient};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::error::PeerError;
use crate::base::mcp::McpLink;

/// A server that crashes again and again is left alone.
pub const MAX_RESTARTS: u32 = 3;
/// Between a crash and the first start after it; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a call waits for a server that is started again.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_secs(30);
/// How long who noticed its end waits for what it had to say at that.
const END_REASON_WAIT: Duration = Duration::from_secs(1);

/// While a server is connected anew with another credential.
pub(super) const RENEWED: &str = "its credential changed";

#[derive(Clone)]
enum State {
    /// Connected with the link of that number.
    Up(Peer<RoleClient>, u64),
    /// Why, and how many times it was down by now.
    Down(String, u32),
    Closed(String),
}

/// How often the link was renewed, and what it is since.
type RenewedLink = (u64, Option<McpLink>);

/// The end that calls hold.
#[derive(Clone)]
pub struct ServerLink {
    state: watch::Receiver<State>,
    /// Up to which crash somebody wants the server back.
    wanted: watch::Sender<u32>,
    renewed: watch::Sender<RenewedLink>,
}

/// The end that the server's task holds.
pub struct ConnectionGuard {
    state: watch::Sender<State>,
    wanted: watch::Receiver<u32>,
    renewed: watch::Receiver<RenewedLink>,
    n_down: u32,
    /// The number of the link that it is connected with.
    n_link: u64,
    n_crashed: u32,
}

pub fn open_link(peer: Peer<RoleClient>) -> (ConnectionGuard, ServerLink) {
    let (plug, state) = watch::channel(State::Up(peer, 0));
    let (wanted, wants) = watch::channel(0);
    let (renewed, renews) = watch::channel((0, None));
    let guard = ConnectionGuard { state: plug, wanted: wants, renewed: renews, n_down: 0, n_link: 0, n_crashed: 0 };
    (guard, ServerLink { state, wanted, renewed })
}

impl ConnectionGuard {
    pub fn mark_up(&self, peer: Peer<RoleClient>) {
        self.state.send_replace(State::Up(peer, self.n_link));
    }

    /// Whoever called is told at once.
    pub fn mark_down(&mut self, why: &str) {
        self.n_down += 1;
        self.n_crashed += 1;
        self.state.send_replace(State::Down(why.to_owned(), self.n_down));
    }

    pub fn close(&self, why: &str) {
        self.state.send_replace(State::Closed(why.to_owned()));
    }

    pub fn may_restart(&self) -> bool {
        self.n_crashed <= MAX_RESTARTS
    }

    /// Until there is another link than the one that it is connected with. Never ends when nobody can call.
    pub async fn wait_until_renewed(&mut self) {
        let n_link = self.n_link;
        if self.renewed.wait_for(|it| it.0 > n_link).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The link to connect with next, where it is another one.
    pub fn take_link(&mut self) -> Option<McpLink> {
        let (n_link, link) = self.renewed.borrow().clone();
        self.n_link = n_link;
        link
    }

    /// Until a call wants the server, and a while has gone by since it crashed. Never ends when nobody can call.
    pub async fn wait_until_wanted(&mut self) {
        let crashed = Instant::now();
        if self.wanted.wait_for(|it| *it >= self.n_down).await.is_err() {
            std::future::pending::<()>().await;
        }
        let pause = PAUSE * 2_u32.saturating_pow(self.n_crashed.saturating_sub(1));
        sleep_until(crashed + pause).await;
    }
}

impl ServerLink {
    /// From now on the server is reached by this link. Whoever calls waits until it is.
    pub fn renew(&self, link: McpLink) {
        self.renewed.send_modify(|it| *it = (it.0 + 1, Some(link)));
    }

    /// Whom to speak to. A server that is down is started again.
    ///
    /// # Errors
    /// Why there is nobody; or the call was cancelled.
    pub async fn peer(&mut self, cancel: &CancellationToken) -> Result<Peer<RoleClient>, PeerError> {
        let n_link = self.renewed.borrow().0;
        let (why, nth) = match self.state.borrow_and_update().clone() {
            State::Up(peer, at) if at >= n_link => return Ok(peer),
            State::Up(..) => (RENEWED.to_owned(), None),
            State::Closed(why) => return Err(PeerError::Gone(why)),
            State::Down(why, nth) => (why, Some(nth)),
        };
        let wanted = nth.unwrap_or_default();
        self.wanted.send_if_modified(|it| {
            let is_more = *it < wanted;
            *it = wanted.max(*it);
            is_more
        });
        let is_settled = |it: &State| match it {
            State::Up(_, at) => *at >= n_link,
            State::Down(_, now) => nth.is_some_and(|nth| *now > nth),
            State::Closed(_) => true,
        };
        let settled = async { self.state.wait_for(is_settled).await.map(|it| it.clone()) };
        match cancel.run_until_cancelled(timeout(RESTART_TIMEOUT, settled)).await {
            None => Err(PeerError::Cancelled),
            Some(Ok(Ok(State::Up(peer, _)))) => Ok(peer),
            Some(Ok(Ok(State::Closed(why) | State::Down(why, _)))) => Err(PeerError::Gone(why)),
            Some(Ok(Err(_))) => Err(PeerError::Gone(why)),
            Some(Err(_)) => Err(PeerError::NotReady { why, seconds: RESTART_TIMEOUT.as_secs() }),
        }
    }

    /// Why the server that [`Self::peer`] returned is gone.
    pub async fn end_reason(&mut self) -> Option<String> {
        _ = timeout(END_REASON_WAIT, self.state.changed()).await;
        match &*self.state.borrow() {
            State::Up(..) => None,
            State::Down(why, _) | State::Closed(why) => Some(why.clone()),
        }
    }
}
