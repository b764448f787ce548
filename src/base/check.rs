//! Safety checkers: programs that review a tool call beside the rules, their input and their answers.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    hook::TurnPlace,
    log::{Decision, Mode},
    sandbox::ProgramSandbox,
    tool::{ToolCall, ToolKind},
};

/// A safety checker: it reviews calls before they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Checker {
    /// As policies write it.
    pub name: String,
    pub action: CheckerAction,
    /// Its own settings, as written.
    pub config: Value,
    pub context: CheckerContext,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckerAction {
    /// castor's own: files that arguments name must lie below the session's folders.
    AllowedPath,
    /// A program, absolute or below `~/`: it reads one JSON value and prints one.
    External { program: String, args: Vec<String>, sandbox: ProgramSandbox },
}

/// Session data that an external checker gets beside the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckerContext {
    pub environment: bool,
    pub history: bool,
}

/// One call, and the checker that reviews it.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub checker: Arc<Checker>,
    pub call: ToolCall,
    /// Where it is wanted: turns of user and model, oldest first.
    pub history: Option<Value>,
}

/// A checker's finding. Its approval changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    pub decision: Decision,
    /// For user and model; empty where it allows.
    pub reason: String,
}

impl CheckFinding {
    pub fn allow() -> Self {
        Self { decision: Decision::Allow, reason: String::new() }
    }
}

/// A client that has a say in policy, after castor's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientPolicy {
    /// Its allow counts where castor would ask the user; else only what is stricter does.
    pub may_allow: bool,
    /// How long castor waits for its verdict.
    pub timeout_ms: u64,
}

/// One call that a client's policy is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCheck {
    pub call: ToolCall,
    pub kind: ToolKind,
    /// The sub-agent that calls.
    pub principal: Option<String>,
    pub mode: Mode,
    /// castor's own verdict, and the rule that says it.
    pub decision: Decision,
    pub rule: String,
    pub place: TurnPlace,
}

/// What denies a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denier {
    /// A rule of people's.
    #[default]
    Rule,
    /// castor's own rules for the mode.
    Mode,
    /// Nobody can be asked.
    Nobody,
    Checker,
    /// The client's own policy.
    Client,
}
