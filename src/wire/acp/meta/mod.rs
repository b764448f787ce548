//! The `_meta` fields that castor reads and writes, by place. All of them are optional.

pub mod messages;

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::messages::{CallMeta, NoticeMeta, QuestionMeta, SubagentMeta, TerminalLogin};
use super::question_answer::QuestionAnswerMeta;
use crate::acp::own::{
    host_tools::HostToolsParam, intercept::InterceptorParam, policy::ClientPolicyParam,
    prompt_options::PromptOptionsParams,
};
use castor_base::{
    host_tools::{HostExecution, HostTool},
    ids::{CallId, MessageId, SessionId, StreamId},
    money::Money,
    prompt_stats::PromptStats,
    state::StateDelta,
    tool::ToolCall,
};

/// One member for each place of the protocol; what stands in `_meta` there.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "Places")]
pub struct MetaPlaces {
    /// `clientCapabilities` of initialize.
    client_capabilities: Option<ClientMeta>,
    /// `agentCapabilities` in the answer to initialize.
    agent_capabilities: Option<AgentMeta>,
    /// The params of authenticate.
    authenticate: Option<AuthenticateMeta>,
    /// Each of `authMethods` in the answer to initialize.
    auth_method: Option<AuthMethodMeta>,
    /// The params of session/new, session/load, session/resume and session/fork.
    session_start: Option<SessionStartMeta>,
    /// The params of session/list, and each session of the answer.
    session_list: Option<SessionListMeta>,
    /// `sessionCapabilities.fork` in the answer to initialize.
    fork_capability: Option<ForkCapabilityMeta>,
    /// The params of session/prompt and other requests.
    request: Option<RequestMeta>,
    /// A text of session/prompt.
    prompt_text: Option<PromptTextMeta>,
    /// The answer to session/prompt, and `data` of its error.
    prompt_answer: Option<PromptAnswerMeta>,
    #[serde(flatten)]
    messages: MessagePlaces,
}

/// The same in what castor sends by itself.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
struct MessagePlaces {
    /// A tool_call or tool_call_update.
    tool_call: Option<CallMeta>,
    /// The params of elicitation/create and session/request_permission.
    question: Option<QuestionMeta>,
    /// The answer to session/request_permission.
    question_answer: Option<QuestionAnswerMeta>,
    /// A notice, or a thought in its place.
    notice: Option<NoticeMeta>,
    /// The first subagent_update of a sub-agent.
    subagent: Option<SubagentMeta>,
    /// An AgentEvent.
    event: Option<EventMeta>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "read leniently, member by member")]
struct ClientMeta {
    castor: Option<OwnClientMeta>,
    /// Draws terminals that belong to castor's own processes.
    terminal_output: Option<bool>,
    /// Runs a login command in a terminal, in the way that is older than `auth.terminal`.
    #[serde(rename = "terminal-auth")]
    terminal_auth: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written as the field does")]
struct AgentMeta {
    steering: Option<SteeringMeta>,
    castor: Option<OwnAgentMeta>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "written as the field does")]
