//! Conversation history for models: turns that name no provider and are shared by all requests.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::{
    content::Part,
    one_entry_cache::OneEntryCache,
    tool::{CallResult, ToolCall},
};

/// The start of a notice that castor puts beside a prompt.
pub const NOTICE: &str = "[Notice]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Model,
    /// Results of calls; providers disagree on how to name it.
    Tool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TurnPart {
    Content(Part),
    Call { call: ToolCall, signature: Option<Arc<str>> },
    Result(CallResult),
}

/// One turn of the conversation. Immutable once shared, so its bytes can be kept.
#[derive(Debug)]
pub struct Turn {
    role: Role,
    parts: Vec<TurnPart>,
    encoded: OneEntryCache<(&'static str, usize), Bytes>,
    tokens: OnceLock<u64>,
    bytes: OnceLock<u64>,
}

impl Turn {
    pub fn new(role: Role) -> Self {
        // Most turns have one part, and a part is large: a vector that grows by itself begins with room for four.
        Self::with_parts(role, Vec::with_capacity(1))
    }

    fn with_parts(role: Role, parts: Vec<TurnPart>) -> Self {
        Self { role, parts, encoded: OneEntryCache::default(), tokens: OnceLock::new(), bytes: OnceLock::new() }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn parts(&self) -> &[TurnPart] {
        &self.parts
    }

    /// The parts, to be changed: kept bytes are forgotten.
    pub fn parts_mut(&mut self) -> &mut Vec<TurnPart> {
        (self.encoded, self.tokens, self.bytes) = Default::default();
        &mut self.parts
    }

    /// Its size in tokens, as `count` says the first time.
    pub fn tokens(&self, count: impl Fn(&Turn) -> u64) -> u64 {
        *self.tokens.get_or_init(|| count(self))
    }

    /// Its size in bytes, likewise.
    pub fn bytes(&self, count: impl Fn(&Turn) -> u64) -> u64 {
        *self.bytes.get_or_init(|| count(self))
    }

    /// The turn's bytes in `dialect`, made by `encode` the first time and kept for one dialect.
    pub fn encoded(&self, dialect: &'static str, encode: impl Fn(&Turn) -> Bytes) -> Bytes {
        self.encoded_at(dialect, 0, encode)
    }

    /// The same of a turn that is written differently at each place in a conversation.
    pub fn encoded_at(&self, dialect: &'static str, place: usize, encode: impl Fn(&Turn) -> Bytes) -> Bytes {
        self.encoded.get((dialect, place), |_| encode(self))
    }
}

impl Clone for Turn {
    /// A copy is about to be changed: it does not inherit the bytes.
    fn clone(&self) -> Self {
        Self::with_parts(self.role, self.parts.clone())
    }
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role && self.parts == other.parts
    }
}
