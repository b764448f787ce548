//! The tool `complete_task`, with which a sub-agent hands in its result and ends its run.

use serde_json::{Map, Value, json};
use thiserror::Error;

use castor_base::{
    agent::{AgentOutput, COMPLETE_TASK},
    tool::{ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

pub const NAME: &str = COMPLETE_TASK;
/// The result of an agent that handed in nothing.
pub const NO_RESULT: &str = "Task completed successfully.";

/// A fault of the model's call.
#[derive(Debug, Error)]
enum CallError {
    #[error("Missing required argument '{0}' for completion.")]
    NoOutput(String),
    #[error("Missing required \"result\" argument. You must provide your findings when calling complete_task.")]
    NoResult,
    #[error("Output validation failed: {0}")]
    Unfit(String),
    #[error("Task already marked complete in this turn. Ignoring duplicate call.")]
    Duplicate,
}

/// For an agent with an output of its own, or with a text as its result.
pub fn spec(output: Option<&AgentOutput>) -> ToolSpec {
    let result =
        || json!({ "type": "string", "description": "Your final result: what was asked for, whole and by itself." });
    let (name, property) = match output {
        Some(it) => (it.name.as_str(), described(it)),
        None => ("result", result()),
    };
    let properties = Map::from_iter([(name.to_owned(), property)]);
    ToolSpec {
        name: NAME.into(),
        title: "CompleteTask".into(),
        description: "Hands in your result and ends your work. Call it once, alone, when the task is done. This is the only way to finish.".into(),
        kind: ToolKind::Think,
        traits: ToolTraits::TELLS,
        parameters: json!({ "type": "object", "properties": properties, "required": [name] }).into(),
    }
}

fn described(output: &AgentOutput) -> Value {
    let mut schema = output.schema.clone();
    if let Some(it) = schema.as_object_mut() {
        it.entry("description").or_insert_with(|| output.description.as_str().into());
    }
    schema
}

/// Takes the result of the run into `completed`, which has it already after an earlier call of the same answer.
pub fn run(output: Option<&AgentOutput>, args: &Map<String, Value>, completed: &mut Option<String>) -> ToolOutput {
    match submit(output, args, completed.is_some()) {
        Ok((result, status)) => {
            *completed = Some(result);
            ToolOutput::text(status.to_string())
        }
        Err(why) => ToolOutput::failed(ToolError::new("invalid_tool_params", why.to_string())),
    }
}

fn submit(
    output: Option<&AgentOutput>,
    args: &Map<String, Value>,
    is_complete: bool,
) -> Result<(String, Value), CallError> {
    if is_complete {
        return Err(CallError::Duplicate);
    }
    let Some(output) = output else {
        let result = args.get("result").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
        let result = result.ok_or(CallError::NoResult)?;
        return Ok((result.to_owned(), json!({ "status": "Result submitted and task completed." })));
    };
    let value = args.get(&output.name).ok_or_else(|| CallError::NoOutput(output.name.clone()))?;
    check(&output.schema, value).map_err(CallError::Unfit)?;
    Ok((in_words(value), json!({ "result": "Output submitted and task completed." })))
}

/// A schema that is none is the fault of the definition, and accepts everything.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let Ok(validator) = jsonschema::validator_for(schema) else { return Ok(()) };
    let found: Vec<String> = validator
        .iter_errors(value)
        .take(5)
        .map(|it| match it.instance_path().as_str() {
            "" => it.to_string(),
            path => format!("{path}: {it}"),
        })
        .collect();
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        it => serde_json::to_string_pretty(it).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::run;
    use castor_base::{agent::AgentOutput, content::joined_text};

    /// What is answered to the calls of one answer, and the result that counts.
    #[track_caller]
    fn check(output: Option<Value>, calls: &[Value], answers: &[&str], result: Option<&str>) {
        let output = output.map(|schema| AgentOutput { name: "report".into(), description: "It.".into(), schema });
        let mut completed = None;
        let said = calls.iter().map(|it| {
            let output = run(output.as_ref(), it.as_object().unwrap(), &mut completed);
            output.error.map_or_else(|| joined_text(&output.content), |it| it.message)
        });
        assert_eq!(said.collect::<Vec<_>>(), answers);
        assert_eq!(completed.as_deref(), result);
    }

    #[test]
    fn a_text_is_required_and_counts_once() {
        let missing =
            "Missing required \"result\" argument. You must provide your findings when calling complete_task.";
        check(None, &[json!({}), json!({ "result": " " }), json!({ "result": 3 })], &[missing; 3], None);
        let done = "{\"status\":\"Result submitted and task completed.\"}";
        let again = "Task already marked complete in this turn. Ignoring duplicate call.";
        check(None, &[json!({ "result": "R" }), json!({ "result": "S" })], &[done, again], Some("R"));
    }

    #[test]
    fn an_output_fits_its_schema() {
        let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
        check(
            Some(schema),
            &[json!({ "result": "R" }), json!({ "report": { "n": "x" } }), json!({ "report": { "n": 1 } })],
            &[
                "Missing required argument 'report' for completion.",
                "Output validation failed: /n: \"x\" is not of type \"integer\"",
                "{\"result\":\"Output submitted and task completed.\"}",
            ],
            Some("{\n  \"n\": 1\n}"),
        );
    }
}
