//! Requests that providers take, whatever an MCP server offers: schemas, names, numbers of tools, ids, results; and answers
//! that have to fit a schema.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server::ARGS,
    model_server::{ModelServer, stream},
};

/// An agent on a provider of this type, with a model of this name and an MCP server `s` that offers these tools.
fn agent(kind: &str, model: &str, server: &ModelServer, tools: &Value, result: &Value) -> (Sandbox, Client, String) {
    let base = if kind == "anthropic" { server.url.clone() } else { format!("{}/v1", server.url) };
    let provider = json!({"type": kind, "baseUrl": base, "apiKeyEnv": "LOCAL_KEY"});
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &json!({"providers": {"p": provider}}).to_string());
    sandbox.env.push(("LOCAL_KEY".into(), "key-of-p".into()));
    sandbox.args.extend(["--approval-mode", "yolo", "--model", &format!("p/{model}")].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let env =
        [("MCP_SERVER", "given".to_owned()), ("MCP_TOOLS", tools.to_string()), ("MCP_RESULT", result.to_string())];
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let command = std::env::current_exe().unwrap();
    let servers = json!([{"name": "s", "command": command, "args": ARGS, "env": env}]);
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    (sandbox, client, session)
}

fn prompt(client: &mut Client, session: &str) -> String {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    updates.iter().map(Value::to_string).collect()
}

fn bodies(server: &ModelServer) -> Vec<Value> {
    server.asked().iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect()
}

/// Name and schema of the server's tools, whatever the dialect.
fn declared(body: &Value) -> Vec<(String, Value)> {
    let schema = |it: &Value| ["parameters", "input_schema"].iter().find_map(|key| it.get(*key)).cloned().unwrap();
    let tools = body["tools"].as_array().unwrap().iter().map(|it| it.get("function").unwrap_or(it));
    let all = tools.map(|it| (it["name"].as_str().unwrap().to_owned(), schema(it)));
    all.filter(|it| it.0.starts_with("mcp_s_")).collect()
}

fn call_event(kind: &str, id: &str, name: &str, args: &Value) -> String {
    let args = args.to_string();
    let events = match kind {
        "openai" => vec![
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": args}}]},
                "finish_reason": "tool_calls"}]}),
        ],
        "responses" => vec![
            json!({"type": "response.output_item.done",
                "item": {"type": "function_call", "call_id": id, "name": name, "arguments": args}}),
            json!({"type": "response.completed", "response": {}}),
        ],
        _ => vec![
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": args}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
    };
    sse(&events)
}

fn text_event(kind: &str, text: &str) -> String {
    let events = match kind {
        "openai" => vec![json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})],
        "responses" => vec![
            json!({"type": "response.output_text.delta", "delta": text}),
            json!({"type": "response.completed", "response": {}}),
        ],
        _ => vec![
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
    };
    sse(&events)
}

fn sse(events: &[Value]) -> String {
    stream(&events.iter().map(|it| format!("data: {it}\n\n")).collect::<String>())
}

const KINDS: [&str; 3] = ["openai", "responses", "anthropic"];

/// A key that no provider of Claude takes goes out under another name, and comes back to the server under its own.
#[test]
fn odd_schemas_are_made_legal_and_keys_come_home() {
    let schema = json!({"type": "object", "properties": {
        "l": {"type": "array"}, "o": {"type": "object", "properties": {"m": {"type": "array", "items": {"type": "array"}}}},
        "Start Time<": {"type": "array", "items": {"type": "object", "properties": {"日": {"type": "string"}}}},
        "r": {"$ref": "#/$defs/Nope"}, "n": null,
    }, "anyOf": [{"required": ["l"]}], "required": ["Start Time<", "gone"]});
    let tools = json!([{"name": "w", "inputSchema": schema}, {"name": "w", "inputSchema": {"type": "object"}}]);
    for kind in KINDS {
        let server = ModelServer::answering(move |asked| {
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            if asked.body.contains("tool_call_id")
                || asked.body.contains("function_call_output")
                || asked.body.contains("tool_result")
            {
                return Some(text_event(kind, "Done."));
            }
            let (name, schema) = declared(&body).remove(0);
            let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            let inner =
                schema["properties"][keys[2]]["items"]["properties"].as_object().unwrap().keys().next().unwrap();
            Some(call_event(kind, "c1", &name, &json!({"l": [1], keys[2]: [{inner: "x", "free": 2}]})))
        });
        let (_sandbox, mut client, session) = agent(kind, "m", &server, &tools, &Value::Null);
        let said = prompt(&mut client, &session);
        assert!(
            said.contains(r#"lists tools more than once: \"w\""#) || said.contains("lists tools more than once"),
            "{kind}: {said}"
        );
        let bodies = bodies(&server);
        let all = declared(&bodies[0]);
        let [(_, schema)] = &*all else { panic!("{kind}: {all:?}") };
        let text = schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("null") && !text.contains("gone"), "{kind}: {text}");
        assert_eq!(schema["properties"]["l"]["items"], json!({}), "{kind}");
        assert_eq!(schema["properties"]["o"]["properties"]["m"]["items"]["items"], json!({}), "{kind}");
        assert!(schema.get("anyOf").is_none());
        // The server says what it was called with.
        let last = bodies[1].to_string().replace('\\', "");
        let own = r#"called with {"l":[1],"Start Time<":[{"日":"x","free":2}]}"#;
        assert!(last.contains(own), "{kind}: {last}");
    }
}

