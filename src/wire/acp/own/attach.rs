//! The extension method `_castor/session/attach`: one more client joins a session that is open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::jsonrpc::message::RequestId;
use castor_base::{ids::SessionId, text};

/// Reads a session that is open, for one more client. Nothing of it changes, and a turn continues.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct AttachMethod {
    params: Option<AttachParams>,
    result: Option<AttachResult>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttachParams {
    session_id: SessionId,
    /// Whether the conversation so far is wanted; without it: yes.
    history: Option<bool>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// As the answer of session/load, and the history in it: what comes after the answer is new.
#[derive(Serialize, JsonSchema)]
pub struct AttachResult {
    /// Params of `session/update`, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    history: Option<Vec<Box<RawValue>>>,
    #[serde(flatten)]
    session: Map<String, Value>,
}

/// Leaves a session of `castor serve`, which continues, also when you were its last client.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct DetachMethod {
    params: Option<DetachParams>,
    result: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "the hub reads the id alone")]
struct DetachParams {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// Writes down which of several clients did something, as an event of the type `custom`.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct ClientActMethod {
    params: Option<ClientActParams>,
    result: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClientActParams {
    session_id: SessionId,
    act: ClientAct,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// One client of several did something.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientAct {
    kind: ActKind,
    by: ActingClient,
    /// The question that was answered, as its request is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    request_id: Option<RequestId>,
    /// The option that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ActKind {
    Prompt,
    Answer,
    Cancel,
}

/// Lets a session go that is at rest: its log is closed, and its memory is free. session/resume opens it again.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct SleepMethod {
    params: Option<SleepParams>,
    result: Option<SleepResult>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SleepParams {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize, JsonSchema)]
pub struct SleepResult {
    /// Whether it was let go. One with hooks, servers, followers, processes or a question stays.
    pub asleep: bool,
}

/// As its hub knows it.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActingClient {
    pub principal: String,
    pub connection: u64,
    /// As it named itself.
    pub client: String,
}

/// A notification of `castor serve`: who is in a session now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientsNotice<'a> {
    pub session_id: &'a str,
    pub clients: Vec<ActingClient>,
}

/// A notification of `castor serve`: another client answered a question.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswered<'a> {
    pub session_id: &'a str,
    /// That of the question.
    #[schemars(with = "Value")]
    pub request_id: &'a RequestId,
    pub by: ActingClient,
    /// What was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_id: Option<&'a str>,
}

/// A notification of `castor serve`: the prompt of another client is answered.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptEnded<'a> {
    pub session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingClient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// Longest name of a client or an option that is written down, in bytes.
const MAX_NAME: usize = 200;

/// Reads the params of `_castor/session/client_act`.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_client_act(params: Option<&RawValue>) -> Result<(SessionId, ClientAct), String> {
    let mut it: ClientActParams = crate::acp::params(params)?;
    let names = [Some(&mut it.act.by.client), Some(&mut it.act.by.principal), it.act.option_id.as_mut()];
    for name in names.into_iter().flatten() {
        *name = text::head(name, MAX_NAME).to_owned();
    }
    Ok((it.session_id, it.act))
}

/// Reads the params of `_castor/session/sleep`.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_sleep(params: Option<&RawValue>) -> Result<SessionId, String> {
    crate::acp::params::<SleepParams>(params).map(|it| it.session_id)
}

/// Reads the params: which session, and whether with its history.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_attach(params: Option<&RawValue>) -> Result<(SessionId, bool), String> {
    let it: AttachParams = crate::acp::params(params)?;
    Ok((it.session_id, it.history != Some(false)))
}

impl AttachResult {
    /// `session`: as session/load is answered. `updates`: lines of `session/update`.
    pub fn new(session: &impl Serialize, updates: Option<&[u8]>) -> Self {
        let session = serde_json::to_value(session).ok().and_then(|it| it.as_object().cloned()).unwrap_or_default();
        Self { history: updates.map(|it| it.split(|it| *it == b'\n').filter_map(params_of).collect()), session }
    }
}

fn params_of(line: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Update {
        params: Box<RawValue>,
    }
    serde_json::from_slice::<Update>(line).ok().map(|it| it.params)
}
