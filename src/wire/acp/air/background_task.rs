//! A command in the background, as AIR knows it.

use castor_base::ids::CallId;

/// A command that goes on after its call.
#[derive(Clone, Debug)]
pub(in crate::acp) struct BackgroundTask {
    pub call: CallId,
    /// Of its first process.
    pub pid: u32,
}
