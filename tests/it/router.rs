//! Auto models, from the editor's side: who is asked first, where the prompt goes then, with what, and why.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, calls, says, stream},
};

const CLAUDE: &str = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Claude."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

"#;

/// What the numerical classifier answers.
fn score(it: u32) -> String {
    says(&json!({"complexity_reasoning": "So it seems.", "complexity_score": it}).to_string())
}

fn agent(settings: &Value, gemini: &ModelServer, model: &str) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), gemini.url.clone()));
    sandbox.args.extend(["--model", model].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

fn prompt(client: &mut Client, session: &str, text: &str) -> String {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (answer, said) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    json!(said).to_string()
}

/// The models that were asked, in order.
fn asked(server: &ModelServer) -> Vec<String> {
    let model = |head: &str| head.split_once("/models/").unwrap().1.split_once(':').unwrap().0.to_owned();
    server.asked().iter().map(|it| model(&it.head)).collect()
}

fn body(server: &ModelServer, at: usize) -> Value {
    serde_json::from_str(&server.asked()[at].body).unwrap()
}

/// The classifier answers in a given JSON shape.
#[test]
fn router_picks_a_model_by_difficulty() {
    const SMALL: &str = "gemini-3.5-flash-lite";
    const FLASH: &str = "gemini-3.8-flash";
    const PRO: &str = "gemini-4-argon";
    let busy = answers("500 Internal Server Error", r#"{"error": {"code": 500, "message": "Not now."}}"#);
    let server = ModelServer::start(vec![
        score(20),
        calls("list_directory", &json!({"dir_path": "."})),
        says("Done."),
        score(95),
        says("Thought about."),
        busy,
        says("All the same."),
        says("As chosen."),
        says("no JSON"),
        says("Default."),
    ]);
    let (_sandbox, mut client, session) = agent(&json!({}), &server, "auto");
    let params = json!({"sessionId": session, "configId": "thought_level", "value": "low"});
    client.result("session/set_config_option", params).unwrap();
    prompt(&mut client, &session, "list the files");
    assert_eq!(asked(&server), [SMALL, FLASH, FLASH], "judged once, also where tools are called");
    let judge = body(&server, 0);
    let config = &judge["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config["responseJsonSchema"]["required"], json!(["complexity_reasoning", "complexity_score"]));
    // This family takes no temperature, and levels in place of budgets.
    assert_eq!((&config["temperature"], &config["thinkingConfig"]["thinkingLevel"]), (&Value::Null, &json!("minimal")));
    assert_eq!(judge["contents"][0]["parts"][0]["text"], "<request>\nlist the files\n</request>");
    assert!(judge["tools"].is_null() && body(&server, 1)["tools"].is_array());
    assert_eq!(body(&server, 1)["generationConfig"]["thinkingConfig"]["thinkingLevel"], "low");
    let why = prompt(&mut client, &session, "/model why");
    assert!(
        why.contains(&format!("`{FLASH}`: numerical classifier: 20 of 100, from 90 on pro: So it seems.")),
        "{why}"
    );

    prompt(&mut client, &session, "design something");
    assert_eq!(asked(&server)[3..], [SMALL, PRO]);
    let shown = body(&server, 3)["contents"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    let before = "<before>\nuser: list the files\nagent: [calls list_directory]\nresults: [list_directory gave ";
    assert!(shown.starts_with(before) && shown.ends_with("<request>\ndesign something\n</request>"), "{shown}");

    prompt(&mut client, &session, "nobody judges this");
    assert_eq!(asked(&server)[5..], [SMALL, PRO]);
    let why = prompt(&mut client, &session, "/model why");
    assert!(why.contains(&format!("`{PRO}`: the default of auto: {SMALL} failed: Not now.")), "{why}");

    prompt(&mut client, &session, "/model flash");
    prompt(&mut client, &session, "chosen");
    assert_eq!(asked(&server)[7..], [FLASH], "who chose a model is not judged");
    prompt(&mut client, &session, "/model auto-gemini-2.5");
    prompt(&mut client, &session, "again");
    assert_eq!(asked(&server)[8..], [SMALL, "gemini-3.8-flash"]);
    let why = prompt(&mut client, &session, "/model why");
    assert!(why.contains("the default of auto-gemini-2.5: "), "{why}");
}

/// The names mean what the user says, and a model of this machine judges. Its server takes no shapes of answers.
#[test]
fn across_providers_with_a_judge_of_this_machine() {
    let choice = json!({"reasoning": "Large.", "model_choice": "pro"}).to_string();
    let chunk = json!({"choices": [{"delta": {"content": choice}, "finish_reason": "stop"}]});
    let refused = json!({"error": {"message": "response_format json_schema is not supported", "code": 400}});
    let refused = answers("400 Bad Request", &refused.to_string());
    let judge = ModelServer::start(vec![refused, stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))]);
    let claude = ModelServer::start(vec![stream(CLAUDE)]);
    let gemini = ModelServer::start(Vec::new());
    let alias = |model: &str| json!({"modelConfig": {"model": model}});
    let settings = json!({
        "model": {"routing": {"local": "mine/small"}},
        "modelConfigs": {"customAliases": {"pro": alias("claude/opus"), "flash": alias("mine/flash")}},
        "providers": {
            "mine": {"baseUrl": judge.url},
            "claude": {"type": "anthropic", "baseUrl": claude.url},
        },
    });
    let (_sandbox, mut client, session) = agent(&settings, &gemini, "auto");
    let said = prompt(&mut client, &session, "build it");
    assert!(said.contains("Claude."), "{said}");
    let asked = body(&judge, 0);
    assert_eq!((&asked["model"], &asked["response_format"]["type"]), (&json!("small"), &json!("json_schema")));
    let plain = body(&judge, 1);
    assert_eq!((&plain["response_format"], &plain["messages"]), (&Value::Null, &asked["messages"]));
    let request = body(&claude, 0);
    assert_eq!(request["model"], "opus");
    assert!(request["tools"][0]["input_schema"].is_object() && request["generationConfig"].is_null(), "{request}");
    assert_eq!(gemini.asked().len(), 0);
    let why = prompt(&mut client, &session, "/model why");
    assert!(why.contains("`claude/opus`: local classifier: Large."), "{why}");
}

/// Anthropic's API has no shapes of answers: the judge has to call a tool, and what it calls it with is its answer.
#[test]
fn a_judge_of_anthropics_has_a_shape_to_fill() {
    let start = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "answer", "input": {}}});
    let choice = json!({"reasoning": "Small.", "model_choice": "flash"}).to_string();
    let delta = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": choice}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}});
    let events =
        [start, delta, json!({"type": "content_block_stop", "index": 0}), end, json!({"type": "message_stop"})];
    let events: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let claude = ModelServer::start(vec![stream(&events), stream(CLAUDE)]);
    let gemini = ModelServer::start(Vec::new());
    let alias = |model: &str| json!({"modelConfig": {"model": model}});
    let aliases =
        json!({"pro": alias("claude/opus"), "flash": alias("claude/haiku"), "classifier": alias("claude/judge")});
    let settings = json!({
        "modelConfigs": {"customAliases": aliases},
        "providers": {"claude": {"type": "anthropic", "baseUrl": claude.url}},
    });
    let (_sandbox, mut client, session) = agent(&settings, &gemini, "auto");
    assert!(prompt(&mut client, &session, "list it").contains("Claude."));
    let (judge, request) = (body(&claude, 0), body(&claude, 1));
    assert_eq!((&judge["model"], &request["model"]), (&json!("judge"), &json!("haiku")));
    assert_eq!(judge["tool_choice"], json!({"type": "tool", "name": "answer"}));
    let shape = &judge["tools"][0]["input_schema"];
    assert_eq!(
        (&shape["required"], judge["tools"].as_array().unwrap().len()),
        (&json!(["reasoning", "model_choice"]), 1)
    );
    assert!(judge["thinking"].is_null() && request["tool_choice"].is_null(), "{judge} {request}");
    let why = prompt(&mut client, &session, "/model why");
    assert!(why.contains("`claude/haiku`: classifier: Small."), "{why}");
    let stats = prompt(&mut client, &session, "/stats");
    assert!(stats.contains("claude/judge") && stats.contains("router"), "{stats}");
}

