//! Hooks: commands of the user's that are told of points in a session, and may have a say there.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::{
    checkpoint::Changes,
    ids::{CallId, CheckpointId},
    trust::Bound,
};

/// A point in a session. The names are Gemini CLI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum HookEvent {
    SessionStart,
    SessionEnd,
    BeforeAgent,
    AfterAgent,
    BeforeModel,
    AfterModel,
    BeforeToolSelection,
    BeforeTool,
    AfterTool,
    PreCompress,
    Notification,
}

impl HookEvent {
    pub const ALL: &[HookEvent] = &[
        Self::SessionStart,
        Self::SessionEnd,
        Self::BeforeAgent,
        Self::AfterAgent,
        Self::BeforeModel,
        Self::AfterModel,
        Self::BeforeToolSelection,
        Self::BeforeTool,
        Self::AfterTool,
        Self::PreCompress,
        Self::Notification,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::BeforeAgent => "BeforeAgent",
            Self::AfterAgent => "AfterAgent",
            Self::BeforeModel => "BeforeModel",
            Self::AfterModel => "AfterModel",
            Self::BeforeToolSelection => "BeforeToolSelection",
            Self::BeforeTool => "BeforeTool",
            Self::AfterTool => "AfterTool",
            Self::PreCompress => "PreCompress",
            Self::Notification => "Notification",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// One configured command.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub event: HookEvent,
    /// What of the event it is for; `None`: all of it.
    pub matcher: Option<String>,
    /// Hooks of this point run one after the other.
    pub sequential: bool,
    pub command: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub timeout_ms: u64,
    /// Its variables, beside the filtered environment of all children.
    pub env: Vec<(String, String)>,
    /// A workspace's settings name it: it runs confined.
    pub of_project: bool,
    /// What it runs of the workspace.
    pub scripts: Bound,
}

impl Hook {
    /// What a hook has when its settings do not say.
    pub const TIMEOUT_MS: u64 = 60_000;

    /// What it goes by: its name, else its command.
    pub fn key(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.command)
    }
}

/// A hook is to be told of something.
#[derive(Clone, Debug, PartialEq)]
pub struct HookRun {
    pub hook: Arc<Hook>,
    /// What belongs to the event; what belongs to the session is added where it runs.
    pub input: Map<String, Value>,
    /// What it changes is held, and undone with this call.
    pub hold: Option<(CheckpointId, CallId)>,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReport {
    pub end: HookEnd,
    pub stdout: String,
    pub stderr: String,
    /// What became meanwhile of configuration that other programs obey: for the user, whatever the hook says.
    pub found: Option<String>,
    /// What changed while it ran, where that was held; an error: why nobody knows.
    pub changes: Option<Result<Changes, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEnd {
    Exit(i32),
    /// A signal ended it.
    Signal(String),
    TimedOut,
    /// It printed more than it may.
    TooMuch,
    NotStarted(String),
}

impl HookReport {
    pub fn of(end: HookEnd) -> Self {
        Self { end, stdout: String::new(), stderr: String::new(), found: None, changes: None }
    }
}

/// Whether a hook runs in a session, beyond what settings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookSwitch {
    On,
    /// The user switched it off.
    Off,
    /// It did not answer in time: it is not waited for again.
    Hung,
}
