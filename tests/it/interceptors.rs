//! Interceptors and the client's policy, where a conversation does not get: a model server that fails, and sessions that
//! end while the client is asked.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, calls, says},
};

/// A session of a client with these capabilities of castor's, on a model that answers so.
fn begin(castor: &Value, answers: Vec<String>) -> (Sandbox, Client, String) {
    begin_on(castor, &ModelServer::start(answers))
}

fn begin_on(castor: &Value, model: &ModelServer) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    sandbox.write("ws/a.txt", "a\n");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({ "_meta": { "castor": castor } })).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

fn prompt(client: &mut Client, session: &str) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
}

/// The next message of that method.
fn next(client: &mut Client, method: &str) -> Value {
    loop {
        let it = client.next().unwrap().expect("more was to come");
        if it["method"] == method {
            return it;
        }
    }
}

fn answer(client: &mut Client, asked: &Value, result: &Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
}

/// What the agent says up to the end of the prompt, and the end.
fn said(client: &mut Client) -> (String, Value) {
    let mut text = String::new();
    loop {
        let it = client.next().unwrap().expect("more was to come");
        if it["id"] == "p" {
            return (text, it);
        }
        let update = &it["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            text += update["content"]["text"].as_str().unwrap();
        }
    }
}

#[test]
fn a_client_answers_for_a_500() {
    let broken = answers("500 Internal Server Error", r#"{"error": {"code": 500, "message": "broken"}}"#);
    let (_sandbox, mut client, session) = begin(&json!({"intercepts": ["on_model_error"]}), vec![broken; 2]);
    prompt(&mut client, &session);
    let asked = next(&mut client, "_castor/intercept");
    let payload = &asked["params"]["payload"];
    assert_eq!((&payload["error"]["status"], &payload["error"]["attempt"]), (&json!(500), &json!(1)), "{asked}");
    assert_eq!(payload["llm_request"]["messages"], json!([{"role": "user", "content": "go"}]));
    assert_eq!((&asked["params"]["sessionId"], &asked["params"]["point"]), (&json!(session), &json!("on_model_error")));
    let answered = json!({"action": "proceed", "modifications": {"llm_response": {"text": "The model is away."}}});
    answer(&mut client, &asked, &answered);
    let (text, end) = said(&mut client);
    assert_eq!((text.as_str(), &end["result"]["stopReason"]), ("The model is away.", &json!("end_turn")));
    // The next one is not answered for, and not tried again.
    prompt(&mut client, &session);
    let asked = next(&mut client, "_castor/intercept");
    answer(&mut client, &asked, &json!({"action": "block", "reason": "no second attempt"}));
    let (text, _) = said(&mut client);
    assert!(text.contains("no second attempt"), "{text}");
    client.end().unwrap();
}

/// What a client hides of a result does not reach the model, in no later request either; the conversation keeps it.
#[test]
fn a_client_hides_results_from_the_model() {
    let read = calls("read_file", &json!({"file_path": "a.txt"}));
    let model = ModelServer::start(vec![read, says("Done.")]);
    let (sandbox, mut client, session) = begin_on(&json!({"intercepts": ["before_model"]}), &model);
    sandbox.write("ws/a.txt", "the key is xyzzy\n");
    prompt(&mut client, &session);
    let asked = next(&mut client, "_castor/intercept");
    assert!(asked["params"]["payload"]["llm_request"]["tool_results"].is_null(), "{asked}");
    answer(&mut client, &asked, &json!({"action": "proceed"}));
    let asked = next(&mut client, "_castor/intercept");
    let mut results = asked["params"]["payload"]["llm_request"]["tool_results"].clone();
    assert_eq!((&results[0]["name"], results.as_array().unwrap().len()), (&json!("read_file"), 1));
    assert!(results[0]["content"].as_str().unwrap().contains("xyzzy"), "{results}");
    results[0]["content"] = json!("the key is hidden");
    let hidden = json!({"llm_request": {"tool_results": results}});
    answer(&mut client, &asked, &json!({"action": "proceed", "modifications": hidden}));
    assert_eq!(said(&mut client).0, "Done.");
    let body = &model.asked()[1].body;
    assert!(body.contains("the key is hidden") && !body.contains("xyzzy"), "{body}");
    let place = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
    let (_, told) = client.call("session/load", place).unwrap();
    assert!(json!(told).to_string().contains("the key is xyzzy"), "{told:?}");
    client.end().unwrap();
}

/// A cancel, and the end of a session, withdraw what the client was asked; the prompt is answered once.
#[test]
fn what_is_over_is_withdrawn() {
    let castor = json!({"intercepts": ["before_tool"], "policy": "host"});
    let read = calls("read_file", &json!({"file_path": "a.txt"}));
    let (_sandbox, mut client, session) = begin(&castor, vec![read.clone(), read, says("Done.")]);
    prompt(&mut client, &session);
    let asked = next(&mut client, "_castor/intercept");
    client.notify("session/cancel", json!({"sessionId": session}));
    let withdrawn = next(&mut client, "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let (_, end) = said(&mut client);
    assert_eq!(end["result"]["stopReason"], "cancelled");
    // Late: nobody hears it.
    answer(&mut client, &asked, &json!({"action": "proceed"}));

    prompt(&mut client, &session);
    let asked = next(&mut client, "_castor/intercept");
    answer(&mut client, &asked, &json!({"action": "proceed"}));
    let asked = next(&mut client, "_castor/policy/evaluate");
    assert_eq!((&asked["params"]["tool"], &asked["params"]["decision"]), (&json!("read_file"), &json!("allow")));
    client.request_as(json!("c"), "session/close", json!({"sessionId": session}));
    let withdrawn = next(&mut client, "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    answer(&mut client, &asked, &json!({"decision": "allow"}));
    assert_eq!(said(&mut client).1["result"]["stopReason"], "cancelled");
    while client.next().unwrap().expect("the session is closed")["id"] != "c" {}
    client.end().unwrap();
}
