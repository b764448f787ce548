//! Command exposure of a session: whether it was asked about a command, and whether a command could read secrets.

use crate::base::{guarded_names::SECRET_RULE, tool::RUN_SHELL_COMMAND};

/// What the session knows of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandExposure {
    /// The user was asked about one as the mode asks.
    pub asked: bool,
    /// One could read secrets of the workspace: it ran without the network.
    pub exposed: bool,
}

impl CommandExposure {
    pub fn ask(&mut self, rule: &str) {
        self.asked |= rule.ends_with(RUN_SHELL_COMMAND);
        self.exposed |= rule.starts_with(SECRET_RULE);
    }
}
