//! Chat completions: requests as JSON, answers event by event.

use serde_json::{Value, json};

use super::{request::body, response::ChatDecoder};
use crate::providers::{
    gemini::conversation, legal_names::LegalNames, legal_schema::OPENAI, remote::Decode, tests_streams::decode_events,
};
use castor_base::{
    model::{Chunk, FailureKind, Finish, ModelParams, ModelRequest, Thinking, Usage},
    model_table::row::CallIds,
    tool::{ToolKind, ToolSpec},
};

const SIGNER: &str = "chat/one";

fn request(conversation_text: &str) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: "Be kind.".into(),
        contents: conversation(conversation_text),
        tools: [].into(),
        params: ModelParams::default(),
        traits: Default::default(),
    }
}

fn messages(conversation_text: &str) -> Value {
    let body: Value = serde_json::from_slice(&body(&request(conversation_text), false, SIGNER)).unwrap();
    body["messages"].clone()
}

#[test]
fn bodies() {
    let tool = ToolSpec {
        name: "mcp.one".into(),
        title: "".into(),
        description: "does".into(),
        kind: ToolKind::Other,
        traits: Default::default(),
        parameters: json!({ "type": "object" }).into(),
    };
    let params = ModelParams {
        temperature: Some(0.5),
        max_output_tokens: Some(7),
        thinking: Some(Thinking::Level("HIGH".to_owned())),
        stop: vec!["END".to_owned()],
        ..ModelParams::default()
    };
    let request = ModelRequest { tools: [tool].into(), params, ..request("user text hi") };
    let got: Value = serde_json::from_slice(&body(&request, false, SIGNER)).unwrap();
    let name = got["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("mcp_one_"), "{name}");
    assert_eq!(
        got,
        json!({
            "model": "m", "stream": true, "stream_options": { "include_usage": true },
            "temperature": 0.5, "max_tokens": 7, "reasoning_effort": "high", "stop": ["END"],
            "tools": [{ "type": "function", "function": {
                "name": name, "description": "does", "parameters": { "type": "object", "properties": {} } } }],
            "messages": [{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "hi" }],
        })
    );
    let newest: Value = serde_json::from_slice(&body(&request, true, SIGNER)).unwrap();
    assert_eq!(newest["max_completion_tokens"], 7);
}

#[test]
fn every_kind_of_message() {
    let got = messages(
        "user text look\nuser media\nuser embed file:///a.txt words\nmodel thought hm ^sig\nmodel text I will.\n\
         model call c1 read {\"a\":1}\nmodel call c2 odd [1]\ntool result c1 read one|two\ntool error c2 odd bad\n\
         tool text beside\nuser text more\nmodel thought only",
    );
    let expected = json!([
        { "role": "system", "content": "Be kind." },
        { "role": "user", "content": [
            { "type": "text", "text": "look" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } },
            { "type": "text", "text": "@/a.txt" },
            { "type": "text", "text": "\n--- Content from referenced context ---" },
            { "type": "text", "text": "\nContent from @/a.txt:\n" },
            { "type": "text", "text": "words" } ] },
        { "role": "assistant", "content": "I will.", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{\"a\":1}" } },
            { "id": "c2", "type": "function", "function": { "name": "odd", "arguments": "{}" } } ] },
        { "role": "tool", "tool_call_id": "c1", "content": "one\ntwo" },
        { "role": "tool", "tool_call_id": "c2", "content": "Error: bad" },
        { "role": "user", "content": "beside" },
        { "role": "user", "content": "more" },
    ]);
    assert_eq!(got, expected);
    let got = messages("model call c1 look {}\ntool result c1 look [image]");
    assert_eq!(got[2]["content"], "Binary content provided (1 item(s)).");
    assert_eq!(got[3]["content"][1]["type"], "image_url");
}

