//! An agent's messages as a client reads them: one closed enum of what a session tells, in either version's shapes.

mod answers;
mod calls;
mod errors;
mod forms;
mod lenient;
mod options;
mod own_methods;
mod requests;
mod session;
#[cfg(test)]
mod tests;

pub use agent_client_protocol_schema::{
    MaybeUndefined,
    v1::SessionMessage as ExchangedMessage,
    v1::{AudioContent, BlobResourceContents, ImageContent, ResourceLink, TextContent, TextResourceContents},
    v1::{CompactionSummaryChunk, CompactionUpdate, ContentBlock, SessionInfoUpdate, SessionMessageChunk},
    v1::{EmbeddedResource, EmbeddedResourceResource},
    v2::{TerminalOutputChunk, TerminalUpdate},
};
pub use answers::{
    AgentSession, FormQuestion, Greeting, OpenedAnswer, PermissionChoice, PermissionQuestion, PromptAbilities,
    PromptAnswer, SessionModes, SessionPage, SteeringAnswer,
};
pub use calls::{CallDiff, CallLocation, CallPart, CallPartChunk, CallStatus, CallUpdate};
pub use errors::AgentError;
pub use forms::{FieldBounds, FieldChoice, FieldForm, FormField};
pub use lenient::{read_text, read_value};
pub use options::{OfferedCommand, OfferedValue, OptionSetting, SessionOption};
pub use own_methods::{CheckpointList, HostedCall, ListedCheckpoint, RewindAnswer, SessionNews};
pub use requests::{
    AgentRequest, AnswerPart, ClientName, DeclaredTool, FormAnswer, ListParams, OpenParams, Own, PermissionAnswer,
    PromptChoices, ReadOnlyNote, SentPrompt, SessionParams, SteeringMeta, ToolAnswer,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use session::{CommandList, ModeName, OptionList, PlanChange, PlanRemoval};
pub use session::{
    ContextUsage, MessageChunk, NoticeLevel, PlanList, PlanStep, SessionActivity, SessionCost, SessionNotice,
    SessionState, StepStatus, SubagentAnnouncement, TaskNews, TokenUsage, WholeMessage,
};

pub use super::mcp_servers::{McpServerReport, McpServerState, McpServers};
use super::meta::messages::UpdateMeta;
pub use crate::acp::own::{
    definition_list::{DefinitionList, ListedCommand, ListedExtension, ListedSkill},
    state::StateValues,
    tool_list::{ListedTool, ToolList},
};

/// The params of one `session/update`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent {
    /// The session that tells it; empty where the agent did not say.
    pub session: String,
    pub event: ClientEvent,
    /// What castor's hub adds for its clients.
    pub meta: UpdateMeta,
}

/// What one `session/update` tells.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the largest is by far the most frequent, and needs no allocation")]
pub enum ClientEvent {
    /// A piece of a message.
    Chunk(Voice, MessageChunk),
    /// A message from its beginning, or that it does not count any more.
    Message(Voice, WholeMessage),
    /// A call begins or changes.
    Call(Box<CallUpdate>),
    /// One more part of a call's content.
    CallPart(Box<CallPartChunk>),
    /// A terminal of the agent's own begins, changes or ends.
    Terminal(Box<TerminalUpdate>),
    /// Bytes that such a terminal printed.
    TerminalOutput(TerminalOutputChunk),
    /// The whole plan anew; without entries there is none any more.
    Plan(PlanList),
    Usage(ContextUsage),
    /// The mode's id.
    Mode(String),
    Options(Vec<SessionOption>),
    Commands(Vec<OfferedCommand>),
    Info(SessionInfoUpdate),
    Notice(SessionNotice),
    /// A sub-agent's session begins or changes.
    Subagent(Box<SubagentAnnouncement>),
    /// What the session does in the foreground.
    State(Box<SessionState>),
    /// What castor's clients do not ask for.
    Aside(Box<Aside>),
    /// A kind that this client does not know, or one without what it needs.
    Unknown(String),
}

