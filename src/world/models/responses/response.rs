//! Response decoder of OpenAI's Responses API: events to chunks. A call is passed on whole.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::SIGNER;
use crate::{
    base::{
        model::{Chunk, Failure, Finish, Usage},
        tool::ToolSpec,
    },
    world::models::{
        chunks, error_body,
        lenient::{Count, Str},
        provider_limits::LegalNames,
        remote::Decode,
    },
};

#[derive(Default)]
pub struct ResponsesDecoder {
    names: LegalNames,
    /// A summary of thoughts has begun.
    thinking: bool,
    usage: Option<Usage>,
    finished: bool,
}

impl ResponsesDecoder {
    pub fn new(tools: &[ToolSpec]) -> Self {
        Self { names: LegalNames::from_tools(tools), ..Self::default() }
    }

    fn item(&mut self, item: Item<'_>, out: &mut Vec<Chunk>) {
        let text = |it: Option<Str<'_>>| it.map(|it| it.0.into_owned()).unwrap_or_default();
        match &*item.kind.0 {
            "function_call" => {
                let arguments = text(item.arguments);
                out.push(chunks::call(&self.names, text(item.call_id), text(item.name), &arguments));
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
        if let Some(error) = response.error.filter(|it| it.get() != "null") {
            return Err(error_body::from_stream(error.get()));
        }
        self.finished = true;
        self.usage = response.usage.map(Usage::from);
        self.end(out);
        let reason = response.incomplete_details.and_then(|it| it.reason).map(|it| it.0.into_owned());
        out.push(Chunk::Finish(match reason.as_deref() {
            None => Finish::Stop,
            Some("max_output_tokens") => Finish::MaxTokens,
            Some("content_filter") => Finish::Safety("content_filter".to_owned()),
            Some(other) => Finish::Other(other.to_owned()),
        }));
        Ok(())
    }
}

impl Decode for ResponsesDecoder {
    fn is_finished(&self) -> bool {
        self.finished
    }

    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
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

    fn end(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.usage.take().map(Chunk::Usage));
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
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
    reasoning_tokens: Count,
}

impl From<Tokens> for Usage {
    fn from(it: Tokens) -> Self {
        let thought = it.output_tokens_details.unwrap_or_default().reasoning_tokens.0;
        Self {
            input: it.input_tokens.0,
            // Theirs counts the thoughts as well.
            output: it.output_tokens.0.saturating_sub(thought),
            cached: it.input_tokens_details.unwrap_or_default().cached_tokens.0,
            written: 0,
            thought,
            total: it.total_tokens.0.max(it.input_tokens.0.saturating_add(it.output_tokens.0)),
        }
    }
}
