//! Errors for calls of unknown or hidden tools.

use std::sync::Arc;

use crate::{
    base::{
        text,
        tool::{ToolError, ToolSpec},
    },
    engine::{
        policy::{self, Rule},
        step::{Server, ServerStatus},
    },
};

/// A tool that is always denied.
#[derive(Clone, Debug)]
pub(super) struct HiddenTool {
    name: Arc<str>,
    pub server: Option<String>,
    /// The rule's message to the caller.
    why: String,
}

/// Whether the tool stays, as no rule hides it.
pub(super) fn keep_or_hide(
    out: &mut Vec<HiddenTool>,
    tool: &ToolSpec,
    server: Option<&str>,
    by: Option<&Rule>,
) -> bool {
    out.extend(by.map(|rule| HiddenTool {
        name: (*tool.name).into(),
        server: server.map(str::to_owned),
        why: rule.deny_message.clone().unwrap_or_default(),
    }));
    by.is_none()
}

/// For the model, of what a rule denies.
pub(super) fn denied_error(why: &str) -> ToolError {
    let text = format!("Tool execution denied by policy. {why}");
    ToolError::new("policy_violation", text.trim_end())
}

/// What a rule says of this name.
pub(super) fn hidden_error(hidden: &[HiddenTool], name: &str) -> Option<ToolError> {
    let name = policy::current_name(name);
    hidden.iter().find(|it| *it.name == *name).map(|it| denied_error(&it.why))
}

/// No tool has this name: why, or which names come near.
pub(super) fn not_found_error(servers: &[Server], tools: &[ToolSpec], name: &str) -> ToolError {
    let short = text::head(name, 100);
    if let Some(why) = servers.iter().find_map(|it| missing(it, name)) {
        return ToolError::new("tool_not_registered", format!("Tool \"{short}\" is not available: {why}."));
    }
    let mut near: Vec<(f32, &str)> =
        tools.iter().map(|it| (similar::TextDiff::from_chars(name, &it.name).ratio(), &*it.name)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<String> = near.iter().take(3).map(|it| format!("\"{}\"", it.1)).collect();
    let text = format!("Tool \"{short}\" not found. Did you mean one of: {}?", near.join(", "));
    ToolError::new("tool_not_registered", text)
}

/// Why the server that a tool's name speaks of does not offer it.
fn missing(server: &Server, tool: &str) -> Option<String> {
    let rest = tool.strip_prefix("mcp_")?.strip_prefix(&*server.name)?;
    let why = match &server.status {
        _ if !rest.starts_with('_') => return None,
        ServerStatus::Ready | ServerStatus::Down(_) => return None,
        ServerStatus::Starting { .. } => "is still starting".to_owned(),
        ServerStatus::Lost(why) => format!("is gone: {why}"),
        ServerStatus::Off(why) => format!("is off: {why}"),
        ServerStatus::Untrusted => "is off: the folder is not trusted".to_owned(),
    };
    Some(format!("MCP server {:?} {why}", server.name))
}
