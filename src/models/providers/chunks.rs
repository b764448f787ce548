//! Chunk constructors that all decoders of providers share.

use serde::Deserialize;
use serde_json::Value;

use super::{legal_names::LegalNames, lenient::Count, provider_limits};
use castor_base::model::{Chunk, Finish, Usage};

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

/// Of input, output and total. Output counts the thoughts as well, unless the total or the thoughts say that they stand
/// beside it.
pub fn usage([input, output, total]: [Count; 3], cached: u64, thought: u64) -> Usage {
    let both = input.0.saturating_add(output.0);
    let are_beside = thought > output.0 || (thought > 0 && total.0 == both.saturating_add(thought));
    let (output, sum) = match are_beside {
        true => (output.0, both.saturating_add(thought)),
        false => (output.0.saturating_sub(thought), both),
    };
    Usage { input: input.0, output, cached, written: 0, thought, total: total.0.max(sum) }
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
    call_with(names, id, name, provider_limits::parse_arguments(arguments))
}

/// The same with arguments that need no reading.
pub fn call_with(names: &LegalNames, id: String, name: String, args: Value) -> Chunk {
    let (name, args) = names.restore(name, args);
    let id = Some(id).filter(|it| !it.is_empty());
    let signature = id.as_deref().and_then(|it| names.mark_id(it));
    Chunk::Call { id, name, args, signature }
}
