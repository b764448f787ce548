//! Gemini's answers: one event's JSON to chunks. The hot path: texts are borrowed until they become a chunk.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::error;
use crate::{
    base::{
        model::{Chunk, Failure, FailureKind, Finish, Usage},
        text,
    },
    world::models::remote::Decode,
};

/// Decodes the events of one answer. Usage comes with most events and counts up; it is passed on once, at the end.
#[derive(Debug, Default)]
pub struct Decoder {
    usage: Option<Usage>,
    finished: bool,
}

impl Decode for Decoder {
    fn finished(&self) -> bool {
        self.finished
    }

    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event = parse(data)?;
        if let Some(error) = event.error {
            return Err(error::from_stream(error.get()));
        }
        let candidate = event.candidates.and_then(|it| it.into_iter().next());
        let (content, finish) = candidate.map_or((None, None), |it| (it.content, it.finish_reason));
        for part in content.and_then(|it| it.parts).into_iter().flatten() {
            push_part(part, out);
        }
        if let Some(it) = event.usage_metadata {
            self.usage = Some(it.into());
        }
        let blocked = event.prompt_feedback.and_then(|it| it.block_reason);
        if let Some(it) = blocked.map(|it| Finish::Safety(it.0.into_owned())).or(finish.map(|it| finish_from(&it.0))) {
            self.finished = true;
            self.end(out);
            out.push(Chunk::Finish(it));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.usage.take().map(Chunk::Usage));
    }
}

/// The chunks of one event by itself.
pub fn decode(data: &[u8]) -> Result<Vec<Chunk>, Failure> {
    let mut res = Vec::new();
    let mut decoder = Decoder::default();
    decoder.event(b"", data, &mut res)?;
    decoder.end(&mut res);
    Ok(res)
}

/// The provider's word for a finish; the inverse of reading one.
pub fn finish_word(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "STOP",
        Finish::MaxTokens => "MAX_TOKENS",
        Finish::MalformedCall => "MALFORMED_FUNCTION_CALL",
        Finish::UnexpectedCall => "UNEXPECTED_TOOL_CALL",
        Finish::Safety(word) | Finish::Other(word) => word,
    }
}

fn finish_from(word: &str) -> Finish {
    const SAFETY: &[&str] = &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];
    match word {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::MaxTokens,
        "MALFORMED_FUNCTION_CALL" => Finish::MalformedCall,
        "UNEXPECTED_TOOL_CALL" => Finish::UnexpectedCall,
        // IMAGE_OTHER and NO_IMAGE are no judgement of ours or of the user's wish.
        _ if SAFETY.contains(&word.strip_prefix("IMAGE_").unwrap_or(word)) => Finish::Safety(word.to_owned()),
        _ => Finish::Other(word.to_owned()),
    }
}

fn parse(data: &[u8]) -> Result<Event<'_>, Failure> {
    let beginning = || text::head(&String::from_utf8_lossy(data.get(..400).unwrap_or(data)), 200).to_owned();
    // Derived structs also read JSON arrays, field by field.
    if data.first() != Some(&b'{') {
        let message = format!("The model's answer is not what was expected; it begins with: {}", beginning());
        return Err(Failure::new(FailureKind::Garbage, message));
    }
    serde_json::from_slice(data).map_err(|it| {
        let message = format!("The model's answer could not be read ({it}); it begins with: {}", beginning());
        Failure::new(FailureKind::Garbage, message)
    })
}

fn push_part(part: Part<'_>, out: &mut Vec<Chunk>) {
    let signature: Option<Arc<str>> = part.thought_signature.filter(|it| !it.0.is_empty()).map(|it| it.0.into());
    if let Some(call) = part.function_call {
        out.push(Chunk::Call {
            id: call.id.filter(|it| !it.is_empty()),
            name: call.name.unwrap_or_default(),
            args: call.args.unwrap_or_else(|| Value::Object(Map::new())),
            signature,
        });
        return;
    }
    if let Some(blob) = part.inline_data {
        out.push(Chunk::Media {
            mime: blob.mime_type.map_or_else(|| "application/octet-stream".to_owned(), |it| it.0.into_owned()),
            data: blob.data.map_or_else(|| "".into(), |it| it.0.into()),
        });
        return;
    }
    let text = part.text.map(|it| it.0).unwrap_or_default();
    // A signature may come on an empty text at the end of an answer, and must go back with it.
    if text.is_empty() && signature.is_none() {
        return;
    }
    let text = text.into_owned();
    out.push(match part.thought.unwrap_or_default() {
        true => Chunk::Thought { text, signature },
        false => Chunk::Text { text, signature },
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Str<'a>>,
    function_call: Option<FunctionCall>,
    #[serde(borrow)]
    inline_data: Option<Blob<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(borrow)]
    mime_type: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct UsageMetadata {
    prompt_token_count: Count,
    candidates_token_count: Count,
    cached_content_token_count: Count,
    thoughts_token_count: Count,
    total_token_count: Count,
}

impl From<UsageMetadata> for Usage {
    fn from(it: UsageMetadata) -> Self {
        Self {
            input: it.prompt_token_count.0,
            output: it.candidates_token_count.0,
            cached: it.cached_content_token_count.0,
            thought: it.thoughts_token_count.0,
            total: it.total_token_count.0,
        }
    }
}

/// A text borrowed from the input where it has no escapes. serde borrows a bare `Cow`, but not one in an `Option`.
struct Str<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, it: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(it)))
            }

            fn visit_str<E: de::Error>(self, it: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(it.to_owned())))
            }
        }
        from.deserialize_str(Texts)
    }
}

/// A count that a gateway may also send as null or as a float: no reason to lose an answer.
#[derive(Default)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Counts;
        impl Visitor<'_> for Counts {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }

            fn visit_u64<E: de::Error>(self, it: u64) -> Result<Count, E> {
                Ok(Count(it))
            }

            fn visit_i64<E: de::Error>(self, it: i64) -> Result<Count, E> {
                Ok(Count(it.max(0).unsigned_abs()))
            }

            fn visit_f64<E: de::Error>(self, it: f64) -> Result<Count, E> {
                Ok(Count(it as u64))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Count, E> {
                Ok(Count(0))
            }
        }
        from.deserialize_any(Counts)
    }
}
