//! The `_meta` fields of what a session tells and asks: castor writes them as an agent, and reads them as a client.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use castor_base::{
    ids::{CallId, MessageId},
    path::AbsPath,
};

/// Of a call, what is older than the protocol's own fields, and terminals that the client draws.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CallMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_info: Option<TerminalInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_output: Option<TerminalOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_exit: Option<TerminalExit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub castor: Option<OwnCallMeta>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnCallMeta {
    /// The call failed, as it needs an approval and the client answers no questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unasked: Option<bool>,
    /// Another agent made the call by itself, and says so: castor neither decided nor ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<bool>,
}

/// Of a question.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct QuestionMeta {
    pub castor: OwnQuestionMeta,
    /// A refused key: the login that stores another, for clients that start logins in the way of before `auth.terminal`.
    #[serde(rename = "terminal-auth", skip_serializing_if = "Option::is_none")]
    pub terminal_auth: Option<TerminalLogin>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnQuestionMeta {
    /// The sub-agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A credential was refused, and the user is asked to renew it. No secret is expected as an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_required: Option<AuthRequiredMeta>,
    /// The answer may have `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editable: Option<bool>,
}

/// A whole command: the client knows only this, and starts it in its own environment.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TerminalLogin {
    pub label: Cow<'static, str>,
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthRequiredMeta {
    /// `model/PROVIDER`, `server/MCP-SERVER` or `agent/AGENT`.
    pub credential: String,
    /// The one of `authMethods` that stores another key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method_id: Option<Cow<'static, str>>,
}

impl QuestionMeta {
    pub fn into_map(self) -> Map<String, Value> {
        into_map(self)
    }
}

/// Begins a terminal.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TerminalInfo {
    pub terminal_id: CallId,
    pub cwd: AbsPath,
}

/// What is new in it: appended, not a snapshot. Also for a client with `outputDeltas`, which begins no terminal.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TerminalOutput {
    pub terminal_id: CallId,
    pub data: String,
}

/// Ends it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TerminalExit {
    pub terminal_id: CallId,
    pub exit_code: Option<i64>,
    pub signal: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SubagentMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub castor: Option<OwnSubagentMeta>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnSubagentMeta {
    /// The call that started it, in the session above.
    pub call: CallId,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NoticeMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub castor: Option<OwnNoticeMeta>,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnNoticeMeta {
    /// Messages that do not count any more, as their answer broke off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discards: Option<Vec<MessageId>>,
}

impl CallMeta {
    pub fn into_map(self) -> Map<String, Value> {
        into_map(self)
    }
}

fn into_map(meta: impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(meta) {
        Ok(Value::Object(it)) => it,
        // Structs of texts and numbers always become objects.
        Ok(_) | Err(_) => Map::new(),
    }
}

impl NoticeMeta {
    /// The messages that do not count any more.
    pub fn discards(&self) -> Vec<&str> {
        let own = self.castor.as_ref().and_then(|it| it.discards.as_ref());
        own.into_iter().flatten().map(MessageId::as_str).collect()
    }
}

impl SubagentMeta {
    /// The call that started it; other agents than castor may not say.
    pub fn call(&self) -> Option<&str> {
        self.castor.as_ref().map(|it| it.call.as_str())
    }
}

/// Of the params of a `session/update` that castor's hub passes on or makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateMeta {
    #[serde(default)]
    pub castor: OwnUpdateMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnUpdateMeta {
    /// True: the session's history is told once more.
    pub history: bool,
    /// Of a prompt of another client: how many blocks it has.
    pub blocks: Option<u64>,
}
