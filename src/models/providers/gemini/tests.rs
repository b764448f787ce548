//! Gemini requests and answers as text tables.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{GeminiDecoder, decode, request::body};
use crate::providers::remote::Decode;
use castor_base::{
    content::Part,
    history::{Role, Turn, TurnPart},
    model::{Chunk, FailureKind, Finish, ModelParams, ModelRequest, Thinking, Usage},
    tool::{CallResult, ToolCall, ToolKind, ToolSpec},
};

/// One part a line: `role kind rest`; a blank line or another role starts a new turn. ` ^sig` at the end is a
/// signature.
pub fn turns(text: &str) -> Vec<Arc<Turn>> {
    let mut res: Vec<Turn> = Vec::new();
    let mut fresh = true;
    for line in text.lines().map(str::trim) {
        let mut words = line.splitn(3, ' ');
        let role = match words.next().unwrap() {
            "" => {
                fresh = true;
                continue;
            }
            "user" => Role::User,
            "model" => Role::Model,
            _ => Role::Tool,
        };
        if fresh || res.last().is_some_and(|it| it.role() != role) {
            res.push(Turn::new(role));
        }
        fresh = false;
        let kind = words.next().unwrap();
        res.last_mut().unwrap().parts_mut().push(part(kind, words.next().unwrap_or_default()));
    }
    res.into_iter().map(Arc::new).collect()
}

fn part(kind: &str, rest: &str) -> TurnPart {
    let (rest, signature) = rest.split_once('^').map_or((rest, None), |(it, sig)| (it.trim(), Some(sig.into())));
    let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let media = || Part::Media { mime: "image/png".to_owned(), data: "QUJD".into(), uri: None };
    let reference = |text: Option<&str>, data: Option<&str>| Part::Reference {
        uri: first.to_owned(),
        name: None,
        mime: None,
        text: text.map(str::to_owned),
        data: data.map(Into::into),
    };
    match kind {
        "text" => TurnPart::Content(Part::Text { text: rest.to_owned(), signature }),
        "thought" => TurnPart::Content(Part::Thought { thought: rest.to_owned(), signature }),
        "media" => TurnPart::Content(media()),
        "link" => TurnPart::Content(reference(None, None)),
        "embed" => TurnPart::Content(reference(Some(after), None)),
        "blob" => TurnPart::Content(reference(None, Some(after))),
        "call" => {
            let (name, args) = after.split_once(' ').unwrap();
            let args = serde_json::from_str(args).unwrap();
            TurnPart::Call { call: ToolCall { id: first.into(), name: name.to_owned(), args }, signature }
        }
        _ => {
            let (name, text) = after.split_once(' ').unwrap();
            let content = match text {
                "[image]" => vec![media()],
                _ => text.split('|').map(Part::text).collect(),
            };
            let is_error = kind == "error";
            TurnPart::Result(CallResult { id: first.into(), name: name.to_owned(), content, is_error })
        }
    }
}

pub fn request(model: &str, conversation: &str) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        system: "".into(),
        contents: turns(conversation),
        tools: [].into(),
        params: ModelParams::default(),
        traits: castor_base::model_table::ModelTable::built_in().traits(model),
    }
}

fn contents(model: &str, conversation: &str) -> Value {
    let body: Value = serde_json::from_slice(&body(&request(model, conversation), true)).unwrap();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    body["contents"].clone()
}

