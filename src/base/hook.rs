//! Hooks: the user's commands that castor runs at points of a session and whose answers it obeys.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    checkpoint::Changes,
    held_program::HeldProgram,
    ids::{CallId, CheckpointId, StreamId, ThreadId},
    sandbox::ProgramSandbox,
    trust::ScriptHashes,
};

/// A point in a session. The names are Gemini CLI's, where it has them.
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
    OnUserMessage,
    BeforeRun,
    AfterRun,
    OnModelError,
    OnToolError,
    OnEvent,
}

/// The points at which a client may have a say, by the names of its requests, in the order of a turn.
pub const POINTS: &[(&str, HookEvent)] = &[
    ("on_user_message", HookEvent::OnUserMessage),
    ("before_run", HookEvent::BeforeRun),
    ("before_agent", HookEvent::BeforeAgent),
    ("before_model", HookEvent::BeforeModel),
    ("after_model", HookEvent::AfterModel),
    ("on_model_error", HookEvent::OnModelError),
    ("before_tool", HookEvent::BeforeTool),
    ("on_tool_error", HookEvent::OnToolError),
    ("after_tool", HookEvent::AfterTool),
    ("on_event", HookEvent::OnEvent),
    ("after_agent", HookEvent::AfterAgent),
    ("after_run", HookEvent::AfterRun),
];

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
        Self::OnUserMessage,
        Self::BeforeRun,
        Self::AfterRun,
        Self::OnModelError,
        Self::OnToolError,
        Self::OnEvent,
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
            Self::BeforeAgent => HookEventRow { passes_on: Some("additionalContext"), ..row("BeforeAgent", Nothing, HookPowers { specific: &["additionalContext", "response"], ..STOPS }, "A prompt came, and trust is settled. If the prompt is blocked, the model never sees it. A block with `response` answers in the agent's place.") },
            Self::AfterAgent => row("AfterAgent", Nothing, HookPowers { specific: &["clearContext"], ..STOPS }, "The agent is done. If a hook blocks this, the agent continues with the reason. The next time `stop_hook_active` is true: allow then, or it continues until a limit."),
            Self::BeforeModel => HookEventRow { passes_on: Some("llm_request"), ..row("BeforeModel", Nothing, HookPowers { specific: &["llm_request", "llm_response"], ..STOPS }, "Before each request. A block with `llm_response` answers in the model's place.") },
            Self::AfterModel => row("AfterModel", Nothing, HookPowers { specific: &["llm_response"], ..STOPS }, "An answer is whole. It is not shown before, unless all such hooks are marked `observes`."),
            Self::BeforeToolSelection => row("BeforeToolSelection", Nothing, HookPowers { specific: &["toolConfig"], ..NONE }, "Before each request. `toolConfig` names the only available tools, or none."),
            Self::BeforeTool => HookEventRow { passes_on: Some("tool_input"), ..row("BeforeTool", Tool, HookPowers { ask: true, specific: &["tool_input"], ..STOPS }, "Before policy looks at a call.") },
            Self::AfterTool => HookEventRow { passes_on: Some("tool_response"), ..row("AfterTool", Tool, HookPowers { specific: &["additionalContext", "tailToolCallRequest", "tool_response"], ..STOPS }, "A call has run. A block hides its result, and `tool_response` replaces it; `tailToolCallRequest` makes another call in its place.") },
            Self::PreCompress => row("PreCompress", Words("`manual` or `auto`"), NONE, "Before the older part of a conversation is compressed."),
            Self::Notification => row("Notification", Words("`ToolPermission`, `Trust`, `ModelFallback`, `Question`, `Link` or `Credential`"), NONE, "castor asks you something, of the kind that `notification_type` names, or a question of an MCP server waits for your next prompt. It does not wait for the hook."),
            Self::OnUserMessage => HookEventRow { passes_on: Some("prompt"), ..row("OnUserMessage", Nothing, HookPowers { specific: &["prompt"], ..STOPS }, "A prompt comes, before it is part of the conversation. `prompt` replaces its text.") },
            Self::BeforeRun => row("BeforeRun", Nothing, HookPowers { specific: &["response"], ..STOPS }, "A turn begins, before all else of it. A block with `response` answers in the agent's place."),
            Self::AfterRun => row("AfterRun", Nothing, NONE, "A turn is over. castor neither waits for the hook nor reads its answer."),
            Self::OnModelError => row("OnModelError", Nothing, HookPowers { specific: &["llm_response"], ..STOPS }, "A request to the model failed, each time. `llm_response` answers in the model's place; after a block castor does not try again."),
            Self::OnToolError => HookEventRow { passes_on: Some("tool_response"), ..row("OnToolError", Tool, HookPowers { specific: &["tool_response"], ..STOPS }, "A call has failed, before `AfterTool`. `tool_response` makes a result of the failure.") },
            Self::OnEvent => row("OnEvent", Words("the event's `type`"), NONE, "Events of the session. The hook gets all that came since its last run; castor neither waits for it nor reads its answer."),
        }
    }

    /// The member of an answer that makes it one in the place of a model or an agent, which nobody asks then.
    pub fn substitute(self) -> Option<&'static str> {
        match self {
            Self::BeforeModel => Some("llm_response"),
            Self::BeforeRun | Self::BeforeAgent => Some("response"),
            _ => None,
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

/// Where a hook comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookSource {
    /// The settings of the user or of the system.
    User,
    /// A workspace's settings: its command runs confined.
    Project,
    /// An extension: as the user's, who agreed to it.
    Extension,
    /// The client: castor sends it a request in place of a command.
    Client,
}

/// One configured command, or an interceptor of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: HookEvent,
    /// What of the event it is for; `None`: all of it.
    pub matcher: Option<String>,
    /// Hooks of this point run one after the other.
    pub sequential: bool,
    /// It only listens: it is told, not waited for, and its answer does not count.
    pub observes: bool,
    pub command: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub timeout_ms: u64,
    /// Its variables, beside the filtered environment of all children.
    pub env: Vec<(String, String)>,
    pub source: HookSource,
    /// What it runs of the workspace.
    pub scripts: ScriptHashes,
    pub sandbox: ProgramSandbox,
}

impl Hook {
    /// What a hook has when its settings do not say.
    pub const TIMEOUT_MS: u64 = 60_000;

    /// Tells whether a whole answer of the model waits for it.
    pub fn holds_answers(&self) -> bool {
        self.event == HookEvent::AfterModel && !self.observes
    }

    pub fn is_of_client(&self) -> bool {
        self.source == HookSource::Client
    }

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
    /// `None`: at the end of a session.
    pub place: Option<TurnPlace>,
}

/// The turn in which a client is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPlace {
    pub stream: StreamId,
    /// Of a sub-agent.
    pub thread: Option<ThreadId>,
    /// Of a sub-agent: the agents from the main one down to it; else empty.
    pub principal_path: Vec<String>,
}

impl HookRun {
    pub fn new(hook: Arc<Hook>, input: Map<String, Value>) -> Self {
        Self { hook, input, checkpoint: None, place: None }
    }
}

/// The end of a hook's run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReport {
    pub end: HookEnd,
    pub stdout: String,
    pub stderr: String,
    /// What became meanwhile of configuration that other programs obey: for the user, whatever the hook says.
    pub sandbox_note: Option<String>,
    /// What the user is asked about it.
    pub held: Option<HeldProgram>,
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
        Self { end, stdout: String::new(), stderr: String::new(), sandbox_note: None, held: None, changes: None }
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
