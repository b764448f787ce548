//! Anthropic's Messages API: requests as JSON, answers event by event.

use serde_json::{Value, json};

use super::{request::body, response::AnthropicDecoder};
use crate::providers::{gemini::conversation, legal_names::LegalNames, remote::Decode, tests_streams::decode_events};
use castor_base::{
    model::{Chunk, FailureKind, Finish, ModelParams, ModelRequest, Thinking, Usage},
    model_table::{ModelTable, ModelTraits},
    tool::{ToolKind, ToolSpec},
};

fn request(model: &str, conversation_text: &str) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        system: "Be kind.".into(),
        contents: conversation(conversation_text),
        tools: [].into(),
        params: ModelParams::default(),
        traits: ModelTable::built_in().traits(model),
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
        parameters: json!({ "type": "object", "properties": {}, "anyOf": [] }).into(),
    };
    let request = ModelRequest { tools: [tool].into(), ..request("claude-sonnet-4-5", "user text hi") };
    let kept = json!({ "type": "ephemeral" });
    assert_eq!(
        read(&request),
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 32000, "stream": true, "cache_control": kept,
            "tools": [{ "name": "read", "description": "reads",
                "input_schema": { "type": "object", "properties": {} } }],
            "system": [{ "type": "text", "text": "Be kind.", "cache_control": kept }],
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
        })
    );
}

#[test]
fn thinking_level_sets_the_budget() {
    let got = |model: &str, thinking: Thinking| {
        let mut params = ModelParams {
            thinking: Some(thinking),
            include_thoughts: true,
            temperature: Some(1.0),
            ..ModelParams::default()
        };
        ModelTable::built_in().fit(model, &mut params);
        let got = read(&ModelRequest { params, ..request(model, "user text hi") });
        assert_eq!(got.get("temperature").is_none(), got.get("thinking").is_some(), "{model}");
        (got["thinking"].clone(), got["output_config"].clone())
    };
    let level = |it: &str| Thinking::Level(it.to_owned());
    let budget = |it: u32| json!({ "type": "enabled", "budget_tokens": it });
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    for (model, thinking, expected, effort) in [
        ("claude-sonnet-4-5", Thinking::Budget(8_192), budget(8_192), Value::Null),
        ("claude-sonnet-4-5", Thinking::Budget(-1), budget(15_488), Value::Null),
        ("claude-sonnet-4-5", Thinking::Budget(100), budget(1_024), Value::Null),
        ("claude-sonnet-4-5", Thinking::Budget(0), Value::Null, Value::Null),
        ("claude-sonnet-4-5", Thinking::Budget(90_000), budget(30_976), Value::Null),
        ("claude-opus-4-20250514", level("low"), budget(1_024), Value::Null),
        ("claude-3-5-haiku", level("HIGH"), Value::Null, Value::Null),
        ("claude-opus-4-6", level("HIGH"), adaptive.clone(), json!({ "effort": "high" })),
        ("claude-opus-5", level("minimal"), adaptive.clone(), json!({ "effort": "low" })),
        ("claude-opus-4-7", Thinking::Budget(8_192), adaptive.clone(), json!({ "effort": "medium" })),
        ("claude-opus-4-7", Thinking::Budget(0), adaptive, json!({ "effort": "low" })),
    ] {
        assert_eq!(got(model, thinking.clone()), (expected, effort), "{model} {thinking:?}");
    }
}

#[test]
fn every_kind_of_block() {
    let got = read(&request(
        "claude-opus-4-6",
        "user text look\nuser media\nmodel thought first\nmodel thought , and second ^anthropic:S1=\n\
         model thought x ^anthropic-hidden:ENC\nmodel thought foreign ^Z2VtaW5p\nmodel text  \nmodel text I will.\n\
         model call c1 a.b {\"a\":1}\nmodel call c2 odd [1]\ntool result c1 a.b one\ntool error c2 odd bad\n\
         user text more\nmodel thought only",
    ));
    let name = crate::providers::provider_limits::tool_name("a.b");
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } });
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "look" }, image] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "first, and second", "signature": "S1=" },
            { "type": "redacted_thinking", "data": "ENC" },
            { "type": "text", "text": "I will." },
            { "type": "tool_use", "id": "c1", "name": name, "input": { "a": 1 } },
            { "type": "tool_use", "id": "c2", "name": "odd", "input": {} } ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "is_error": false,
                "content": [{ "type": "text", "text": "one" }] },
            { "type": "tool_result", "tool_use_id": "c2", "is_error": true,
                "content": [{ "type": "text", "text": "bad" }] },
            { "type": "text", "text": "more" } ] },
    ]);
    assert_eq!(got["messages"], expected);
}