fn check(table: impl IntoIterator<Item = (&'static str, Value)>) {
    for (conversation, expected) in table {
        for model in ["gemini-2.5-pro", "gemini-3-pro-preview"] {
            assert_eq!(contents(model, conversation), expected, "{conversation}");
        }
    }
}

#[test]
fn texts_and_references() {
    check([
        ("user text hi", json!([{ "role": "user", "parts": [{ "text": "hi" }] }])),
        // Files go by the names that tools take.
        (
            "user link file:///ws/with%20space.txt\nuser link file:///ws/100%25%23.rs#L3",
            json!([{ "role": "user", "parts": [
                { "text": "@/ws/with space.txt" }, { "text": "@/ws/100%#.rs (L3)" },
            ] }]),
        ),
        // Turns of one role in a row are one content; thoughts and empty texts are left out.
        (
            "user text a\n\nuser text b\nmodel thought hm ^s1\nmodel text\n\nuser text c",
            json!([{ "role": "user", "parts": [{ "text": "a" }, { "text": "b" }, { "text": "c" }] }]),
        ),
        // What a prompt refers to stands where it was said, and its content behind everything.
        (
            "user media\nuser link https://x/y\nuser embed file:///a/b.rs fn x\nuser blob mem:1 QQ\nuser text explain",
            json!([{ "role": "user", "parts": [
                { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
                { "text": "@https://x/y" },
                { "text": "@/a/b.rs" },
                { "text": "@mem:1" },
                { "text": "explain" },
                { "text": "\n--- Content from referenced context ---" },
                { "text": "\nContent from @/a/b.rs:\n" },
                { "text": "fn x" },
                { "text": "\nContent from @mem:1:\n" },
                { "inlineData": { "mimeType": "application/octet-stream", "data": "QQ" } },
            ] }]),
        ),
        ("", json!([])),
    ]);
}

#[test]
fn calls_and_results() {
    let skip = "skip_thought_signature_validator";
    check([
        // Signatures go back on texts, empty ones too, and on calls; an unsigned first call gets the placeholder.
        (
            "user text a\nmodel text b ^s1\nmodel text ^s2\nmodel call 1 ls {} ^s3\nmodel call 2 ls {}\n\
             tool result 1 ls x|y\ntool error 2 ls no\nmodel call ls__3 ls {}\ntool result ls__3 ls z",
            json!([
                { "role": "user", "parts": [{ "text": "a" }] },
                { "role": "model", "parts": [
                    { "text": "b", "thoughtSignature": "s1" },
                    { "text": "", "thoughtSignature": "s2" },
                    { "functionCall": { "id": "1", "name": "ls", "args": {} }, "thoughtSignature": "s3" },
                    { "functionCall": { "id": "2", "name": "ls", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "1", "name": "ls", "response": { "output": "x\ny" } } },
                    { "functionResponse": { "id": "2", "name": "ls", "response": { "error": "no" } } },
                ] },
                { "role": "model", "parts": [
                    { "functionCall": { "id": "3", "name": "ls", "args": {} }, "thoughtSignature": skip },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "3", "name": "ls", "response": { "output": "z" } } },
                ] },
            ]),
        ),
        // Arguments that are no object would be refused; results and the next prompt are both the user's.
        (
            "user text a\nmodel call 1 ls [1] ^s\ntool result 1 ls x\n\nuser text b",
            json!([
                { "role": "user", "parts": [{ "text": "a" }] },
                { "role": "model", "parts": [
                    { "functionCall": { "id": "1", "name": "ls", "args": {} }, "thoughtSignature": "s" },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "1", "name": "ls", "response": { "output": "x" } } },
                    { "text": "b" },
                ] },
            ]),
        ),
    ]);
}

#[test]
fn result_media_follows_the_model() {
    let mut request = request("gemini-2.5-pro", "user text a\nmodel call 1 see {} ^s\ntool result 1 see [image]");
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "QUJD" } });
    let output = "Binary content provided (1 item(s)).";
    let beside = json!([
        { "functionResponse": { "id": "1", "name": "see", "response": { "output": output } } },
        image,
    ]);
    let nested = json!([
        { "functionResponse": { "id": "1", "name": "see", "response": { "output": output }, "parts": [image] } },
    ]);
    for (model, expected) in [("gemini-2.5-pro", &beside), ("gemini-3-pro", &nested), ("gemini-2.5-pro", &beside)] {
        request.model = model.into();
        request.traits = castor_base::model_table::ModelTable::built_in().traits(model);
        let body: Value = serde_json::from_slice(&body(&request, true)).unwrap();
        assert_eq!(body["contents"][2]["parts"], *expected, "{model}");
    }
    // Other turns keep the bytes that were made for the first model.
    let kept = request.contents[0].encoded("gemini", |_| unreachable!());
    assert_eq!(kept, br#"{"text":"a"}"#[..]);
}

