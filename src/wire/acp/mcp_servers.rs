//! `_castor/mcp/servers` and `_castor/mcp/switch`: how the MCP servers of a session are, and turning them on and off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::ids::SessionId;

/// Says how each MCP server of a session is.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) struct McpServersMethod {
    params: Option<Params>,
    result: Option<McpServers>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfServersSession")]
struct Params {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// Turns an MCP server on or off in a session, as `/mcp enable` and `/mcp disable` do; then says how each is.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) struct McpSwitchMethod {
    params: Option<McpSwitch>,
    result: Option<McpServers>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpSwitch {
    pub session_id: SessionId,
    /// As the configuration names it.
    pub server: String,
    pub on: bool,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServers {
    pub servers: Vec<McpServerReport>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerReport {
    /// As the configuration names it.
    pub name: String,
    pub status: McpServerState,
    /// In words, where it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many tools the model has of it.
    pub tools: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    Starting,
    Ready,
    /// It is started again by itself.
    Down,
    Failed,
    /// `/mcp login` or `castor mcp login` lets castor in.
    NeedsLogin,
    /// It does not take the token of its settings.
    Unauthorized,
    /// The settings or the user say so.
    Off,
    /// The folder is not trusted.
    Untrusted,
}

/// Reads the params.
///
/// # Errors
/// See [`super::params`].
pub fn read_servers(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: Params = super::params(params)?;
    Ok(it.session_id)
}

/// Reads the params.
///
/// # Errors
/// See [`super::params`].
pub fn read_switch(params: Option<&RawValue>) -> Result<McpSwitch, String> {
    super::params(params)
}
