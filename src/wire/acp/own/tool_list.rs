//! `_castor/tools/list`: the tools that the model of a session has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{host_tools::HostAnnotations, ids::SessionId};

/// Lists the tools that the model of a session has, in its mode.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct ToolsMethod {
    params: Option<Params>,
    result: Option<ToolList>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfToolsSession")]
struct Params {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// By name.
    pub tools: Vec<ListedTool>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    pub name: String,
    /// What people are shown in place of the name.
    pub display_name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters_schema: Value,
    pub source: ToolSource,
    /// The name of the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// As the client or the server says; castor's own are what castor knows of them.
    pub annotations: HostAnnotations,
}

/// The program that runs calls of a tool.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolSource {
    /// It is built in.
    Castor,
    /// The client declared it.
    Host,
    /// It is of an MCP server.
    Mcp,
}

/// Reads the params.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_tools(params: Option<&RawValue>) -> Result<SessionId, String> {
    crate::acp::params::<Params>(params).map(|it| it.session_id)
}
