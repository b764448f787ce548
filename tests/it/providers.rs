//! Providers beside Gemini, from the editor's side: three lines of settings, a turn with a tool, keys only where they
//! belong, and models changed in the middle of a session.

use std::process::{Command, Output};

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::hostile::{observe, seen};
use crate::{
    client::{Client, Sandbox},
    mcp,
    model_server::{ModelServer, calls, gives, refuses, says, stream},
};

/// The answers of one provider: a call of a tool, then a text.
struct Dialect {
    name: &'static str,
    settings: fn(&str) -> Value,
    call: &'static str,
    text: &'static str,
    path: &'static str,
    /// Header and value that carry the key.
    key: (&'static str, &'static str),
}

const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "chat",
        settings: |url| json!({ "baseUrl": format!("{url}/v1"), "apiKeyEnv": "LOCAL_KEY" }),
        call: r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read_file","arguments":"{\"file_path\":"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.txt\"}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#,
        text: r#"data: {"choices":[{"delta":{"content":"Read it."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}

data: [DONE]

"#,
        path: "POST /v1/chat/completions ",
        key: ("authorization", "Bearer CANARY-local-key"),
    },
    Dialect {
        name: "responses",
        settings: |url| json!({ "type": "responses", "baseUrl": format!("{url}/v1"), "apiKeyEnv": "LOCAL_KEY" }),
        call: r#"data: {"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{\"file_path\":\"a.txt\"}"}}

data: {"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":1}}}

"#,
        text: r#"data: {"type":"response.output_text.delta","delta":"Read it."}

data: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2,"total_tokens":9}}}

"#,
        path: "POST /v1/responses ",
        key: ("authorization", "Bearer CANARY-local-key"),
    },
    Dialect {
        name: "anthropic",
        settings: |url| json!({ "type": "anthropic", "baseUrl": url, "apiKeyEnv": "LOCAL_KEY" }),
        call: r#"event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"read_file","input":{}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":\"a.txt\"}"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

"#,
        text: r#"data: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Read it."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"#,
        path: "POST /v1/messages ",
        key: ("x-api-key", "CANARY-local-key"),
    },
];

/// In each dialect; the second request begins with the first one's bytes.
#[test]
fn a_turn_with_a_tool() {
    for it in DIALECTS {
        let server = ModelServer::start(vec![stream(it.call), stream(it.text)]);
        let (sandbox, mut client) = agent(&json!({ "local": (it.settings)(&server.url) }), "local/m1");
        sandbox.write("ws/a.txt", "what is in it");
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let (answer, updates) = prompt(&mut client, &session);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{}: {answer}", it.name);
        let said: String = updates.iter().map(Value::to_string).collect();
        assert!(said.contains("Read it.") && said.contains("\"used\":9"), "{}: {said}", it.name);
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{}", it.name);
        for request in &asked {
            assert!(request.head.starts_with(it.path), "{}: {}", it.name, request.head);
            assert_eq!(request.header(it.key.0), Some(it.key.1), "{}", it.name);
            let body: Value = serde_json::from_str(&request.body).unwrap();
            assert_eq!(body["model"], "m1");
        }
        assert!(asked[1].body.contains("what is in it"), "{}: the result goes back", it.name);
        // Prompt caches want it so: all of the first request but its end begins the second.
        let begins = asked[0].body.trim_end_matches(['}', ']']);
        assert!(asked[1].body.starts_with(begins), "{}: {} {}", it.name, asked[0].body, asked[1].body);
    }
}

/// With a model of this machine nothing else is looked for: a turn works with the network cut.
#[test]
#[cfg(target_os = "linux")]
fn a_local_model_needs_this_machine_alone() {
    let server = ModelServer::start(vec![stream(DIALECTS[0].call), stream(DIALECTS[0].text)]);
    let mut sandbox = Sandbox::new();
    let providers = json!({ "local": { "baseUrl": format!("{}/v1", server.url) } });
    sandbox.write("home/.castor/settings.json", &json!({ "providers": providers }).to_string());
    sandbox.write("ws/a.txt", "what is in it");
    sandbox.args.extend(["--model", "local/m1"].map(Into::into));
    let log = observe(&mut sandbox);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    client.end().unwrap();
    let Some(log) = log else { return };
    let reached: Vec<String> = seen(&log, "connect").into_iter().filter(|it| it.contains("AF_INET")).collect();
    assert!(!reached.is_empty() && reached.iter().all(|it| it.contains("\"127.0.0.1\"")), "{reached:?}");
}