/// The API has no shapes of answers that models of every age know: a tool that has to be called takes their place.
#[test]
fn an_answer_of_a_shape() {
    let shape = json!({ "type": "object", "properties": { "score": { "type": "integer" } }, "required": ["score"] });
    let params = ModelParams {
        schema: Some(shape.clone().into()),
        thinking: Some(Thinking::Budget(8_192)),
        temperature: Some(0.0),
        ..ModelParams::default()
    };
    let traits = ModelTraits::default();
    let got = read(&ModelRequest { params, traits, ..request("claude-sonnet-4-5", "user text hi") });
    assert_eq!(got["tool_choice"], json!({ "type": "tool", "name": "answer" }));
    assert_eq!((&got["tools"][0]["name"], &got["tools"][0]["input_schema"]), (&json!("answer"), &shape));
    assert_eq!(
        (&got["thinking"], &got["temperature"]),
        (&Value::Null, &json!(0.0)),
        "nobody who thinks can be made to"
    );

    let events = [
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"score\""}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":":7}"}}"#,
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
    ];
    let text = Chunk::Text { text: "{\"score\":7}".to_owned(), signature: None };
    assert_eq!(
        decode_events(AnthropicDecoder::new(LegalNames::default(), true), &events).0,
        [text, Chunk::Finish(Finish::Stop)]
    );
    assert!(matches!(decode(&events).0[0], Chunk::Call { .. }), "a tool of that name is a tool elsewhere");
}

fn decode(events: &[&str]) -> (Vec<Chunk>, bool) {
    decode_events(AnthropicDecoder::default(), events)
}

fn thought(text: &str, signature: Option<&str>) -> Chunk {
    Chunk::Thought { text: text.to_owned(), signature: signature.map(Into::into) }
}

#[test]
fn a_whole_answer() {
    let (got, finished) = decode(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S1"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ENC"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a\nb"}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t2","name":"list","input":{}}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let call = |id: &str, name: &str, args: Value| Chunk::Call {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        args,
        signature: None,
    };
    let expected = vec![
        thought("hm", None),
        thought("", Some("anthropic:S1")),
        thought("", Some("anthropic-hidden:ENC")),
        Chunk::Text { text: "a\nb".to_owned(), signature: None },
        call("t1", "read", json!({ "a": 1 })),
        call("t2", "list", json!({})),
        Chunk::Usage(Usage { input: 115, output: 7, cached: 100, written: 10, thought: 0, total: 122 }),
        Chunk::Finish(Finish::Stop),
    ];
    assert_eq!(got, expected);
    assert!(finished);
}

#[test]
fn ends_and_errors() {
    for (word, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::MaxTokens),
        ("refusal", Finish::Safety("refusal".to_owned())),
        ("odd", Finish::Other("odd".to_owned())),
    ] {
        let event = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}}}}"#);
        assert_eq!(decode(&[&event]).0, [Chunk::Finish(finish)]);
    }
    let fails = |event: &str| AnthropicDecoder::default().event(event.as_bytes(), &mut Vec::new()).unwrap_err();
    for (kind, status) in [("overloaded_error", 529), ("rate_limit_error", 429), ("api_error", 500)] {
        let failure = fails(&format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Busy"}}}}"#));
        assert_eq!((failure.kind, failure.status, &*failure.message), (FailureKind::Status, Some(status), "Busy"));
    }
    assert_eq!(fails("[1]").kind, FailureKind::Garbage);
    // Half a call of an answer that broke off must not run.
    let begun = r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"rm","input":{}}}"#;
    assert_eq!(decode(&[begun]), (vec![], false));
}
