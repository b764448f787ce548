//! Messages of a turn: to model and user, or outside the conversation.

use serde_json::Map;

use crate::{
    base::{
        content::Part,
        event::{EventKind, Speaker},
        ids::MessageId,
    },
    engine::record::{COMMAND_META, Step},
};

/// A message of its own; `marks`: members of its `_meta` that are true.
pub(super) fn send_message(step: &mut Step<'_>, role: Speaker, content: Vec<Part>, marks: &[&str]) {
    let message_id = MessageId::from(step.fresh_id("m"));
    let meta = marks.iter().map(|it| ((*it).to_owned(), true.into()));
    step.emit_event_with(EventKind::Message { role, message_id, content, cuts: Vec::new() }, Map::from_iter(meta));
}

/// What castor tells the model.
pub(super) fn tell_model(step: &mut Step<'_>, text: impl Into<String>) {
    send_message(step, Speaker::Developer, vec![Part::text(text)], &[]);
}

/// A message between user and castor.
pub fn send_command_message(step: &mut Step<'_>, role: Speaker, content: Vec<Part>) {
    send_message(step, role, content, &[COMMAND_META]);
}
