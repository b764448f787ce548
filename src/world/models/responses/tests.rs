//! OpenAI's Responses API: requests as JSON, answers event by event.

use serde_json::{Value, json};

use super::{request::body, response::ResponsesDecoder};
use crate::{
    base::{
        model::{Chunk, FailureKind, Finish, ModelParams, ModelRequest, Thinking, Usage},
        tool::{ToolKind, ToolSpec},
    },
    world::models::{gemini::conversation, remote::Decode, tests_streams::decode_events},
};

fn request(conversation_text: &str) -> ModelRequest {
    ModelRequest {
        model: "gpt".into(),
        system: "Be kind.".into(),
        contents: conversation(conversation_text),
        tools: [].into(),
        params: ModelParams::default(),
        traits: Default::default(),
    }
}

fn read(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(request)).unwrap()
}

#[test]
fn bodies() {
    let tool = ToolSpec {
        name: "read".into(),
        title: "".into(),
        description: "reads".into(),
        kind: ToolKind::Read,
        traits: Default::default(),
        parameters: json!({ "type": "object", "properties": {} }).into(),
    };
    let params = ModelParams {
        max_output_tokens: Some(9),
        thinking: Some(Thinking::Level("LOW".to_owned())),
        include_thoughts: true,
        ..ModelParams::default()
    };
    assert_eq!(
        read(&ModelRequest { tools: [tool].into(), params, ..request("user text hi") }),
        json!({
            "model": "gpt", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 9, "reasoning": { "effort": "low", "summary": "auto" },
            "tools": [{ "type": "function", "name": "read", "description": "reads", "strict": false,
                "parameters": { "type": "object", "properties": {} } }],
            "instructions": "Be kind.",
            "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] }],
        })
    );
}

#[test]
fn every_kind_of_item() {
    let got = read(&request(
        "user text look\nuser media\nmodel thought hm ^openai:ENC\nmodel thought foreign ^anthropic:S\n\
         model text I will.\nmodel call c1 read {\"a\":1}\nmodel call c2 odd [1]\ntool result c1 read [image]\n\
         tool error c2 odd bad\ntool text beside\nmodel thought only",
    ));
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,QUJD" });
    let expected = json!([
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "look" }, image] },
        { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "ENC" },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I will." }] },
        { "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"a\":1}" },
        { "type": "function_call", "call_id": "c2", "name": "odd", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": [
            { "type": "input_text", "text": "Binary content provided (1 item(s))." }, image] },
        { "type": "function_call_output", "call_id": "c2", "output": "Error: bad" },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "beside" }] },
    ]);
    assert_eq!(got["input"], expected);
}

fn decode(events: &[&str]) -> (Vec<Chunk>, bool) {
    decode_events(ResponsesDecoder::default(), events)
}

fn thought(text: &str, signature: Option<&str>) -> Chunk {
    Chunk::Thought { text: text.to_owned(), signature: signature.map(Into::into) }
}

#[test]
fn a_whole_answer() {
    let (got, finished) = decode(&[
        r#"{"type":"response.created","response":{"usage":null,"incomplete_details":null,"error":null}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"reasoning"}}"#,
        r#"{"type":"response.reasoning_summary_part.added","summary_index":0}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
        r#"{"type":"response.reasoning_summary_part.added","summary_index":1}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"so"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","encrypted_content":"ENC","summary":[]}}"#,
        r#"{"type":"response.output_text.delta","delta":"a\nb"}"#,
        r#"{"type":"response.output_text.done","text":"a\nb"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{\"a\":1}"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"read","arguments":"{\"a\":1}"}}"#,
        r#"{"type":"response.completed","response":{"error":null,"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}}}"#,
    ]);
    let expected = vec![
        thought("hm", None),
        thought("\n\n", None),
        thought("so", None),
        thought("", Some("openai:ENC")),
        Chunk::Text { text: "a\nb".to_owned(), signature: None },
        Chunk::Call { id: Some("c".to_owned()), name: "read".to_owned(), args: json!({ "a": 1 }), signature: None },
        Chunk::Usage(Usage { input: 10, output: 3, cached: 4, thought: 2, total: 15, ..Usage::default() }),
        Chunk::Finish(Finish::Stop),
    ];
    assert_eq!(got, expected);
    assert!(finished);
}

#[test]
fn ends_and_errors() {
    for (reason, finish) in [
        ("max_output_tokens", Finish::MaxTokens),
        ("content_filter", Finish::Safety("content_filter".to_owned())),
        ("odd", Finish::Other("odd".to_owned())),
    ] {
        let event =
            format!(r#"{{"type":"response.incomplete","response":{{"incomplete_details":{{"reason":"{reason}"}}}}}}"#);
        assert_eq!(decode(&[&event]).0, [Chunk::Finish(finish)]);
    }
    let fails = |event: &str| ResponsesDecoder::default().event(event.as_bytes(), &mut Vec::new()).unwrap_err();
    let failure = fails(
        r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Slow. Please try again in 1.5s."}}}"#,
    );
    assert_eq!((failure.status, failure.retry_after_ms), (Some(429), Some(1_500)));
    let failure = fails(r#"{"type":"error","code":"server_error","message":"Oops","param":null}"#);
    assert_eq!((failure.kind, failure.status, &*failure.message), (FailureKind::Status, Some(500), "Oops"));
    assert_eq!(fails("[1]").kind, FailureKind::Garbage);
}
