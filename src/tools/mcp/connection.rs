//! The connection to an MCP server: up, down until the next try, or closed for good.

use std::time::Duration;

use rmcp::{Peer, RoleClient};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::error::PeerError;
use castor_base::{mcp::McpLink, text};

/// How long a call waits for a server that is started again.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_secs(30);
/// How long who noticed its end waits for what it had to say at that.
const END_REASON_WAIT: Duration = Duration::from_secs(1);

/// Longest reason that is told: it has words of the server's own.
pub(super) const MAX_WHY: usize = 2_000;

/// While a server is connected anew: with another credential, or in the sandbox, or out of it.
pub(super) const RENEWED: &str = "its credential, or its place in or outside the sandbox, changed";

#[derive(Clone)]
enum State {
    /// Connected with the link of that number.
    Up(Peer<RoleClient>, u64),
    /// Why, and how many times it was down by now.
    Down {
        why: String,
        nth: u32,
        next_try: Instant,
    },
    Closed(String),
}

/// How often the link was renewed, and what it is since.
type RenewedLink = (u64, Option<McpLink>);

/// The end that calls hold.
#[derive(Clone)]
pub struct ServerLink {
    state: watch::Receiver<State>,
    renewed: watch::Sender<RenewedLink>,
}

/// The end that the server's task holds.
pub struct ConnectionGuard {
    state: watch::Sender<State>,
    renewed: watch::Receiver<RenewedLink>,
    n_down: u32,
    /// The number of the link that it is connected with.
    n_link: u64,
}

pub fn open_link(peer: Peer<RoleClient>) -> (ConnectionGuard, ServerLink) {
    let (plug, state) = watch::channel(State::Up(peer, 0));
    let (renewed, renews) = watch::channel((0, None));
    let guard = ConnectionGuard { state: plug, renewed: renews, n_down: 0, n_link: 0 };
    (guard, ServerLink { state, renewed })
}

impl ConnectionGuard {
    pub fn mark_up(&self, peer: Peer<RoleClient>) {
        self.state.send_replace(State::Up(peer, self.n_link));
    }

    /// Whoever called is told at once.
    pub fn mark_down(&mut self, why: &str, next_try: Instant) {
        self.n_down += 1;
        let why = text::visible_line(why, MAX_WHY);
        self.state.send_replace(State::Down { why, nth: self.n_down, next_try });
    }

    pub fn close(&self, why: &str) {
        self.state.send_replace(State::Closed(text::visible_line(why, MAX_WHY)));
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
}

impl ServerLink {
    /// From now on the server is reached by this link. Whoever calls waits until it is.
    pub fn renew(&self, link: McpLink) {
        self.renewed.send_modify(|it| *it = (it.0 + 1, Some(link)));
    }

    /// The server starts anew, by the link that it has. Whoever calls waits for that.
    pub fn restart(&self) {
        self.renewed.send_modify(|it| it.0 += 1);
    }

    /// Whom to speak to. A server that is down is waited for, where it is started again soon.
    ///
    /// # Errors
    /// Why there is nobody; or the call was cancelled.
    pub async fn peer(&mut self, cancel: &CancellationToken) -> Result<Peer<RoleClient>, PeerError> {
        let n_link = self.renewed.borrow().0;
        let (why, nth) = match self.state.borrow_and_update().clone() {
            State::Up(peer, at) if at >= n_link => return Ok(peer),
            State::Up(..) => (RENEWED.to_owned(), None),
            State::Closed(why) => return Err(PeerError::Gone(why)),
            State::Down { why, nth, next_try } => {
                let pause = next_try.saturating_duration_since(Instant::now());
                if pause >= RESTART_TIMEOUT {
                    return Err(PeerError::Pausing { why, seconds: pause.as_secs() });
                }
                (why, Some(nth))
            }
        };
        let is_settled = |it: &State| match it {
            State::Up(_, at) => *at >= n_link,
            State::Down { nth: now, .. } => nth.is_some_and(|nth| *now > nth),
            State::Closed(_) => true,
        };
        let settled = async { self.state.wait_for(is_settled).await.map(|it| it.clone()) };
        match cancel.run_until_cancelled(timeout(RESTART_TIMEOUT, settled)).await {
            None => Err(PeerError::Cancelled),
            Some(Ok(Ok(State::Up(peer, _)))) => Ok(peer),
            Some(Ok(Ok(State::Closed(why) | State::Down { why, .. }))) => Err(PeerError::Gone(why)),
            Some(Ok(Err(_))) => Err(PeerError::Gone(why)),
            Some(Err(_)) => Err(PeerError::NotReady { why, seconds: RESTART_TIMEOUT.as_secs() }),
        }
    }

    /// Why the server that [`Self::peer`] returned is gone.
    pub async fn end_reason(&mut self) -> Option<String> {
        _ = timeout(END_REASON_WAIT, self.state.changed()).await;
        match &*self.state.borrow() {
            State::Up(..) => None,
            State::Down { why, .. } | State::Closed(why) => Some(why.clone()),
        }
    }
}
