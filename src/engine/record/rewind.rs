//! Rewind of the record: conversation and state return to a prompt, everything else stays.

use std::collections::BTreeMap;

use super::{Record, history::History, seen_files::SeenFiles};
use castor_base::{
    ids::MessageId,
    log::Entry,
    model::Usage,
    rewind::{self, Rewind},
    state::StateMap,
};

/// The conversation before a message of the user. Compressions and masks cannot be undone in a record, so it is made from
/// the log.
#[derive(Clone, Debug)]
pub struct RewindPoint {
    to: MessageId,
    conversation: Conversation,
}

/// What a rewind gives back.
#[derive(Clone, Debug)]
struct Conversation {
    history: History,
    /// What the model read or wrote later it does not know any more.
    seen: SeenFiles,
    compressed_at: Option<u64>,
    title: Option<String>,
    filled: Usage,
    state: StateMap,
}

impl RewindPoint {
    pub fn to(&self) -> &MessageId {
        &self.to
    }

    /// Tells whether nothing at all was said before.
    pub fn is_empty(&self) -> bool {
        self.conversation.history.turns.is_empty()
    }
}

impl Record {
    /// The conversation before a message of the user; `None`: the log has no such message, or it was taken away.
    pub fn rewind_point(entries: &[Entry], to: &MessageId) -> Option<RewindPoint> {
        let at = rewind::find_message(entries, to)?;
        let past = Self::replay(entries.get(..at)?)?.conversation();
        Some(RewindPoint { to: to.clone(), conversation: past })
    }

    fn conversation(&self) -> Conversation {
        Conversation {
            history: self.past.history.clone(),
            seen: self.past.files.seen.clone(),
            compressed_at: self.past.compressed_at,
            title: self.title.clone(),
            filled: self.spent.last.map(|(usage, _)| usage).unwrap_or_default(),
            state: self.past.state.values.clone(),
        }
    }

    pub(super) fn apply_rewind(&mut self, before: RewindPoint) {
        self.go_back(before.conversation);
    }

    fn go_back(&mut self, past: Conversation) {
        let Conversation { history, seen, compressed_at, title, filled, state } = past;
        self.past.history.restore_from(history);
        (self.past.files.seen, self.past.compressed_at, self.title) = (seen, compressed_at, title);
        self.past.state.values = state;
        // The window is that of the model that is chosen now.
        if let Some((usage, _)) = &mut self.spent.last {
            *usage = filled;
        }
    }
}

/// The rewinds of a log, for one fold over it: at each message that a rewind goes back to, the conversation is kept until
/// the rewind comes. Folding anew for each would double the work with every one.
#[derive(Debug, Default)]
pub(super) struct Rewinds {
    /// By the message's place, the rewind's.
    ends: BTreeMap<usize, usize>,
    /// By the rewind's place.
    conversations: BTreeMap<usize, Conversation>,
}

impl Rewinds {
    pub fn new(all: Vec<Rewind>) -> Self {
        Self { ends: all.into_iter().map(|it| (it.from, it.at)).collect(), conversations: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The entry at that place comes next.
    pub fn reach(&mut self, at: usize, record: &mut Record) {
        if let Some(end) = self.ends.get(&at) {
            self.conversations.insert(*end, record.conversation());
        }
        if let Some(past) = self.conversations.remove(&at) {
            record.go_back(past);
        }
    }
}
