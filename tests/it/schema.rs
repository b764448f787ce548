//! The official schema: is what the agent writes a message of the protocol?

use std::{collections::BTreeMap, sync::LazyLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::schemas;

/// Definitions by (method, who answers it, `Request`, `Response` or `Notification`).
type Names = BTreeMap<(String, String, String), String>;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::read(include_str!("../../schema/v1.json"), |_| true));
/// What castor has of the unstable protocol.
static UNSTABLE: LazyLock<Schema> = LazyLock::new(|| {
    Schema::read(include_str!("../../schema/v1-unstable.json"), |it| {
        const OWN: &[&str] = &[
            "initialize",
            "mcp/message",
            "auth/status",
            "auth/status_update",
            "providers/disable",
            "providers/list",
            "providers/set",
            "session/archive",
            "session/fork",
            "session/list",
            "session/set_title",
            "session/status",
            "session/unarchive",
            "session/update",
        ];
        OWN.contains(&it)
    })
});

/// Version 2, a draft as a whole, and the same with what is unstable in it.
static V2: LazyLock<[Schema; 2]> = LazyLock::new(|| {
    [include_str!("../../schema/v2.json"), include_str!("../../schema/v2-unstable.json")]
        .map(|text| Schema::read(text, |_| true))
});

/// Drafts and AIR, whose shapes stand in no schema of the protocol.
const DRAFTS: &[&str] = &["session/rewind", "trust/apply", "quota/read", "_session/async_task/stop"];

/// What castor says where it is the client, of the stable protocol and of the unstable one.
static CLIENT: LazyLock<[Schema; 2]> = LazyLock::new(|| {
    [include_str!("../../schema/v1.json"), include_str!("../../schema/v1-unstable.json")]
        .map(|text| Schema::read_for("client", text, |_| true))
});

/// Of version 2: what castor writes.
pub const UPDATES_V2: &[&str] = &[
    "user_message",
    "agent_message",
    "agent_message_chunk",
    "agent_thought",
    "agent_thought_chunk",
    "state_update",
    "tool_call_update",
    "terminal_update",
    "terminal_output_chunk",
    "plan_update",
    "available_commands_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "subagent_update",
];

struct Schema {
    names: Names,
    validators: BTreeMap<String, Validator>,
}

/// What is wrong with the params of a request or notification that the agent sent.
pub fn check_sent(version: u64, method: &str, kind: &str, params: &Value) -> Result<(), String> {
    if version == 2 && !method.starts_with('_') {
        return check_sent_v2(method, kind, params);
    }
    if let Some(meta) = params["update"].get("_meta") {
        let place = match params["update"]["sessionUpdate"].as_str().unwrap_or_default() {
            it if it.starts_with("tool_call") => "toolCall",
            "subagent_update" => "subagent",
            _ => "notice",
        };
        schemas::check("meta", &json!({ place: meta }))?;
    }
    match method {
        "_castor/session/event" => {
            schemas::check("events", &params["event"])?;
            schemas::check("methods", &json!({ method: params }))
        }
        _ if method.starts_with('_') && kind == "Request" => {
            schemas::check("methods", &json!({ method: { "params": params } }))
        }
        _ if method.starts_with('_') => schemas::check("methods", &json!({ method: params })),
        "$/cancel_request" => SCHEMA.check(method, "protocol", "Notification", params),
        "auth/status_update" | "mcp/message" => UNSTABLE.check(method, "client", kind, params),
        _ if params["update"]["sessionUpdate"] == "quota_update" => {
            schemas::check("drafts", &json!({ "quota_update": params["update"] }))
        }
        _ if params["update"]["sessionUpdate"].as_str().is_some_and(|it| it.starts_with("async_task_")) => {
            schemas::check("drafts", &json!({ "task_update": params["update"] }))
        }
        _ if ["subagent_update", "plan_update", "plan_removed"]
            .iter()
            .any(|it| params["update"]["sessionUpdate"] == *it) =>
        {
            UNSTABLE.check(method, "client", kind, params)
        }
        _ => SCHEMA.check(method, "client", kind, params),
    }
}

/// What is wrong with a message of the agent; `asked`: the method that it answers.
#[allow(dead_code, reason = "the simulator has a ledger for it")]
pub fn check_message(version: u64, message: &Value, asked: Option<&str>) -> Result<(), String> {
    match (message["method"].as_str(), message.get("error")) {
        (Some(method), _) => {
            let kind = if message.get("id").is_some() { "Request" } else { "Notification" };
            check_sent(version, method, kind, &message["params"])
        }
        (None, Some(error)) => check_error(version, error),
        (None, None) => asked.map_or(Ok(()), |it| check_result(version, it, &message["result"])),
    }
}

