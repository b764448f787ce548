//! The tool `transfer_to_agent`, with which the agent of a session hands the session over to another one.

use serde_json::{Map, Value, json};

use castor_base::{
    agent::TRANSFER_TO_AGENT,
    text,
    tool::{ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = TRANSFER_TO_AGENT;

/// `agents`: names and descriptions of those that can take over.
pub fn spec(agents: &[(String, String)]) -> ToolSpec {
    let names: Vec<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
    let rows: String = agents.iter().map(|(name, about)| format!("\n- {name}: {about}")).collect();
    let description = format!(
        "Hands the conversation over to another agent, which sees all of it and answers the user from then on. Call it alone, \
         when the request is rather that agent's. Agents:{rows}"
    );
    ToolSpec {
        name: NAME.into(),
        title: "TransferToAgent".into(),
        description: description.into(),
        kind: ToolKind::Other,
        traits: ToolTraits::TELLS,
        parameters: json!({
            "type": "object",
            "properties": { "agent_name": { "type": "string", "enum": names } },
            "required": ["agent_name"]
        })
        .into(),
    }
}

/// Takes the agent into `transfer`, which has one already after an earlier call of the same answer.
pub fn run(agents: &[(String, String)], args: &Map<String, Value>, transfer: &mut Option<String>) -> ToolOutput {
    let failed = |kind, why: String| ToolOutput::failed(ToolError::new(kind, why));
    let name = args.get("agent_name").and_then(Value::as_str).unwrap_or_default();
    if let Some(first) = transfer {
        return failed("invalid_tool_params", format!("The conversation goes to {first} already. Ignoring this call."));
    }
    if agents.iter().all(|(it, _)| it != name) {
        let names: Vec<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!("Agent '{}' cannot take over. Choose one of {}.", text::head(name, 200), names.join(", "));
        return failed("agent_not_found", why);
    }
    *transfer = Some(name.to_owned());
    ToolOutput::text(format!("The conversation is {name}'s now. If you are {name}, answer the user's last request."))
}
