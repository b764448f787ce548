//! OpenAI's Responses API: requests as JSON, answers event by event.

use serde_json::{Value, json};

use super::{request::body, response::ResponsesDecoder};
use crate::providers::{gemini::conversation, remote::Decode, tests_streams::decode_events};
use castor_base::{
    model::{Chunk, FailureKind, Finish, ModelParams, ModelRequest, Thinking, Usage},
    patch::GRAMMAR,
    tool::{ToolKind, ToolSpec, ToolTraits},
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

fn patch_tool() -> ToolSpec {
    ToolSpec {
        name: "apply_patch".into(),
        title: "".into(),
        description: "patches".into(),
        kind: ToolKind::Edit,
        traits: ToolTraits { is_patch: true, ..ToolTraits::EDITS },
        parameters: json!({ "type": "object", "properties": { "input": { "type": "string" } } }).into(),
    }
}

/// A patch is a custom tool with a grammar where it is on offer; a model without it knows its calls as a function's.
#[test]
fn patches_are_a_custom_tool() {
    let history = "user text go\nmodel call c1 apply_patch {\"input\":\"*** Begin\\n\"}\n\
                   model call c2 apply_patch {\"patch\":\"P\"}\nmodel call c3 apply_patch_call {\"type\":\"delete_file\",\"path\":\"a\"}\n\
                   model call c4 read {}\ntool result c1 apply_patch done\ntool error c2 apply_patch bad\n\
                   tool error c3 apply_patch_call bad\ntool result c4 read x";
    let with_tool = read(&ModelRequest { tools: [patch_tool()].into(), ..request(history) });
    let format = json!({ "type": "grammar", "syntax": "lark", "definition": GRAMMAR });
    let tool = json!({ "type": "custom", "name": "apply_patch", "description": "patches", "format": format });
    assert_eq!(with_tool["tools"], json!([tool]));
    let items = |it: &Value| it["input"].as_array().unwrap()[1..].to_vec();
    let operation = json!({ "type": "delete_file", "path": "a" });
    assert_eq!(
        items(&with_tool),
        [
            json!({ "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin\n" }),
            json!({ "type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "P" }),
            json!({ "type": "apply_patch_call", "call_id": "c3", "status": "completed", "operation": operation }),
            json!({ "type": "function_call", "call_id": "c4", "name": "read", "arguments": "{}" }),
            json!({ "type": "custom_tool_call_output", "call_id": "c1", "output": "done" }),
            json!({ "type": "custom_tool_call_output", "call_id": "c2", "output": "Error: bad" }),
            json!({ "type": "apply_patch_call_output", "call_id": "c3", "status": "failed", "output": "Error: bad" }),
            json!({ "type": "function_call_output", "call_id": "c4", "output": "x" }),
        ]
    );
    let without = read(&request(history));
    let kinds: Vec<Value> = items(&without).iter().map(|it| it["type"].clone()).collect();
    let (call, result) = ("function_call", "function_call_output");
    assert_eq!(kinds, [call, call, "apply_patch_call", call, result, result, "apply_patch_call_output", result]);
    // The bytes of a turn are kept for one of both; the other one is right all the same.
    let shared = request(history);
    let first = read(&shared);
    let second = read(&ModelRequest { tools: [patch_tool()].into(), ..shared.clone() });
    assert_eq!((items(&first), items(&second)), (items(&without), items(&with_tool)));
}

/// Recorded from the provider: its own tool for patches. The second one is of a custom tool.
#[test]
fn calls_of_patches() {
    let (got, finished) = decode(&[
        r###"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"apc_1","type":"apply_patch_call","status":"in_progress","call_id":"call_kA","operation":{"type":"create_file","diff":"","path":"list.md"}}}"###,
        r###"{"type":"response.apply_patch_call_operation_diff.delta","sequence_number":3,"item_id":"apc_1","output_index":0,"delta":"+","obfuscation":"ws"}"###,
        r###"{"type":"response.apply_patch_call_operation_diff.done","sequence_number":35,"item_id":"apc_1","output_index":0,"diff":"+## List\n+\n"}"###,
        r###"{"type":"response.output_item.done","sequence_number":36,"output_index":0,"item":{"id":"apc_1","type":"apply_patch_call","status":"completed","call_id":"call_kA","operation":{"type":"create_file","diff":"+## List\n+\n","path":"list.md"}}}"###,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"custom_tool_call","id":"ct_1","call_id":"call_c","name":"apply_patch","input":""}}"#,
        r#"{"type":"response.custom_tool_call_input.delta","item_id":"ct_1","output_index":1,"delta":"*** Begin"}"#,
        r#"{"type":"response.custom_tool_call_input.done","item_id":"ct_1","output_index":1,"input":"*** Begin Patch\n"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","id":"ct_1","call_id":"call_c","name":"apply_patch","input":"*** Begin Patch\n","status":"completed"}}"#,
        // A tool that the provider has and runs itself.
        r#"{"type":"response.output_item.done","output_index":7,"item":{"type":"custom_tool_call","id":"ct_x","call_id":"x","name":"x_keyword_search","input":"{}"}}"#,
        r#"{"type":"response.completed","response":{"error":null}}"#,
    ]);
    let call = |id: &str, name: &str, args: Value| Chunk::Call {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        args,
        signature: None,
    };
    let operation = json!({ "type": "create_file", "diff": "+## List\n+\n", "path": "list.md" });
    assert_eq!(
        got,
        [
            call("call_kA", "apply_patch_call", operation),
            call("call_c", "apply_patch", json!({ "input": "*** Begin Patch\n" })),
            Chunk::Finish(Finish::Stop),
        ]
    );
    assert!(finished);
}
