//! How much a model is told, from the editor's side: the size of the first request, and sessions that outgrow a window.

use std::fs;

use castor_engine::context::tokens;
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, answers, calls, says, stream},
};

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.iter().map(Value::to_string).collect())
}

/// It has at most 4,000 tokens.
#[test]
fn the_first_request_of_an_empty_session_is_small() {
    let server = ModelServer::start(vec![says("One.")]);
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    let size = tokens::of_text(&server.asked()[0].body);
    assert!((500..=4_000).contains(&size), "{size} tokens");
}

/// What is said of tools is said of those that are on offer, and the rest stays the same.
#[test]
fn instructions_speak_of_no_tool_that_is_not_there() {
    let instructions = |settings: &Value| {
        let server = ModelServer::start(vec![says("One.")]);
        let mut sandbox = Sandbox::new();
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        prompt(&mut client, &session, "go");
        let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
        let text = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap().to_owned();
        text.lines().take_while(|it| !it.starts_with("# Where")).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = instructions(&json!({}));
    let fewer = instructions(&json!({ "tools": { "exclude": ["write_todos", "run_shell_command"] } }));
    let gone: Vec<&String> = all.iter().filter(|it| !fewer.contains(it)).collect();
    let is_about = |it: &String| it.contains("write_todos") || it.contains("over shell commands");
    assert!(gone.len() == 2 && gone.into_iter().all(is_about), "{all:?}\n{fewer:?}");
    assert_eq!(all.len(), fewer.len() + 2, "nothing else is said instead");
}

/// The model sees a summary in place of the older part, also in the next process; what is behind it is untouched.
#[test]
fn compressed_history_stays_compressed_after_a_restart() {
    let long = |what: &str| (0..300).map(|n| format!("{what} {n} is a number. ")).collect::<String>();
    let snapshot =
        says("<scratchpad>Hm.</scratchpad><state_snapshot><overall_goal>Count.</overall_goal></state_snapshot>");
    let server = ModelServer::start(vec![
        says(&long("first")),
        snapshot.clone(),
        says("no snapshot, but better"),
        says("Two."),
        says("Three."),
        says("Four."),
    ]);
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.write("home/.castor/settings.json", r#"{"model":{"compressionThreshold":0.001}}"#);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    three_prompts(&mut client, &session);
    client.end().unwrap();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
    client.result("session/resume", params).unwrap();
    prompt(&mut client, &session, "four");

    let asked: Vec<Value> = server.asked().iter().map(|it| serde_json::from_str(&it.body).unwrap()).collect();
    let texts = |at: usize| {
        let contents = asked[at]["contents"].as_array().unwrap().iter();
        contents.map(|it| it["parts"][0]["text"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(asked.len(), 6);
    let question = &texts(1)[0];
    assert!(question.starts_with("<history>\n[user]\none\n\n[agent]\nfirst 0 is a number."), "{question}");
    assert!(!question.contains("two") && asked[1].get("tools").is_none(), "{question}");
    assert_eq!((texts(2)[0] == *question, texts(2).len()), (true, 3), "the second look has the same beginning");
    let understood = "Got it. Thanks for the additional context!";
    assert_eq!(texts(3), ["no snapshot, but better", understood, "two"]);
    assert_eq!(texts(4), ["no snapshot, but better", understood, "two", "Two.", "three"]);
    assert_eq!(texts(5)[..5], texts(4), "the next process sees the same");
    assert!(asked[3].get("tools").is_some() && asked[3]["systemInstruction"] == asked[0]["systemInstruction"]);
}

/// Off by default. A small model lists what counts in a very large result; where it cannot, the edges have to do.
#[test]
fn very_large_results_are_distilled_where_settings_want_it() {
    let call = || calls("glob", &json!({ "pattern": "**/*.txt" }));
    let server = ModelServer::start(vec![
        call(),
        says("- forty files\n"),
        says("Seen."),
        call(),
        answers("404 Not Found", "{}"),
        says("Seen again."),
        call(),
        says("Not asked."),
    ]);
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    for n in 0..40 {
        sandbox.write(format!("ws/a-file-with-a-long-name-{n}.txt"), "");
    }
    let limits = json!({ "maxOutputTokens": 100, "summarizationThresholdTokens": 200 });
    let settings = json!({
        "experimental": { "contextManagement": true },
        "contextManagement": { "tools": { "distillation": limits } },
    });
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    // Another one than the small model, which goes away.
    sandbox.args.extend(["--model", "gemini-3.1-pro-preview"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    three_prompts(&mut client, &session);
    let asked = server.asked();
    let has = |at: usize, text: &str| asked[at].body.replace("\\u003c", "<").contains(text);
    assert!(asked[1].head.contains("gemini-3.8-flash") && has(1, "list the hard facts") && has(1, "long-name-39"));
    assert!(has(2, "[Message Normalized: Tool output exceeded size limit]") && has(2, "<facts>\\n- forty files"));
    assert!(has(2, "bytes left out] ...") && tokens::of_text(&asked[2].body) < 5_000);
    let (_, file) = asked[2].body.split_once("Full output saved to: ").expect("no file");
    assert!(asked[5].body.matches("Message Normalized").count() == 2 && asked[5].body.matches("<facts>").count() == 1);
    // The small model is gone for good: nobody asks it again.
    assert_eq!((asked.len(), asked[7].body.matches("Message Normalized").count()), (8, 3));
    let file = file.split('\\').next().unwrap();
    // Its end waits for what is still written.
    client.end().unwrap();
    assert_eq!(fs::read_to_string(file).unwrap().matches("long-name").count(), 40, "the whole of it");
}

/// A model that reads little: outputs give way, whole in files; what does not fit at all is refused before it is sent.
#[test]
fn a_small_window_is_never_overrun() {
    const WINDOW: u64 = 16_000;
    let call = |name: &str| {
        let args = json!({ "file_path": name }).to_string();
        let call = json!([{ "index": 0, "id": name, "function": { "name": "read_file", "arguments": args } }]);
        let chunk = json!({ "choices": [{ "delta": { "tool_calls": call }, "finish_reason": "tool_calls" }] });
        stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    let text = json!({ "choices": [{ "delta": { "content": "Read it." }, "finish_reason": "stop" }] });
    let text = stream(&format!("data: {text}\n\ndata: [DONE]\n\n"));
    let answers = vec![call("a.txt"), call("b.txt"), call("c.txt"), text.clone(), text.clone(), text];
    let server = ModelServer::start(answers);
    let mut sandbox = Sandbox::new();
    sandbox.args.extend(["--model", "local/m1"].map(Into::into));
    for name in ["a", "b", "c"] {
        sandbox.write(format!("ws/{name}.txt"), &format!("{name} is in it\n").repeat(1_600));
    }
    let providers = json!({ "local": { "baseUrl": format!("{}/v1", server.url) } });
    let settings = json!({ "providers": providers, "model": { "contextWindow": WINDOW, "compressionThreshold": 0 } });
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &session, "read them");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let asked = server.asked();
    let sizes: Vec<u64> = asked.iter().map(|it| tokens::of_text(&it.body)).collect();
    assert!(sizes.iter().all(|it| *it <= WINDOW), "{sizes:?}");
    let last = &asked[3].body;
    let (_, file) = last.split_once("Full output available at: ").expect("nothing is masked");
    let file = file.split('\\').next().unwrap();
    assert!(last.contains("c is in it"), "the newest is there");
    client.result("session/close", json!({ "sessionId": session })).unwrap();
    client.end().unwrap();
    assert_eq!(fs::read_to_string(file).unwrap().matches("a is in it").count(), 1_600, "the whole of the oldest");

    // The next process sees the same.
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
    client.result("session/load", params).unwrap();
    prompt(&mut client, &session, "again");
    let again = server.asked()[4].body.clone();
    let begins = last.trim_end_matches(['}', ']']);
    assert!(again.contains("tool_output_masked") && tokens::of_text(&again) <= WINDOW, "{again}");
    assert!(again.starts_with(begins), "prompts keep their beginning");

    let (answer, _) = prompt(&mut client, &session, &"word ".repeat(20_000));
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("too long for local/m1") && why.contains("16000"), "{answer}");
    assert_eq!(server.asked().len(), 5, "it was not sent");
    prompt(&mut client, &session, "shorter");
    assert!(!server.asked()[5].body.contains("word word"), "and is not sent with the next one");
}

/// A provider that counts more than the rule of thumb: what it said holds for what is sent next, after a load, too.
#[test]
fn the_providers_own_count_is_learned() {
    let answer = |asked: &crate::model_server::Asked| {
        let usage = json!({ "prompt_tokens": tokens::of_text(&asked.body) * 2, "completion_tokens": 1 });
        let choice = json!([{ "delta": { "content": "Read it." }, "finish_reason": "stop" }]);
        Some(stream(&format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": choice, "usage": usage }))))
    };
    let server = ModelServer::answering(answer);
    let mut sandbox = Sandbox::new();
    sandbox.args.extend(["--model", "local/m1"].map(Into::into));
    let providers = json!({ "local": { "baseUrl": format!("{}/v1", server.url) } });
    let settings = json!({ "providers": providers, "model": { "contextWindow": 32_000, "compressionThreshold": 0 } });
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let long = "word ".repeat(16_000);
    prompt(&mut client, &session, "short");
    let refused = |client: &mut Client| {
        let (answer, _) = prompt(client, &session, &long);
        let why = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(why.contains("too long for local/m1") && why.contains("its context window is 32000"), "{answer}");
    };
    refused(&mut client);
    client.end().unwrap();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
    client.result("session/load", params).unwrap();
    refused(&mut client);
    assert_eq!(server.asked().len(), 1, "neither was sent");
    // A session that knows nothing yet goes by the rule.
    let other = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, _) = prompt(&mut client, &other, &long);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

fn three_prompts(client: &mut Client, session: &str) {
    for text in ["one", "two", "three"] {
        let (answer, _) = prompt(client, session, text);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
}
