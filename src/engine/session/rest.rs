//! Rest of a session: when it may leave the memory, and be opened again when it is needed.

use super::Session;

impl Session {
    /// Tells whether its log says all of it. Hooks would hear of an end and of a beginning, servers would be started
    /// anew, and nobody could ask for a process that a command left.
    pub fn is_at_rest(&self) -> bool {
        let tools = &self.spec.toolbox;
        let is_alone = tools.hooks.is_empty() && tools.servers.is_empty();
        is_alone && !self.is_busy() && self.waiting.is_empty() && self.scratch.is_at_rest()
    }
}
