//! May this call run? One pure function over rules, call, mode and the facts about its targets.

mod command;
mod danger;
mod decide;
mod load;
mod paths;
mod prefixes;
pub mod rules;
mod safe;
pub mod shell;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use decide::decide;
pub use prefixes::command_prefixes;
pub use rules::{Rule, Rules, Tier};

use crate::base::{
    log::{Decision, Grant, Mode},
    tool::{Targets, ToolKind},
};

/// What policy is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub tool: &'a str,
    pub kind: ToolKind,
    pub args: &'a Value,
    pub targets: &'a Targets,
    pub mode: Mode,
    /// Whether somebody can be asked.
    pub interactive: bool,
    /// What the user allowed for this session.
    pub grants: &'a [Grant],
}

/// The decision and why: the user will ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// Which rule decided, with its source: `default/write.toml: run_shell_command`.
    pub rule: String,
    /// For the model, when denied by a rule that says why.
    pub deny_message: Option<String>,
    /// What "allow for this session" would grant; `None`: it is not on offer.
    pub grant: Option<Grant>,
}
