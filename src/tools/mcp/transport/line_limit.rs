//! The limit of one message of a server: a longer one ends the connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Of one message, in bytes; servers on the network have as much. Without its answer a call would wait without end.
pub(in crate::mcp) const MAX_LINE: usize = 16 << 20;
pub(in crate::mcp) const TOO_LONG: &str = "it sent a message of more than 16 MB";

/// Whether it was too much for once. All clones say the same.
#[derive(Clone, Default)]
pub(in crate::mcp) struct LineOverflow(Arc<AtomicBool>);

impl LineOverflow {
    pub(in crate::mcp) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(in crate::mcp) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
