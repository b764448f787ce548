//! A session's events over the wire: windows of them, and what comes before the first answer of a model.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, says},
};

fn start(server: &ModelServer) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

fn prompt(client: &mut Client, session: &str, text: &str) -> Value {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    client.call("session/prompt", params).unwrap().0
}

/// The events between these bounds, or what is wrong with them.
fn events(client: &mut Client, session: &str, window: Value) -> Result<Vec<Value>, String> {
    let mut params = json!({ "sessionId": session });
    params.as_object_mut().unwrap().extend(window.as_object().unwrap().clone());
    let (answer, _) = client.call("_castor/session/events", params).unwrap();
    match answer["result"]["events"].as_array() {
        Some(it) => Ok(it.clone()),
        None => Err(answer["error"]["message"].as_str().unwrap().to_owned()),
    }
}

#[test]
fn event_window_starts_at_the_given_position_of_a_stream() {
    let server = ModelServer::start(vec![says("One."), says("Two.")]);
    let (sandbox, mut client, session) = start(&server);
    prompt(&mut client, &session, "one");
    prompt(&mut client, &session, "two");
    let all = events(&mut client, &session, json!({})).unwrap();
    let starts: Vec<&Value> = all.iter().filter(|it| it["type"] == "agent_start").collect();
    assert_eq!(starts.len(), 2);
    let first = &starts[0]["streamId"];
    let of_first: Vec<Value> = all.iter().filter(|it| it["streamId"] == *first).cloned().collect();
    assert!(of_first.len() < all.len() && of_first.last().unwrap()["type"] == "agent_end");
    // The next process knows the same, without loading the session.
    for round in 0..2 {
        if round == 1 {
            client.end().unwrap();
            client = Client::start(&sandbox);
            client.initialize(&json!({})).unwrap();
        }
        assert_eq!(events(&mut client, &session, json!({ "streamId": first })).unwrap(), of_first);
        for (at, it) in of_first.iter().enumerate() {
            let rest = events(&mut client, &session, json!({ "eventId": it["id"] })).unwrap();
            assert_eq!(rest, of_first[at + 1..], "after {it}");
        }
        assert_eq!(events(&mut client, &session, json!({ "streamId": "none" })).unwrap(), [Value::Null; 0]);
        let why = events(&mut client, &session, json!({ "eventId": "none" })).unwrap_err();
        assert_eq!(why, "Invalid params: Unknown eventId: none; send one of this session.");
        let why = events(&mut client, &session, json!({ "eventId": all[0]["id"] })).unwrap_err();
        assert!(why.contains("before agent_start"), "{why}");
    }
}

#[test]
fn the_model_is_named_before_its_first_output_is_an_error() {
    let no = answers("400 Bad Request", r#"{"error": {"code": 400, "message": "No such thing."}}"#);
    let server = ModelServer::start(vec![no]);
    let (_sandbox, mut client, session) = start(&server);
    let answer = prompt(&mut client, &session, "go");
    assert!(answer["error"]["message"].as_str().unwrap().contains("No such thing."), "{answer}");
    let all = events(&mut client, &session, json!({})).unwrap();
    let at = |kind: &str| all.iter().position(|it| it["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {all:?}"));
    assert!(at("agent_start") < at("session_update") && at("session_update") < at("error"), "{all:?}");
    let named = all[at("session_update")]["model"].as_str().unwrap();
    assert!(server.asked()[0].head.contains(&format!("/models/{named}:")), "{named}");
    assert!(!all.iter().any(|it| it["type"] == "message" && it["role"] == "agent"), "{all:?}");
}

#[test]
fn a_prompt_has_a_model_of_its_own() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three.")]);
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let new = client.result("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
    let session = new["sessionId"].as_str().unwrap();
    let models = new["configOptions"].as_array().unwrap().iter().find(|it| it["id"] == "model").unwrap();
    let mut offered = models["options"].as_array().unwrap().iter().map(|it| it["value"].as_str().unwrap());
    let other =
        offered.find(|it| it.contains("flash") && !it.contains("auto") && models["currentValue"] != *it).unwrap();
    prompt(&mut client, session, "one");
    let text = json!([{ "type": "text", "text": "two" }]);
    let params = json!({ "sessionId": session, "prompt": text, "_meta": { "castor": { "model": other } } });
    client.call("session/prompt", params).unwrap();
    prompt(&mut client, session, "three");
    let asked: Vec<bool> = server.asked().iter().map(|it| it.head.contains(&format!("/models/{other}:"))).collect();
    assert_eq!(asked, [false, true, false], "{other}");
    client.end().unwrap();
}