/// Names that a provider refuses are others for it, and the model's calls come to their tool all the same.
#[test]
fn names_of_tools_are_made_legal_and_found_again() {
    for it in DIALECTS {
        let (calls, text) = (it.call, it.text);
        let mut n_asked = 0;
        let server = ModelServer::answering(move |asked| {
            n_asked += 1;
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            let tools = body["tools"].as_array().unwrap().iter();
            let mut names = tools.filter_map(|it| it["function"]["name"].as_str().or(it["name"].as_str()));
            let name = names.find(|it| it.contains("echo")).unwrap();
            Some(stream(&if n_asked == 1 { calls.replace("read_file", name) } else { text.to_owned() }))
        });
        let (sandbox, mut client) = agent(&json!({ "local": (it.settings)(&server.url) }), "local/m1");
        let mcp = [mcp::server("a.b", "plain", &sandbox.home().join("mcp.log"))];
        let opened = client.result("session/new", json!({ "cwd": sandbox.workspace(), "mcpServers": mcp })).unwrap();
        let session = opened["sessionId"].as_str().unwrap();
        let yolo = json!({ "sessionId": session, "modeId": "yolo" });
        client.result("session/set_mode", yolo).unwrap();
        let (answer, updates) = prompt(&mut client, session);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{}: {answer}", it.name);
        let called = updates.iter().find(|it| it["params"]["update"]["sessionUpdate"] == "tool_call").unwrap();
        assert_eq!(called["params"]["update"]["_meta"]["tool_name"], "mcp_a.b_echo", "{}: {called}", it.name);
        let asked = server.asked();
        assert!(asked[1].body.contains("echo:\\n"), "{}: {}", it.name, asked[1].body);
        let is_legal = |name: &str| {
            name.len() <= 64 && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
        };
        let body: Value = serde_json::from_str(&asked[1].body).unwrap();
        for tool in body["tools"].as_array().unwrap() {
            assert!(tool["function"]["name"].as_str().or(tool["name"].as_str()).is_some_and(is_legal), "{tool}");
        }
        assert!(!asked[1].body.contains(r#""mcp_a.b_echo""#), "{}: {}", it.name, asked[1].body);
    }
}

/// Over several turns, and with what the service signed.
#[test]
fn gemini_gets_its_signed_parts_back() {
    let signed = r#"data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"functionCall":{"name":"read_file","args":{"file_path":"a.txt"}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}

"#;
    let look = calls("list_directory", &json!({ "dir_path": "." }));
    let server = ModelServer::start(vec![stream(signed), look.clone(), says("One."), look, says("Two.")]);
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "what is in it");
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    for _ in 0..2 {
        let (answer, _) = prompt(&mut client, &session);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    let asked = server.asked();
    assert_eq!(asked.len(), 5);
    assert!(asked[0].body.starts_with(r#"{"systemInstruction":{"#), "{}", asked[0].body);
    for (it, next) in asked.iter().zip(asked.iter().skip(1)) {
        let kept = it.body.strip_suffix("]}]}").unwrap();
        assert!(next.body.starts_with(kept), "{}\n{}", it.body, next.body);
    }
    assert!(asked.iter().skip(1).all(|it| it.body.contains(r#""thoughtSignature":"c2ln""#)));
}

/// The call fails with an error that the model can repair.
#[test]
fn arguments_that_are_no_json_go_back_to_the_model() {
    let broken = DIALECTS[0].call.replace("\\\"a.txt\\\"}", "oops");
    let server = ModelServer::start(vec![stream(&broken), stream(DIALECTS[0].text)]);
    let (sandbox, mut client) = agent(&json!({ "local": (DIALECTS[0].settings)(&server.url) }), "local/m1");
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let body: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    let result = body["messages"].as_array().unwrap().iter().find(|it| it["role"] == "tool").unwrap();
    assert!(result["content"].as_str().unwrap().starts_with("Error:"), "{result}");
}

#[test]
fn errors_name_what_is_missing_but_no_key() {
    let server = ModelServer::start(vec![refuses("CANARY-local-key")]);
    let providers = json!({
        "local": (DIALECTS[0].settings)(&server.url),
        "keyless": { "baseUrl": "https://example.invalid/v1", "apiKeyEnv": "NOT_SET" },
        "plain": { "baseUrl": "http://example.invalid/v1" },
    });
    let (sandbox, mut client) = agent(&providers, "local/m1");
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    let text = answer.to_string();
    assert!(answer["error"]["code"].is_i64() && !text.contains("CANARY"), "{text}");
    for (model, words) in [("keyless/m", "set NOT_SET"), ("plain/m", "http is allowed for this machine only")] {
        let (sandbox, mut client) = agent(&providers, model);
        let (answer, _) = client.call("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
}

#[test]
fn a_session_changes_from_one_provider_to_another() {
    let first = ModelServer::start(vec![stream(DIALECTS[0].text)]);
    let second = ModelServer::start(vec![stream(DIALECTS[2].text)]);
    let mut other = (DIALECTS[2].settings)(&second.url);
    other["models"] = json!(["claude"]);
    let providers = json!({ "one": (DIALECTS[0].settings)(&first.url), "two": other });
    let (sandbox, mut client) = agent(&providers, "one/m1");
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session);
    let params = json!({ "sessionId": session, "configId": "model", "value": "two/claude" });
    client.result("session/set_config_option", params).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let body: Value = serde_json::from_str(&second.asked()[0].body).unwrap();
    assert_eq!((&body["model"], body["messages"].as_array().unwrap().len()), (&json!("claude"), 3), "{body}");
}

#[test]
fn unknown_provider_is_reported() {
    let server = ModelServer::start(vec![]);
    let (sandbox, mut client) = agent(&json!({ "local": (DIALECTS[0].settings)(&server.url) }), "nowhere/m1");
    let (answer, _) = client.call("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(r#"There is no provider "nowhere": known are openai, "#), "{answer}");
    assert_eq!(answer["error"]["data"]["kind"], "config", "{answer}");
    // Gemini's own names have a slash, too; here there is only no key.
    let (sandbox, mut client) = agent(&json!({}), "models/gemini-4-hydrogen");
    let (answer, _) = client.call("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
    assert_eq!(answer["error"]["data"]["kind"], "auth", "{answer}");
}

/// Nobody is asked for a session. What `castor models` was told is shown, and counts, from the next session on.
#[test]
fn models_are_listed_only_on_request() {
    let list = json!({ "data": [{ "id": "m1", "context_length": 5_000 }, { "id": "m2", "name": "Two" }] });
    let server = ModelServer::start(vec![gives(&list), stream(DIALECTS[0].text)]);
    let mut own = (DIALECTS[0].settings)(&server.url);
    own["models"] = json!(["m0", { "id": "m3", "name": "Three", "contextWindow": 7_000 }]);
    let (sandbox, client) = agent(&json!({ "local": own }), "local/m1");
    drop(client);
    let output = castor(&sandbox, &["models", "local", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schemas::check("models", &said).unwrap();
    let models = said["providers"][0]["models"].as_array().unwrap();
    assert_eq!(models[0], json!({ "id": "local/m1", "name": null, "contextWindow": 5_000 }));
    assert!(server.asked()[0].head.starts_with("GET /v1/models "), "{}", server.asked()[0].head);
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer CANARY-local-key"));

    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let opened = client.result("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
    let options = opened["configOptions"].as_array().unwrap();
    let offered = options.iter().find(|it| it["id"] == "model").unwrap()["options"].as_array().unwrap();
    let named = |value: &str| offered.iter().find(|it| it["value"] == value).map(|it| it["name"].clone());
    assert_eq!(named("local/m2"), Some(json!("Two")));
    assert_eq!(named("local/m3"), Some(json!("Three")));
    assert!(named("local/m0").is_some() && named("gemini-4-hydrogen").is_some());
    assert_eq!(server.asked().len(), 1, "no session asks for a list");
    let (_, updates) = prompt(&mut client, opened["sessionId"].as_str().unwrap());
    assert!(updates.iter().any(|it| it.to_string().contains(r#""size":5000"#)), "{updates:?}");

    // The server has nothing more to say.
    let said = String::from_utf8(castor(&sandbox, &["models", "local"]).stderr).unwrap();
    assert!(said.contains("local: editors offer the list that castor kept before, of 20"), "{said}");
}

#[test]
fn providers_without_a_list_are_reported() {
    let providers = json!({ "keyless": { "baseUrl": "https://example.invalid/v1", "apiKeyEnv": "NOT_SET" } });
    let (sandbox, client) = agent(&providers, "demo");
    drop(client);
    for (name, code, words) in [
        ("keyless", 41, "No API key for keyless: set NOT_SET"),
        ("gemini", 41, "No API key"),
        ("nowhere", 42, "There is no provider \"nowhere\""),
    ] {
        let output = castor(&sandbox, &["models", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains(words)), (Some(code), true), "{said}");
    }
}

/// A repository must not send keys and prompts elsewhere.
#[test]
fn a_workspace_names_no_provider() {
    let server = ModelServer::start(vec![stream(DIALECTS[0].text)]);
    let mut sandbox = Sandbox::new();
    let providers = json!({ "providers": { "openai": { "baseUrl": server.url } }, "model": { "name": "openai/gpt" } });
    sandbox.write("ws/.castor/settings.json", &providers.to_string());
    sandbox.env.push(("OPENAI_API_KEY".into(), "CANARY-local-key".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(server.asked().len(), 0);
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
    let (_, told) = client.call("session/prompt", params).unwrap();
    let told = format!("{told:?}");
    assert!(told.contains("providers") && told.contains("a workspace may not set this"), "{told}");
}

pub fn agent(providers: &Value, model: &str) -> (Sandbox, Client) {
    agent_with(providers, model, &json!({}))
}

fn agent_with(providers: &Value, model: &str, capabilities: &Value) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &json!({ "providers": providers }).to_string());
    sandbox.env.push(("LOCAL_KEY".into(), "CANARY-local-key".into()));
    sandbox.args.extend(["--model", model].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(capabilities).unwrap();
    (sandbox, client)
}

pub fn prompt(client: &mut Client, session: &str) -> (Value, Vec<Value>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.call("session/prompt", params).unwrap()
}

/// Another verb, in the same home.
fn castor(sandbox: &Sandbox, args: &[&str]) -> Output {
    let usual = sandbox.command();
    let vars = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new(&sandbox.program);
    command.env_clear().envs(vars).args(args).current_dir(sandbox.workspace());
    command.output().unwrap()
}

/// What the provider says of its limits is told on request, and beside the answer to a prompt.
#[test]
fn rate_limits_of_a_provider_are_told_as_quota() {
    let answer = stream(DIALECTS[0].text).replacen(
        "\r\n",
        "\r\nx-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 1h\r\n",
        1,
    );
    let server = ModelServer::start(vec![answer]);
    let (sandbox, mut client) = agent_with(
        &json!({ "local": (DIALECTS[0].settings)(&server.url) }),
        "local/m1",
        &json!({ "session": { "quota": {} } }),
    );
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (_, updates) = prompt(&mut client, &session);
    let told = updates.iter().find(|it| it["params"]["update"]["sessionUpdate"] == "quota_update").unwrap();
    let read = client.result("quota/read", json!({ "sessionId": session })).unwrap();
    let update = &told["params"]["update"];
    assert_eq!((&read["pools"], &read["updatedAt"]), (&update["pools"], &update["updatedAt"]));
    let pool = &read["pools"][0];
    assert_eq!((&pool["id"], &pool["state"]), (&json!("local"), &json!("exhausted")));
    let meter = &pool["meters"][0];
    assert_eq!((&meter["remaining"]["value"], &meter["limit"]["value"]), (&json!("0"), &json!("500")));
    assert!(meter["resetsAt"].is_string() && meter.get("used").is_none(), "{meter}");
}

/// The key of the settings goes to no address but its own.
#[test]
fn requests_go_where_the_client_sends_them() {
    let (server, elsewhere) = (ModelServer::start(vec![]), ModelServer::start(vec![stream(DIALECTS[0].text)]));
    let (sandbox, mut client) = agent(&json!({ "local": (DIALECTS[0].settings)(&server.url) }), "local/m1");
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let route = json!({
        "providerId": "local", "apiType": "openai", "baseUrl": format!("{}/other", elsewhere.url),
        "headers": { "x-gateway": "CANARY-gateway" },
    });
    client.result("providers/set", route).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let asked = elsewhere.asked();
    assert!(asked[0].head.starts_with("POST /other/chat/completions "), "{}", asked[0].head);
    assert_eq!((asked[0].header("x-gateway"), asked[0].header("authorization")), (Some("CANARY-gateway"), None));
    let listed = client.result("providers/list", json!({})).unwrap().to_string();
    assert!(listed.contains("/other") && !listed.contains("CANARY"), "{listed}");
    client.result("providers/disable", json!({ "providerId": "local" })).unwrap();
    let (answer, _) = prompt(&mut client, &session);
    assert!(answer["error"]["message"].as_str().unwrap().contains("no provider \"local\""), "{answer}");
}
