//! Response decoder of OpenAI's Responses API: events to chunks. A call is passed on whole.

mod items;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::items::{Item, ItemKind, OpenItem, OpenItems};
use crate::providers::{
    answer_state::AnswerState,
    chunks::{self, TokenDetails},
    error_body,
    legal_names::LegalNames,
    lenient::{Count, Items, Object, Str, owned, raw_text},
    remote::Decode,
};
use castor_base::model::{Chunk, Failure, FailureKind, Finish, Usage};

#[derive(Default)]
pub struct ResponsesDecoder {
    names: LegalNames,
    /// A summary of thoughts has begun.
    thinking: bool,
    items: OpenItems,
    state: AnswerState,
}

impl ResponsesDecoder {
    pub fn new(names: LegalNames) -> Self {
        Self { names, ..Self::default() }
    }

    fn open(&mut self, event: &Event<'_>, kind: ItemKind) -> Option<&mut OpenItem> {
        let id = event.item_id.as_ref().map_or("", |it| &it.0);
        self.items.open(event.output_index.map(|it| it.0), id, kind)
    }

    /// A piece of a message or of thoughts, or all of it where no pieces came.
    fn piece(&mut self, event: Event<'_>, kind: ItemKind, is_whole: bool, out: &mut Vec<Chunk>) {
        let Some(item) = self.open(&event, kind) else { return };
        let was_told = std::mem::replace(&mut item.is_told, true);
        let said = event.delta.or(event.text).or(event.refusal).and_then(Str::said);
        let Some(said) = said.filter(|_| !(is_whole && was_told)) else { return };
        self.thinking |= kind == ItemKind::Reasoning;
        out.extend(if kind == ItemKind::Reasoning { chunks::thought(said) } else { chunks::text(said) });
    }

    /// A piece of the arguments of a call, or all of them.
    fn arguments(&mut self, mut event: Event<'_>, kind: ItemKind) {
        let whole = event.arguments.take().map(raw_text).or(event.input.take().map(|it| it.0.into_owned()));
        let more = event.delta.take();
        let Some(item) = self.open(&event, kind) else { return };
        item.arguments.push_str(&owned(more));
        if let Some(it) = whole.filter(|it| !it.is_empty()) {
            item.arguments = it;
        }
    }

    fn begin(&mut self, event: Event<'_>) {
        let Some(item) = event.item.0 else { return };
        let Some(kind) = ItemKind::of(&item).filter(|it| it.comes_in_pieces()) else { return };
        if let Some(open) = self.items.open(event.output_index.map(|it| it.0), item.id(), kind) {
            open.take_call(item);
        }
    }

    fn item(&mut self, event: Event<'_>, out: &mut Vec<Chunk>) {
        let Some(item) = event.item.0 else { return };
        let Some(kind) = ItemKind::of(&item) else { return };
        let open = self.items.open(event.output_index.map(|it| it.0), item.id(), kind);
        self.thinking &= kind != ItemKind::Reasoning;
        if let Some(it) = open {
            out.extend(it.end(item, &self.names));
        }
    }

    fn finish_response(&mut self, response: Option<Response<'_>>, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let Some(response) = response else { return Ok(()) };
        error_body::check(response.error)?;
        let status = owned(response.status);
        if status == "failed" {
            let message = "The model server says that the answer failed, but not why.";
            return Err(Failure::new(FailureKind::Stream, message));
        }
        let mut late = self.items.late();
        for item in response.output.0 {
            out.extend(late.end(item, &self.names));
        }
        self.end_calls(out);
        self.state.usage = response.usage.0.map(Usage::from);
        let reason = response.incomplete_details.0.and_then(|it| it.reason).and_then(Str::said);
        let why = match (reason, &*status) {
            (Some(it), _) => chunks::finish(&it, &[], &["max_output_tokens", "max_tokens"], &["content_filter"]),
            (None, "incomplete") => Finish::MaxTokens,
            (None, "cancelled") => Finish::Other(status),
            (None, _) => Finish::Stop,
        };
        self.state.finish(why, out);
        self.state.is_over = true;
        Ok(())
    }
}

impl Decode for ResponsesDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let event: Event<'_> = error_body::parse(data)?;
        match &*event.kind.0 {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.piece(event, ItemKind::Message, false, out);
            }
            "response.output_text.done" | "response.refusal.done" => self.piece(event, ItemKind::Message, true, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.piece(event, ItemKind::Reasoning, false, out);
            }
            // Parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" if self.thinking => {
                out.push(Chunk::Thought { text: "\n\n".to_owned(), signature: None });
            }
            "response.function_call_arguments.delta" | "response.function_call_arguments.done" => {
                self.arguments(event, ItemKind::Call);
            }
            "response.custom_tool_call_input.delta" | "response.custom_tool_call_input.done" => {
                self.arguments(event, ItemKind::CustomCall);
            }
            "response.output_item.added" => self.begin(event),
            "response.output_item.done" => self.item(event, out),
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                return self.finish_response(event.response.0, out);
            }
            // The fields of the error are the event's own.
            "error" => return Err(error_body::from_stream(event.error.map_or(data, RawValue::get))),
            // An answer that came at once.
            "" if event.object.is_some_and(|it| it.0 == "response") => {
                return self.finish_response(Some(error_body::parse(data)?), out);
            }
            "" => return error_body::check(event.error),
            _ => (),
        }
        Ok(())
    }

    fn first_event(&self) -> Option<&'static str> {
        Some("response.created")
    }

    fn begin_again(&mut self) {
        self.items = OpenItems::default();
    }

    fn end_calls(&mut self, out: &mut Vec<Chunk>) -> bool {
        self.items.end_calls(&self.names, out)
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    output_index: Option<Count>,
    #[serde(borrow)]
    item_id: Option<Str<'a>>,
    #[serde(borrow)]
    delta: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<Str<'a>>,
    #[serde(borrow, default)]
    item: Object<Item<'a>>,
    #[serde(borrow, default)]
    response: Object<Response<'a>>,
    #[serde(borrow)]
    object: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    status: Option<Str<'a>>,
    #[serde(borrow, default)]
    output: Items<Item<'a>>,
    #[serde(default)]
    usage: Object<Tokens>,
    #[serde(borrow, default)]
    incomplete_details: Object<Incomplete<'a>>,
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
    input_tokens_details: Object<TokenDetails>,
    output_tokens_details: Object<TokenDetails>,
}

impl From<Tokens> for Usage {
    fn from(it: Tokens) -> Self {
        let thought = it.output_tokens_details.0.unwrap_or_default().reasoning_tokens.0;
        let cached = it.input_tokens_details.0.unwrap_or_default().cached_tokens.0;
        chunks::usage([it.input_tokens, it.output_tokens, it.total_tokens], cached, thought)
    }
}
