//! Response decoder of Gemini's API: events to chunks. The hot path borrows texts until they become a chunk.

mod partial_call;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::partial_call::{FunctionCall, PartialCall};
use crate::providers::{
    answer_state::AnswerState,
    chunks, error_body,
    lenient::{Count, Items, Object, Str},
    remote::Decode,
    text_events::TextChunk,
};
use castor_base::model::{Chunk, Failure, Finish, Usage};

/// Decodes the events of one answer. Usage comes with most events and counts up.
#[derive(Debug, Default)]
pub struct GeminiDecoder {
    state: AnswerState,
    /// Of an answer that searched the web.
    sources: Vec<Source>,
    partial: PartialCall,
}

impl Decode for GeminiDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let event = error_body::parse::<Event<'_>>(data)?;
        error_body::check(event.error)?;
        if let Some((text, chunk)) = event.only_text() {
            out.extend(self.state.text(Some(data), text, chunk));
            return Ok(());
        }
        let candidate = event.candidates.0.into_iter().next().unwrap_or_default();
        if let Some(it) = candidate.grounding_metadata.0.filter(|it| !it.grounding_chunks.0.is_empty()) {
            self.sources = it.grounding_chunks.0.into_iter().filter_map(|it| it.web.0).collect();
        }
        for part in candidate.content.0.into_iter().flat_map(|it| it.parts.0) {
            self.push_part(part, out);
        }
        if let Some(it) = event.usage_metadata.0 {
            self.state.usage = Some(it.into());
        }
        let blocked = event.prompt_feedback.0.and_then(|it| it.block_reason).and_then(Str::said).map(Finish::Safety);
        let finish = candidate.finish_reason.and_then(Str::said).map(|it| finish_from(&it));
        if let Some(it) = blocked.or(finish) {
            out.extend(self.partial.end());
            out.extend(sources_in_words(&self.sources).and_then(chunks::text));
            self.state.finish(it, out);
        }
        Ok(())
    }

    fn end_calls(&mut self, _: &mut Vec<Chunk>) -> bool {
        !self.partial.is_open()
    }
}

impl GeminiDecoder {
    fn push_part(&mut self, part: Part<'_>, out: &mut Vec<Chunk>) {
        let signature: Option<Arc<str>> = part.thought_signature.and_then(Str::said).map(Into::into);
        if let Some(call) = part.function_call.0 {
            out.extend(self.partial.take(call, signature));
            return;
        }
        if let Some(blob) = part.inline_data.0 {
            out.push(Chunk::Media {
                mime: blob.mime_type.and_then(Str::said).unwrap_or_else(|| "application/octet-stream".to_owned()),
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
}

/// Most sources that are named.
const MAX_SOURCES: usize = 20;

fn sources_in_words(all: &[Source]) -> Option<String> {
    let line = |(n, it): (usize, &Source)| {
        format!("[{}] {} ({})\n", n + 1, it.title.as_deref().unwrap_or("Untitled"), it.uri.as_deref().unwrap_or("-"))
    };
    let lines: String = all.iter().take(MAX_SOURCES).enumerate().map(line).collect();
    (!lines.is_empty()).then(|| format!("\n\nSources:\n{lines}"))
}

/// The chunks of one event by itself.
pub fn decode(data: &[u8]) -> Result<Vec<Chunk>, Failure> {
    let mut res = Vec::new();
    let mut decoder = GeminiDecoder::default();
    decoder.event(data, &mut res)?;
    decoder.end(true, &mut res);
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
        "MALFORMED_FUNCTION_CALL" => Finish::MalformedCall,
        "UNEXPECTED_TOOL_CALL" => Finish::UnexpectedCall,
        // IMAGE_OTHER and NO_IMAGE are no judgement of ours or of the user's wish.
        _ if SAFETY.contains(&word.strip_prefix("IMAGE_").unwrap_or(word)) => Finish::Safety(word.to_owned()),
        _ => chunks::finish(word, &["STOP"], &["MAX_TOKENS"], &[]),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default)]
    candidates: Items<Candidate<'a>>,
    #[serde(default)]
    usage_metadata: Object<UsageMetadata>,
    #[serde(borrow, default)]
    prompt_feedback: Object<PromptFeedback<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Event<'_> {
    /// The text of an event in which nothing else counts, and the kind of chunk that it becomes.
    fn only_text(&self) -> Option<(&str, TextChunk)> {
        let Self { candidates, usage_metadata: Object(None), prompt_feedback: Object(None), error: None } = self else {
            return None;
        };
        let [Candidate { content: Object(Some(content)), finish_reason: None, grounding_metadata: Object(None) }] =
            &*candidates.0
        else {
            return None;
        };
        let [
            Part {
                text: Some(text),
                thought,
                thought_signature: None,
                function_call: Object(None),
                inline_data: Object(None),
            },
        ] = &*content.parts.0
        else {
            return None;
        };
        Some((&text.0, if thought.unwrap_or_default() { chunks::thought } else { chunks::text }))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Object<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(default)]
    grounding_metadata: Object<GroundingMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroundingMetadata {
    #[serde(default)]
    grounding_chunks: Items<GroundingChunk>,
}

#[derive(Deserialize)]
struct GroundingChunk {
    #[serde(default)]
    web: Object<Source>,
}

#[derive(Debug, Deserialize)]
struct Source {
    uri: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Items<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Str<'a>>,
    #[serde(default)]
    function_call: Object<FunctionCall>,
    #[serde(borrow, default)]
    inline_data: Object<Blob<'a>>,
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
            written: 0,
            thought: it.thoughts_token_count.0,
            total: it.total_token_count.0,
        }
    }
}
