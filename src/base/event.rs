//! AgentEvents: everything that a session reports, in the order in which it happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::{
    agent::AgentResult,
    content::Part,
    ids::{CallId, MessageId, SessionId, StreamId},
    model::{Purpose, Usage},
    money::Money,
    path::AbsPath,
    terminal::Screen,
    tool::{Display, FileKnowledge, ToolError, ToolKind},
};

/// The kind of a custom event that tells the user something beside the conversation: `{"text": …}`.
pub const NOTICE: &str = "notice";

/// In `_meta` of a message: castor's own word on why the turn stopped, which is no part of the answer.
pub const STOPPED: &str = "stopped";

/// In `_meta` of an error: ids of messages that do not count any more, as their answer broke off.
pub const DISCARDS: &str = "discards";
/// The kind of a custom event about a conversation that is compressed: a [`Compaction`].
pub const COMPACTION: &str = "compaction";

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
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    pub id: String,
    pub stream_id: StreamId,
    /// Milliseconds since the Unix epoch.
    pub timestamp: u64,
    #[serde(flatten)]
    pub kind: EventKind,
    /// `source`, `code` and what else belongs to no field.
    #[serde(rename = "_meta", default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// First in a session.
    Initialize {
        session_id: SessionId,
        workspace: AbsPath,
        agent_id: String,
    },
    SessionUpdate {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
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
    /// No turn takes them any more: they are a prompt, if they are still wanted. Why.
    PromptRequired(String),
    /// They were refused: why.
    Failed(String),
}

/// The protocol's stop reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    EndTurn,
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
