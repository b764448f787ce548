//! Patches on the wire: a custom tool in the Responses dialect, a function elsewhere, and another tool for other models.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, stream},
};

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+b\n*** End Patch\n";

fn events(all: &[Value]) -> String {
    stream(&all.iter().map(|it| format!("data: {it}\n\n")).collect::<String>())
}

fn item(it: &Value) -> String {
    let done = json!({ "type": "response.output_item.done", "item": it });
    events(&[done, json!({ "type": "response.completed", "response": {} })])
}

fn text_of_responses() -> String {
    let said = json!({ "type": "response.output_text.delta", "delta": "Done." });
    events(&[said, json!({ "type": "response.completed", "response": {} })])
}

fn chat(delta: &Value, finish: &str) -> String {
    events(&[json!({ "choices": [{ "delta": delta, "finish_reason": finish }] })])
}

/// A turn in the mode that asks nothing, with a provider of this kind.
fn turn(kind: &str, model: &str, more: &Value, server: &ModelServer) -> Sandbox {
    let mut sandbox = Sandbox::new();
    let local = json!({ "type": kind, "baseUrl": format!("{}/v1", server.url) });
    let mut settings = json!({ "providers": { "local": local } });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("ws/a.txt", "one\n");
    sandbox.args.extend(["--model", &format!("local/{model}"), "--approval-mode", "yolo"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    let (answer, _) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    client.end().unwrap();
    sandbox
}

fn read(sandbox: &Sandbox, name: &str) -> Option<String> {
    std::fs::read_to_string(sandbox.workspace().join(name)).ok()
}

fn bodies(server: &ModelServer) -> Vec<Value> {
    server.asked().iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect()
}

fn tool<'a>(body: &'a Value, name: &str) -> Option<&'a Value> {
    let is_it = |it: &&Value| it["name"] == name || it["function"]["name"] == name;
    body["tools"].as_array().unwrap().iter().find(is_it)
}

/// The model's tool with its grammar, and the provider's own operations: each goes back as it came.
#[test]
fn a_custom_tool_with_a_grammar() {
    let operation = json!({ "type": "update_file", "path": "b.txt", "diff": "@@\n-b\n+c\n" });
    let server = ModelServer::start(vec![
        item(&json!({ "type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": PATCH })),
        item(
            &json!({ "type": "apply_patch_call", "call_id": "call_2", "status": "completed", "operation": operation }),
        ),
        text_of_responses(),
    ]);
    let sandbox = turn("responses", "gpt-5.1", &json!({}), &server);
    assert_eq!((read(&sandbox, "a.txt").as_deref(), read(&sandbox, "b.txt").as_deref()), (Some("two\n"), Some("c\n")));
    let asked = bodies(&server);
    let offered = tool(&asked[0], "apply_patch").unwrap();
    assert_eq!((&offered["type"], &offered["format"]["syntax"]), (&json!("custom"), &json!("lark")));
    assert!(offered["format"]["definition"].as_str().unwrap().starts_with("start: "));
    assert!(tool(&asked[0], "replace").is_none() && tool(&asked[0], "write_file").is_some());
    let found = |kind: &str| {
        let items = asked[2]["input"].as_array().unwrap();
        items.iter().find(|it| it["type"] == kind).unwrap_or_else(|| panic!("{kind}: {}", asked[2]["input"])).clone()
    };
    let call = json!({ "type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": PATCH });
    assert_eq!(found("custom_tool_call"), call);
    let output = found("custom_tool_call_output");
    assert_eq!(
        (&output["call_id"], &output["output"]),
        (&json!("call_1"), &json!("Success. Updated the following files:\nM a.txt\nA b.txt"))
    );
    assert_eq!(found("apply_patch_call")["operation"], operation);
    let output = found("apply_patch_call_output");
    assert_eq!((&output["call_id"], &output["status"]), (&json!("call_2"), &json!("completed")));
}

#[test]
fn a_function_in_other_dialects() {
    let arguments = json!({ "input": PATCH }).to_string();
    let call = json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "apply_patch", "arguments": arguments } }] });
    let server = ModelServer::start(vec![chat(&call, "tool_calls"), chat(&json!({ "content": "Done." }), "stop")]);
    let sandbox = turn("openai", "gpt-5.1", &json!({}), &server);
    assert_eq!((read(&sandbox, "a.txt").as_deref(), read(&sandbox, "b.txt").as_deref()), (Some("two\n"), Some("b\n")));
    let asked = bodies(&server);
    let offered = tool(&asked[0], "apply_patch").unwrap();
    assert_eq!(offered["function"]["parameters"]["required"], json!(["input"]));
    assert!(tool(&asked[0], "replace").is_none());
    let result = asked[1]["messages"].as_array().unwrap().iter().find(|it| it["role"] == "tool").unwrap();
    assert!(result["content"].as_str().unwrap().starts_with("Success."), "{result}");
}

/// A model that edits by `replace` is not told of patches; a call of one runs all the same. What the patch costs is bounded.
#[test]
fn one_tool_for_edits_for_each_model() {
    let patch = item(&json!({ "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": PATCH }));
    let server = ModelServer::start(vec![patch, text_of_responses()]);
    let sandbox = turn("responses", "m1", &json!({}), &server);
    assert_eq!(read(&sandbox, "a.txt").as_deref(), Some("two\n"));
    let asked = bodies(&server);
    assert!(tool(&asked[0], "replace").is_some() && tool(&asked[0], "apply_patch").is_none());
    let kinds: Vec<&Value> = asked[1]["input"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert!(
        kinds.contains(&&json!("function_call_output")) && !kinds.contains(&&json!("custom_tool_call_output")),
        "{kinds:?}"
    );
    let size = server.asked()[0].body.len();
    // With the patch in its place.
    let server = ModelServer::start(vec![text_of_responses()]);
    turn("responses", "gpt-5.1", &json!({}), &server);
    let with_patch = server.asked()[0].body.len();
    println!("{size} bytes with replace, {with_patch} with apply_patch");
    assert!(with_patch < size + 2_048);
    // Who may not write files may not patch them either, but edit.
    let server = ModelServer::start(vec![text_of_responses()]);
    turn("responses", "gpt-5.1", &json!({ "tools": { "exclude": ["write_file"] } }), &server);
    let asked = bodies(&server);
    assert!(tool(&asked[0], "replace").is_some() && tool(&asked[0], "apply_patch").is_none());
}