/// What is wrong with a message of a client of ours; `asked`: the method that it answers.
#[allow(dead_code, reason = "the simulator has no other agents")]
pub fn check_as_client(message: &Value, asked: Option<&str>) -> Result<(), String> {
    let [stable, _] = &*CLIENT;
    if let Some(error) = message.get("error") {
        return stable.check_definition("Error", error);
    }
    let (method, side, kind, value) = match (message["method"].as_str(), message.get("id")) {
        (Some(method), Some(_)) => (method, "agent", "Request", &message["params"]),
        (Some(method), None) if method.starts_with('$') => (method, "protocol", "Notification", &message["params"]),
        (Some(method), None) => (method, "agent", "Notification", &message["params"]),
        (None, _) => (asked.ok_or("an answer to nothing")?, "client", "Response", &message["result"]),
    };
    if kind == "Request" {
        check_client_meta(method, value)?;
    }
    if DRAFTS.contains(&method) || method.starts_with('_') {
        let shape = match kind {
            "Request" => json!({ "params": value }),
            "Response" => json!({ "result": value }),
            _ => value.clone(),
        };
        return schemas::check(if DRAFTS.contains(&method) { "drafts" } else { "methods" }, &json!({ method: shape }));
    }
    let key = (method.to_owned(), side.to_owned(), kind.to_owned());
    let known: Vec<_> = CLIENT.iter().filter_map(|it| Some((it, it.names.get(&key)?))).collect();
    if known.is_empty() {
        return Err(format!("the schema has no {kind} {method} of a client"));
    }
    known.iter().try_for_each(|(schema, name)| schema.check_definition(name, value))
}

fn check_client_meta(method: &str, params: &Value) -> Result<(), String> {
    let (place, holder) = match method {
        "initialize" => ("clientCapabilities", &params["clientCapabilities"]),
        "session/new" | "session/load" | "session/resume" | "session/fork" => ("sessionStart", params),
        "session/list" => ("sessionList", params),
        _ => ("request", params),
    };
    holder.get("_meta").map_or(Ok(()), |it| schemas::check("meta", &json!({ place: it })))
}

fn check_sent_v2(method: &str, kind: &str, params: &Value) -> Result<(), String> {
    let update = &params["update"];
    if let Some(meta) = update.get("_meta") {
        let place = match update["sessionUpdate"].as_str().unwrap_or_default() {
            "tool_call_update" => "toolCall",
            "subagent_update" => "subagent",
            "state_update" => "promptAnswer",
            _ => "notice",
        };
        schemas::check("meta", &json!({ place: meta }))?;
    }
    let kind_of = update["sessionUpdate"].as_str().unwrap_or_default();
    // What the schema does not know is for it an update of a later version.
    if method == "session/update" && !UPDATES_V2.contains(&kind_of) {
        return Err(format!("{kind_of:?} is no update that castor writes in version 2"));
    }
    let side = if method == "$/cancel_request" { "protocol" } else { "client" };
    let [stable, unstable] = &*V2;
    if method != "auth/status_update" {
        stable.check(method, side, kind, params)?;
    }
    unstable.check(method, side, kind, params)
}

/// What is wrong with the result that the agent gave.
pub fn check_result(version: u64, method: &str, result: &Value) -> Result<(), String> {
    if version == 2 && !method.starts_with('_') {
        let [stable, unstable] = &*V2;
        if stable.knows(method) {
            stable.check(method, "agent", "Response", result)?;
        }
        return unstable.check(method, "agent", "Response", result);
    }
    if method == "_castor/session/events" {
        let mut all = result["events"].as_array().into_iter().flatten();
        all.try_for_each(|it| schemas::check("events", it))?;
    }
    if DRAFTS.contains(&method) {
        return schemas::check("drafts", &json!({ method: { "result": result } }));
    }
    if method.starts_with('_') {
        return schemas::check("methods", &json!({ method: { "result": result } }));
    }
    if method == "initialize" {
        let fork = &result["agentCapabilities"]["sessionCapabilities"]["fork"];
        schemas::check("meta", &json!({ "forkCapability": fork["_meta"]}))?;
    }
    let own = result.get("_meta").filter(|it| it.get("castor").is_some());
    if let Some(meta) = own.filter(|_| ["session/prompt", "session/edit_prompt"].contains(&method)) {
        schemas::check("meta", &json!({ "promptAnswer": meta }))?;
    }
    if UNSTABLE.knows(method) {
        UNSTABLE.check(method, "agent", "Response", result)?;
    }
    if let Some(methods) = result["authMethods"].as_array() {
        let mut all = methods.iter().filter_map(|it| it.get("_meta"));
        all.try_for_each(|it| schemas::check("meta", &json!({ "authMethod": it })))?;
    }
    if SCHEMA.knows(method) { SCHEMA.check(method, "agent", "Response", result) } else { Ok(()) }
}

