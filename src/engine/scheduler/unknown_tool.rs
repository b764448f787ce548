//! Errors for calls of unknown or hidden tools.

use std::sync::Arc;

use crate::{
    policy::{self, Rule},
    scheduler::denials,
    step::{Server, ServerStatus},
};
use castor_base::{
    text,
    tool::{ToolError, ToolOutput, ToolSpec},
};

/// A tool that is always denied.
#[derive(Clone, Debug)]
pub(super) struct HiddenTool {
    name: Arc<str>,
    pub server: Option<String>,
    /// The rule's message to the caller.
    why: String,
    /// The rule, for people.
    rule: String,
}

impl HiddenTool {
    pub fn is(&self, name: &str) -> bool {
        *self.name == *name
    }
}

/// Tells whether the tool stays, as no rule hides it.
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
        rule: rule.name(&tool.name),
    }));
    by.is_none()
}

/// What a rule says of this name.
pub(super) fn hidden_output(hidden: &[HiddenTool], name: &str) -> Option<ToolOutput> {
    let name = policy::current_name(name);
    hidden.iter().find(|it| *it.name == *name).map(|it| denials::hidden(&it.rule, &it.why))
}

/// No tool has this name: why, or which names come near.
pub(super) fn not_found_error(servers: &[Server], tools: &[ToolSpec], name: &str) -> ToolError {
    let short = text::head(name, 100);
    if let Some(why) = servers.iter().find_map(|it| missing(it, tools, name)) {
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
fn missing(server: &Server, tools: &[ToolSpec], tool: &str) -> Option<String> {
    let prefix = format!("mcp_{}_", server.name);
    let offers_some = tools.iter().any(|it| it.name.starts_with(&prefix));
    let why = match &server.status {
        _ if !tool.starts_with(&prefix) => return None,
        ServerStatus::Down(it) if !offers_some => format!("is not there: {}", it.why),
        ServerStatus::Ready | ServerStatus::Down(_) => return None,
        ServerStatus::Starting { .. } => "is still starting".to_owned(),
        ServerStatus::Lost(why) | ServerStatus::Unauthorized { why, .. } => format!("is gone: {why}"),
        ServerStatus::Off(why) => format!("is off: {why}"),
        ServerStatus::Untrusted => "is off: the folder is not trusted".to_owned(),
    };
    Some(format!("MCP server {:?} {why}", server.name))
}
