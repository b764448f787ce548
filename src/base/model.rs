//! Model requests, streamed chunks, token usage and failures, without a provider's words.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    credential::Credential,
    history::Turn,
    model_table::{ModelTraits, Parameter, ParameterSet},
    peer_agent::PeerReport,
    tool_offer::ToolOffer,
};

/// The model that needs no key and no network.
pub const DEMO: &str = "demo";

/// One request to a model. Cheap to clone: everything large is shared.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub model: Arc<str>,
    pub system: Arc<str>,
    pub contents: Vec<Arc<Turn>>,
    pub tools: ToolOffer,
    pub params: ModelParams,
    /// What is known of the model.
    pub traits: ModelTraits,
}

/// Generation parameters; `None` leaves the provider's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelParams {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    pub max_output_tokens: Option<u32>,
    pub thinking: Option<Thinking>,
    /// Whether thoughts are to be streamed beside the answer.
    pub include_thoughts: bool,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// What the answer has to look like, as a JSON Schema, where the provider can be told so.
    pub schema: Option<Arc<Value>>,
    /// The provider itself searches the web for the answer, and names its sources at the end.
    pub searches_web: bool,
}

impl ModelParams {
    /// Without what a model refuses. What is no member here, dialects leave out by themselves.
    pub fn leave_out(&mut self, refused: ParameterSet) {
        let drop = |it: &mut Option<f64>, parameter| *it = it.filter(|_| !refused.has(parameter));
        drop(&mut self.temperature, Parameter::Temperature);
        drop(&mut self.top_p, Parameter::TopP);
        self.top_k = self.top_k.filter(|_| !refused.has(Parameter::TopK));
        self.max_output_tokens = self.max_output_tokens.filter(|_| !refused.has(Parameter::MaxOutputTokens));
        self.thinking = self.thinking.take().filter(|_| !refused.has(Parameter::Thinking));
        self.include_thoughts &= !refused.has(Parameter::Thinking) && !refused.has(Parameter::IncludeThoughts);
        self.schema = self.schema.take().filter(|_| !refused.has(Parameter::Schema));
        if refused.has(Parameter::Stop) {
            self.stop.clear();
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Thinking {
    /// Tokens; -1 lets the model choose.
    Budget(i32),
    Level(String),
}

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    Text {
        text: String,
        signature: Option<Arc<str>>,
    },
    Thought {
        text: String,
        signature: Option<Arc<str>>,
    },
    /// `id` is the provider's, where it gives one. `args` is what it sent, object or not.
    Call {
        id: Option<String>,
        name: String,
        args: Value,
        signature: Option<Arc<str>>,
    },
    Media {
        mime: String,
        data: Arc<str>,
    },
    /// Replaces earlier usage of the same answer.
    Usage(Usage),
    Finish(Finish),
    /// Of an agent that answers in a model's place: what it tells of its own work.
    Report(PeerReport),
}

/// Tokens of one model call, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// The whole prompt, cached part included.
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    /// Part of the prompt that the provider wrote to its cache, where it bills that by itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub written: u64,
    pub thought: u64,
    pub total: u64,
}

// The signature that serde wants.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(it: &u64) -> bool {
    *it == 0
}

impl Usage {
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            written: self.written.saturating_add(other.written),
            thought: self.thought.saturating_add(other.thought),
            total: self.total.saturating_add(other.total),
        }
    }
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the conversation.
    #[default]
    Agent,
    /// Which model should take the prompt.
    Router,
    /// What the conversation was about, in short.
    Compressor,
    /// What counts in a very large result.
    Summarizer,
    /// Whether a long turn leads anywhere.
    LoopDetector,
    /// The same again, from another model.
    LoopDoubleCheck,
    /// Whether an answer is the last one.
    NextSpeaker,
    /// The work of a sub-agent, in the session that started it.
    Subagent,
    /// What an MCP server wants to know.
    McpSampling,
}

impl Purpose {
    pub fn is_agent(&self) -> bool {
        *self == Self::Agent
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Router => "router",
            Self::Compressor => "compressor",
            Self::Summarizer => "summarizer",
            Self::LoopDetector => "loop_detector",
            Self::LoopDoubleCheck => "loop_double_check",
            Self::NextSpeaker => "next_speaker",
            Self::Subagent => "subagent",
            Self::McpSampling => "mcp_sampling",
        }
    }
}

/// The reason why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    MaxTokens,
    /// The provider's word: SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, IMAGE_SAFETY, …
    Safety(String),
    MalformedCall,
    UnexpectedCall,
    /// OTHER and words we do not know.
    Other(String),
}

/// A model call that did not work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    pub kind: FailureKind,
    /// HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// One line for people: the provider's own words where they say something.
    pub message: String,
    /// How long the server asked us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Box<Details>,
}

/// What an error says beside its message, as the provider spells it. Routing knows what the words mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Details {
    /// Codes, types and reasons: `insufficient_quota`, `overloaded_error`, `MODEL_CAPACITY_EXHAUSTED`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Which member of the request it is about: `temperature`, `tools[3].function.parameters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Names of the limits that were hit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Which service says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Where the user can do something about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// How much the model reads at once, and how large the request was, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What the server refused: another one would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
}

impl Details {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Without everything that `is_bad`.
    pub fn without(mut self, is_bad: impl Fn(&str) -> bool) -> Self {
        self.words.retain(|it| !is_bad(it));
        self.limits.retain(|it| !is_bad(it));
        self.param = self.param.filter(|it| !is_bad(it));
        self.domain = self.domain.filter(|it| !is_bad(it));
        self.link = self.link.filter(|it| !is_bad(it));
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection, or it broke before the answer began.
    Connect,
    /// The connection broke, or nothing came for too long, after the answer began.
    Stream,
    /// The server answered with an error status.
    Status,
    /// The answer ended as it should, but is none: nothing in it, no reason why it ended, a call that is no call.
    Invalid,
    /// The answer was not what the provider promises (bad JSON, wrong content type, too large).
    Garbage,
    /// Key missing, refused, or unusable configuration: retrying cannot help.
    Auth,
    /// A scripted model has no (fitting) answer left.
    Script,
    /// Our own code panicked in the model task.
    Panicked,
}

impl FailureKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Stream => "stream",
            Self::Status => "status",
            Self::Invalid => "invalid",
            Self::Garbage => "garbage",
            Self::Auth => "auth",
            Self::Script => "script",
            Self::Panicked => "panicked",
        }
    }
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), retry_after_ms: None, details: Box::default() }
    }
}