/// The id of a call goes back as it came, in every dialect.
#[test]
fn ids_of_calls_go_back_as_they_came() {
    let tools = json!([{"name": "w", "inputSchema": {"type": "object"}}]);
    for kind in KINDS {
        for id in ["functions.mcp_s_w:0", "call/1+2==", &"x".repeat(300)] {
            let answers = vec![call_event(kind, id, "mcp_s_w", &json!({})), text_event(kind, "Done.")];
            let server = ModelServer::start(answers);
            let (_sandbox, mut client, session) = agent(kind, "m", &server, &tools, &Value::Null);
            prompt(&mut client, &session);
            let last = bodies(&server)[1].to_string();
            assert_eq!(last.matches(&format!("\"{id}\"")).count(), 2, "{kind} {id}: {last}");
        }
    }
}

/// A model that counts calls over a conversation gets ids of its own kind.
#[test]
fn a_model_that_counts_calls_gets_its_own_ids() {
    let tools = json!([{"name": "w", "inputSchema": {"type": "object"}}]);
    let answers = vec![call_event("openai", "call_1", "mcp_s_w", &json!({})), text_event("openai", "Done.")];
    let server = ModelServer::start(answers);
    let (_sandbox, mut client, session) = agent("openai", "kimi-k3", &server, &tools, &Value::Null);
    prompt(&mut client, &session);
    let last = bodies(&server)[1].to_string();
    assert_eq!(last.matches("\"functions.mcp_s_w:0\"").count(), 2, "{last}");
}

/// Thoughts go back beside the call under the name that they came with.
#[test]
fn reasoning_goes_back_under_its_name() {
    let tools = json!([{"name": "w", "inputSchema": {"type": "object"}}]);
    for member in ["reasoning", "reasoning_content"] {
        let thought = json!({"choices": [{"delta": {"role": "assistant", member: "I should call it."}}]});
        let call = call_event("openai", "c1", "mcp_s_w", &json!({}));
        let begin = sse(&[thought]);
        let call = call.split_once("data: ").unwrap().1;
        let server = ModelServer::start(vec![
            stream(&format!("{}data: {call}", begin.split_once("\r\n\r\n").unwrap().1)),
            text_event("openai", "Done."),
        ]);
        let (_sandbox, mut client, session) = agent("openai", "m", &server, &tools, &Value::Null);
        prompt(&mut client, &session);
        let bodies = bodies(&server);
        let messages = bodies[1]["messages"].as_array().unwrap();
        let called = messages.iter().find(|it| it.get("tool_calls").is_some()).unwrap();
        assert_eq!(called[member], "I should call it.", "{member}: {called}");
    }
}

/// Structured content reaches the model once.
#[test]
fn structured_content_reaches_the_model_once() {
    let tools = json!([{"name": "w", "inputSchema": {"type": "object"}}]);
    for (text, n) in [("1 item.", 1), (r#"{ "n": 4711 }"#, 1)] {
        let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"n": 4711}});
        let answers = vec![call_event("openai", "c1", "mcp_s_w", &json!({})), text_event("openai", "Done.")];
        let server = ModelServer::start(answers);
        let (_sandbox, mut client, session) = agent("openai", "m", &server, &tools, &result);
        prompt(&mut client, &session);
        assert_eq!(bodies(&server)[1].to_string().matches("4711").count(), n, "{text}");
    }
}

