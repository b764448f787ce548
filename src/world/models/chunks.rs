//! Chunk constructors that all decoders of providers share.

use serde::Deserialize;

use super::{
    legal_names::LegalNames,
    lenient::Count,
    provider_limits,
    text_events::{TextChunk, TextEvent},
};
use crate::base::model::{Chunk, Finish, Usage};

/// What every decoder knows of the answer that it reads.
#[derive(Debug, Default)]
pub struct AnswerState {
    /// Passed on once, at the end.
    pub usage: Option<Usage>,
    pub finished: bool,
    last_text: Option<TextEvent>,
}

impl AnswerState {
    /// A chunk of this text. `event`: its event, if nothing else in it counts; the next one like it needs no parsing.
    pub fn text(&mut self, event: Option<&[u8]>, text: &str, chunk: TextChunk) -> Option<Chunk> {
        self.last_text = event.and_then(|it| TextEvent::new(it, text, chunk));
        chunk(text.to_owned())
    }

    /// The chunk of an event that needs no parsing.
    pub fn text_again(&self, data: &[u8]) -> Option<Chunk> {
        self.last_text.as_ref()?.again(data)
    }

    pub fn finish(&mut self, why: Finish, out: &mut Vec<Chunk>) {
        self.finished = true;
        out.extend(self.usage.take().map(Chunk::Usage));
        out.push(Chunk::Finish(why));
    }
}

/// Why an answer ended, by a provider's words for an end, a limit and a refusal.
pub fn finish(word: &str, stop: &[&str], max_tokens: &[&str], safety: &[&str]) -> Finish {
    match word {
        it if stop.contains(&it) => Finish::Stop,
        it if max_tokens.contains(&it) => Finish::MaxTokens,
        it if safety.contains(&it) => Finish::Safety(it.to_owned()),
        it => Finish::Other(it.to_owned()),
    }
}

/// Parts of a count, as OpenAI names them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct TokenDetails {
    pub cached_tokens: Count,
    pub reasoning_tokens: Count,
}

/// Of input, output and total. Theirs counts the thoughts as output as well.
pub fn usage([input, output, total]: [Count; 3], cached: u64, thought: u64) -> Usage {
    Usage {
        input: input.0,
        output: output.0.saturating_sub(thought),
        cached,
        written: 0,
        thought,
        total: total.0.max(input.0.saturating_add(output.0)),
    }
}

/// `None`: it says nothing.
pub fn text(text: String) -> Option<Chunk> {
    (!text.is_empty()).then_some(Chunk::Text { text, signature: None })
}

/// As [`text`], of what the model thinks.
pub fn thought(text: String) -> Option<Chunk> {
    (!text.is_empty()).then_some(Chunk::Thought { text, signature: None })
}

/// What is to come back with the thoughts, marked as this provider's.
pub fn signature(signer: &str, data: &str) -> Chunk {
    Chunk::Thought { text: String::new(), signature: Some(provider_limits::sign(signer, data).into()) }
}

/// A call that is whole, under the tool's own name.
pub fn call(names: &LegalNames, id: String, name: String, arguments: &str) -> Chunk {
    let (name, args) = names.restore(name, provider_limits::parse_arguments(arguments));
    let id = Some(id).filter(|it| !it.is_empty());
    let signature = id.as_deref().and_then(|it| names.mark_id(it));
    Chunk::Call { id, name, args, signature }
}
