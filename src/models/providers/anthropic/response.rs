//! Response decoder of Anthropic's Messages API: events to chunks.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ANSWER, HIDDEN_SIGNER, SIGNER};
use crate::providers::{
    answer_state::AnswerState,
    chunks, error_body,
    legal_names::LegalNames,
    lenient::{Count, Items, Object, Str, owned, raw_text},
    provider_limits::whole_arguments,
    remote::Decode,
};
use castor_base::model::{Chunk, Failure, Finish};

/// Calls of one answer, at most.
const MAX_CALLS: usize = 256;

#[derive(Default)]
pub struct AnthropicDecoder {
    names: LegalNames,
    /// A call of the tool that takes answers is one.
    has_shape: bool,
    /// Calls under way.
    calls: Vec<OpenCall>,
    state: AnswerState,
}

struct OpenCall {
    /// Of its block.
    index: Option<u64>,
    id: String,
    name: String,
    /// As far as they came.
    arguments: String,
}

impl AnthropicDecoder {
    pub fn new(names: LegalNames, has_shape: bool) -> Self {
        Self { names, has_shape, ..Self::default() }
    }

    fn begin(&mut self, index: Option<u64>, block: Block<'_>, out: &mut Vec<Chunk>) {
        match &*block.kind.0 {
            "text" => out.extend(block.text.and_then(Str::said).and_then(chunks::text)),
            "thinking" => {
                out.extend(block.thinking.and_then(Str::said).and_then(chunks::thought));
                out.extend(block.signature.and_then(Str::said).map(|it| chunks::signature(SIGNER, &it)));
            }
            "redacted_thinking" => out.extend(block.data.map(|it| chunks::signature(HIDDEN_SIGNER, &it.0))),
            "tool_use" if self.calls.len() < MAX_CALLS => {
                // Some servers send the arguments at once.
                let whole = block.input.map(raw_text).filter(|it| it != "{}").unwrap_or_default();
                self.calls.push(OpenCall { index, id: owned(block.id), name: owned(block.name), arguments: whole });
            }
            _ => (),
        }
    }

    /// `event`: the whole of it, if it has no counts.
    fn delta(&mut self, index: Option<u64>, event: Option<&str>, delta: Delta<'_>, out: &mut Vec<Chunk>) {
        match delta {
            Delta { text: Some(it), .. } => out.extend(self.state.text(event, &it.0, chunks::text)),
            Delta { thinking: Some(it), .. } => out.extend(self.state.text(event, &it.0, chunks::thought)),
            Delta { signature: Some(it), .. } => out.push(chunks::signature(SIGNER, &it.0)),
            Delta { partial_json: Some(it), .. } => {
                if let Some(call) = self.open_call(index).and_then(|at| self.calls.get_mut(at)) {
                    call.arguments.push_str(&it.0);
                }
            }
            _ => (),
        }
    }

    /// The call of that block, or the last one where blocks have no numbers.
    fn open_call(&self, index: Option<u64>) -> Option<usize> {
        self.calls.iter().rposition(|it| index.is_none() || it.index.is_none() || it.index == index)
    }

    fn emit_call(&mut self, index: Option<u64>, out: &mut Vec<Chunk>) {
        let Some(OpenCall { id, name, arguments, .. }) = self.open_call(index).map(|at| self.calls.remove(at)) else {
            return;
        };
        match self.has_shape && name == ANSWER {
            true => out.extend(chunks::text(arguments)),
            false => out.push(chunks::call(&self.names, id, name, &arguments)),
        }
    }

    /// An answer that came at once.
    fn whole(&mut self, message: Message<'_>, out: &mut Vec<Chunk>) {
        for block in message.content.0 {
            self.begin(None, block, out);
            self.emit_call(None, out);
        }
        let reason = message.stop_reason.and_then(Str::said).map_or(Finish::Stop, |it| finish(&it));
        self.state.finish(reason, out);
        self.state.is_over = true;
    }

    fn count(&mut self, tokens: &Tokens) {
        let usage = self.state.usage.get_or_insert_default();
        let written = tokens.cache_creation_input_tokens.0;
        let cached = tokens.cache_read_input_tokens.0;
        // The end repeats some counts and leaves others out.
        usage.cached = usage.cached.max(cached);
        usage.written = usage.written.max(written);
        usage.input = usage.input.max(tokens.input_tokens.0.saturating_add(written).saturating_add(cached));
        usage.output = usage.output.max(tokens.output_tokens.0);
        usage.total = usage.input.saturating_add(usage.output);
    }
}

impl Decode for AnthropicDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let event: Event<'_> = error_body::parse(data)?;
        error_body::check(event.error)?;
        let (index, alone) = (event.index.map(|it| it.0), event.usage.0.is_none().then_some(data));
        let of_message = event.message.0.and_then(|it| it.usage.0);
        for it in [event.usage.0, of_message].into_iter().flatten() {
            self.count(&it);
        }
        match event.kind.as_ref().map(|it| &*it.0).unwrap_or_default() {
            // The server tried once more: calls of the last try were cut off.
            "message_start" => self.calls.clear(),
            "content_block_start" => {
                if let Some(it) = event.content_block.0 {
                    self.begin(index, it, out);
                }
            }
            "content_block_delta" => {
                if let Some(it) = event.delta.0 {
                    self.delta(index, alone, it, out);
                }
            }
            "content_block_stop" => self.emit_call(index, out),
            "message_delta" => {
                if let Some(it) = event.delta.0.and_then(|it| it.stop_reason).and_then(Str::said) {
                    self.end_calls(out);
                    self.state.finish(finish(&it), out);
                }
            }
            "message_stop" => self.state.is_over = true,
            "message" => self.whole(error_body::parse(data)?, out),
            _ => (),
        }
        Ok(())
    }

    fn first_event(&self) -> Option<&'static str> {
        Some("message_start")
    }

    fn end_calls(&mut self, out: &mut Vec<Chunk>) -> bool {
        let are_whole = self.calls.iter().all(|it| whole_arguments(&it.arguments).is_some());
        while are_whole && let Some(index) = self.calls.first().map(|it| it.index) {
            self.emit_call(index, out);
        }
        are_whole
    }
}

fn finish(word: &str) -> Finish {
    const STOP: &[&str] = &["end_turn", "stop_sequence", "tool_use", "pause_turn", "stop", "tool_calls"];
    const MAX_TOKENS: &[&str] = &["max_tokens", "model_context_window_exceeded", "length"];
    chunks::finish(word, STOP, MAX_TOKENS, &["refusal", "content_filter"])
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Str<'a>>,
    index: Option<Count>,
    #[serde(default)]
    message: Object<Counted>,
    #[serde(borrow, default)]
    content_block: Object<Block<'a>>,
    #[serde(borrow, default)]
    delta: Object<Delta<'a>>,
    #[serde(default)]
    usage: Object<Tokens>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    usage: Object<Tokens>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Items<Block<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
}
