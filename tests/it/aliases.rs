//! Other names of models, and their parameters in the dialect of each: from the settings to the bytes of the request.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, calls, says, stream},
};

const CLAUDE: &str = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Claude."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

"#;
const CHAT: &str = r#"data: {"choices":[{"delta":{"content":"Chat."},"finish_reason":"stop"}]}

data: [DONE]

"#;

/// The member of a request's body that holds the parameters, or the whole.
fn body(server: &ModelServer, at: usize) -> Value {
    serde_json::from_str(&server.asked()[at].body).unwrap()
}

#[test]
fn parameters_reach_the_request_in_each_dialect() {
    let gemini = ModelServer::start(vec![says("Gemini."), says("Gemini.")]);
    let (claude, chat) = (ModelServer::start(vec![stream(CLAUDE)]), ModelServer::start(vec![stream(CHAT)]));
    let base = json!({"temperature": 0.2, "topK": 40, "maxOutputTokens": 900, "stopSequences": ["END"]});
    let thinks = json!({"thinkingConfig": {"thinkingBudget": 512}, "topP": 0.5});
    let config = |model: &str, it: &Value| json!({"model": model, "generateContentConfig": it});
    let aliases = json!({
        "mine": {"modelConfig": {"generateContentConfig": base}},
        "careful": {"extends": "mine", "modelConfig": config("gemini-2.5-flash-lite", &thinks)},
        "other": {"extends": "mine", "modelConfig": {"model": "claude/claude-3-5-haiku"}},
        "third": {"extends": "mine", "modelConfig": {"model": "chat/m"}},
        "circle": {"extends": "circle"},
        "odd": {"modelConfig": {"generateContentConfig": {"temperature": "hot"}}},
    });
    let quiet = json!({"match": {"model": "third", "overrideScope": "core"},
        "modelConfig": {"generateContentConfig": {"temperature": 0.9}}});
    let providers = json!({
        "claude": {"type": "anthropic", "baseUrl": claude.url},
        "chat": {"type": "openai", "baseUrl": chat.url},
    });
    let settings =
        json!({"modelConfigs": {"customAliases": aliases, "customOverrides": [quiet]}, "providers": providers});
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), gemini.url.clone()));
    sandbox.args.extend(["--model", "careful"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = |client: &mut Client, text: &str| {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        let (answer, said) = client.call("session/prompt", params).unwrap();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        json!(said).to_string()
    };
    let choose = |client: &mut Client, model: &str| {
        let params = json!({"sessionId": session, "configId": "model", "value": model});
        client.result("session/set_config_option", params).unwrap();
    };

    let warned = prompt(&mut client, "go");
    assert!(gemini.asked()[0].head.contains("/gemini-2.5-flash-lite:"), "{}", gemini.asked()[0].head);
    let expected = json!({"temperature": 0.2, "topP": 0.5, "topK": 40, "maxOutputTokens": 900,
        "stopSequences": ["END"], "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 512}});
    assert_eq!(body(&gemini, 0)["generationConfig"], expected);
    let why = prompt(&mut client, "/model why");
    assert!(why.contains("`gemini-2.5-flash-lite`: configured as careful"), "{why}");

    choose(&mut client, "other");
    prompt(&mut client, "go");
    let got = body(&claude, 0);
    assert_eq!(
        [&got["model"], &got["max_tokens"], &got["temperature"], &got["top_k"], &got["stop_sequences"]],
        [&json!("claude-3-5-haiku"), &json!(900), &json!(0.2), &json!(40), &json!(["END"])]
    );

    choose(&mut client, "third");
    prompt(&mut client, "go");
    let got = body(&chat, 0);
    assert_eq!(
        [&got["model"], &got["max_tokens"], &got["temperature"], &got["stop"]],
        [&json!("m"), &json!(900), &json!(0.9), &json!(["END"])]
    );

    prompt(&mut client, "/model pro");
    prompt(&mut client, "go");
    assert!(gemini.asked()[1].head.contains("/gemini-4-argon:"), "{}", gemini.asked()[1].head);
    // What was learned of an alias is no parameter of another model.
    let thinks = json!({"includeThoughts": true, "thinkingLevel": "high"});
    // This family takes no word on how it samples.
    let family = json!({"thinkingConfig": thinks});
    assert_eq!(body(&gemini, 1)["generationConfig"], family);

    let params = json!({"sessionId": session, "configId": "model", "value": "circle"});
    let refused = client.result("session/set_config_option", params).unwrap_err();
    assert!(refused.contains("circle"), "{refused}");
    let parts = ["modelConfigs.circle", "in a circle", "customAliases.odd", "a number from 0 to 2"];
    assert!(parts.iter().all(|it| warned.contains(it)), "{warned}");
}

/// Parameters for one agent, by its name: the session's own requests have none of them.
#[test]
fn an_override_can_be_for_one_agent() {
    let start = calls("invoke_agent", &json!({"agent_name": "helper", "prompt": "Help."}));
    let server = ModelServer::start(vec![start, calls("complete_task", &json!({"result": "one"})), says("Done.")]);
    let helper = json!({"match": {"overrideScope": "helper"},
        "modelConfig": {"generateContentConfig": {"temperature": 0.3}}});
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &json!({"modelConfigs": {"customOverrides": [helper]}}).to_string());
    sandbox.write("home/.castor/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.");
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    // A family that takes temperatures.
    sandbox.args.extend(["--model", "gemini-3.1-pro-preview"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (answer, _) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let temperatures: Vec<Value> =
        (0..3).map(|at| body(&server, at)["generationConfig"]["temperature"].clone()).collect();
    assert_eq!(temperatures[1], 0.3);
    assert!(temperatures[0] != 0.3 && temperatures[2] != 0.3, "{temperatures:?}");
}
