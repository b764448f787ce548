//! Title of a session: the order in which a client, the model and the first prompt set one.
//!
//! A client's own (`session/set_title`) stands for good: only a client replaces it, by another or by
//! `session/update`. Without one the newest stands of those of `session/update` and of the model (`update_topic`).
//! The first line of the first prompt stands where there is no other. A fork has its parent's with a mark. A rewind
//! goes back to the title of then, but for a client's own, which `store::sessions::metadata` keeps beside the log for
//! the list of sessions.

use serde_json::{Map, Value};

use super::{Record, Step};
use castor_base::{
    event::{AgentEvent, EventKind},
    log::{Entry, Fact},
    text,
};

/// In `_meta` of a session update: a client gave the title.
const TITLE_GIVEN: &str = "given";
/// Longest title that is made of a prompt, in characters.
const MAX_PROMPT_TITLE: usize = 80;

/// The author of a title that is not a client's own.
pub enum TitleSource {
    /// The first line of the user's words.
    Prompt,
    /// `update_topic`.
    Model,
    /// A client's `session/update`.
    Update,
}

impl TitleSource {
    /// The title that the session gets of this text; `None`: another one stands before it.
    pub fn title(self, record: &Record, text: &str) -> Option<String> {
        let title = match self {
            Self::Prompt => record.title.is_none().then(|| text::first_line(text, MAX_PROMPT_TITLE)),
            Self::Model => record.client_title().is_none().then(|| text.to_owned()),
            Self::Update => Some(text.to_owned()),
        };
        title.filter(|it| !it.is_empty())
    }
}

impl Record {
    /// The title that a client gave.
    pub fn client_title(&self) -> Option<&str> {
        self.past.choices.client_title.as_deref()
    }

    /// The title that a client gives, for the log of a session that is not open.
    pub fn client_title_entry(&self, title: &str, at_ms: u64) -> Entry {
        title_entry(self, title, given(), at_ms)
    }

    pub(super) fn apply_title(&mut self, title: &str, meta: &Map<String, Value>) {
        if meta.contains_key(TITLE_GIVEN) {
            self.past.choices.client_title = Some(title.to_owned());
        }
        self.title = Some(title.to_owned());
    }
}

impl Step<'_> {
    /// A client gives the session a title of its own.
    pub fn give_title(&mut self, title: &str) {
        self.emit_event_with(update(title), given());
    }

    /// Tells the title that the session gets of this text, if none stands before it.
    pub fn set_title(&mut self, source: TitleSource, text: &str) {
        if let Some(title) = source.title(self.record, text) {
            self.emit_event(update(&title));
        }
    }
}

/// `Title`, `Title (fork)`, `Title (fork 2)` and so on.
pub(super) fn fork_title(title: &str) -> String {
    let fork = title.strip_suffix(')').and_then(|it| it.rsplit_once(" (fork"));
    let nth = |it: &str| if it.is_empty() { Some(1_u32) } else { it.strip_prefix(' ')?.parse().ok() };
    match fork.and_then(|(title, it)| Some((title, nth(it)?))) {
        Some((title, n)) => format!("{title} (fork {})", n.saturating_add(1)),
        None => format!("{title} (fork)"),
    }
}

pub(super) fn title_entry(record: &Record, title: &str, meta: Map<String, Value>, at_ms: u64) -> Entry {
    let event = AgentEvent { meta, ..record.past.stream.event(at_ms, update(title)) };
    Entry { at: at_ms, fact: Fact::Event { event } }
}

fn update(title: &str) -> EventKind {
    EventKind::SessionUpdate { title: Some(title.to_owned()), model: None, state: Default::default() }
}

fn given() -> Map<String, Value> {
    Map::from_iter([(TITLE_GIVEN.to_owned(), true.into())])
}

#[cfg(test)]
mod tests {
    use super::fork_title;

    #[test]
    fn forks_of_forks_are_counted() {
        let mut title = "Fix (it)".to_owned();
        for expected in ["Fix (it) (fork)", "Fix (it) (fork 2)", "Fix (it) (fork 3)"] {
            title = fork_title(&title);
            assert_eq!(title, expected);
        }
        assert_eq!(fork_title("a (fork x)"), "a (fork x) (fork)");
    }
}