/// Other providers do not get a model's thoughts.
#[test]
fn thoughts_return_only_to_their_provider() {
    let assistant = |text: &str| messages(text)[1].clone();
    let calls = json!([{ "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{}" } }]);
    let content = Value::Null;
    assert_eq!(
        assistant("model thought hm\nmodel thought ^chat/one:\nmodel call c1 read {}"),
        json!({ "role": "assistant", "content": content, "reasoning_content": "hm", "tool_calls": calls }),
    );
    assert_eq!(
        assistant("model thought ^chat/one:\nmodel call c1 read {}"),
        json!({ "role": "assistant", "content": content, "reasoning_content": "", "tool_calls": calls }),
    );
    assert_eq!(
        assistant("model thought hm\nmodel thought ^chat/one:[{\"type\":\"x\"}]\nmodel text so"),
        json!({ "role": "assistant", "content": "so", "reasoning_details": [{ "type": "x" }] }),
    );
    for member in ["reasoning", "reasoning_text"] {
        assert_eq!(
            assistant(&format!("model thought hm\nmodel thought ^chat/one:{member}\nmodel call c1 read {{}}")),
            json!({ "role": "assistant", "content": content, member: "hm", "tool_calls": calls }),
        );
    }
    // Without calls, and of others.
    for text in ["model thought hm ^chat/one:\nmodel text so", "model thought hm ^chat/two:[1]\nmodel text so"] {
        assert_eq!(assistant(text), json!({ "role": "assistant", "content": "so" }));
    }
}

fn decode(events: &[&str]) -> (Vec<Chunk>, bool) {
    let names = LegalNames::new(&[].into(), &OPENAI, SIGNER);
    decode_events(ChatDecoder::new(names, SIGNER.to_owned()), events)
}

