//! One answer in every dialect, and a reader of it: what the tests of answers go by.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    anthropic::Anthropic,
    chat::Chat,
    gemini::{Gemini, conversation},
    remote::{AnswerReader, Dialect},
    responses::Responses,
};
use castor_base::model::{Chunk, Failure, Finish, ModelParams, ModelRequest};

/// Two pieces each of a thought, a text and the text `p` in the arguments of a call, as they stand in JSON.
pub type Pieces = [&'static str; 6];

pub const PLAIN: Pieces = ["h🎉", "m", "party ", "🎉.", "a🎉", "b"];
/// The same, cut within characters.
pub const HALVES: Pieces = [r"h\ud83c", r"\udf89m", r"party \ud83c", r"\udf89.", r"a\uD83C", r"\uDF89b"];

/// A dialect, the events of the answer, and the answer as one object.
pub struct Spoken {
    pub name: &'static str,
    pub dialect: Box<dyn Dialect>,
    pub events: fn(Pieces) -> Vec<String>,
    pub whole: &'static str,
}

pub fn all() -> Vec<Spoken> {
    let gemini = Gemini { api_version: "v1beta".to_owned(), bearer: false, vertex: None };
    let vertex = Gemini { bearer: true, ..gemini.clone() };
    vec![
        Spoken {
            name: "chat",
            dialect: Box::new(Chat { newest: false, provider: "p".to_owned() }),
            events: chat,
            whole: r#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"party 🎉.","reasoning":"h🎉m","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\":\"a🎉b\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#,
        },
        Spoken {
            name: "responses",
            dialect: Box::new(Responses),
            events: responses,
            whole: r#"{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"h🎉m"}]},{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"party 🎉.","annotations":[]}]},{"type":"function_call","id":"f","call_id":"c1","name":"read","arguments":"{\"p\":\"a🎉b\"}"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}"#,
        },
        Spoken {
            name: "anthropic",
            dialect: Box::new(Anthropic),
            events: anthropic,
            whole: r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"h🎉m","signature":""},{"type":"text","text":"party 🎉."},{"type":"tool_use","id":"c1","name":"read","input":{"p":"a🎉b"}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}"#,
        },
        Spoken { name: "gemini", dialect: Box::new(gemini), events: gemini_events, whole: GEMINI },
        Spoken { name: "vertex", dialect: Box::new(vertex), events: gemini_events, whole: GEMINI },
    ]
}

