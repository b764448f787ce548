//! Recorded answer streams of providers, cut anywhere, give the same chunks. `tests/data/streams` has them;
//! `UPDATE_EXPECT=1` rewrites the results.

use bytes::Bytes;
use expect_test::expect_file;

use super::{
    anthropic::Anthropic,
    chat::Chat,
    gemini::{Gemini, conversation},
    remote::{Decode, Dialect},
    responses::Responses,
};
use castor_base::model::{Chunk, ModelParams, ModelRequest};
use castor_wire::sse;

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: "".into(),
        contents: conversation("user text hi"),
        tools: [].into(),
        params: ModelParams::default(),
        traits: Default::default(),
    }
}

/// All chunks of an answer that came in these pieces, and whether it is whole. `parses`: each event by itself.
fn decode(dialect: &dyn Dialect, pieces: &[&[u8]], parses: bool) -> (Vec<Chunk>, bool) {
    let request = request();
    let (mut events, mut decoder, mut chunks) = (sse::Decoder::default(), dialect.decoder(&request), Vec::new());
    for piece in pieces {
        events.push(Bytes::copy_from_slice(piece));
        while let Some(event) = events.next().unwrap() {
            if parses {
                // No event is read by the last one then.
                decoder.state().expect_halves();
            }
            decoder.event(&event.data, &mut chunks).unwrap();
        }
    }
    decoder.end(true, &mut chunks);
    (chunks, decoder.is_finished())
}

/// The chunks of events, and whether they are a whole answer.
pub fn decode_events(mut decoder: impl Decode, events: &[&str]) -> (Vec<Chunk>, bool) {
    let mut out = Vec::new();
    for it in events {
        decoder.event(it.as_bytes(), &mut out).unwrap();
    }
    decoder.end(true, &mut out);
    (out, decoder.is_finished())
}

/// One line for each chunk.
fn shown(chunks: &[Chunk]) -> String {
    let line = |it: &Chunk| match it {
        Chunk::Text { text, signature } => format!("text {text:?} {}\n", signature.as_deref().unwrap_or_default()),
        Chunk::Thought { text, signature } => {
            format!("thought {text:?} {}\n", signature.as_deref().unwrap_or_default())
        }
        Chunk::Call { id, name, args, signature } => {
            let (id, signature) = (id.as_deref().unwrap_or("-"), signature.as_deref().unwrap_or_default());
            format!("call {id} {name} {args} {signature}\n")
        }
        other => format!("{other:?}\n"),
    };
    chunks.iter().map(line).map(|it| it.replace(" \n", "\n")).collect()
}

fn check(dialect: &dyn Dialect, stream: &str, expected: expect_test::ExpectFile) {
    let bytes = stream.as_bytes();
    let whole = decode(dialect, &[bytes], true);
    assert!(whole.1);
    expected.assert_eq(&shown(&whole.0));
    for at in 0..bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(decode(dialect, &[before, after], false), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode(dialect, &single, false), whole, "byte by byte");
}

/// What the next event is without parsing, by the one before.
fn again(dialect: &dyn Dialect, event: &str) -> Option<Chunk> {
    let request = request();
    let (mut decoder, mut chunks) = (dialect.decoder(&request), Vec::new());
    decoder.event(event.replace('@', "one").as_bytes(), &mut chunks).unwrap();
    decoder.state().text_again(event.replace('@', "two").as_bytes())
}

