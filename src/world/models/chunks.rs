//! Chunk constructors that all decoders of providers share.

use super::provider_limits::{self, LegalNames};
use crate::base::model::Chunk;

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
    let (id, name) = (Some(id).filter(|it| !it.is_empty()), names.restore(name));
    Chunk::Call { id, name, args: provider_limits::parse_arguments(arguments), signature: None }
}
