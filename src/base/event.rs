//! AgentEvents: everything that a session reports, in the order in which it happened.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    agent::{AgentResult, TerminateMode},
    content::Part,
    ids::{AgentId, CallId, MessageId, SessionId, StreamId, ThreadId},
    iso_time,
    model::{Purpose, Usage},
    money::Money,
    path::AbsPath,
    state::StateDelta,
    terminal::Screen,
    tool::{Display, FileKnowledge, ToolError, ToolKind},
};

/// The shape of events as castor sends them. Version 1 had no `agentId`, `threadId` and `source`, `mime` for `mimeType`,
/// and milliseconds for timestamps.
pub const EVENTS_VERSION: u32 = 2;

/// The kind of a custom event that tells the user something beside the conversation: `{"text": …}`.
pub const NOTICE: &str = "notice";

/// In `_meta` of a message: castor's own word on why the turn stopped, which is no part of the answer.
pub const STOPPED: &str = "stopped";

/// In `_meta` of a message: the prompt that a typed command stands for. The user sees what they typed.
pub const EXPANSION: &str = "expansion";

/// In `_meta` of an error: ids of messages that do not count any more, as their answer broke off.
pub const DISCARDS: &str = "discards";
/// The kind of a custom event about a conversation that is compressed: a [`Compaction`].
pub const COMPACTION: &str = "compaction";

/// The kind of a custom event that says which of several clients did something.
pub const CLIENT_ACT: &str = "client_act";

/// The state of a compression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The same from its beginning to its end.
    pub id: String,
    pub status: CompactionStatus,
    /// For clients that know no compaction: in words. Empty: nothing.
    pub text: String,
    /// What stands for the old part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionStatus {
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

/// One thing that a session told. Ids are `<stream>-<counter>`, unique within the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", from = "EventLine")]
pub struct AgentEvent {
    pub id: String,
    pub stream_id: StreamId,
    /// In UTC with milliseconds. In memory: milliseconds since the Unix epoch.
    #[serde(with = "iso_time")]
    #[schemars(with = "IsoText")]
    pub timestamp: u64,
    /// The agent that emitted it.
    pub agent_id: AgentId,
    /// Absent: the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// `user`, `agent` for the main agent, another agent's name, or `hooks/` with a hook's name.
    pub source: EventSource,
    #[serde(flatten)]
    pub kind: EventKind,
    /// `code` and what else belongs to no field.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// Where an event comes from.
pub type EventSource = Cow<'static, str>;

pub const USER_SOURCE: EventSource = Cow::Borrowed("user");
pub const AGENT_SOURCE: EventSource = Cow::Borrowed("agent");

impl AgentEvent {
    /// An event of the main agent's thread.
    pub fn of_main(id: String, stream_id: StreamId, timestamp: u64, kind: EventKind) -> Self {
        let (agent_id, source) = (AgentId::main(), kind.source());
        Self { id, stream_id, timestamp, agent_id, thread_id: None, source, kind, meta: Map::new() }
    }
}

/// An event as logs of all versions have it: those of version 1 do not say whose it is.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventLine {
    id: String,
    stream_id: StreamId,
    /// ISO 8601; in logs of version 1 milliseconds since the Unix epoch.
    #[serde(deserialize_with = "iso_time::deserialize")]
    #[schemars(with = "TimeOfAnyVersion")]
    timestamp: u64,
    /// The agent that emitted it; absent: `castor`, the main agent.
    agent_id: Option<AgentId>,
    /// Absent: the main thread.
    thread_id: Option<ThreadId>,
    /// Absent: `user` for the user's messages, else `agent`.
    source: Option<EventSource>,
    #[serde(flatten)]
    kind: EventKind,
    #[serde(rename = "_meta", default)]
    meta: Map<String, Value>,
}

impl From<EventLine> for AgentEvent {
    fn from(it: EventLine) -> Self {
        let EventLine { id, stream_id, timestamp, agent_id, thread_id, source, kind, meta } = it;
        let agent_id = agent_id.unwrap_or_else(AgentId::main);
        let source = source.unwrap_or_else(|| kind.source());
        Self { id, stream_id, timestamp, agent_id, thread_id, source, kind, meta }
    }
}

