//! Lines of `castor run -o stream-json`, in Gemini CLI's shapes: what is said, each call and its result, and the end.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::report::{OwnOutput, RunOutput, Stats, TokenMetrics};
use crate::{
    app::cli::terminal_text::{clean, clean_line},
    base::iso_time,
};

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
    /// Of an update; `None`: it is none, or none that warns.
    pub fn read(update: &Value) -> Option<Self> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let severity = text("severity").filter(|_| text("sessionUpdate") == Some("notice"))?;
        let words = ["title", "description"].map(|it| text(it).unwrap_or_default()).join(" ");
        let message = clean_line(&words, MAX_MESSAGE);
        matches!(severity, "warning" | "error").then(|| Self { is_error: severity == "error", message })
    }
}

/// Calls under way: their content as it was told last.
#[derive(Debug, Default)]
pub struct StreamCalls(HashMap<String, Value>);

impl StreamCalls {
    /// What an update of a call is in this format.
    pub fn take(&mut self, update: &Value) -> Option<StreamEvent> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let id = text("toolCallId")?.to_owned();
        if text("sessionUpdate") == Some("tool_call") && !self.0.contains_key(&id) {
            self.0.insert(id.clone(), update.get("content").cloned().unwrap_or_default());
            let name = update.pointer("/_meta/tool_name").and_then(Value::as_str).or(text("name")).or(text("title"));
            let parameters = update.get("rawInput").and_then(Value::as_object).cloned().unwrap_or_default();
            let tool_name = clean_line(name.unwrap_or_default(), MAX_MESSAGE);
            return Some(StreamEvent::ToolUse { tool_name, tool_id: id, parameters });
        }
        if let Some(content) = update.get("content").filter(|it| !it.is_null()) {
            self.0.insert(id.clone(), content.clone());
        }
        let is_failed = match text("status")? {
            "completed" => false,
            "failed" => true,
            _ => return None,
        };
        let said = output(&self.0.remove(&id)?);
        let is_unasked = update.pointer("/_meta/castor/unasked") == Some(&Value::Bool(true));
        let kind = if is_unasked { "APPROVAL_REQUIRED" } else { "TOOL_EXECUTION_ERROR" };
        let error = is_failed.then(|| StreamError { kind: kind.to_owned(), message: said.clone().unwrap_or_default() });
        let status = if is_failed { StreamStatus::Error } else { StreamStatus::Success };
        Some(StreamEvent::ToolResult { tool_id: id, status, output: said, error })
    }
}

/// The texts of a call's content; a diff or a terminal is none.
fn output(content: &Value) -> Option<String> {
    let texts = content.as_array().into_iter().flatten().filter_map(|it| it.pointer("/content/text")?.as_str());
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| clean(&texts.join("\n")))
}
