//! The extension method `_castor/options/list`: options of a session in a folder, before there is one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use castor_base::path::AbsPath;

/// Lists the options that a session in a folder would have. No session begins.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct OptionsMethod {
    params: Option<Params>,
    result: Option<OfferedList>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "written as that of session/set_config_option")]
struct OfferedList {
    /// All options, as in the answer to session/new.
    config_options: Vec<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OfFolder")]
struct Params {
    /// Absolute.
    cwd: String,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// Reads `_castor/options/list`.
///
/// # Errors
/// See [`crate::acp::params`]; also for a path that is not absolute.
pub fn read_folder(params: Option<&RawValue>) -> Result<AbsPath, String> {
    let it: Params = crate::acp::params(params)?;
    AbsPath::from_text(&it.cwd).ok_or_else(|| format!("cwd must be an absolute path, not {:?}.", it.cwd))
}