#[derive(JsonSchema)]
#[serde(transparent)]
#[allow(dead_code, reason = "only its schema is used")]
struct IsoText(#[schemars(extend("format" = "date-time"))] String);

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum TimeOfAnyVersion {
    Iso(IsoText),
    Milliseconds(u64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// First in a session.
    Initialize {
        session_id: SessionId,
        workspace: AbsPath,
    },
    SessionUpdate {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What changed of the state; null: the key is gone.
        #[serde(default, skip_serializing_if = "StateDelta::is_empty")]
        state: StateDelta,
    },
    Message {
        role: Speaker,
        message_id: MessageId,
        content: Vec<Part>,
        /// Where each live chunk of the last part ended, in bytes; empty: it was shown whole.
        #[serde(skip)]
        cuts: Vec<u32>,
    },
    AgentStart {},
    AgentEnd {
        reason: EndReason,
        /// The cause for programs: `code` of an error, the result of a run, calls that the host runs then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    ToolRequest {
        request_id: CallId,
        name: String,
        args: Value,
        display: ToolDisplay,
        /// The model's signature of this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolUpdate {
        request_id: CallId,
        #[serde(flatten)]
        update: ToolProgress,
    },
    ToolResponse {
        request_id: CallId,
        name: String,
        /// What the model gets.
        content: Vec<Part>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<Display>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
        /// What the model knows of a file from then on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<Box<FileKnowledge>>,
    },
    Usage {
        model: String,
        #[serde(flatten)]
        usage: Usage,
        /// The model's context window, in tokens.
        size: u64,
        #[serde(default, skip_serializing_if = "Purpose::is_agent")]
        purpose: Purpose,
        /// Of this call, in US dollars, where the model's price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
        /// Of all calls of the session up to this one, as far as prices are known.
        #[serde(default, rename = "sessionCost", skip_serializing_if = "Option::is_none")]
        session_cost: Option<Money>,
    },
    Error {
        status: Status,
        message: String,
        fatal: bool,
    },
    Custom {
        kind: String,
        data: Value,
    },
    /// Written by a newer castor.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl EventKind {
    /// Where it comes from in the main thread, unless the event says otherwise.
    pub fn source(&self) -> EventSource {
        match self {
            Self::Message { role: Speaker::User, .. } => USER_SOURCE,
            _ => AGENT_SOURCE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    User,
    Agent,
    Developer,
}

/// How a call is shown before and while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDisplay {
    pub title: String,
    pub kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    pub path: AbsPath,
    /// 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "progress", rename_all = "snake_case")]
pub enum ToolProgress {
    /// The arguments were checked: what it is about is known better now.
    Described { display: ToolDisplay },
    /// What it would do, while the user is asked.
    Proposed { display: Display },
    /// It runs; with what is known better now.
    Started {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<ToolDisplay>,
    },
    /// Its output is seen in a terminal of the client's from now on.
    Attached { screen: Screen },
    /// What it printed since the last such event; its end is kept where that was too much. Escape sequences are in it
    /// only when the client draws it.
    Printed { text: String },
    /// The user is asked about something that it does: its time stands still.
    Waiting,
    /// What the user was asked is settled.
    Resumed,
    /// What the sub-agent does that the call started.
    Activity { activity: Box<Activity> },
}

/// One thing that a sub-agent does, for the agent and the user above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Always true: consumers tell it from other data by this.
    pub is_subagent_activity_event: bool,
    pub agent_name: String,
    #[serde(rename = "type")]
    pub kind: ActivityKind,
    pub data: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActivityKind {
    /// `{text}`: the subject of a thought.
    ThoughtChunk,
    /// `{name, displayName, description, args, callId}`.
    ToolCallStart,
    /// `{name, id, output}`.
    ToolCallEnd,
    /// `{error, context, name?, callId?}`.
    Error,
}

/// Why the agent stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    Completed,
    Failed,
    Aborted,
    MaxTurns,
    MaxBudget,
    MaxTime,
    Refusal,
}

impl From<TerminateMode> for EndReason {
    fn from(it: TerminateMode) -> Self {
        match it {
            TerminateMode::Goal => Self::Completed,
            TerminateMode::Timeout => Self::MaxTime,
            TerminateMode::MaxTurns => Self::MaxTurns,
            TerminateMode::Aborted => Self::Aborted,
            TerminateMode::Error | TerminateMode::ErrorNoCompleteTaskCall => Self::Failed,
        }
    }
}

/// The end of a prompt, for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptOutcome {
    Stop(StopKind),
    /// The prompt could not be carried out. One line: what happened and what to do; one word for programs.
    Failed {
        kind: &'static str,
        why: String,
    },
    /// Key missing or refused.
    AuthRequired(String),
    /// Of words that came while a turn ran.
    Steered(SteerOutcome),
    /// The run of a sub-agent is over.
    Agent(AgentResult),
}

/// The end of steering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SteerOutcome {
    /// The model has them.
    Injected,
    /// No turn ran: they began one, whose end nobody is answered with.
    StartedNewTurn,
    /// No turn takes them any more: they are a prompt, if they are still wanted. Why.
    PromptRequired(String),
    /// They were refused: why.
    Failed(String),
}

/// The protocol's stop reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    EndTurn,
    /// The host runs calls, and the next prompt brings their results.
    CallsReturned,
    /// The prompt was a slash command that does not exist.
    UnknownCommand,
    MaxTokens,
    /// The model's own limit, not the user's.
    OutputLimit,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

/// google.rpc code names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    InvalidArgument,
    Unauthenticated,
    PermissionDenied,
    NotFound,
    Aborted,
    AlreadyExists,
    ResourceExhausted,
    Cancelled,
    Internal,
    Unimplemented,
    Unavailable,
    DeadlineExceeded,
}

impl Status {
    /// The name for an HTTP status; `Internal` for the unknown.
    pub fn from_http(status: u16) -> Self {
        match status {
            400 => Self::InvalidArgument,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            409 => Self::AlreadyExists,
            429 => Self::ResourceExhausted,
            499 => Self::Cancelled,
            501 => Self::Unimplemented,
            503 => Self::Unavailable,
            504 => Self::DeadlineExceeded,
            _ => Self::Internal,
        }
    }
}
