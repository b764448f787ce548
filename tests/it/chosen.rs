//! Which models can be chosen in a session, and what is told of the one that is.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, stream},
};

/// An answer of a server that speaks chat completions.
fn answer() -> String {
    let chunk = json!({
        "choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 4_800, "completion_tokens": 39, "total_tokens": 4_839},
    });
    stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

fn agent(settings: &Value, model: &str) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.args.extend(["--model", model].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({"session": {"notices": {}}})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

/// What came of it, as text.
fn say(client: &mut Client, session: &str, text: &str) -> String {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    updates.iter().map(Value::to_string).collect()
}

/// As with `--model`: lists need not be whole. Who is not configured is asked for nothing.
#[test]
fn any_name_of_a_configured_provider_can_be_chosen() {
    let server = ModelServer::start(vec![answer(), answer()]);
    let mine = json!({"baseUrl": format!("{}/v1", server.url)});
    let settings = json!({"providers": {"mine": mine}, "model": {"fallback": {"models": ["mine/spare"]}}});
    let (_sandbox, mut client, session) = agent(&settings, "mine/first");
    let said = say(&mut client, &session, "/model mine/quota");
    assert!(said.contains("the model is `mine/quota`"), "{said}");
    // A client shows no value that is not among the options.
    assert!(said.contains(r#""currentValue":"mine/quota""#) && said.contains(r#""value":"mine/quota""#), "{said}");
    say(&mut client, &session, "go");
    for (name, words) in [
        ("nowhere/x", "There is no provider `nowhere`: known are "),
        ("mine/", "There is no model `mine/` here."),
        ("quota", "`castor models PROVIDER` in a terminal lists names."),
    ] {
        let said = say(&mut client, &session, &format!("/model {name}"));
        assert!(said.contains(words) && !said.contains("config_option_update"), "{said}");
    }
    let choice = json!({"sessionId": session, "configId": "model", "value": "mine/spare"});
    client.result("session/set_config_option", choice).unwrap();
    say(&mut client, &session, "go");
    let asked: Vec<Value> = server.asked().iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect();
    assert_eq!([&asked[0]["model"], &asked[1]["model"]], ["quota", "spare"]);
}

/// The same conversation, in another window: at once, in `/stats`, and after a load.
#[test]
fn the_context_is_measured_by_the_model_that_is_chosen() {
    let server = ModelServer::start(vec![answer()]);
    let models = json!([{"id": "small", "contextWindow": 8_192}, {"id": "big", "contextWindow": 200_000}]);
    let settings = json!({"providers": {"mine": {"baseUrl": format!("{}/v1", server.url), "models": models}}});
    let (sandbox, mut client, session) = agent(&settings, "mine/small");
    let used = |size: u64| format!(r#""sessionUpdate":"usage_update","used":4839,"size":{size}"#);
    let said = say(&mut client, &session, "go");
    assert!(said.contains(&used(8_192)), "{said}");
    let said = say(&mut client, &session, "/model mine/big");
    assert!(said.contains(&used(200_000)), "{said}");
    let said = say(&mut client, &session, "/stats");
    assert!(said.contains("Context: 4839 of 200000 tokens"), "{said}");
    client.end().unwrap();
    // The flag is for the small one again.
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let place = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
    let (_, replayed) = client.call("session/load", place).unwrap();
    let replayed: String = replayed.iter().map(Value::to_string).collect();
    assert!(replayed.contains(&used(200_000)), "{replayed}");
    let said = say(&mut client, &session, "/stats");
    assert!(said.contains(&used(8_192)) && said.contains("Context: 4839 of 8192 tokens"), "{said}");
}