struct OwnAgentMeta {
    /// `_castor/session/checkpoints` lists what calls changed in files.
    checkpoints: bool,
    /// `_castor/session/rewind` takes files and conversation back.
    rewind: bool,
    /// A client with `_meta.castor.hostTools` may declare tools, which castor calls by `_castor/tool/call`.
    host_tools: bool,
    /// Those that `_castor/session/event` and `_castor/session/events` bring.
    events: Option<EventsMeta>,
    /// The points that `intercepts` may name.
    #[serde(rename = "supportedHookPoints")]
    supported_hook_points: Option<Vec<String>>,
    /// What `policy` of a client may be.
    policy: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written as the field does")]
struct EventsMeta {
    /// The shape of events: 2 has ISO 8601 timestamps, `agentId`, `threadId`, `source` and `mimeType`.
    version: u32,
    /// `_castor/session/subscribe` and `_castor/session/stream` follow them.
    streams: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written as the field does")]
struct SteeringMeta {
    /// `_session/steering` takes words for a running turn.
    supported: bool,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read leniently, member by member")]
struct OwnClientMeta {
    /// False: castor asks nothing, and denies what needs an approval.
    interactive: Option<bool>,
    /// True: AgentEvents come as `_castor/session/event`, beside the updates.
    events: Option<bool>,
    /// True: output of commands comes by pieces, as `terminal_output` in `_meta` of updates; else updates repeat all of it.
    output_deltas: Option<bool>,
    /// True: castor says what a rewind takes away, by `_castor/session/rewound`.
    rewind: Option<bool>,
    /// True: the answer to a prompt says what models and tools took for it.
    stats: Option<bool>,
    /// True: a notification, and the answer to a prompt, say which stream of events is the prompt's.
    streams: Option<bool>,
    /// True: the client runs tools that it declares, or all; `declared`: no others.
    host_tools: Option<HostToolsParam>,
    /// The points at which castor asks with `_castor/intercept`, in this order.
    intercepts: Option<Vec<InterceptorParam>>,
    /// castor asks with `_castor/policy/evaluate` before calls.
    policy: Option<ClientPolicyParam>,
    /// True: a question about a call says whether the answer may have other arguments.
    edits_calls: Option<bool>,
    /// True: answers that open a session have `workspaceTrust`, and castor does not ask about the folder.
    workspace_trust: Option<bool>,
}

#[derive(Default, Deserialize, JsonSchema)]
pub struct SessionStartMeta {
    #[serde(default)]
    pub castor: OwnSessionStartMeta,
}

#[derive(Default, Deserialize, JsonSchema)]
pub struct OwnSessionStartMeta {
    /// Of session/new: the agent whose session it is; without it castor's own.
    #[serde(default)]
    #[schemars(with = "Option<AgentParam>")]
    pub agent: Option<Value>,
    /// Of session/new: the first values of its state.
    #[serde(default)]
    pub state: StateDelta,
    /// Of session/new: whose `user:` keys the state has; without it `local`.
    #[serde(default, rename = "userId")]
    pub user_id: Option<String>,
    /// Of session/new: the id of the session, of letters, digits, `-` and `_`; without it castor makes one.
    #[serde(default, rename = "sessionId")]
    pub session_id: Option<SessionId>,
    /// Of session/fork.
    #[serde(default)]
    pub fork: Option<ForkPoint>,
    /// Tools that the client runs, for as long as the session is open.
    #[serde(default)]
    pub tools: Vec<HostTool>,
    /// Which calls the client runs.
    #[serde(default, rename = "hostToolExecution")]
    pub host_tool_execution: Option<HostExecution>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum AgentParam {
    Name(String),
    /// Its definition: the keys of an agent file of the kind `local`, and `instructions` for the text below them.
    Definition(Map<String, Value>),
}

#[derive(Default, Deserialize, JsonSchema)]
pub struct SessionListMeta {
    #[serde(default)]
    pub castor: OwnSessionListMeta,
}

#[derive(Default, Deserialize, JsonSchema)]
pub struct OwnSessionListMeta {
    /// Of the params: only sessions of this agent; `default` is castor's own. In the answer: whose session it is, for
    /// clients with `_meta.castor` in their capabilities or in the params; absent where it is castor's own.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Where the copy ends.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkPoint {
    /// The last message that is in it.
    pub message_id: MessageId,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written as the field does")]
struct ForkCapabilityMeta {
    castor: Option<OwnForkCapabilityMeta>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "written as the field does")]
struct OwnForkCapabilityMeta {
    /// `_meta.castor.fork.messageId` says where the copy ends.
    at_message_id: bool,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "read member by member, with errors that repeat no secret")]
struct AuthenticateMeta {
    #[serde(rename = "api-key")]
    api_key: Option<String>,
    gateway: Option<GatewayMeta>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read member by member, with errors that repeat no secret")]
struct GatewayMeta {
    base_url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written as Gemini CLI does")]
struct AuthMethodMeta {
    /// Says that authenticate takes a key.
    #[serde(rename = "api-key")]
    api_key: Option<BTreeMap<String, String>>,
    /// Says that authenticate takes a gateway.
    gateway: Option<BTreeMap<String, String>>,
    #[serde(rename = "terminal-auth")]
    terminal_auth: Option<TerminalLogin>,
}

/// W3C trace context. Without a valid `traceparent` nothing counts.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "read by `trace` and `prompt_options`, which look at nothing else")]
struct RequestMeta {
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
    /// Of session/prompt: what holds for it alone.
    castor: Option<PromptOptionsParams>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "read leniently, member by member")]
struct PromptTextMeta {
    castor: Option<OwnPromptTextMeta>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "read leniently, member by member")]
struct OwnPromptTextMeta {
    /// True: data that was piped into `castor run`, before the user's words. It gives the session no title.
    piped: Option<bool>,
}

/// What a prompt took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptAnswerMeta {
    pub castor: OwnPromptAnswerMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnPromptAnswerMeta {
    /// Of this prompt. Absent where a model's price is not known, or no model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostMeta>,
    /// To clients with `_meta.castor.stats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Box<PromptStats>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopDetail>,
    /// To clients with `_meta.castor.streams`: the first stream of its events.
    #[serde(skip_serializing_if = "Option::is_none", rename = "streamId")]
    pub stream_id: Option<StreamId>,
    /// Calls that the client is to run: the next prompt brings their results.
    #[serde(skip_serializing_if = "Option::is_none", rename = "pendingToolCalls")]
    pub pending: Option<Vec<PendingCallMeta>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingCallMeta {
    pub request_id: CallId,
    pub name: String,
    pub args: Value,
}

/// Why a prompt ended, where the stop reason does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopDetail {
    /// `end_turn`: the prompt was a slash command that does not exist. The answer says so.
    UnknownCommand,
    /// `max_tokens`: the model reached its own output limit, not one of the user's.
    OutputLimit,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CostMeta {
    pub amount: Money,
    /// ISO 4217.
    pub currency: Cow<'static, str>,
}

impl PromptAnswerMeta {
    /// `None`: there is nothing to say. `wants_stats`: the client asked for them.
    pub fn new(
        stats: Option<Box<PromptStats>>,
        wants_stats: bool,
        stop: Option<StopDetail>,
        stream_id: Option<StreamId>,
        pending: Vec<ToolCall>,
    ) -> Option<Self> {
        let cost = stats.as_ref().and_then(|it| it.cost()).map(|amount| CostMeta { amount, currency: "USD".into() });
        let stats = stats.filter(|_| wants_stats);
        let is_empty = cost.is_none() && stats.is_none() && stop.is_none() && stream_id.is_none() && pending.is_empty();
        let meta = |ToolCall { id, name, args }| PendingCallMeta { request_id: id, name, args };
        let pending = (!pending.is_empty()).then(|| pending.into_iter().map(meta).collect());
        (!is_empty).then_some(Self { castor: OwnPromptAnswerMeta { cost, stats, stop, stream_id, pending } })
    }
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "written where the event is made")]
struct EventMeta {
    /// The message belongs to a slash command: the model does not see it.
    command: Option<bool>,
    /// The user said it while a turn ran.
    steering: Option<bool>,
    /// Of a developer's message: the places of the parts that quote others. The model sees those marked as data.
    quotes: Option<Vec<usize>>,
    /// Of a session_update: a client gave the title, and castor makes no other.
    given: Option<bool>,
    /// Of an error: one word for programs.
    code: Option<String>,
    /// Of an error: messages that do not count any more, as their answer broke off.
    discards: Option<Vec<MessageId>>,
}
