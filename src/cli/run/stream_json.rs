//! Lines of `castor run -o stream-json`, in Gemini CLI's shapes: what is said, each call and its result, and the end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::report::{OwnOutput, RunOutput, Stats, TokenMetrics};
use crate::cli::terminal_text::{clean, clean_line};
use castor_base::iso_time;
use castor_client::call::Call;
use castor_wire::acp::client::{ClientEvent, NoticeLevel};

const MAX_MESSAGE: usize = 600;

/// Each line that `castor run -o stream-json` writes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StreamLine {
    #[serde(flatten)]
    event: StreamEvent,
    #[serde(serialize_with = "iso_time::serialize")]
    #[schemars(with = "String")]
    timestamp: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The session is open.
    Init { session_id: String, model: String },
    /// The prompt, or a piece of the answer.
    Message {
        role: StreamRole,
        content: String,
        /// True: pieces of the answer follow each other.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        delta: bool,
    },
    /// A call begins.
    ToolUse { tool_name: String, tool_id: String, parameters: Map<String, Value> },
    /// It ended.
    ToolResult {
        tool_id: String,
        status: StreamStatus,
        /// What a person is shown of it; absent where that is no text.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<StreamError>,
    },
    /// Something that a person should know; it ends nothing.
    Error { severity: StreamSeverity, message: String },
    /// The last line.
    Result {
        status: StreamStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<StreamError>,
        /// Absent where the agent did not say.
        #[serde(skip_serializing_if = "Option::is_none")]
        stats: Option<StreamStats>,
        castor: Box<OwnOutput>,
    },
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamRole {
    User,
    Assistant,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamStatus {
    Success,
    Error,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamSeverity {
    Warning,
    Error,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StreamError {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}

/// Tokens of the prompt, all models together and each of them.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct StreamStats {
    #[serde(flatten)]
    pub tokens: StreamTokens,
    pub duration_ms: u64,
    pub tool_calls: u64,
    /// By the model's name.
    pub models: BTreeMap<String, StreamTokens>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct StreamTokens {
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Of `input_tokens`.
    pub cached: u64,
    /// The rest of them.
    pub input: u64,
}

impl StreamStats {
    fn new(stats: &Stats, duration_ms: u64) -> Self {
        let models: BTreeMap<_, _> =
            stats.models.iter().map(|(name, it)| (name.clone(), StreamTokens::from(&it.tokens))).collect();
        let mut tokens = StreamTokens::default();
        models.values().for_each(|it| tokens.add(it));
        Self { tokens, duration_ms, tool_calls: stats.tools.total_calls, models }
    }
}

impl From<&TokenMetrics> for StreamTokens {
    fn from(it: &TokenMetrics) -> Self {
        Self {
            total_tokens: it.total,
            input_tokens: it.prompt,
            output_tokens: it.candidates,
            cached: it.cached,
            input: it.input,
        }
    }
}

impl StreamTokens {
    fn add(&mut self, more: &Self) {
        self.total_tokens += more.total_tokens;
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.cached += more.cached;
        self.input += more.input;
    }
}

impl StreamEvent {
    pub fn to_line(self, now_ms: u64) -> String {
        // No map in it has keys that are not texts.
        serde_json::to_string(&StreamLine { event: self, timestamp: now_ms }).unwrap_or_default() + "\n"
    }

    /// The end of a run.
    pub fn of_result(run: RunOutput) -> Self {
        let status = if run.error.is_some() { StreamStatus::Error } else { StreamStatus::Success };
        let error = run.error.map(|it| StreamError { kind: it.kind, message: it.message });
        let stats = run.stats.map(|it| StreamStats::new(&it, run.castor.duration_ms));
        Self::Result { status, error, stats, castor: Box::new(run.castor) }
    }

    /// A call that begins. What begins by an update alone has no line of its own.
    pub fn of_new_call(call: &Call) -> Self {
        let name = call.name.as_deref().unwrap_or(call.title());
        let parameters = call.raw_input.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        let tool_name = clean_line(name, MAX_MESSAGE);
        Self::ToolUse { tool_name, tool_id: call.id.clone(), parameters }
    }

    /// A call that is over.
    pub fn of_ended_call(call: &Call) -> Self {
        let texts: Vec<&str> = call.texts().collect();
        // A diff or a terminal is no text.
        let output = (!texts.is_empty()).then(|| clean(&texts.join("\n")));
        let kind = if call.is_unasked { "APPROVAL_REQUIRED" } else { "TOOL_EXECUTION_ERROR" };
        let message = || output.clone().unwrap_or_default();
        let error = call.is_failed().then(|| StreamError { kind: kind.to_owned(), message: message() });
        let status = if call.is_failed() { StreamStatus::Error } else { StreamStatus::Success };
        Self::ToolResult { tool_id: call.id.clone(), status, output, error }
    }

    /// A notice, if it warns.
    pub fn of_warning(warning: &Warning) -> Self {
        let severity = if warning.is_error { StreamSeverity::Error } else { StreamSeverity::Warning };
        Self::Error { severity, message: warning.message.clone() }
    }
}

/// What a notice warns of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub is_error: bool,
    pub message: String,
}

impl Warning {
    /// `None`: it is no notice, or none that warns.
    pub fn of(event: &ClientEvent) -> Option<Self> {
        let ClientEvent::Notice(it) = event else { return None };
        let is_error = match it.severity? {
            NoticeLevel::Info => return None,
            NoticeLevel::Warning => false,
            NoticeLevel::Error => true,
        };
        Some(Self { is_error, message: clean_line(&format!("{} {}", it.title, it.description), MAX_MESSAGE) })
    }
}
