//! Response decoder of Anthropic's Messages API: events to chunks.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ANSWER, HIDDEN_SIGNER, SIGNER};
use crate::{
    base::model::{Chunk, Failure, Finish},
    world::models::{
        chunks::{self, AnswerState},
        error_body,
        legal_names::LegalNames,
        lenient::{Count, Str, owned},
        remote::Decode,
    },
};

#[derive(Default)]
pub struct AnthropicDecoder {
    names: LegalNames,
    /// A call of the tool that takes answers is one.
    has_shape: bool,
    /// The call under way: id, name and arguments as far as they came.
    call: Option<(String, String, String)>,
    state: AnswerState,
}

impl AnthropicDecoder {
    pub fn new(names: LegalNames, has_shape: bool) -> Self {
        Self { names, has_shape, ..Self::default() }
    }

    fn begin(&mut self, block: Block<'_>, out: &mut Vec<Chunk>) {
        match &*block.kind.0 {
            "text" => out.extend(block.text.and_then(|it| chunks::text(it.0.into_owned()))),
            "thinking" => out.extend(block.thinking.and_then(|it| chunks::thought(it.0.into_owned()))),
            "redacted_thinking" => out.extend(block.data.map(|it| chunks::signature(HIDDEN_SIGNER, &it.0))),
            "tool_use" => {
                // Some servers send the arguments at once.
                let whole = block.input.map(RawValue::get).filter(|it| *it != "{}").unwrap_or_default();
                self.call = Some((owned(block.id), owned(block.name), whole.to_owned()));
            }
            _ => (),
        }
    }

    /// `event`: the whole of it, if it has no counts.
    fn delta(&mut self, event: Option<&[u8]>, delta: Delta<'_>, out: &mut Vec<Chunk>) {
        match delta {
            Delta { text: Some(it), .. } => out.extend(self.state.text(event, &it.0, chunks::text)),
            Delta { thinking: Some(it), .. } => out.extend(self.state.text(event, &it.0, chunks::thought)),
            Delta { signature: Some(it), .. } => out.push(chunks::signature(SIGNER, &it.0)),
            Delta { partial_json: Some(it), .. } => {
                if let Some((.., arguments)) = &mut self.call {
                    arguments.push_str(&it.0);
                }
            }
            _ => (),
        }
    }

    fn emit_call(&mut self, out: &mut Vec<Chunk>) {
        let Some((id, name, arguments)) = self.call.take() else { return };
        match self.has_shape && name == ANSWER {
            true => out.extend(chunks::text(arguments)),
            false => out.push(chunks::call(&self.names, id, name, &arguments)),
        }
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

    fn read(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let event: Event<'_> = error_body::parse(data)?;
        error_body::check(event.error)?;
        let alone = event.usage.is_none().then_some(data);
        for it in [event.usage, event.message.and_then(|it| it.usage)].into_iter().flatten() {
            self.count(&it);
        }
        match event.kind.as_ref().map(|it| &*it.0).unwrap_or_default() {
            "content_block_start" => {
                if let Some(it) = event.content_block {
                    self.begin(it, out);
                }
            }
            "content_block_delta" => {
                if let Some(it) = event.delta {
                    self.delta(alone, it, out);
                }
            }
            "content_block_stop" => self.emit_call(out),
            "message_delta" => {
                if let Some(it) = event.delta.and_then(|it| it.stop_reason) {
                    self.state.finish(finish(&it.0), out);
                }
            }
            "message_stop" => self.state.finished = true,
            _ => (),
        }
        Ok(())
    }
}

fn finish(word: &str) -> Finish {
    let stop = ["end_turn", "stop_sequence", "tool_use", "pause_turn"];
    chunks::finish(word, &stop, &["max_tokens", "model_context_window_exceeded"], &["refusal"])
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Str<'a>>,
    message: Option<Message>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    usage: Option<Tokens>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
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