/// What is wrong with the error that the agent gave.
pub fn check_error(version: u64, error: &Value) -> Result<(), String> {
    if version == 2 {
        V2.iter().try_for_each(|it| it.check_definition("Error", error))?;
    }
    if let Some(meta) = error["data"].get("_meta") {
        schemas::check("meta", &json!({ "promptAnswer": meta }))?;
    }
    SCHEMA.check_definition("Error", error)
}

impl Schema {
    fn read(text: &str, is_wanted: fn(&str) -> bool) -> Self {
        Self::read_for("agent", text, is_wanted)
    }

    /// What this side writes; `is_wanted`: of which methods.
    fn read_for(writer: &str, text: &str, is_wanted: fn(&str) -> bool) -> Self {
        let document: Value = serde_json::from_str(text).unwrap();
        let mut names = names(&document);
        names.retain(|(method, ..), _| is_wanted(method));
        let written = names.iter().filter(|((_, side, kind), _)| match kind.as_str() {
            "Response" => side == writer,
            "Request" => ["agent", "client"].contains(&side.as_str()) && side != writer,
            _ => side != writer,
        });
        let wanted = written.map(|(_, name)| name.clone()).chain(["Error".to_owned()]);
        let validators = wanted.map(|name| {
            let validator = compile(&document, &name);
            (name, validator)
        });
        let validators = validators.collect();
        Self { names, validators }
    }

    /// A method of the agent.
    fn knows(&self, method: &str) -> bool {
        self.names.keys().any(|(name, side, _)| name == method && side == "agent")
    }

    fn check(&self, method: &str, side: &str, kind: &str, value: &Value) -> Result<(), String> {
        let key = (method.to_owned(), side.to_owned(), kind.to_owned());
        match self.names.get(&key) {
            Some(name) => self.check_definition(name, value),
            None => Err(format!("the schema has no {kind} {method} that the agent could send")),
        }
    }

    fn check_definition(&self, name: &str, value: &Value) -> Result<(), String> {
        let errors: Vec<String> = self.validators[name]
            .iter_errors(value)
            .map(|it| format!("{name} at {}: {it}", it.instance_path()))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }
}

fn names(document: &Value) -> Names {
    document["$defs"].as_object().unwrap().iter().filter_map(|(name, it)| named(name, it)).collect()
}

fn named(name: &str, definition: &Value) -> Option<((String, String, String), String)> {
    let method = definition["x-method"].as_str()?.to_owned();
    let side = definition["x-side"].as_str()?.to_owned();
    let kind = ["Request", "Response", "Notification"].into_iter().find(|it| name.ends_with(it))?;
    Some(((method, side, kind.to_owned()), name.to_owned()))
}

fn compile(document: &Value, name: &str) -> Validator {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/$defs/{name}"),
        "$defs": document["$defs"],
    });
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_schema_tells_good_from_bad() {
    let update = json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "hi"}}});
    check_sent(1, "session/update", "Notification", &update).unwrap();
    check_sent(2, "session/update", "Notification", &update).unwrap_err();
    check_result(1, "session/prompt", &json!({"stopReason": "end_turn"})).unwrap();
    check_result(1, "session/prompt", &json!({"stopped": "end_turn"})).unwrap_err();
    check_result(2, "session/prompt", &json!({"messageId": "m"})).unwrap();
    check_result(2, "session/prompt", &json!({"stopReason": "end_turn"})).unwrap_err();
    check_result(2, "session/load", &json!({})).unwrap_err();
    check_error(1, &json!({"code": "x", "message": "no"})).unwrap_err();
    check_error(2, &json!({"code": "x", "message": "no"})).unwrap_err();
    check_result(1, "session/fork", &json!({"sessionId": "s"})).unwrap();
    check_result(1, "session/fork", &json!({"modes": null})).unwrap_err();
    check_result(1, "_castor/session/rewind", &json!({"restored": []})).unwrap_err();
    check_sent(1, "session/shout", "Notification", &json!({})).unwrap_err();
    let chunk = json!({"sessionId": "s", "update": {"sessionUpdate": "user_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": "hi"}}});
    check_sent(2, "session/update", "Notification", &chunk).unwrap_err();
    let prompt = json!({"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}});
    check_as_client(&prompt, None).unwrap();
    check_as_client(&json!({"id": 1, "method": "session/prompt", "params": {"prompt": []}}), None).unwrap_err();
    check_as_client(&json!({"method": "session/cancel", "params": {}}), None).unwrap_err();
    check_as_client(&json!({"id": 1, "result": {"content": "x"}}), Some("fs/read_text_file")).unwrap();
    check_as_client(&json!({"id": 1, "result": {"text": "x"}}), Some("fs/read_text_file")).unwrap_err();
    check_as_client(&json!({"id": 1, "error": {"code": "x"}}), Some("fs/read_text_file")).unwrap_err();
    check_message(1, &json!({"id": 1, "method": "session/update", "params": {}}), None).unwrap_err();
    check_message(1, &json!({"id": 1, "result": {"stopped": 1}}), Some("session/prompt")).unwrap_err();
}
