//! `_castor/policy/evaluate`: a client asks what castor's policy says of a call, and castor asks what the client's says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::jsonrpc::message::RpcError;
use castor_base::{
    check::{CheckFinding, ClientCheck, ClientPolicy},
    ids::{CallId, SessionId, StreamId, ThreadId},
    log::{Decision, Mode},
    policy_answer::PolicyAnswer,
    tool::ToolKind,
};

pub const METHOD: &str = "_castor/policy/evaluate";
/// What a client may be in policy.
pub const POLICY_ROLES: &[&str] = &["veto", "host"];
/// How long castor waits for a verdict, unless the client says otherwise, and at most. In milliseconds.
const TIMEOUT_MS: u64 = 10_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// A role, or all that can be said of it.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ClientPolicyParam {
    Role(PolicyRole),
    Policy(ClientPolicyParams),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientPolicyParams {
    role: PolicyRole,
    /// How long castor waits for the verdict. [default: 10000]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS))]
    timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum PolicyRole {
    /// Its deny and its ask count.
    Veto,
    /// Its allow counts, too, where castor would ask the user.
    Host,
}

/// Reads `clientCapabilities._meta.castor.policy`.
///
/// # Errors
/// One line that names what is wrong.
pub fn read_client_policy(value: &Value) -> Result<ClientPolicy, String> {
    let wrong = |why: String| format!("clientCapabilities._meta.castor.policy: {why}");
    let params = match value {
        Value::Object(_) => ClientPolicyParams::deserialize(value),
        role => PolicyRole::deserialize(role).map(|role| ClientPolicyParams { role, timeout_ms: None }),
    };
    let ClientPolicyParams { role, timeout_ms } = params.map_err(|it| wrong(it.to_string()))?;
    let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
    if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(wrong(format!("timeoutMs {timeout_ms} is not between 1 and {MAX_TIMEOUT_MS}")));
    }
    Ok(ClientPolicy { may_allow: role == PolicyRole::Host, timeout_ms })
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct PolicyMethod {
    params: Option<EitherParams>,
    result: Option<EitherResult>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum EitherParams {
    /// Of a client.
    OfClient(Params),
    /// Of castor.
    OfCastor(ClientPolicyRequest),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum EitherResult {
    /// Of castor.
    OfCastor(PolicyAnswer),
    /// Of a client.
    OfClient(ClientVerdict),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfPolicy")]
struct Params {
    session_id: SessionId,
    /// As the model calls it.
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    /// In place of the session's own; a mode that is not on offer there can be asked about as well.
    mode: Option<String>,
    /// The sub-agent that calls. [default: the session's own agent]
    principal: Option<String>,
    /// In place of `principal`: the agents from the main one down to it.
    #[serde(default)]
    principal_path: Vec<String>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// A call that a client asks about.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyParams {
    pub session: SessionId,
    pub tool: String,
    pub args: Value,
    pub mode: Option<Mode>,
    pub principal: Option<String>,
}

/// Reads `_castor/policy/evaluate`.
///
/// # Errors
/// See [`crate::acp::params`]; also for a mode that there is not.
pub fn read_evaluate(params: Option<&RawValue>) -> Result<PolicyParams, String> {
    let Params { session_id, tool, args, mode, principal, mut principal_path, .. } = crate::acp::params(params)?;
    // The main agent is none of those that rules name.
    let principal = principal.or_else(|| principal_path.pop().filter(|_| !principal_path.is_empty()));
    let read_mode = |it: String| {
        let known: Vec<&str> = Mode::OFFERED.iter().map(|it| it.as_str()).collect();
        Mode::parse(&it).ok_or_else(|| format!("unknown mode {it:?}; choose one of {}", known.join(", ")))
    };
    let mode = mode.map(read_mode).transpose()?;
    Ok(PolicyParams { session: session_id, tool, args: Value::Object(args), mode, principal })
}

/// What castor asks the client before a call that it would allow or ask about.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientPolicyRequest {
    /// The user's session, also where a sub-agent of it is at work.
    session_id: SessionId,
    stream_id: StreamId,
    /// Of a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<ThreadId>,
    tool_call_id: CallId,
    tool: String,
    args: Value,
    kind: ToolKind,
    /// The sub-agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// Of a sub-agent: the agents from the main one down to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    principal_path: Vec<String>,
    mode: Mode,
    /// What castor's own policy says.
    decision: Decision,
    /// The rule that says it.
    rule: String,
}

impl ClientPolicyRequest {
    pub fn new(session: &SessionId, it: ClientCheck) -> Self {
        Self {
            session_id: session.root(),
            stream_id: it.place.stream,
            thread_id: it.place.thread,
            principal_path: it.place.principal_path,
            tool_call_id: it.call.id,
            tool: it.call.name,
            args: it.call.args,
            kind: it.kind,
            principal: it.principal,
            mode: it.mode,
            decision: it.decision,
            rule: it.rule,
        }
    }
}

/// The client's answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClientVerdict {
    decision: Decision,
    /// For model and user.
    #[serde(default)]
    reason: String,
    #[serde(default, rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// What the answer says of the call.
///
/// # Errors
/// It says nothing: why.
pub fn finding(outcome: Result<Value, RpcError>) -> Result<CheckFinding, String> {
    let value = outcome.map_err(|it| format!("it answered with an error: {}", it.message))?;
    let it: ClientVerdict = serde_json::from_value(value).map_err(|it| format!("its answer cannot be read: {it}"))?;
    Ok(CheckFinding { decision: it.decision, reason: it.reason })
}