#[test]
fn request_carries_system_tools_and_config() {
    let mut request = request("m", "user text a \u{2028}\"\\\u{1}");
    request.system = "be brief".into();
    request.tools = [ToolSpec {
        name: "ls".into(),
        title: "List".into(),
        description: "lists".into(),
        kind: ToolKind::Read,
        traits: Default::default(),
        parameters: json!({ "type": "object" }).into(),
    }]
    .into();
    request.params = ModelParams {
        include_thoughts: true,
        temperature: Some(0.5),
        top_p: Some(1.0),
        top_k: Some(64),
        max_output_tokens: Some(9),
        thinking: Some(Thinking::Budget(-1)),
        stop: vec!["END".to_owned()],
        schema: Some(Arc::new(json!({ "type": "object" }))),
        searches_web: false,
    };
    let got: Value = serde_json::from_slice(&body(&request, true)).unwrap();
    let thinking = json!({ "includeThoughts": true, "thinkingBudget": -1 });
    assert_eq!(
        got,
        json!({
            "contents": [{ "role": "user", "parts": [{ "text": "a \u{2028}\"\\\u{1}" }] }],
            "systemInstruction": { "role": "user", "parts": [{ "text": "be brief" }] },
            "tools": [{ "functionDeclarations": [
                { "name": "ls", "description": "lists", "parametersJsonSchema": { "type": "object" } },
            ] }],
            "generationConfig": {
                "temperature": 0.5, "topP": 1.0, "topK": 64, "maxOutputTokens": 9, "stopSequences": ["END"],
                "thinkingConfig": thinking, "responseMimeType": "application/json",
                "responseJsonSchema": { "type": "object" },
            },
        })
    );
    request.params = ModelParams {
        thinking: Some(Thinking::Level("HIGH".to_owned())),
        include_thoughts: true,
        ..ModelParams::default()
    };
    let got: Value = serde_json::from_slice(&body(&request, true)).unwrap();
    assert_eq!(
        got["generationConfig"],
        json!({ "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "HIGH" } })
    );
    request.tools.clone().encoded("gemini", |_| unreachable!("they are written once"));
}

fn text(text: &str) -> Chunk {
    Chunk::Text { text: text.to_owned(), signature: None }
}

fn parts(parts: Value) -> Vec<u8> {
    json!({ "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }] }).to_string().into()
}

#[test]
fn events() {
    let signed = Some("s".into());
    let usage = Usage { input: 5, output: 3, cached: 2, thought: 1, total: 9, ..Usage::default() };
    let metadata = json!({ "promptTokenCount": 5, "candidatesTokenCount": 3.0, "cachedContentTokenCount": 2,
        "thoughtsTokenCount": 1, "totalTokenCount": 9, "promptTokensDetails": [{ "modality": "TEXT" }] });
    let call = |id: Option<&str>, args, signature| Chunk::Call {
        id: id.map(str::to_owned),
        name: "ls".to_owned(),
        args,
        signature,
    };
    let table: Vec<(Vec<u8>, Vec<Chunk>)> = vec![
        (parts(json!([{ "text": "a\n\u{1F600}" }, { "text": "" }])), vec![text("a\n\u{1F600}")]),
        (
            parts(json!([{ "text": "t", "thought": true }, { "text": "", "thoughtSignature": "s" }])),
            vec![
                Chunk::Thought { text: "t".to_owned(), signature: None },
                Chunk::Text { text: String::new(), signature: signed.clone() },
            ],
        ),
        (
            parts(json!([
                { "functionCall": { "name": "ls", "args": { "a": [1] }, "id": "x" }, "thoughtSignature": "s" },
                { "functionCall": { "name": "ls" } },
                { "functionCall": { "name": "ls", "args": "no object", "id": "" } },
            ])),
            vec![
                call(Some("x"), json!({ "a": [1] }), signed),
                call(None, json!({}), None),
                call(None, json!("no object"), None),
            ],
        ),
        (
            parts(json!([{ "inlineData": { "mimeType": "image/png", "data": "QQ==" } }, { "executableCode": {} }])),
            vec![Chunk::Media { mime: "image/png".to_owned(), data: "QQ==".into() }],
        ),
        (
            json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": metadata }).to_string().into(),
            vec![Chunk::Usage(usage), Chunk::Finish(Finish::Stop)],
        ),
        (json!({ "usageMetadata": metadata, "candidates": null }).to_string().into(), vec![Chunk::Usage(usage)]),
        (
            br#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","safetyRatings":[]}}"#.to_vec(),
            vec![Chunk::Finish(Finish::Safety("PROHIBITED_CONTENT".to_owned()))],
        ),
        (b" {} ".to_vec(), vec![]),
        (b"".to_vec(), vec![]),
        (b"[DONE]".to_vec(), vec![Chunk::Finish(Finish::Stop)]),
        (br#"{"candidates":[]}"#.to_vec(), vec![]),
        (br#"{"candidates":[{"content":{"role":"model"}}],"usageMetadata":null}"#.to_vec(), vec![]),
    ];
    for (event, chunks) in table {
        assert_eq!(decode(&event).unwrap(), chunks, "{}", String::from_utf8_lossy(&event));
    }
}

#[test]
fn finish_reasons() {
    let of = |word: &str| decode(json!({ "candidates": [{ "finishReason": word }] }).to_string().as_bytes()).unwrap();
    let safety = |it: &str| Finish::Safety(it.to_owned());
    for (word, finish) in [
        ("STOP", Finish::Stop),
        ("MAX_TOKENS", Finish::MaxTokens),
        ("MALFORMED_FUNCTION_CALL", Finish::MalformedCall),
        ("UNEXPECTED_TOOL_CALL", Finish::UnexpectedCall),
        ("SAFETY", safety("SAFETY")),
        ("RECITATION", safety("RECITATION")),
        ("BLOCKLIST", safety("BLOCKLIST")),
        ("SPII", safety("SPII")),
        ("IMAGE_SAFETY", safety("IMAGE_SAFETY")),
        ("OTHER", Finish::Other("OTHER".to_owned())),
        ("LANGUAGE", Finish::Other("LANGUAGE".to_owned())),
        ("NEW_WORD", Finish::Other("NEW_WORD".to_owned())),
    ] {
        assert_eq!(super::finish_word(&finish), word);
        assert_eq!(of(word), [Chunk::Finish(finish)]);
    }
}

#[test]
fn usage_is_passed_on_once() {
    let mut decoder = GeminiDecoder::default();
    let mut out = Vec::new();
    for n in 1..=3 {
        let event = format!(r#"{{"usageMetadata":{{"promptTokenCount":{n}}}}}"#);
        decoder.event(event.as_bytes(), &mut out).unwrap();
    }
    decoder.end(true, &mut out);
    decoder.end(true, &mut out);
    assert_eq!(out, [Chunk::Usage(Usage { input: 3, ..Usage::default() })]);
}

#[test]
fn broken_events() {
    for event in [&br#"{"candidates":[{"content":{"parts":[{"text":"a"#[..], b"[[[\"x\"]]]", b"\"x\"", b"<html>"] {
        let failure = decode(event).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Garbage, "{}", String::from_utf8_lossy(event));
        assert!(failure.message.contains("begins with"), "{failure:?}");
    }
    let failure = decode(br#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#).unwrap_err();
    assert_eq!((failure.kind, failure.status, &*failure.message), (FailureKind::Status, Some(503), "busy"));
}
