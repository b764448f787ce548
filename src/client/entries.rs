//! The entries of one session, in the order in which they began.

use std::{collections::BTreeMap, time::Duration};

use base64::prelude::{BASE64_STANDARD, Engine};

use super::call::Call;
use castor_base::{shown_text::clean_line, text::head};
use castor_wire::acp::client::{
    CallPart, CallPartChunk, CallUpdate, ClientEvent, MaybeUndefined, PlanList, PromptAnswer, SessionNotice,
    TerminalOutputChunk, Voice, WholeMessage, block_text,
};

/// Bytes of a message that are kept: its beginning.
const MAX_WORDS: usize = 1024 * 1024;
/// The same of a thought.
const MAX_THOUGHT: usize = 16 * 1024;
/// Characters of the heading of a thought.
const MAX_HEADING: usize = 100;

/// What a person sees of a session, piece by piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    User(Words),
    Answer(Words),
    Thought(Words),
    Call(Box<Call>),
    /// A sub-agent, by its session.
    Agent(String),
    Plan(PlanList),
    /// A question to the user about a call, by its id.
    Question(String),
    Notice(SessionNotice),
    /// The turn is over.
    End(Box<PromptAnswer>),
}

/// A message, or a thought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    /// As the agent names the message.
    pub message: Option<String>,
    pub text: String,
    pub started: Duration,
    /// The answer broke off: it does not count.
    pub is_discarded: bool,
}

/// What an event meant for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChange {
    pub id: String,
    pub is_new: bool,
    /// It is over since this event.
    pub has_ended: bool,
}

#[derive(Debug, Default)]
pub struct Thread {
    entries: Vec<Entry>,
    /// Places of the calls; of those with one id, that of the last.
    calls: BTreeMap<String, usize>,
    plan: Option<usize>,
    /// Calls of which a question is up.
    asked: Vec<String>,
    /// The message that still grows.
    open_words: Option<usize>,
}

impl Words {
    /// The first line with words, without the marks of a heading.
    pub fn heading(&self) -> String {
        let plain = |line: &str| {
            line.replace("**", "").trim_matches(|it: char| it.is_whitespace() || "*#_".contains(it)).to_owned()
        };
        let first = self.text.lines().map(plain).find(|it| !it.is_empty());
        clean_line(&first.unwrap_or_default(), MAX_HEADING)
    }

    fn push(&mut self, text: &str, most: usize) {
        self.text.push_str(head(text, most.saturating_sub(self.text.len())));
    }
}

impl Entry {
    /// What it says; `None`: it is no message.
    pub fn words(&self) -> Option<(Voice, &Words)> {
        match self {
            Self::User(it) => Some((Voice::User, it)),
            Self::Answer(it) => Some((Voice::Answer, it)),
            Self::Thought(it) => Some((Voice::Thought, it)),
            Self::Call(_) | Self::Agent(_) | Self::Plan(_) | Self::Question(_) | Self::Notice(_) | Self::End(_) => None,
        }
    }

    fn words_mut(&mut self) -> Option<(Voice, &mut Words)> {
        match self {
            Self::User(it) => Some((Voice::User, it)),
            Self::Answer(it) => Some((Voice::Answer, it)),
            Self::Thought(it) => Some((Voice::Thought, it)),
            Self::Call(_) | Self::Agent(_) | Self::Plan(_) | Self::Question(_) | Self::Notice(_) | Self::End(_) => None,
        }
    }

    fn of_words(voice: Voice, words: Words) -> Self {
        match voice {
            Voice::User => Self::User(words),
            Voice::Answer => Self::Answer(words),
            Voice::Thought => Self::Thought(words),
        }
    }
}

impl Thread {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// What is said from now on is another message.
    pub(super) fn close_words(&mut self) {
        self.open_words = None;
    }

    pub fn call(&self, id: &str) -> Option<&Call> {
        match self.entries.get(*self.calls.get(id)?)? {
            Entry::Call(it) => Some(it),
            _ => None,
        }
    }

    pub fn call_mut(&mut self, id: &str) -> Option<&mut Call> {
        match self.entries.get_mut(*self.calls.get(id)?)? {
            Entry::Call(it) => Some(it),
            _ => None,
        }
    }

    /// What the session does: the last thought, answer or call.
    pub fn last_activity(&self) -> Option<&Entry> {
        self.entries.iter().rev().find(|it| matches!(it, Entry::Thought(_) | Entry::Answer(_) | Entry::Call(_)))
    }

    pub fn last_thought(&self) -> Option<&Words> {
        self.entries.iter().rev().find_map(|it| if let Entry::Thought(it) = it { Some(it) } else { None })
    }

    /// How many different calls there were.
    pub fn n_calls(&self) -> usize {
        self.calls.len()
    }

