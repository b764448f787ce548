//! `_castor/tools/list`: the tools that the model has in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::base::{ids::SessionId, tool::ToolKind};

/// Lists the tools that the model has in a session.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) struct ToolsMethod {
    params: Option<Params>,
    result: Option<SessionTools<'static>>,
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

#[derive(Serialize, JsonSchema)]
pub struct SessionTools<'a> {
    pub tools: Vec<SessionTool<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTool<'a> {
    pub name: &'a str,
    /// The user's name for it.
    pub title: &'a str,
    /// For the model.
    pub description: &'a str,
    pub kind: ToolKind,
    /// A JSON Schema.
    #[schemars(with = "Value")]
    pub parameters_schema: &'a RawValue,
    /// It changes nothing.
    pub read_only: bool,
    /// The MCP server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
}

/// Reads the params.
///
/// # Errors
/// See [`super::params`].
pub fn read_tools(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: Params = super::params(params)?;
    Ok(it.session_id)
}
