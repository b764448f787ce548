//! Response decoder of OpenAI's Responses API: events to chunks. A call is passed on whole.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::SIGNER;
use crate::{
    base::model::{Chunk, Failure, Finish, Usage},
    world::models::{
        chunks::{self, AnswerState, TokenDetails},
        error_body,
        legal_names::LegalNames,
        lenient::{Count, Str, owned},
        remote::Decode,
    },
};

#[derive(Default)]
pub struct ResponsesDecoder {
    names: LegalNames,
    /// A summary of thoughts has begun.
    thinking: bool,
    state: AnswerState,
}

impl ResponsesDecoder {
    pub fn new(names: LegalNames) -> Self {
        Self { names, ..Self::default() }
    }

    fn item(&mut self, item: Item<'_>, out: &mut Vec<Chunk>) {
        match &*item.kind.0 {
            "function_call" => {
                let arguments = owned(item.arguments);
                out.push(chunks::call(&self.names, owned(item.call_id), owned(item.name), &arguments));
            }
            "reasoning" => {
                self.thinking = false;
                out.extend(item.encrypted_content.map(|it| chunks::signature(SIGNER, &it.0)));
            }
            _ => (),
        }
    }

    fn finish_response(&mut self, response: Option<Response<'_>>, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let Some(response) = response else { return Ok(()) };
        error_body::check(response.error)?;
        self.state.usage = response.usage.map(Usage::from);
        let reason = response.incomplete_details.and_then(|it| it.reason);
        let why = |it: Str<'_>| chunks::finish(&it.0, &[], &["max_output_tokens"], &["content_filter"]);
        self.state.finish(reason.map_or(Finish::Stop, why), out);
        Ok(())
    }
}

impl Decode for ResponsesDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        if data == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = error_body::parse(data)?;
        let delta = || event.delta.map(|it| it.0.into_owned());
        match &*event.kind.0 {
            "response.output_text.delta" | "response.refusal.delta" => {
                out.extend(delta().and_then(chunks::text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinking = true;
                out.extend(delta().and_then(chunks::thought));
            }
            // Parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" if self.thinking => {
                out.push(Chunk::Thought { text: "\n\n".to_owned(), signature: None });
            }
            "response.output_item.done" => {
                if let Some(it) = event.item {
                    self.item(it, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.finish_response(event.response, out);
            }
            // The fields of the error are the event's own.
            "error" => {
                let whole = String::from_utf8_lossy(data);
                return Err(error_body::from_stream(event.error.map_or(&*whole, RawValue::get)));
            }
            _ => (),
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    delta: Option<Str<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Str<'a>>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    usage: Option<Tokens>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Str<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    input_tokens_details: Option<TokenDetails>,
    output_tokens_details: Option<TokenDetails>,
}

impl From<Tokens> for Usage {
    fn from(it: Tokens) -> Self {
        let thought = it.output_tokens_details.unwrap_or_default().reasoning_tokens.0;
        let cached = it.input_tokens_details.unwrap_or_default().cached_tokens.0;
        chunks::usage([it.input_tokens, it.output_tokens, it.total_tokens], cached, thought)
    }
}