    /// Takes what the session tells of itself.
    pub fn take(&mut self, event: &ClientEvent, now: Duration) -> Option<CallChange> {
        self.discard(&event.discarded());
        match event {
            ClientEvent::Chunk(voice, it) => self.add_words(*voice, it.message.as_deref(), it.text()?, now),
            ClientEvent::Message(voice, it) => self.set_message(*voice, it, now),
            ClientEvent::Call(it) => return Some(self.take_call(it, now)),
            ClientEvent::CallPart(it) => return Some(self.add_part(it, now)),
            ClientEvent::TerminalOutput(it) => self.print(it),
            ClientEvent::Plan(it) => self.set_plan(it),
            ClientEvent::Notice(it) => {
                self.close_words();
                self.push(Entry::Notice(it.clone()));
            }
            // Facts of the session, its sub-agents, and what no face shows.
            ClientEvent::Terminal(_)
            | ClientEvent::Subagent(_)
            | ClientEvent::Usage(_)
            | ClientEvent::Mode(_)
            | ClientEvent::Options(_)
            | ClientEvent::Commands(_)
            | ClientEvent::Info(_)
            | ClientEvent::Aside(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => (),
        }
        None
    }

    fn discard(&mut self, ids: &[&str]) {
        if ids.is_empty() {
            return;
        }
        let open = self.open_words;
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let Some((_, it)) = entry.words_mut() else { continue };
            it.is_discarded |= it.message.as_deref().is_some_and(|it| ids.contains(&it));
            self.open_words = self.open_words.filter(|_| open != Some(at) || !it.is_discarded);
        }
    }

    fn add_words(&mut self, voice: Voice, message: Option<&str>, text: &str, now: Duration) {
        if text.is_empty() {
            return;
        }
        let most = if voice == Voice::Thought { MAX_THOUGHT } else { MAX_WORDS };
        let open = self.open_words.and_then(|at| self.entries.get_mut(at)?.words_mut());
        if let Some((_, words)) = open.filter(|(last, it)| *last == voice && is_same_message(voice, it, message)) {
            return words.push(text, most);
        }
        let mut words = Words { message: message.map(str::to_owned), started: now, ..Words::default() };
        words.push(text, most);
        self.open_words = Some(self.entries.len());
        self.push(Entry::of_words(voice, words));
    }

    /// Whole messages replace what is there of them.
    fn set_message(&mut self, voice: Voice, it: &WholeMessage, now: Duration) {
        let MaybeUndefined::Value(blocks) = &it.content else { return };
        let text = blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n");
        let id = it.id.as_deref();
        let is_its = |entry: &Entry| {
            entry.words().is_some_and(|(other, words)| other == voice && id.is_some() && words.message.as_deref() == id)
        };
        let at = self.entries.iter().rposition(is_its);
        match at.and_then(|at| self.entries.get_mut(at)?.words_mut()) {
            Some((_, words)) => words.text = text,
            None => {
                let words = Words { message: it.id.clone(), text, started: now, is_discarded: false };
                self.push(Entry::of_words(voice, words));
            }
        }
        // More of it may follow.
        self.open_words = at.or(self.entries.len().checked_sub(1));
    }

    fn take_call(&mut self, update: &CallUpdate, now: Duration) -> CallChange {
        // An agent may begin to count anew.
        let is_new = self.call(&update.id).is_none_or(|it| it.is_over() && update.begins);
        if is_new {
            self.close_words();
            self.calls.insert(update.id.clone(), self.entries.len());
            self.push(Entry::Call(Box::new(Call::new(&update.id))));
        }
        let mut change = CallChange { id: update.id.clone(), is_new, has_ended: false };
        if let Some(call) = self.call_mut(&update.id).filter(|it| !it.is_over()) {
            call.take(update, now);
            change.has_ended = call.is_over();
        }
        change
    }

    fn add_part(&mut self, chunk: &CallPartChunk, now: Duration) -> CallChange {
        let mut content = self.call(&chunk.tool_call_id).map(|it| it.content.clone()).unwrap_or_default();
        content.push(chunk.content.clone());
        let id = chunk.tool_call_id.clone();
        self.take_call(&CallUpdate { id, content: Some(content), ..CallUpdate::default() }, now)
    }

    /// A terminal belongs to the call that shows it.
    fn print(&mut self, chunk: &TerminalOutputChunk) {
        let terminal = chunk.terminal_id.to_string();
        let shows = |it: &CallPart| matches!(it, CallPart::Terminal { terminal_id } if *terminal_id == terminal);
        let call = self.entries.iter_mut().rev().find_map(|it| match it {
            Entry::Call(it) if it.id == terminal || it.content.iter().any(shows) => Some(it),
            _ => None,
        });
        if let (Some(call), Ok(bytes)) = (call, BASE64_STANDARD.decode(&chunk.data)) {
            call.print(&String::from_utf8_lossy(&bytes));
        }
    }

    fn set_plan(&mut self, plan: &PlanList) {
        self.close_words();
        match self.plan.and_then(|at| self.entries.get_mut(at)) {
            Some(it) => *it = Entry::Plan(plan.clone()),
            None => {
                self.plan = Some(self.entries.len());
                self.push(Entry::Plan(plan.clone()));
            }
        }
    }

    pub(super) fn note_question(&mut self, id: &str, now: Duration) {
        if let Some(it) = self.call_mut(id) {
            it.note_question(now);
        }
        self.asked.push(id.to_owned());
        self.push(Entry::Question(id.to_owned()));
    }

    pub(super) fn release_questions(&mut self, now: Duration) {
        for id in std::mem::take(&mut self.asked) {
            if let Some(it) = self.call_mut(&id) {
                it.release_question(now);
            }
        }
    }
}

/// A thought has no name of its own, and an agent that names no messages has one at a time.
fn is_same_message(voice: Voice, words: &Words, message: Option<&str>) -> bool {
    let own = words.message.as_deref();
    voice == Voice::Thought || own.is_none() || message.is_none_or(|it| own == Some(it))
}
