//! ACP conversion: params to base values, facts to updates. Only this room and app know ACP.

mod activities;
pub mod agents;
pub mod air;
pub mod archive_filter;
pub mod attach;
pub mod auth_status;
mod call_content;
mod child_view;
pub mod client;
mod content;
pub mod credentials;
pub mod custom_event;
pub mod definition_list;
pub mod draft_rewind;
pub mod drafts;
pub mod elicitation;
pub mod events;
pub mod folder_options;
mod git_patch;
pub mod host_tools;
pub mod initialize;
pub mod intercept;
pub mod mcp_complete;
pub mod mcp_message;
pub mod mcp_servers;
pub mod meta;
mod notices;
pub mod offered_commands;
pub mod options;
pub mod own_methods;
pub mod permission;
pub mod permission_forms;
mod plans;
pub mod policy;
pub mod prompt_options;
pub mod providers;
pub mod question_answer;
pub mod quota;
mod replay;
mod reported_calls;
pub mod rewind;
pub mod session;
pub mod session_metadata;
pub mod state;
mod steering;
pub mod subagents;
mod system_prompt;
pub mod terminals;
mod text_chunks;
pub mod tool_calls;
pub mod tool_list;
pub mod trace;
pub mod updates;
mod usage;
pub mod v2;
pub mod workspace_trust;

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
