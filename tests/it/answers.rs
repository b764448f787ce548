//! Answers that are read although they are not quite what a provider's API says, from the editor's side.

use serde_json::{Value, json};

use crate::{
    model_server::{ModelServer, gives, stream},
    providers::{agent, prompt},
};

const CHAT: &str = "openai";
const RESPONSES: &str = "responses";
const ANTHROPIC: &str = "anthropic";

/// Events of a stream, and what stands behind them.
fn events(list: &[Value], rest: &str) -> String {
    let events: String = list.iter().map(|it| format!("data: {it}\n\n")).collect();
    stream(&(events.replace("HIGH", r"\ud83c").replace("LOW", r"\udf89") + rest))
}

fn delta(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]})
}

fn block(index: u8, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
}

fn item(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

/// The model is asked once, and what it says is shown.
fn check(kind: &str, answer: String, expected: &str) {
    let shown = answer.clone();
    let server = ModelServer::start(vec![answer]);
    let settings = json!({"type": kind, "baseUrl": format!("{}/v1", server.url), "apiKeyEnv": "LOCAL_KEY"});
    let (sandbox, mut client) = agent(&json!({ "local": settings }), "local/m1");
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let (answer, updates) = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{shown}: {answer}");
    let texts = updates
        .iter()
        .filter_map(|it| it.pointer("/params/update").filter(|it| it["sessionUpdate"] == "agent_message_chunk"));
    let said: String = texts.filter_map(|it| it["content"]["text"].as_str()).collect();
    assert_eq!((said.as_str(), server.asked().len()), (expected, 1), "{shown}");
}

#[test]
fn characters_that_a_server_cut_are_whole() {
    let done = "data: [DONE]\n\n";
    check(CHAT, events(&[delta("party HIGH"), delta("LOW.")], done), "party 🎉.");
    check(CHAT, events(&[delta("party HIGH"), delta("x"), delta("LOW")], done), "party \u{fffd}x\u{fffd}");
    let stop = json!({"type": "message_stop"});
    check(ANTHROPIC, events(&[block(0, "party HIGH"), block(0, "LOW."), stop], ""), "party 🎉.");
    let piece = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    check(RESPONSES, events(&[piece("party HIGH"), piece("LOW."), end], ""), "party 🎉.");
}

#[test]
fn ends_are_known_and_what_follows_is_not_read() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    check(CHAT, events(&[delta("Done."), usage], "data: [DONE]\n\n"), "Done.");
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}});
    let stop = json!({"type": "message_stop"});
    for rest in ["data: [DONE]\n\n", "data: {oops\n\n", "event: error\ndata: late\n\n"] {
        check(ANTHROPIC, events(&[block(0, "Done."), end.clone(), stop.clone()], rest), "Done.");
    }
}

#[test]
fn answers_that_come_at_once_are_read() {
    let message = json!({"role": "assistant", "content": "At once."});
    check(CHAT, gives(&json!({"choices": [{"message": message, "finish_reason": "stop"}]})), "At once.");
    let content = json!([{"type": "text", "text": "At once."}]);
    check(ANTHROPIC, gives(&json!({"type": "message", "content": content, "stop_reason": "end_turn"})), "At once.");
    let response = json!({"object": "response", "status": "completed", "output": [item("At once.")]});
    check(RESPONSES, gives(&response), "At once.");
    check(RESPONSES, events(&[json!({"type": "response.completed", "response": response})], ""), "At once.");
}
