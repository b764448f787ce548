//! The conversation of a session as its client knows it: the fold of an agent's events into entries, calls and sub-agents.
//!
//! Faces put in events, and read entries, calls and sub-agents. The fold knows the time only as an argument.

pub mod agents;
pub mod call;
pub mod entries;
pub mod facts;
pub mod failure;
pub mod incoming;
pub mod listing;
pub mod machine;
pub mod opening;
pub mod peer;
pub mod questions;
pub mod steering;
#[cfg(test)]
mod tests;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use self::{
    agents::{AgentChange, AgentTree},
    call::Call,
    entries::{CallChange, Entry, Thread, Words},
};
use castor_wire::acp::client::{CallUpdate, ClientEvent, PromptAnswer};

/// A session that the user speaks to, and the sub-agents below it.
#[derive(Debug, Default)]
pub struct Conversation {
    main: Thread,
    pub agents: AgentTree,
    counts: CallCounts,
}

/// Calls as they were shown, those of sub-agents included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallCounts {
    pub total: usize,
    pub completed: u64,
    pub failed: u64,
    /// Of the failed ones: nobody could be asked for an approval.
    pub unasked: u64,
}

/// What an event meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub call: Option<CallChange>,
    pub agent: Option<AgentChange>,
}

impl Conversation {
    /// Takes an event of any of its sessions. A session that is no sub-agent's is the one that the user speaks to.
    pub fn update(&mut self, session: &str, event: &ClientEvent, now: Duration) -> Change {
        let call = match self.agents.get_mut(session) {
            Some(agent) => agent.take(event, now),
            None => self.main.take(event, now),
        };
        let ended = call.as_ref().filter(|change| change.has_ended).and_then(|change| self.call(session, &change.id));
        if let Some((is_failed, is_unasked)) = ended.map(|call| (call.is_failed(), call.is_unasked)) {
            self.counts.completed += u64::from(!is_failed);
            self.counts.failed += u64::from(is_failed);
            self.counts.unasked += u64::from(is_failed && is_unasked);
        }
        let agent = self.agents.take(session, event, now);
        if let Some(AgentChange::Started(it)) = &agent {
            let is_of_call = self.agents.get(it).is_some_and(|it| it.call.is_some());
            let thread = self.thread_mut(session);
            thread.push(Entry::Agent(it.clone()));
            if !is_of_call {
                thread.close_words();
            }
        }
        Change { call, agent }
    }

    /// What was told in the session that the user speaks to.
    pub fn entries(&self) -> &[Entry] {
        self.main.entries()
    }

    /// The entries of a session.
    pub fn thread(&self, session: &str) -> &Thread {
        self.agents.get(session).map_or(&self.main, |it| &it.thread)
    }

    fn thread_mut(&mut self, session: &str) -> &mut Thread {
        match self.agents.get_mut(session) {
            Some(it) => &mut it.thread,
            None => &mut self.main,
        }
    }

    pub fn call(&self, session: &str, id: &str) -> Option<&Call> {
        self.thread(session).call(id)
    }

    /// A call of the session that the user speaks to.
    pub fn main_call(&self, id: &str) -> Option<&Call> {
        self.main.call(id)
    }

    /// What is known of a call that a question is about, with what the question itself tells.
    pub fn asked_call(&self, session: &str, told: &CallUpdate) -> Call {
        let mut call = self.call(session, &told.id).cloned().unwrap_or_else(|| Call::new(&told.id));
        call.merge(told);
        call
    }

    /// A question about this call of the main session is up.
    pub fn note_question(&mut self, id: &str, now: Duration) {
        self.main.note_question(id, now);
    }

    /// A question showed the user what this call of the main session would do.
    pub fn note_shown(&mut self, id: &str) {
        if let Some(it) = self.main.call_mut(id) {
            it.note_shown();
        }
    }

    /// All questions are answered.
    pub fn release_questions(&mut self, now: Duration) {
        self.main.release_questions(now);
    }

    /// The answer to the prompt.
    pub fn note_answer(&mut self, answer: PromptAnswer) {
        self.main.push(Entry::End(Box::new(answer)));
    }

    /// The turn is over: nothing more is heard of what runs.
    pub fn end_turn(&mut self, now: Duration) {
        self.main.close_words();
        self.agents.cut_off(now);
    }

    /// The last thought of the session that the user speaks to.
    pub fn last_thought(&self) -> Option<&Words> {
        self.main.last_thought()
    }

    /// A call that is over was shown: what it brought is of no use any more.
    pub fn forget_contents(&mut self, session: &str, id: &str) {
        if let Some(it) = self.thread_mut(session).call_mut(id) {
            it.forget_contents();
        }
    }

    pub fn counts(&self) -> CallCounts {
        let of_agents: usize = self.agents.all().iter().map(|it| it.thread.n_calls()).sum();
        CallCounts { total: self.main.n_calls() + of_agents, ..self.counts }
    }
}
