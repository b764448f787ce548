//! Generators for agents that are not castor's: they answer requests in a model's place.

use std::sync::Arc;

use super::session_resources::SessionResources;
use crate::{base::peer_agent::PeerAgent, world::models::Generator};

/// What answers the requests of a peer's session.
///
/// # Errors
/// For the model: why the peer cannot be driven.
pub fn peer_generator(peer: &PeerAgent, _resources: &SessionResources) -> Result<Arc<dyn Generator>, String> {
    match peer {
        PeerAgent::Remote(_) => Err("remote agents cannot be driven".to_owned()),
        PeerAgent::Program(_) => Err("programs cannot be driven".to_owned()),
    }
}