/// As the signature of the last thought.
#[test]
fn thoughts_remember_the_member_that_they_came_in() {
    for (delta, expected) in [
        (r#"{"reasoning_content":"hm"}"#, Some("chat/one:")),
        (r#"{"reasoning_content":""}"#, Some("chat/one:")),
        (r#"{"reasoning_content":null,"reasoning":"hm"}"#, Some("chat/one:reasoning")),
        (r#"{"reasoning":"hm","reasoning_content":"hm"}"#, Some("chat/one:")),
        (r#"{"reasoning":""}"#, None),
        (r#"{"reasoning_text":"hm"}"#, Some("chat/one:reasoning_text")),
        (r#"{"reasoning":"hm","reasoning_details":[{"type":"x"}]}"#, Some(r#"chat/one:[{"type":"x"}]"#)),
        (r#"{"content":"hm"}"#, None),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#);
        let chunks = decode(&[&event, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#]).0;
        let mark = chunks.iter().find_map(|it| match it {
            Chunk::Thought { signature, .. } => signature.as_deref(),
            _ => None,
        });
        assert_eq!(mark, expected, "{delta}");
    }
}

#[test]
fn ids_come_back_as_they_were() {
    let delta = r#"{"tool_calls":[{"index":0,"id":"functions.add:0","function":{"name":"add","arguments":"{}"}}]}"#;
    let event = format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":"tool_calls"}}]}}"#);
    let chunks = decode(&[&event]).0;
    let Some(Chunk::Call { id: Some(id), signature: Some(mark), .. }) = chunks.first() else { panic!("{chunks:?}") };
    for (mark, expected) in [(&**mark, "functions.add:0"), ("chat/two:id", "functions_add_0_2aab2b9e")] {
        let got = messages(&format!("model call {id} add {{}} ^{mark}\ntool result {id} add 3"));
        assert_eq!((&got[1]["tool_calls"][0]["id"], &got[2]["tool_call_id"]), (&json!(expected), &json!(expected)));
    }
}

#[test]
fn a_model_that_counts_calls_gets_ids_that_it_knows() {
    let mut request = request("model call toolu_1 add {}\ntool result toolu_1 add 3");
    request.traits.call_ids = CallIds::Counted;
    let got: Value = serde_json::from_slice(&body(&request, false, SIGNER)).unwrap();
    let ids = (&got["messages"][1]["tool_calls"][0]["id"], &got["messages"][2]["tool_call_id"]);
    assert_eq!(ids, (&json!("functions.add:0"), &json!("functions.add:0")));
}

fn text(text: &str) -> Chunk {
    Chunk::Text { text: text.to_owned(), signature: None }
}

fn thought(text: &str) -> Chunk {
    Chunk::Thought { text: text.to_owned(), signature: None }
}

fn call(id: &str, name: &str, args: Value) -> Chunk {
    Chunk::Call { id: (!id.is_empty()).then(|| id.to_owned()), name: name.to_owned(), args, signature: None }
}

#[test]
fn texts_thoughts_and_usage() {
    let (got, finished) = decode(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"so"}}]}"#,
        r#"{"choices":[{"delta":{"content":"a\nb"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"x"}]},{"type":"text","text":"y"}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
        "[DONE]",
    ]);
    let usage = Usage { input: 10, output: 3, cached: 4, thought: 2, total: 15, ..Usage::default() };
    let expected = vec![
        thought("hm"),
        thought("so"),
        text("a\nb"),
        thought("x"),
        text("y"),
        // They came as `reasoning_content`.
        Chunk::Thought { text: String::new(), signature: Some("chat/one:".into()) },
        Chunk::Finish(Finish::Stop),
        Chunk::Usage(usage),
    ];
    assert_eq!(got, expected);
    assert!(finished);
}

#[test]
fn calls_in_fragments() {
    let calls = |deltas: &[&str]| {
        let mut events: Vec<String> =
            deltas.iter().map(|it| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{it}]}}}}]}}"#)).collect();
        events.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (mut got, _) = decode(&events);
        assert_eq!(got.pop(), Some(Chunk::Finish(Finish::Stop)));
        got
    };
    // As OpenAI sends them, two at once.
    let got = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"read","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"p\":"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"list","arguments":"{}"}}"#,
        r#"{"index":0,"function":{"arguments":"1}"}}"#,
    ]);
    assert_eq!(got, [call("a", "read", json!({ "p": 1 })), call("b", "list", json!({}))]);
    // All with index 0, whole.
    let got = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"read","arguments":{"x":2}}}"#,
    ]);
    assert_eq!(got, [call("a", "read", json!({})), call("b", "read", json!({ "x": 2 }))]);
    // Without index and id.
    let got = calls(&[
        r#"{"function":{"name":"read","arguments":"{\"a\":"}}"#,
        r#"{"function":{"arguments":"1}"}}"#,
        r#"{"function":{"name":"list","arguments":""}}"#,
    ]);
    assert_eq!(got, [call("", "read", json!({ "a": 1 })), call("", "list", json!({}))]);
    // Arguments that are no JSON are reported back, not lost.
    let got = calls(&[r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{\"a\": oops"}}"#]);
    assert_eq!(got, [call("a", "read", json!("{\"a\": oops"))]);
}

#[test]
fn half_a_call_of_a_broken_answer_does_not_run() {
    let (got, finished) = decode(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{}"}}]}}]}"#,
    ]);
    assert_eq!((got, finished), (vec![], false));
}

#[test]
fn ends_and_errors() {
    for (word, finish) in [
        ("length", Finish::MaxTokens),
        ("content_filter", Finish::Safety("content_filter".to_owned())),
        ("odd", Finish::Other("odd".to_owned())),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
        assert_eq!(decode(&[&event]).0, [Chunk::Finish(finish)]);
    }
    let fails = |event: &str| ChatDecoder::default().event(event.as_bytes(), &mut Vec::new()).unwrap_err();
    let failure = fails(r#"{"error":{"message":"overloaded","code":503}}"#);
    assert_eq!((failure.kind, failure.status, &*failure.message), (FailureKind::Status, Some(503), "overloaded"));
    let failure =
        fails(r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#);
    assert_eq!(failure.message, "no such model");
    assert_eq!(fails("[1]").kind, FailureKind::Garbage);
    assert_eq!(fails("{").kind, FailureKind::Garbage);
    assert_eq!(decode(&[r#"{"choices":[],"error":null}"#, r#"{"id":"x"}"#, ""]).0, []);
}
