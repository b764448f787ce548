//! Agents that a session can start: their definitions, what is told of them, and how a run of one ends.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{agent_right::AgentRight, mcp::McpServerConfig, path::AbsPath, peer_agent::PeerAgent, text};

/// The tool that starts an agent with a text.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// The tool with which an agent hands in its result.
pub const COMPLETE_TASK: &str = "complete_task";
/// The tool with which an agent in a loop ends the loop.
pub const ESCALATE: &str = "escalate";
/// The tool with which a session's agent hands the session over to another one.
pub const TRANSFER_TO_AGENT: &str = "transfer_to_agent";
/// Tools that sessions have for the sake of agents: no agent has such a name.
pub const AGENT_TOOLS: &[&str] = &[COMPLETE_TASK, ESCALATE, INVOKE_AGENT, TRANSFER_TO_AGENT];

/// Requests to the model in one run, unless its definition says otherwise.
pub const MAX_TURNS: u32 = 30;
/// Minutes of work in one run, unless its definition says otherwise. Time in which the user is asked does not count.
pub const MAX_MINUTES: u32 = 10;

/// `code` of the events that end a recovery turn: an error where it came to nothing, else a notice.
pub const RECOVERY_TURN: &str = "recovery_turn";

/// What hosts, users and models learn of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentDescriptor {
    /// `[a-z0-9_-]+`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// When to use it, for the model that may start it.
    pub description: String,
    pub executor: AgentKind,
    /// Of its arguments; `None`: `{query}`, and it is started by `invoke_agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Of its result; `None`: text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<AgentCapability>,
    /// Tools that only it has, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_tools: Vec<String>,
    /// Tools of its session that it needs, by name or pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_tools: Vec<String>,
    /// Agents that it may start itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<AgentDescriptor>,
    #[serde(default)]
    pub constraints: AgentConstraints,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// How an agent is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// By castor, as a session of its own.
    #[default]
    Local,
    /// By a server, over A2A.
    Remote,
    /// By a program that speaks ACP.
    Acp,
    /// Its agents one after the other.
    Sequential,
    /// Its agents side by side.
    Parallel,
    /// Its agents again and again.
    Loop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentCapability {
    Elicitation,
    Streaming,
    HostToolExecution,
    Composition,
}

/// How far one run may go; `None`: as the defaults say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentConstraints {
    /// Requests to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_minutes: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
}

/// An agent as its file, or castor itself, defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    pub descriptor: AgentDescriptor,
    pub origin: AgentOrigin,
    /// Settings may switch it off.
    pub enabled: bool,
    /// Folders of the workspace that a run has, the first as its working directory; none: all of the session above.
    pub folders: Vec<String>,
    /// Beyond what the session above has.
    pub rights: Vec<AgentRight>,
    pub run: AgentRun,
}

/// Where a definition comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentOrigin {
    BuiltIn,
    User(AbsPath),
    /// A file of the workspace, which counts where the folder is trusted.
    Workspace(AbsPath),
    /// A file of the extension of this name.
    Extension(Arc<str>, AbsPath),
    /// A client brought it for one session.
    Client,
}

/// What a client brings: the keys of an agent file, with `instructions` for the text below them.
pub type ClientAgent = Arc<Map<String, Value>>;

/// A definition as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentListing {
    /// Settings may switch it off.
    pub enabled: bool,
    pub scope: AgentScope,
    /// `None`: castor or a client brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `None`: that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub agent: AgentDescriptor,
}

/// All definitions of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentList {
    pub agents: Vec<AgentListing>,
    /// What of the files does not count, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whose a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentScope {
    BuiltIn,
    User,
    Workspace,
    Extension,
    Client,
}

impl AgentScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::Extension => "extension",
            Self::Client => "client",
        }
    }
}