/// What an agent tells only to clients that asked for it, as castor's do not.
#[derive(Clone, Debug, PartialEq)]
pub enum Aside {
    Compaction(CompactionUpdate),
    CompactionChunk(CompactionSummaryChunk),
    /// A message that went to another session, or came from there.
    Exchange(ExchangedMessage),
    ExchangeChunk(SessionMessageChunk),
    /// A command in the background began or ended.
    Task(TaskNews),
    Quota(Value),
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    User,
    Answer,
    Thought,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParamsText {
    #[serde(default)]
    session_id: String,
    update: Box<RawValue>,
    #[serde(rename = "_meta", default)]
    meta: UpdateMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateKind {
    session_update: String,
}

impl SessionEvent {
    /// Reads the params of a `session/update`. Broken members are left out.
    pub fn read(params: &RawValue) -> Self {
        match read_text::<UpdateParamsText>(params.get()) {
            Some(it) => Self { session: it.session_id, event: ClientEvent::read_text(it.update.get()), meta: it.meta },
            None => {
                Self { session: String::new(), event: ClientEvent::Unknown(String::new()), meta: UpdateMeta::default() }
            }
        }
    }
}

impl ClientEvent {
    /// Reads one update, as it stands below the key `update`.
    pub fn read(update: &Value) -> Self {
        Self::read_text(&update.to_string())
    }

    fn read_text(update: &str) -> Self {
        let kind = read_text::<UpdateKind>(update).map(|it| it.session_update).unwrap_or_default();
        Self::of_kind(&kind, update).unwrap_or(Self::Unknown(kind))
    }

    /// `None`: the kind is unknown, or what it needs is missing.
    fn of_kind(kind: &str, update: &str) -> Option<Self> {
        Some(match kind {
            "user_message_chunk" => Self::Chunk(Voice::User, read_text(update)?),
            "agent_message_chunk" => Self::Chunk(Voice::Answer, read_text(update)?),
            "agent_thought_chunk" => Self::Chunk(Voice::Thought, read_text(update)?),
            "user_message" => Self::Message(Voice::User, read_text(update)?),
            "agent_message" => Self::Message(Voice::Answer, read_text(update)?),
            "agent_thought" => Self::Message(Voice::Thought, read_text(update)?),
            "tool_call" => Self::call(CallUpdate { begins: true, ..read_text(update)? })?,
            "tool_call_update" => Self::call(read_text(update)?)?,
            "tool_call_content_chunk" => Self::CallPart(read_text(update)?),
            "terminal_update" => Self::Terminal(read_text(update)?),
            "terminal_output_chunk" => Self::TerminalOutput(read_text(update)?),
            "plan" => Self::Plan(read_text(update)?),
            "plan_update" => Self::Plan(read_text::<PlanChange>(update)?.plan),
            "plan_removed" => Self::Plan(read_text::<PlanRemoval>(update)?.into()),
            "usage_update" => Self::Usage(read_text(update)?),
            "current_mode_update" => Self::Mode(read_text::<ModeName>(update)?.current_mode_id),
            "config_option_update" => Self::Options(read_text::<OptionList>(update)?.config_options),
            "available_commands_update" => Self::Commands(read_text::<CommandList>(update)?.available_commands),
            "session_info_update" => Self::Info(read_text(update)?),
            "notice" => Self::Notice(read_text(update)?),
            "subagent_update" => Self::Subagent(read_text(update)?),
            "state_update" => Self::State(read_text(update)?),
            _ => Self::Aside(Box::new(Aside::of_kind(kind, update)?)),
        })
    }

    fn call(it: CallUpdate) -> Option<Self> {
        (!it.id.is_empty()).then(|| Self::Call(Box::new(it)))
    }

    /// Messages that do not count any more, as their answer broke off.
    pub fn discarded(&self) -> Vec<&str> {
        match self {
            Self::Notice(it) => it.meta.discards(),
            // A notice in the form that clients without notices get.
            Self::Chunk(_, it) => it.meta.discards(),
            Self::Message(_, WholeMessage { id: Some(id), content: MaybeUndefined::Null, .. }) => vec![id.as_str()],
            _ => Vec::new(),
        }
    }
}

impl Aside {
    fn of_kind(kind: &str, update: &str) -> Option<Self> {
        Some(match kind {
            "compaction_update" => Self::Compaction(read_text(update)?),
            "compaction_summary_chunk" => Self::CompactionChunk(read_text(update)?),
            "session_message" => Self::Exchange(read_text(update)?),
            "session_message_chunk" => Self::ExchangeChunk(read_text(update)?),
            "async_task_spawned" | "async_task_state_update" => Self::Task(read_text(update)?),
            "quota_update" => Self::Quota(read_text(update)?),
            _ => return None,
        })
    }
}

/// Whether the params of a `session/update` are words of the user's. Nothing else of them is read.
pub fn is_user_words(params: &RawValue) -> bool {
    const KIND: &str = "\"sessionUpdate\":\"";
    const USER: &str = "user_message_chunk";
    // Agents may write spaces: then all of it is looked through.
    match params.get().split_once(KIND) {
        Some((_, rest)) => rest.starts_with(USER),
        None => params.get().contains(USER),
    }
}

/// The address of what is embedded.
pub fn resource_uri(it: &EmbeddedResource) -> &str {
    match &it.resource {
        EmbeddedResourceResource::TextResourceContents(it) => &it.uri,
        EmbeddedResourceResource::BlobResourceContents(it) => &it.uri,
        _ => "",
    }
}

/// A content block with a text.
pub fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// The text of a content block; `None`: it is no text.
pub fn block_text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(it) => Some(&it.text),
        _ => None,
    }
}
