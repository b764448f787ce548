//! The extension method `_castor/agents/list`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use castor_base::{agent::AgentList, ids::SessionId, path::AbsPath};

/// The place whose agents a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentsPlace {
    /// Those of an open session, as they were switched there.
    Session(SessionId),
    /// Those that a session in this folder would have.
    Folder(AbsPath),
}

/// Lists the agents of a session or of a folder.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct AgentsMethod {
    params: Option<Params>,
    result: Option<AgentList>,
}

/// One of `sessionId` and `cwd`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfSessionOrFolder")]
struct Params {
    session_id: Option<SessionId>,
    /// Absolute.
    cwd: Option<String>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// Reads `_castor/agents/list`.
///
/// # Errors
/// See [`crate::acp::params`]; also without exactly one place.
pub fn read_place(params: Option<&RawValue>) -> Result<AgentsPlace, String> {
    let it: Params = crate::acp::params(params)?;
    match (it.session_id, it.cwd) {
        (Some(session), None) => Ok(AgentsPlace::Session(session)),
        (None, Some(cwd)) => {
            let folder =
                AbsPath::from_text(&cwd).ok_or_else(|| format!("cwd must be an absolute path, not {cwd:?}."))?;
            Ok(AgentsPlace::Folder(folder))
        }
        _ => Err("give sessionId or cwd, one of them".to_owned()),
    }
}