impl AgentOrigin {
    pub fn scope(&self) -> AgentScope {
        match self {
            Self::BuiltIn => AgentScope::BuiltIn,
            Self::User(_) => AgentScope::User,
            Self::Workspace(_) => AgentScope::Workspace,
            Self::Extension(..) => AgentScope::Extension,
            Self::Client => AgentScope::Client,
        }
    }

    /// `None`: it stands in no file of the user's.
    pub fn file(&self) -> Option<&AbsPath> {
        match self {
            Self::BuiltIn | Self::Client => None,
            Self::User(file) | Self::Workspace(file) | Self::Extension(_, file) => Some(file),
        }
    }

    /// What stands before a name that others have, too.
    pub fn prefix(&self) -> &str {
        match self {
            Self::Extension(name, _) => name,
            other => other.scope().as_str(),
        }
    }
}

impl From<&AgentDefinition> for AgentListing {
    fn from(it: &AgentDefinition) -> Self {
        let model = match &it.run {
            AgentRun::Local(run) => run.model.clone(),
            AgentRun::Composite(_) | AgentRun::Peer(_) => None,
        };
        let file = it.origin.file().map(ToString::to_string);
        Self { enabled: it.enabled, scope: it.origin.scope(), file, model, agent: it.descriptor.clone() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum AgentRun {
    Local(Box<LocalAgent>),
    Composite(CompositeAgent),
    /// Something else is the agent; castor drives it.
    Peer(Box<PeerAgent>),
}

/// What a local agent is made from. Templates have `${name}` for its arguments and for `cliVersion`, `activeModel` and
/// `today`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalAgent {
    /// The template of its instructions.
    pub instructions: String,
    /// The template of its first prompt; `None`: its only argument, or all of them as JSON.
    pub query: Option<String>,
    /// `None`: the model of the session that starts it.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    /// Names and patterns (`*`, `mcp_*`, `mcp_<server>_*`); `None`: all tools of the session that starts it.
    pub tools: Option<Vec<String>>,
    /// MCP servers of its own.
    pub mcp_servers: Vec<McpServerConfig>,
    pub output: Option<AgentOutput>,
    /// The key of the state that takes the result of a run.
    pub output_key: Option<String>,
    /// A run begins with the conversation of the session that starts it.
    pub include_contents: bool,
    /// Its instructions have `{key}` for values of the state. Files of other programs mean something else by it.
    pub takes_state: bool,
}

/// The one argument of `complete_task`, in place of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentOutput {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// Agents that are run as one.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeAgent {
    /// Their names, in order.
    pub agents: Vec<String>,
    /// Of a loop: how often at most.
    pub max_iterations: u32,
    /// The key of the session's state that takes the result.
    pub output_key: Option<String>,
    pub on_failure: OnFailure,
}

/// What an agent of a composition that fails does to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Stop,
    Continue,
}

/// The way in which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TerminateMode {
    Goal,
    Timeout,
    MaxTurns,
    Aborted,
    Error,
    ErrorNoCompleteTaskCall,
}

impl TerminateMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "GOAL",
            Self::Timeout => "TIMEOUT",
            Self::MaxTurns => "MAX_TURNS",
            Self::Aborted => "ABORTED",
            Self::Error => "ERROR",
            Self::ErrorNoCompleteTaskCall => "ERROR_NO_COMPLETE_TASK_CALL",
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResult {
    /// For the agent that started it.
    pub result: String,
    pub terminate_reason: TerminateMode,
    /// Why it ended the loop that it worked in.
    #[serde(default, rename = "escalateReason", skip_serializing_if = "Option::is_none")]
    pub escalate_reason: Option<String>,
}

/// What a run hands in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskResult {
    pub text: String,
    pub escalate_reason: Option<String>,
}

/// What stands before the parts of a result in words.
const FINISHED: &str = " finished.\nTermination Reason: ";
const ESCALATED: &str = "\nEscalate Reason: ";
const RESULT: &str = "\nResult:\n";
/// Longest reason for the end of a loop in words, in bytes.
const MAX_REASON: usize = 1_000;