#[test]
fn events_with_nothing_but_a_text_are_not_parsed_again() {
    let (gemini, anthropic, chat) = (gemini_api(), Anthropic, chat());
    let part = |part: &str, more: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}{more}}}]}}"#);
    let delta = |delta: &str| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
    let choice = |delta: &str, more: &str| format!(r#"{{"choices":[{{"delta":{delta}{more}}}],"usage":null}}"#);
    let text = Some(Chunk::Text { text: "two".to_owned(), signature: None });
    let thought = Some(Chunk::Thought { text: "two".to_owned(), signature: None });
    let check = |dialect: &dyn Dialect, event: String, expected: &Option<Chunk>| {
        assert_eq!(again(dialect, &event), *expected, "{event}");
    };
    check(&gemini, part(r#"{"text":"@"}"#, r#","index":0"#), &text);
    check(&gemini, part(r#"{"thought":true,"text":"@"}"#, ""), &thought);
    check(&gemini, part(r#"{"text":"@","thoughtSignature":"s"}"#, ""), &None);
    check(&gemini, part(r#"{"text":"@"},{"text":"more"}"#, ""), &None);
    check(&gemini, part(r#"{"text":"@"}"#, r#","finishReason":"STOP""#), &None);
    check(&anthropic, delta(r#"{"type":"text_delta","text":"@"}"#), &text);
    check(&anthropic, delta(r#"{"type":"thinking_delta","thinking":"@"}"#), &thought);
    check(&anthropic, delta(r#"{"type":"input_json_delta","partial_json":"@"}"#), &None);
    check(&chat, choice(r#"{"role":"assistant","content":"@"}"#, r#","finish_reason":null"#), &text);
    check(&chat, choice(r#"{"content":"@","tool_calls":[{"index":0,"id":"a"}]}"#, ""), &None);
    check(&chat, choice(r#"{"content":"@"}"#, r#","finish_reason":"stop""#), &None);
}

/// An event, any other, and the first again.
#[test]
fn unparsed_text_events_give_the_same_chunks() {
    const TEXTS: [&str; 6] = ["one", "", r"\n", r"\u00e9", "é…", r#"\"},{\"text\":\""#];
    let gemini = [
        r#"{"candidates":[{"content":{"parts":[{"text":"@"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"@"}]}}],"modelVersion":"@"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"@"}]}}],"usageMetadata":{"totalTokenCount":3}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"@"},{"functionCall":{"name":"@"}}]}}]}"#,
    ];
    let chat_events = [
        r#"{"choices":[{"delta":{"content":"@"},"finish_reason":null}],"usage":{"total_tokens":3}}"#,
        r#"{"choices":[{"delta":{"content":"@","reasoning_content":"@"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"@","arguments":"@"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"@"},"finish_reason":"stop"}],"usage":{"total_tokens":9}}"#,
    ];
    let anthropic = [
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"@"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"@","id":"@"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"@"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"@"},"usage":{"output_tokens":9}}"#,
    ];
    let dialects: [(&dyn Dialect, _); 3] = [(&gemini_api(), gemini), (&chat(), chat_events), (&Anthropic, anthropic)];
    for (dialect, templates) in dialects {
        let event = |template: &str, text: &str| format!("data: {}\n\n", template.replace('@', text));
        let events: Vec<String> = templates.iter().flat_map(|it| TEXTS.map(|text| event(it, text))).collect();
        for (first, between) in events.iter().flat_map(|it| events.iter().map(move |other| (it, other))) {
            let stream = [first, between, first].map(|it| it.as_bytes());
            assert_eq!(decode(dialect, &stream, false), decode(dialect, &stream, true), "{first}{between}");
        }
    }
}

macro_rules! streams {
    ($($name:ident, $dialect:expr, $file:literal;)*) => {$(
        #[test]
        fn $name() {
            let stream = include_str!(concat!("../../../tests/data/streams/", $file, ".sse"));
            let expected = expect_file![concat!("../../../tests/data/streams/", $file, ".chunks")];
            check(&$dialect, stream, expected);
        }
    )*};
}

fn chat() -> Chat {
    Chat { newest: false, provider: "p".to_owned() }
}

fn gemini_api() -> Gemini {
    Gemini { api_version: "v1beta".to_owned(), bearer: false, vertex: None }
}

streams! {
    openai_calls_in_fragments, chat(), "chat-openai";
    deepseek_wants_its_thoughts_back, chat(), "chat-deepseek";
    openrouter_signs_its_thoughts, chat(), "chat-openrouter";
    ollama_numbers_all_calls_zero, chat(), "chat-ollama";
    vllm_names_calls_before_their_arguments, chat(), "chat-vllm";
    lmstudio_thinks_under_a_shorter_name, chat(), "chat-lmstudio";
    llamacpp_sends_what_is_no_json, chat(), "chat-llamacpp";
    anthropic_thinks_signed_and_hidden, Anthropic, "anthropic";
    responses_reason_encrypted, Responses, "responses";
    gemini_signs_a_call, gemini_api(), "gemini";
}
