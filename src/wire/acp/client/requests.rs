//! Requests of a client to castor with their methods and params, and answers to castor's own requests.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::ContentBlock;
use castor_base::{host_tools::HostTool, state::StateDelta};

/// A request to castor. It is written with its method.
#[derive(Serialize)]
#[serde(tag = "method", content = "params", rename_all_fields = "camelCase")]
pub enum AgentRequest<'a> {
    #[serde(rename = "initialize")]
    Initialize { protocol_version: u64, client_info: ClientName<'a> },
    #[serde(rename = "session/list")]
    List(ListParams<'a>),
    #[serde(rename = "session/new")]
    New(OpenParams<'a>),
    #[serde(rename = "session/load")]
    Load(OpenParams<'a>),
    #[serde(rename = "session/resume")]
    Resume(OpenParams<'a>),
    #[serde(rename = "session/close")]
    Close(SessionParams<'a>),
    #[serde(rename = "session/delete")]
    Delete(SessionParams<'a>),
    #[serde(rename = "session/archive")]
    Archive(SessionParams<'a>),
    #[serde(rename = "session/unarchive")]
    Unarchive(SessionParams<'a>),
    #[serde(rename = "session/set_title")]
    SetTitle { session_id: &'a str, title: &'a str },
    #[serde(rename = "session/set_config_option")]
    SetOption { session_id: &'a str, config_id: &'a str, value: &'a str },
    #[serde(rename = "session/prompt")]
    Prompt(SentPrompt<'a, Own<PromptChoices<'a>>>),
    #[serde(rename = "_session/steering")]
    Steer(SentPrompt<'a, SteeringMeta>),
    #[serde(rename = "_castor/options/list")]
    Options { cwd: &'a str },
    #[serde(rename = "_castor/session/attach")]
    Attach { session_id: &'a str, history: bool },
    #[serde(rename = "_castor/session/detach")]
    Detach(SessionParams<'a>),
    #[serde(rename = "_castor/session/state")]
    GetState { session_id: &'a str, get: &'a [&'a str] },
    #[serde(rename = "_castor/session/state")]
    SetState { session_id: &'a str, set: StateDelta },
    #[serde(rename = "_castor/session/update")]
    SetOptions { session_id: &'a str, config: &'a Map<String, Value> },
    #[serde(rename = "_castor/session/update")]
    SwitchSkills { session_id: &'a str, skills: BTreeMap<&'a str, bool> },
    #[serde(rename = "_castor/session/checkpoints")]
    Checkpoints(SessionParams<'a>),
    #[serde(rename = "_castor/session/rewind")]
    RewindTalk { session_id: &'a str, message_id: &'a str, what: &'static str },
    #[serde(rename = "_castor/session/rewind")]
    RewindFiles { session_id: &'a str, checkpoint_id: &'a str, what: &'static str, paths: &'a [String] },
    #[serde(rename = "_castor/mcp/servers")]
    Servers(SessionParams<'a>),
    #[serde(rename = "_castor/mcp/switch")]
    SwitchServer { session_id: &'a str, server: &'a str, on: bool },
    #[serde(rename = "_castor/definitions/list")]
    Definitions(SessionParams<'a>),
    #[serde(rename = "_castor/tools/list")]
    Tools(SessionParams<'a>),
}

impl<'a> AgentRequest<'a> {
    /// Sets one of the values that the session keeps for its clients.
    pub fn set_state(session_id: &'a str, key: &str, value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        Self::SetState { session_id, set: StateDelta([(key.to_owned(), value)].into()) }
    }

    /// Takes the conversation back to before a message of the user.
    pub fn rewind_talk(session_id: &'a str, message_id: &'a str) -> Self {
        Self::RewindTalk { session_id, message_id, what: "conversation" }
    }

    /// Takes files back to before the call of a checkpoint.
    pub fn rewind_files(session_id: &'a str, checkpoint_id: &'a str, paths: &'a [String]) -> Self {
        Self::RewindFiles { session_id, checkpoint_id, what: "files", paths }
    }

    /// The message, in one line without its end.
    pub fn message(&self, id: i64) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            jsonrpc: &'static str,
            id: i64,
            #[serde(flatten)]
            request: &'a AgentRequest<'a>,
        }
        // Texts, numbers and values always have a JSON form.
        serde_json::to_vec(&Line { jsonrpc: "2.0", id, request: self }).unwrap_or_default()
    }
}

#[derive(Serialize)]
pub struct ClientName<'a> {
    pub name: &'a str,
    pub version: &'a str,
}

/// The params of requests that name a session and nothing else, and of the notification `session/cancel`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams<'a> {
    pub session_id: &'a str,
}

impl<'a> From<&'a str> for SessionParams<'a> {
    fn from(session_id: &'a str) -> Self {
        Self { session_id }
    }
}

/// A page of the list of all sessions, archived ones among them.
#[derive(Serialize)]
pub struct ListParams<'a> {
    archived: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

impl<'a> ListParams<'a> {
    pub fn all(cursor: Option<&'a str>) -> Self {
        Self { archived: "include", cursor }
    }
}

/// Where a session begins or is opened, without servers of the client's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    cwd: &'a str,
    additional_directories: &'a [String],
    mcp_servers: [(); 0],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Own<SessionParams<'a>>>,
}

impl<'a> OpenParams<'a> {
    /// A session that exists.
    pub fn of(session: &'a str, cwd: &'a str, more: &'a [String]) -> Self {
        Self { session_id: Some(session), cwd, additional_directories: more, mcp_servers: [], meta: None }
    }

    /// A new session, which gets this id.
    pub fn new(session: &'a str, cwd: &'a str, more: &'a [String]) -> Self {
        let meta = Some(Own { castor: SessionParams { session_id: session } });
        Self { session_id: None, cwd, additional_directories: more, mcp_servers: [], meta }
    }
}

/// castor's own part of a `_meta`.
#[derive(Serialize)]
pub struct Own<T> {
    pub castor: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SentPrompt<'a, M> {
    pub session_id: &'a str,
    pub prompt: &'a [ContentBlock],
    #[serde(rename = "_meta")]
    pub meta: M,
}

/// Options that hold for one prompt alone.
#[derive(Default, Serialize)]
pub struct PromptChoices<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// The prompt is empty: the model continues where the last turn failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Questions of the turn may have fields.
    pub forms: bool,
    /// The tools that the client runs.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tools: &'a [DeclaredTool],
}

/// A tool of the client's, written with what the client said of it alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredTool {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ReadOnlyNote>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadOnlyNote {
    pub read_only: bool,
}

impl DeclaredTool {
    /// The tool as castor reads it; `None`: it has another shape.
    pub fn read(&self) -> Option<HostTool> {
        serde_json::to_value(self).ok().and_then(|it| serde_json::from_value(it).ok())
    }
}

/// Words for a running turn: if none runs any more, castor says so and takes nothing.
#[derive(Serialize)]
pub struct SteeringMeta {
    steering: IdleSteering,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdleSteering {
    idle_behavior: &'static str,
}

impl Default for SteeringMeta {
    fn default() -> Self {
        Self { steering: IdleSteering { idle_behavior: "promptRequired" } }
    }
}

/// The client's answer to `session/request_permission`.
#[derive(Serialize)]
pub struct PermissionAnswer<'a> {
    outcome: PermissionOutcome<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Own<ChangedInput>>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum PermissionOutcome<'a> {
    Selected { option_id: &'a str },
    Cancelled,
}

#[derive(Serialize)]
struct ChangedInput {
    input: Map<String, Value>,
}

impl<'a> PermissionAnswer<'a> {
    /// The option that is chosen; `None`: the question is cancelled.
    pub fn of(option: Option<&'a str>) -> Self {
        let selected = option.map(|option_id| PermissionOutcome::Selected { option_id });
        Self { outcome: selected.unwrap_or(PermissionOutcome::Cancelled), meta: None }
    }

    /// With all arguments of the call, in place of the model's.
    pub fn with_input(self, input: Option<Map<String, Value>>) -> Self {
        Self { meta: input.map(|input| Own { castor: ChangedInput { input } }), ..self }
    }
}

/// The client's answer to `elicitation/create`.
#[derive(Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum FormAnswer {
    Accept { content: Map<String, Value> },
    Decline,
    Cancel,
}

/// The client's answer to `_castor/tool/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnswer {
    llm_content: ToolWords,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_content: Option<String>,
    is_error: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolWords {
    Text(String),
    Parts(Vec<AnswerPart>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AnswerPart {
    Text { text: String },
    Media { mime_type: String, data: String },
}

impl ToolAnswer {
    pub fn new(parts: Vec<AnswerPart>, shown: &str, is_error: bool) -> Self {
        Self { llm_content: ToolWords::Parts(parts), display_content: Some(shown.to_owned()), is_error }
    }

    pub fn failed(why: &str) -> Self {
        Self { llm_content: ToolWords::Text(why.to_owned()), display_content: None, is_error: true }
    }
}