impl AgentResult {
    pub fn new(terminate_reason: TerminateMode, result: impl Into<String>) -> Self {
        Self { result: result.into(), terminate_reason, escalate_reason: None }
    }

    /// As the agent above is told of it.
    pub fn in_words(&self, agent: &str) -> String {
        let reason = self.escalate_reason.as_ref().map(|it| format!("{ESCALATED}{}", text::first_line(it, MAX_REASON)));
        let result = Some(&self.result).filter(|it| reason.is_none() || !it.is_empty());
        let result = result.map(|it| format!("{RESULT}{it}"));
        let mode = self.terminate_reason.as_str();
        format!("Subagent '{agent}'{FINISHED}{mode}{}{}", reason.unwrap_or_default(), result.unwrap_or_default())
    }

    /// The same from these words. Others, such as those of a hook in their place, are a result.
    pub fn from_words(words: &str) -> Self {
        let Some((_, rest)) = words.split_once(FINISHED).filter(|_| words.starts_with("Subagent '")) else {
            return Self::new(TerminateMode::Goal, words);
        };
        let (head, result) = rest.split_once(RESULT).unwrap_or((rest, ""));
        let (mode, reason) = match head.split_once(ESCALATED) {
            Some((mode, reason)) => (mode, Some(reason.to_owned())),
            None => (head, None),
        };
        let mode = serde_json::from_value(mode.into()).unwrap_or(TerminateMode::Error);
        Self { escalate_reason: reason, ..Self::new(mode, result) }
    }
}

/// As an agent is told of one that it started and that failed.
pub fn failure_in_words(agent: &str, why: &str) -> String {
    format!("Subagent '{agent}' failed. Error: {why}")
}

/// What a session needs to start agents: their definitions by name.
pub type Agents = Arc<[AgentDefinition]>;

/// The definitions of a folder, as its settings change them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderAgents {
    pub definitions: Agents,
    /// What of its files does not count, and why.
    pub notes: Arc<[String]>,
}

impl FolderAgents {
    pub fn find(&self, name: &str) -> Option<&AgentDefinition> {
        self.definitions.iter().find(|it| it.descriptor.name == name)
    }
}

impl From<&FolderAgents> for AgentList {
    fn from(it: &FolderAgents) -> Self {
        let agents = it.definitions.iter().map(AgentListing::from).collect();
        Self { agents, warnings: it.notes.to_vec() }
    }
}

impl AgentDescriptor {
    /// The schema of its arguments.
    pub fn input(&self) -> Value {
        self.input_schema.clone().unwrap_or_else(|| {
            let query = json!({ "type": "string", "description": "What it is to do, with all that it has to know." });
            json!({ "type": "object", "properties": { "query": query }, "required": ["query"] })
        })
    }
}

impl AgentConstraints {
    pub fn turns(&self) -> u32 {
        self.max_turns.unwrap_or(MAX_TURNS)
    }

    pub fn minutes(&self) -> f64 {
        self.max_time_minutes.unwrap_or(f64::from(MAX_MINUTES))
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentResult, TerminateMode};

    #[test]
    fn results_are_read_from_their_words() {
        let escalated = |reason: &str| Some(reason.to_owned());
        for (result, escalate_reason) in [("R", None), ("a\nResult:\nb", escalated("done")), ("", escalated("done"))] {
            for terminate_reason in [TerminateMode::Goal, TerminateMode::ErrorNoCompleteTaskCall] {
                let result = result.to_owned();
                let it = AgentResult { result, terminate_reason, escalate_reason: escalate_reason.clone() };
                assert_eq!(AgentResult::from_words(&it.in_words("a-1")), it);
            }
        }
        let other = "A hook says\nResult:\nno";
        assert_eq!(AgentResult::from_words(other), AgentResult::new(TerminateMode::Goal, other));
    }
}
