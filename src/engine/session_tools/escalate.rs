//! The tool `escalate`, with which an agent in a loop ends the loop and its own run.

use serde_json::{Map, Value, json};

use castor_base::{
    agent::ESCALATE,
    tool::{ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = ESCALATE;

pub fn spec() -> ToolSpec {
    let reason = json!({ "type": "string", "description": "Why the loop is to end, in a sentence." });
    ToolSpec {
        name: NAME.into(),
        title: "Escalate".into(),
        description:
            "Ends the loop that you work in, and your own work: its goal is reached, or cannot be. The last result of \
                      the loop stands, unless you call `complete_task` with a better one in the same answer."
                .into(),
        kind: ToolKind::Think,
        traits: ToolTraits::TELLS,
        parameters: json!({ "type": "object", "properties": { "reason": reason }, "required": ["reason"] }).into(),
    }
}

/// Takes the reason into `escalated`, which has it already after an earlier call of the same answer.
pub fn run(args: &Map<String, Value>, escalated: &mut Option<String>) -> ToolOutput {
    let failed = |why: &str| ToolOutput::failed(ToolError::new("invalid_tool_params", why));
    let reason = args.get("reason").and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    match reason {
        None => failed("Missing required \"reason\" argument. Say in a sentence why the loop is to end."),
        Some(_) if escalated.is_some() => failed("The loop ends already. Ignoring duplicate call."),
        Some(it) => {
            *escalated = Some(it.to_owned());
            ToolOutput::text("The loop ends.")
        }
    }
}
