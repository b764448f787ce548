//! Messages of a turn: to model and user, or outside the conversation.

use serde_json::Map;

use crate::record::{COMMAND_META, QUOTES_META, Step};
use castor_base::{
    content::Part,
    event::{EventKind, Speaker},
    ids::MessageId,
};

/// A message of its own; `marks`: members of its `_meta` that are true.
pub fn send_message(step: &mut Step<'_>, role: Speaker, content: Vec<Part>, marks: &[&str]) {
    let message_id = MessageId::from(step.fresh_id("m"));
    let meta = marks.iter().map(|it| ((*it).to_owned(), true.into()));
    step.emit_event_with(EventKind::Message { role, message_id, content, cuts: Vec::new() }, Map::from_iter(meta));
}

/// What castor tells the model: its own words, and what it quotes, which the model takes no orders from.
#[derive(Debug, Default)]
pub struct ModelNote {
    parts: Vec<Part>,
    /// Places of the quotations.
    quotes: Vec<usize>,
}

impl ModelNote {
    pub fn quote(text: impl Into<String>) -> Self {
        Self::default().and_quote(text)
    }

    #[must_use]
    pub fn and_quote(mut self, text: impl Into<String>) -> Self {
        self.quotes.push(self.parts.len());
        self.and(text)
    }

    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::text(text));
        self
    }
}

impl<T: Into<String>> From<T> for ModelNote {
    fn from(words: T) -> Self {
        Self::default().and(words)
    }
}

pub fn tell_model(step: &mut Step<'_>, note: impl Into<ModelNote>) {
    let ModelNote { parts: content, quotes } = note.into();
    let message_id = MessageId::from(step.fresh_id("m"));
    let message = EventKind::Message { role: Speaker::Developer, message_id, content, cuts: Vec::new() };
    step.emit_event_with(message, Map::from_iter([(QUOTES_META.to_owned(), quotes.into())]));
}

/// A message between user and castor.
pub fn send_command_message(step: &mut Step<'_>, role: Speaker, content: Vec<Part>) {
    send_message(step, role, content, &[COMMAND_META]);
}
