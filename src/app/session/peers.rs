//! Generators for agents that are not castor's: they answer requests in a model's place.

use std::sync::Arc;

use super::session_resources::SessionResources;
use crate::{
    base::peer_agent::PeerAgent,
    world::{
        a2a::{KeyCommands, RemoteHands, RemotePeer},
        http::Http,
        models::Generator,
        secrets::Env,
    },
};

/// The hands that peers are reached with.
pub struct PeerHands {
    pub http: Arc<Http>,
    /// With what the folder's `.env` files say.
    pub env: Env,
}

/// What answers the requests of a peer's session. `memory`: what its last run left.
///
/// # Errors
/// For the model: why the peer cannot be driven.
pub fn peer_generator(
    peer: &PeerAgent,
    memory: Option<&str>,
    resources: &SessionResources,
    hands: PeerHands,
) -> Result<Arc<dyn Generator>, String> {
    match peer {
        PeerAgent::Remote(it) => {
            let (children, PeerHands { http, env }) = (&resources.children, hands);
            let hooks = &children.hooks;
            let (groups, cwd, confined) = (hooks.groups.clone(), hooks.cwd.clone(), hooks.confined.clone());
            let commands = KeyCommands { groups, cwd, env: children.env.clone(), confined };
            Ok(Arc::new(RemotePeer::new(it.clone(), RemoteHands { http, env, commands }, memory)))
        }
        PeerAgent::Program(_) => Err("programs cannot be driven".to_owned()),
    }
}
