//! Messages, plans, usage, notices and sub-agents of a session as its agent tells them.

use agent_client_protocol_schema::MaybeUndefined;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ContentBlock, OfferedCommand, SessionOption, block_text};
use crate::acp::meta::{
    PromptAnswerMeta,
    messages::{NoticeMeta, SubagentMeta},
};

/// A piece of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageChunk {
    pub content: Option<ContentBlock>,
    #[serde(rename = "messageId")]
    pub message: Option<String>,
    #[serde(rename = "_meta")]
    pub meta: NoticeMeta,
}

impl MessageChunk {
    /// `None`: it is no text.
    pub fn text(&self) -> Option<&str> {
        self.content.as_ref().and_then(block_text)
    }
}

/// A message of version 2. Null as its content: it does not count any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WholeMessage {
    #[serde(rename = "messageId")]
    pub id: Option<String>,
    pub content: MaybeUndefined<Vec<ContentBlock>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// A list of steps; others than castor may have several, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanList {
    #[serde(rename = "planId")]
    pub id: Option<String>,
    pub entries: Vec<PlanStep>,
    /// `items`, or the form of a plan that is a text or a file.
    #[serde(rename = "type")]
    pub form: Option<String>,
    pub content: Option<String>,
    pub uri: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StepStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

#[derive(Deserialize)]
pub(super) struct PlanChange {
    pub plan: PlanList,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanRemoval {
    plan_id: String,
}

impl From<PlanRemoval> for PlanList {
    fn from(it: PlanRemoval) -> Self {
        Self { id: Some(it.plan_id), ..Self::default() }
    }
}

/// How full the context is, and what the session cost by now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextUsage {
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Tokens of the whole window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<SessionCost>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionCost {
    pub amount: f64,
    /// ISO 4217; US dollars where the agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl SessionCost {
    pub fn currency(&self) -> &str {
        self.currency.as_deref().unwrap_or("USD")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModeName {
    pub current_mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OptionList {
    pub config_options: Vec<SessionOption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct CommandList {
    pub available_commands: Vec<OfferedCommand>,
}

/// Something that the user should know; it is no part of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionNotice {
    pub severity: Option<NoticeLevel>,
    pub title: String,
    pub description: String,
    #[serde(rename = "_meta")]
    pub meta: NoticeMeta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// A sub-agent's session: its name and task, what it does, and the call that started it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubagentAnnouncement {
    #[serde(rename = "sessionId")]
    pub session: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub capabilities: Option<Value>,
    pub state: Option<SessionState>,
    #[serde(rename = "_meta")]
    pub meta: SubagentMeta,
}

/// Tokens of a prompt, all models together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_read_tokens: u64,
    pub cached_write_tokens: u64,
    pub thought_tokens: u64,
    pub total_tokens: u64,
}

/// What a session does in the foreground, and why it stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionState {
    #[serde(rename = "state")]
    pub activity: Option<SessionActivity>,
    /// Why it is idle.
    pub stop_reason: Option<String>,
    pub error: Option<Value>,
    pub usage: Option<TokenUsage>,
    #[serde(rename = "_meta")]
    pub meta: Option<PromptAnswerMeta>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionActivity {
    Running,
    RequiresAction,
    Idle,
    /// Nothing is heard of it any more.
    Unknown,
}

/// A command in the background.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskNews {
    #[serde(rename = "asyncTaskId")]
    pub id: String,
    pub name: Option<String>,
    pub task_type: Option<String>,
    pub show_in_transcript: Option<bool>,
    pub can_stop: Option<bool>,
    pub tool_call_id: Option<String>,
    /// How it ended.
    pub state: Option<String>,
}