/// A provider of OpenAI's kind takes 128 tools; the user hears once what is left out.
#[test]
fn more_tools_than_the_provider_takes_leave() {
    let tools: Vec<Value> =
        (0..200).map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}})).collect();
    for (kind, most) in [("openai", 128), ("responses", 128), ("anthropic", 1_000)] {
        let server = ModelServer::answering(move |asked| {
            let body: Value = serde_json::from_str(&asked.body).unwrap();
            let n_tools = body["tools"].as_array().unwrap().len();
            Some(text_event(kind, if n_tools <= most { "Done." } else { "Too many." }))
        });
        let (_sandbox, mut client, session) = agent(kind, "m", &server, &json!(tools), &Value::Null);
        let (first, second) = (prompt(&mut client, &session), prompt(&mut client, &session));
        assert!(first.contains("Done.") && second.contains("Done."), "{kind}: {first}");
        let is_said = |it: &str| it.contains("takes 128 tools at most") && it.contains("includeTools");
        assert_eq!((is_said(&first), is_said(&second)), (most == 128, false), "{kind}");
        let bodies = bodies(&server);
        assert_eq!(bodies[0]["tools"], bodies[1]["tools"]);
        if most == 128 {
            // The other tool for edits counts, and is not declared to this model.
            assert!((127..=128).contains(&bodies[0]["tools"].as_array().unwrap().len()));
            assert!(declared(&bodies[0]).iter().any(|it| it.0 == "mcp_s_t0"), "the first listed stay");
            assert!(bodies[0].to_string().contains("\"read_file\""), "castor's own stay");
        }
    }
}

/// A schema of the answer is not the provider's affair while tools are needed, if nothing is known of the model. When the
/// prompt asks for a corrected answer alone, it is.
#[test]
fn a_corrected_answer_is_held_to_its_schema() {
    for (kind, place) in [
        ("openai", "/response_format/json_schema/schema/properties/n"),
        ("responses", "/text/format/schema/properties/n"),
        ("anthropic", "/tools/0/input_schema/properties/n"),
    ] {
        let answers = vec![text_event(kind, "two"), text_event(kind, r#"{"n": 2}"#)];
        let server = ModelServer::start(answers);
        run(kind, "m", &server);
        let bodies = bodies(&server);
        assert_eq!((bodies[0].pointer(place), bodies[0]["tools"].is_array()), (None, true), "{kind}");
        assert_eq!(bodies[1].pointer(place), Some(&json!({"type": "integer"})), "{kind}: {}", bodies[1]);
        let n_tools = bodies[1]["tools"].as_array().map_or(0, Vec::len);
        assert_eq!(n_tools, usize::from(kind == "anthropic"), "{kind}");
    }
}

/// Where the table of models says that the model takes a schema beside tools, the first request has both.
#[test]
fn a_known_model_is_held_to_the_schema_from_the_start() {
    for (kind, model, place) in [
        ("openai", "gpt-5.2", "/response_format/json_schema/schema/properties/n"),
        ("responses", "gpt-5.2", "/text/format/schema/properties/n"),
        ("anthropic", "claude-opus-4-8", "/output_config/format/schema/properties/n"),
    ] {
        let server = ModelServer::start(vec![text_event(kind, r#"{"n": 2}"#)]);
        run(kind, model, &server);
        let bodies = bodies(&server);
        assert_eq!(bodies[0].pointer(place), Some(&json!({"type": "integer"})), "{kind}: {}", bodies[0]);
        assert!(bodies[0]["tools"].as_array().is_some_and(|it| it.len() > 5), "{kind}");
        assert_eq!(bodies[0].get("tool_choice"), None, "{kind}");
    }
}

/// `castor run` for an answer with a number `n`, which is 2.
fn run(kind: &str, model: &str, server: &ModelServer) {
    let schema = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    let base = if kind == "anthropic" { server.url.clone() } else { format!("{}/v1", server.url) };
    let mut sandbox = Sandbox::new();
    let settings = json!({"providers": {"p": {"type": kind, "baseUrl": base}}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let model = format!("p/{model}");
    sandbox.args = ["run", "-m", &*model, "--no-stdin", "--json-schema", schema, "how many?"].map(Into::into).into();
    let output = sandbox.command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"{\"n\":2}\n"[..]), "{kind}: {said}");
}