/// A busy model is left for the smaller one without a question, and is tried again in the next turn.
#[test]
fn auto_model_falls_back_without_asking() {
    let error = r#"{"error": {"code": 429, "message": "Slowly.", "details": [{"@type": "x", "retryDelay": "0s"}]}}"#;
    let slow = || answers("429 Too Many Requests", error);
    let server =
        ModelServer::start(vec![score(99), slow(), slow(), slow(), says("Flash."), score(99), says("Pro again.")]);
    let (_sandbox, mut client, session) = agent(&json!({}), &server, "auto");
    assert!(prompt(&mut client, &session, "one").contains("Flash."));
    assert!(prompt(&mut client, &session, "two").contains("Pro again."));
    let [pro, flash, small] = ["gemini-4-argon", "gemini-3.8-flash", "gemini-3.5-flash-lite"];
    assert_eq!(asked(&server), [small, pro, pro, pro, flash, small, pro]);
}

/// A judge that one session found to be out is asked by no other.
#[test]
fn a_judge_that_is_out_is_out_for_all_sessions() {
    let gone = answers("404 Not Found", r#"{"error": {"code": 404, "message": "No such model."}}"#);
    let server = ModelServer::start(vec![gone, says("One."), says("Two."), says("Three.")]);
    let (sandbox, mut client, first) = agent(&json!({}), &server, "auto");
    let second = client.new_session(&sandbox.workspace()).unwrap();
    assert!(prompt(&mut client, &first, "one").contains("One."));
    assert!(prompt(&mut client, &second, "two").contains("Two."));
    let third = client.new_session(&sandbox.workspace()).unwrap();
    assert!(prompt(&mut client, &third, "three").contains("Three."));
    let pro = "gemini-4-argon";
    assert_eq!(asked(&server), ["gemini-3.5-flash-lite", pro, pro, pro]);
    for session in [second, third] {
        let why = prompt(&mut client, &session, "/model why");
        assert!(why.contains("gemini-3.5-flash-lite is known not to answer now"), "{why}");
    }
}

/// Routing comes behind masking: what is left out for the model is left out for who judges, too.
#[test]
fn classifier_sees_masked_outputs() {
    const LINES: usize = 1_990;
    let read = |n: u64| json!({"functionCall": {"name": "read_file", "args": {"file_path": format!("f{n}.txt")}}});
    let parts: Vec<Value> = (0..8).map(read).collect();
    let chunk = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]});
    let server = ModelServer::start(vec![
        score(20),
        stream(&format!("data: {chunk}\r\n\r\n")),
        says("Read."),
        score(20),
        says("Done."),
    ]);
    let (sandbox, mut client, session) = agent(&json!({}), &server, "auto");
    for n in 0..8 {
        sandbox.write(format!("ws/f{n}.txt"), &format!("{n} is in it, and in all of its lines\n").repeat(LINES));
    }
    prompt(&mut client, &session, "read them");
    prompt(&mut client, &session, "again");
    let sent = server.asked();
    let masked = |at: usize| sent[at].body.replace("\\u003c", "<").matches("<tool_output_masked>").count();
    assert_eq!(masked(2), 0, "results of the turn at hand are whole");
    assert!(masked(4) > 0 && masked(3) > 0, "the judge {}, the model {}", masked(3), masked(4));
    let judged = body(&server, 3)["contents"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    assert!(judged.contains("[read_file gave <tool_output_masked>"), "{judged}");
}