const GEMINI: &str = r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"h🎉m"},{"text":"party 🎉."},{"functionCall":{"id":"c1","name":"read","args":{"p":"a🎉b"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}"#;

fn chat([h, m, party, end, a, b]: Pieces) -> Vec<String> {
    let choice =
        |delta: &str, why: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{why}}}]}}"#);
    let call = |it: &str| choice(&format!(r#"{{"tool_calls":[{{"index":0,{it}}}]}}"#), "null");
    vec![
        choice(r#"{"role":"assistant"}"#, "null"),
        choice(&format!(r#"{{"reasoning":"{h}","content":null}}"#), "null"),
        choice(&format!(r#"{{"reasoning":"{m}"}}"#), "null"),
        choice(&format!(r#"{{"content":"{party}"}}"#), "null"),
        choice(&format!(r#"{{"content":"{end}"}}"#), "null"),
        call(&format!(r#""id":"c1","type":"function","function":{{"name":"read","arguments":"{{\"p\":\"{a}"}}"#)),
        call(&format!(r#""function":{{"arguments":"{b}\"}}"}}"#)),
        choice("{}", r#""tool_calls""#),
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#.to_owned(),
    ]
}

fn responses([h, m, party, end, a, b]: Pieces) -> Vec<String> {
    let event = |kind: &str, at: u8, more: &str| format!(r#"{{"type":"response.{kind}","output_index":{at},{more}}}"#);
    let delta = |kind: &str, at: u8, it: &str| event(&format!("{kind}.delta"), at, &format!(r#""delta":"{it}""#));
    vec![
        r#"{"type":"response.created","response":{"id":"r","error":null}}"#.to_owned(),
        delta("reasoning_summary_text", 0, h),
        delta("reasoning_summary_text", 0, m),
        event("output_item.done", 0, r#""item":{"type":"reasoning","summary":[{"text":"other"}]}"#),
        event("output_item.added", 1, r#""item":{"type":"message","content":[]}"#),
        delta("output_text", 1, party),
        delta("output_text", 1, end),
        event("output_text.done", 1, r#""text":"other""#),
        event("output_item.done", 1, r#""item":{"type":"message","content":[{"type":"output_text","text":"other"}]}"#),
        event("output_item.added", 2, r#""item":{"type":"function_call","call_id":"c1","name":"read","arguments":""}"#),
        delta("function_call_arguments", 2, &format!(r#"{{\"p\":\"{a}"#)),
        delta("function_call_arguments", 2, &format!(r#"{b}\"}}"#)),
        r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}"#.to_owned(),
    ]
}

fn anthropic([h, m, party, end, a, b]: Pieces) -> Vec<String> {
    let start = |at: u8, it: &str| format!(r#"{{"type":"content_block_start","index":{at},"content_block":{{{it}}}}}"#);
    let delta = |at: u8, it: &str| format!(r#"{{"type":"content_block_delta","index":{at},"delta":{{{it}}}}}"#);
    let stop = |at: u8| format!(r#"{{"type":"content_block_stop","index":{at}}}"#);
    vec![
        r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#.to_owned(),
        start(0, r#""type":"thinking","thinking":"""#),
        delta(0, &format!(r#""type":"thinking_delta","thinking":"{h}""#)),
        delta(0, &format!(r#""type":"thinking_delta","thinking":"{m}""#)),
        stop(0),
        start(1, r#""type":"text","text":"""#),
        delta(1, &format!(r#""type":"text_delta","text":"{party}""#)),
        delta(1, &format!(r#""type":"text_delta","text":"{end}""#)),
        stop(1),
        start(2, r#""type":"tool_use","id":"c1","name":"read","input":{}"#),
        delta(2, &format!(r#""type":"input_json_delta","partial_json":"{{\"p\":\"{a}""#)),
        delta(2, &format!(r#""type":"input_json_delta","partial_json":"{b}\"}}""#)),
        stop(2),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ]
}

fn gemini_events([h, m, party, end, a, b]: Pieces) -> Vec<String> {
    let part = |it: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{{{it}}}]}}}}]}}"#);
    let arg = |it: &str| format!(r#""partialArgs":[{{"jsonPath":"$.p","stringValue":"{it}"}}],"willContinue":true"#);
    vec![
        part(&format!(r#""thought":true,"text":"{h}""#)),
        part(&format!(r#""thought":true,"text":"{m}""#)),
        part(&format!(r#""text":"{party}""#)),
        part(&format!(r#""text":"{end}""#)),
        part(r#""functionCall":{"id":"c1","name":"read","willContinue":true}"#),
        part(&format!(r#""functionCall":{{{}}}"#, arg(a))),
        part(&format!(r#""functionCall":{{{}}}"#, arg(b))),
        part(r#""functionCall":{}"#),
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}"#.to_owned(),
    ]
}

#[derive(Debug, Default, PartialEq)]
pub struct Said {
    pub thoughts: String,
    pub text: String,
    pub calls: Vec<(String, String, Value)>,
    pub counts: (u64, u64),
    pub finish: Option<Finish>,
}

pub fn read(spoken: &Spoken, body: &[u8], size: usize, is_clean: bool) -> Result<Said, Failure> {
    let request = ModelRequest {
        model: "m".into(),
        system: "".into(),
        contents: conversation("user text hi"),
        tools: [].into(),
        params: ModelParams::default(),
        traits: Default::default(),
    };
    let mut reader = AnswerReader::new(spoken.dialect.decoder(&request));
    for piece in body.chunks(size) {
        reader.push(Bytes::copy_from_slice(piece))?;
    }
    reader.end(is_clean)?;
    let mut said = Said::default();
    for chunk in std::mem::take(&mut reader.chunks) {
        match chunk {
            Chunk::Text { text, .. } => said.text += &text,
            Chunk::Thought { text, .. } => said.thoughts += &text,
            Chunk::Call { id, name, args, .. } => said.calls.push((id.unwrap_or_default(), name, args)),
            Chunk::Usage(it) => said.counts = (it.input, it.output),
            Chunk::Finish(it) => said.finish = Some(it),
            _ => (),
        }
    }
    Ok(said)
}

pub fn expected() -> Said {
    Said {
        thoughts: "h🎉m".to_owned(),
        text: "party 🎉.".to_owned(),
        calls: vec![("c1".to_owned(), "read".to_owned(), json!({ "p": "a🎉b" }))],
        counts: (10, 5),
        finish: Some(Finish::Stop),
    }
}

pub fn sse(events: &[String]) -> String {
    events.iter().map(|it| format!("data: {it}\n\n")).collect()
}

/// The whole body, in pieces of several sizes.
pub fn check(spoken: &Spoken, what: &str, body: impl AsRef<[u8]>) {
    for size in [1, 7, usize::MAX] {
        let got = read(spoken, body.as_ref(), size, true);
        let shown = String::from_utf8_lossy(body.as_ref());
        assert_eq!(got, Ok(expected()), "{} {what}, {size} at once:\n{shown}", spoken.name);
    }
}
