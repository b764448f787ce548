//! The tool `request_permission`: another agent asks whether it may do something by itself. The tool of castor's that would
//! do it is decided about, and not run.

use serde_json::{Value, json};

use castor_base::{
    peer_agent::REQUEST_PERMISSION,
    text,
    tool::{ToolCall, ToolKind, ToolSpec, ToolTraits},
};

/// Longest words of the agent for what it wants, in characters.
const MAX_TITLE: usize = 300;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: REQUEST_PERMISSION.into(),
        title: "Permission".into(),
        description: "Asks whether something may be done, without doing it.".into(),
        kind: ToolKind::Other,
        traits: ToolTraits::default(),
        parameters: json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "tool": { "type": "string" },
                "args": { "type": "object" }
            },
            "required": ["title"]
        })
        .into(),
    }
}

/// The call that it is about; `None`: castor has no such tool.
pub(super) fn permission_call(call: &ToolCall) -> Option<ToolCall> {
    if call.name != REQUEST_PERMISSION {
        return None;
    }
    let name = call.args.get("tool")?.as_str()?.to_owned();
    Some(ToolCall { id: call.id.clone(), name, args: call.args.get("args").cloned().unwrap_or_default() })
}

/// The title of what the agent says it wants to do.
pub(super) fn title(call: &ToolCall) -> String {
    let said = call.args.get("title").and_then(Value::as_str).unwrap_or_default();
    format!("Permission: {}", text::first_line(said, MAX_TITLE))
}
