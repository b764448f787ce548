//! Hooks: the user's commands that castor runs at points of a session and whose answers it obeys.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::{
    checkpoint::Changes,
    ids::{CallId, CheckpointId},
    trust::ScriptHashes,
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
        self.row().name
    }

    /// All that castor goes by beside the place where it fires.
    #[rustfmt::skip]
    pub fn row(self) -> HookEventRow {
        use HookSubject::{Nothing, Tool, Words};
        const NONE: HookPowers = HookPowers { block: false, ask: false, stop: false, specific: &[] };
        const STOPS: HookPowers = HookPowers { block: true, stop: true, ..NONE };
        let row = |name, subject, powers, when| HookEventRow { name, subject, powers, passes_on: None, when };
        match self {
            Self::SessionStart => row("SessionStart", Words("`startup`, `resume` or `clear`"), HookPowers { specific: &["additionalContext"], ..NONE }, "With the first prompt, when trust is settled."),
            Self::SessionEnd => row("SessionEnd", Words("`clear`, `exit` or `other`"), NONE, "After `/clear`, at the end of castor (which waits 1.5 s at most), and when a session is closed or deleted."),
            Self::BeforeAgent => HookEventRow { passes_on: Some("additionalContext"), ..row("BeforeAgent", Nothing, HookPowers { specific: &["additionalContext"], ..STOPS }, "A prompt comes. If it is blocked, the model never sees it.") },
            Self::AfterAgent => row("AfterAgent", Nothing, HookPowers { specific: &["clearContext"], ..STOPS }, "The agent is done. If a hook blocks this, the agent continues with the reason. The next time `stop_hook_active` is true: allow then, or it continues until a limit."),
            Self::BeforeModel => HookEventRow { passes_on: Some("llm_request"), ..row("BeforeModel", Nothing, HookPowers { specific: &["llm_request", "llm_response"], ..STOPS }, "Before each request. A block with `llm_response` answers in the model's place.") },
            Self::AfterModel => row("AfterModel", Nothing, HookPowers { specific: &["llm_response"], ..STOPS }, "An answer is whole. It is not shown before."),
            Self::BeforeToolSelection => row("BeforeToolSelection", Nothing, HookPowers { specific: &["toolConfig"], ..NONE }, "Before each request. `toolConfig` names the only available tools, or none."),
            Self::BeforeTool => HookEventRow { passes_on: Some("tool_input"), ..row("BeforeTool", Tool, HookPowers { ask: true, specific: &["tool_input"], ..STOPS }, "Before policy looks at a call.") },
            Self::AfterTool => row("AfterTool", Tool, HookPowers { specific: &["additionalContext", "tailToolCallRequest"], ..STOPS }, "A call has run. A block hides its result; `tailToolCallRequest` makes another call in its place."),
            Self::PreCompress => row("PreCompress", Words("`manual` or `auto`"), NONE, "Before the older part of a conversation is compressed."),
            Self::Notification => row("Notification", Nothing, NONE, "castor asks you about a call. It does not wait for the hook."),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// What there is to know of an event.
#[derive(Clone, Copy, Debug)]
pub struct HookEventRow {
    pub name: &'static str,
    pub subject: HookSubject,
    pub powers: HookPowers,
    /// The member of `hookSpecificOutput` that the next hook is told in place of what the first was told.
    pub passes_on: Option<&'static str>,
    /// When it comes, for people.
    pub when: &'static str,
}

/// What a hook's matcher is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookSubject {
    Nothing,
    /// The tool's name, as a pattern.
    Tool,
    /// One of these words, exactly.
    Words(&'static str),
}

impl HookSubject {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Tool => "the tool's name",
            Self::Words(it) => it,
        }
    }
}

/// What hooks of an event can do, beside showing a message.
#[derive(Clone, Copy, Debug)]
pub struct HookPowers {
    pub block: bool,
    pub ask: bool,
    pub stop: bool,
    /// Members of `hookSpecificOutput`.
    pub specific: &'static [&'static str],
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
    pub scripts: ScriptHashes,
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
    pub checkpoint: Option<(CheckpointId, CallId)>,
}

/// The end of a hook's run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReport {
    pub end: HookEnd,
    pub stdout: String,
    pub stderr: String,
    /// What became meanwhile of configuration that other programs obey: for the user, whatever the hook says.
    pub sandbox_note: Option<String>,
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
    TooMuchOutput,
    NotStarted(String),
}

impl HookReport {
    pub fn from_end(end: HookEnd) -> Self {
        Self { end, stdout: String::new(), stderr: String::new(), sandbox_note: None, changes: None }
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
