//! ACP conversion: params to base values, facts to updates. Only this room and app know ACP.

pub mod air;
pub mod client;
mod content;
pub mod credentials;
pub mod drafts;
pub mod elicitation;
mod git_patch;
pub mod initialize;
pub mod mcp_message;
pub mod mcp_servers;
pub mod meta;
mod notices;
pub mod offered_commands;
pub mod options;
pub mod own;
pub mod permission;
pub mod permission_forms;
mod plans;
pub mod question_answer;
pub mod session;
pub mod terminals;
pub mod trace;
pub mod update;
pub mod updates;
pub mod v2;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads params of type `T`.
///
/// # Errors
/// One line that names what is wrong; it goes to the client with -32602.
pub fn params<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, String> {
    let text = params.ok_or_else(|| params_error("params are missing"))?.get();
    // A derived struct would also be read from an array, by position.
    if !text.trim_start().starts_with('{') {
        return Err(params_error("params must be an object"));
    }
    serde_json::from_str(text).map_err(|it| params_error(&it.to_string()))
}

/// What is wrong, and what to do about it.
fn params_error(why: &str) -> String {
    format!("{why}. Send the params that the schema has for this method.")
}
