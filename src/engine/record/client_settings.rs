//! Settings of a client for a session: its title, which castor does not replace, and its system prompt.

use serde_json::{Map, Value};

use super::{Record, Step};
use crate::base::{
    client_settings::ClientPrompt,
    event::EventKind,
    log::{Entry, Fact},
};

/// In `_meta` of a session update: a client gave the title.
const TITLE_GIVEN: &str = "given";

impl Record {
    /// The system prompt that a client gave.
    pub fn client_prompt(&self) -> Option<&ClientPrompt> {
        self.past.choices.client_prompt.as_ref()
    }

    /// The title that a client gave.
    pub fn client_title(&self) -> Option<&str> {
        self.past.choices.client_title.as_deref()
    }

    /// The title that a client gives, for the log of a session that is not open.
    pub fn client_title_entry(&self, title: &str, at_ms: u64) -> Entry {
        let mut event = self.past.stream.event(at_ms, update(title));
        event.meta = given();
        Entry { at: at_ms, fact: Fact::Event { event } }
    }

    pub(super) fn apply_title(&mut self, title: &str, meta: &Map<String, Value>) {
        if meta.contains_key(TITLE_GIVEN) {
            self.past.choices.client_title = Some(title.to_owned());
        }
        self.title = Some(title.to_owned());
    }
}

impl Step<'_> {
    /// A client gives the session a title.
    pub fn give_title(&mut self, title: &str) {
        self.emit_event_with(update(title), given());
    }
}

fn update(title: &str) -> EventKind {
    EventKind::SessionUpdate { title: Some(title.to_owned()), model: None, state: Default::default() }
}

fn given() -> Map<String, Value> {
    Map::from_iter([(TITLE_GIVEN.to_owned(), true.into())])
}
