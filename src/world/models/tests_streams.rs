//! Recorded answer streams of providers, cut anywhere, give the same chunks. `tests/data/streams` has them;
//! `UPDATE_EXPECT=1` rewrites the results.

use bytes::Bytes;
use expect_test::expect_file;

use super::{
    anthropic::Anthropic,
    chat::Chat,
    gemini::{Gemini, conversation},
    remote::Dialect,
    responses::Responses,
};
use crate::{
    base::model::{Chunk, ModelParams, ModelRequest},
    wire::sse,
};

/// All chunks of an answer that came in these pieces.
fn decode(dialect: &dyn Dialect, pieces: &[&[u8]]) -> Vec<Chunk> {
    let request = ModelRequest {
        model: "m".into(),
        system: "".into(),
        contents: conversation("user text hi"),
        tools: [].into(),
        params: ModelParams::default(),
    };
    let (mut events, mut decoder, mut chunks) = (sse::Decoder::default(), dialect.decoder(&request), Vec::new());
    for piece in pieces {
        events.push(Bytes::copy_from_slice(piece));
        while let Some(event) = events.next().unwrap() {
            decoder.event(&event.name, &event.data, &mut chunks).unwrap();
        }
    }
    decoder.end(&mut chunks);
    assert!(decoder.is_finished());
    chunks
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
    let whole = decode(dialect, &[bytes]);
    expected.assert_eq(&shown(&whole));
    for at in 0..bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(decode(dialect, &[before, after]), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode(dialect, &single), whole, "byte by byte");
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
