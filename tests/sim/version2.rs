//! Clients of version 2: in which lives they are, and the requests of version 1 in their shapes.

use serde_json::{Value, json};

/// Of every eleven lives.
const LIVES: &[u64] = &[3, 6, 9];

/// Whether the client of this life speaks version 2.
pub fn is_spoken(seed: u64) -> bool {
    LIVES.contains(&(seed % 11))
}

/// Answers are counted by version.
pub fn count_name(method: &str) -> String {
    format!("{method} of version 2")
}

/// The params of initialize, for a client that can do the same.
pub fn initialize(capabilities: &Value) -> Value {
    let mut own = json!({"_meta": {"castor": capabilities["_meta"]["castor"]}});
    if capabilities["auth"]["terminal"] == true {
        own["auth"] = json!({"terminal": {}});
    }
    if capabilities["elicitation"].is_object() {
        own["elicitation"] = capabilities["elicitation"].clone();
    }
    json!({"protocolVersion": 2, "capabilities": own, "info": {"name": "sim", "version": "2"}})
}

/// What version 2 has in the place of a method of version 1; drafts and AIR keep their names, and are refused.
pub fn method(name: &'static str) -> &'static str {
    match name {
        "authenticate" => "auth/login",
        "logout" => "auth/logout",
        "session/load" => "session/resume",
        "session/set_mode" | "session/set_model" => "session/set_config_option",
        other => other,
    }
}

/// The params of that method, from those of version 1.
pub fn params(name: &str, mut params: Value) -> Value {
    for server in params.get_mut("mcpServers").and_then(Value::as_array_mut).into_iter().flatten() {
        if server.get("type").is_none() {
            server["type"] = json!("stdio");
        }
    }
    let chosen = |id: &str, value: &Value| json!({"sessionId": params["sessionId"], "configId": id, "type": "id", "value": value});
    match name {
        "session/set_mode" => return chosen("mode", &params["modeId"]),
        "session/set_model" => return chosen("model", &params["modelId"]),
        "session/load" => params["replayFrom"] = json!({"type": "start"}),
        "session/set_config_option" if params.get("type").is_none() => params["type"] = json!("id"),
        _ => (),
    }
    params
}
