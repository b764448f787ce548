//! Limits of `castor serve`.

use castor_host::hub::HubLimits;

#[derive(Clone, Copy, Debug)]
pub struct ServeLimits {
    /// Of the listener, whoever they are.
    pub sockets: usize,
    /// Connections of one principal.
    pub connections: usize,
    pub hub: HubLimits,
    /// How long a connection waits for its client to come back.
    pub grace_ms: u64,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self { sockets: 1024, connections: 256, hub: HubLimits::default(), grace_ms: 5 * 60 * 1000 }
    }
}
