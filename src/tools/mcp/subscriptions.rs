//! Resources of a server that were read: castor is told when one changes, also by the server's next life.
// The revision of 2026-07-28 subscribes in another way; servers of today know this one.
#![allow(deprecated)]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, SubscribeRequest, SubscribeRequestParams},
};
use tokio::time::timeout;

/// Of one server.
const MAX_SUBSCRIPTIONS: usize = 100;
/// What was read is not held up by a server that does not answer this.
const LIMIT: Duration = Duration::from_secs(2);

/// Addresses. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
pub struct Subscriptions(Arc<Mutex<BTreeSet<String>>>);

impl Subscriptions {
    /// Tells whether it is one of them: of all else a server need not speak.
    pub(super) fn has(&self, uri: &str) -> bool {
        self.with(|it| it.contains(uri))
    }

    /// It was read.
    pub(super) async fn add(&self, peer: &Peer<RoleClient>, uri: &str) {
        let is_new = can_subscribe(peer) && self.with(|it| it.len() < MAX_SUBSCRIPTIONS && it.insert(uri.to_owned()));
        if is_new && !subscribe(peer, uri).await {
            self.with(|it| it.remove(uri));
        }
    }

    /// The server was started again.
    pub(super) async fn renew(&self, peer: &Peer<RoleClient>) {
        let all: Vec<String> = self.with(|it| it.iter().cloned().collect());
        for uri in all.iter().filter(|_| can_subscribe(peer)) {
            subscribe(peer, uri).await;
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn can_subscribe(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info();
    info.is_some_and(|it| it.capabilities.resources.as_ref().is_some_and(|it| it.subscribe == Some(true)))
}

async fn subscribe(peer: &Peer<RoleClient>, uri: &str) -> bool {
    let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri)));
    let answer = timeout(LIMIT, peer.send_request(request)).await;
    let is_done = matches!(answer, Ok(Ok(_)));
    if !is_done {
        tracing::debug!("an MCP server does not tell of changes of {uri}");
    }
    is_done
}
