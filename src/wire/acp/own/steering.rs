//! The extension method `_session/steering`: its shapes. `session` reads and writes it.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use castor_base::ids::SessionId;

/// Tells the model something while a turn runs.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct SteeringMethod {
    params: Option<SteeringParams>,
    result: Option<SteeringResult>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OfSteering")]
#[allow(dead_code, reason = "only its schema is used")]
struct SteeringParams {
    session_id: SessionId,
    /// Content blocks, as in session/prompt.
    prompt: Vec<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct SteeringResult {
    outcome: SteeringOutcome,
    /// Why the model did not get it.
    message: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
enum SteeringOutcome {
    /// The model reads it with its next request.
    Injected,
    /// No turn ran: it begins one.
    StartedNewTurn,
    /// The turn is over: send it as a prompt.
    PromptRequired,
    /// castor refused it.
    Failed,
}
