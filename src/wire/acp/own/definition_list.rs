//! `_castor/definitions/list`: the commands, skills and extensions of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{agent::AgentOrigin, extension::ExtensionSummary, file_prompt::FolderPrompts, ids::SessionId};

/// Lists the commands of files, the skills and the extensions of a session.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct DefinitionsMethod {
    params: Option<Params>,
    result: Option<DefinitionList>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfDefinitionsSession")]
struct Params {
    session_id: SessionId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionList {
    pub commands: Vec<ListedCommand>,
    pub skills: Vec<ListedSkill>,
    pub extensions: Vec<ListedExtension>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ListedCommand {
    /// As it is typed behind the slash.
    pub name: String,
    pub description: String,
    /// Absent: castor brings it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ListedSkill {
    pub name: String,
    pub description: String,
    /// Whether the model may ask for it in this session. `skills` of `_castor/session/update` changes it.
    pub enabled: bool,
    /// Absent: castor brings it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ListedExtension {
    pub name: String,
    pub version: String,
    /// `on`, or why it does not count.
    pub state: String,
    /// What it brings, in words.
    pub brings: String,
}

impl From<&FolderPrompts> for DefinitionList {
    fn from(all: &FolderPrompts) -> Self {
        let file = |it: &AgentOrigin| it.file().map(ToString::to_string);
        let commands = all.commands.iter().map(|it| ListedCommand {
            name: it.name.clone(),
            description: it.description.clone(),
            file: file(&it.origin),
        });
        let skills = all.skills.iter().map(|it| ListedSkill {
            name: it.name.clone(),
            description: it.description.clone(),
            enabled: it.enabled,
            file: file(&it.origin),
        });
        let extensions =
            all.extensions.iter().map(|ExtensionSummary { name, version, state, brings }| ListedExtension {
                name: name.clone(),
                version: version.clone(),
                state: state.clone(),
                brings: brings.clone(),
            });
        Self { commands: commands.collect(), skills: skills.collect(), extensions: extensions.collect() }
    }
}

/// Reads the params.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_definitions(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: Params = crate::acp::params(params)?;
    Ok(it.session_id)
}
