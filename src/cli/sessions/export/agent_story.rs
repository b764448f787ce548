//! The run of a sub-agent in the story of the session that started it: its own story, how it ended, and what it took.

use super::{
    super::time,
    call::{AgentFacts, Call},
    spending::{compact, grouped},
    story::{Story, end_in_words},
};
use castor_base::{
    event::{AgentEvent, EventKind},
    ids::{CallId, SessionId},
    log::{Entry, Fact},
    money::Money,
};
use castor_store::sessions::SessionStore;

/// Stories within stories; castor's agents go less deep.
const MAX_DEPTH: usize = 8;
/// Shorter times are not worth saying.
const MIN_MS: u64 = 100;
const LOST: &str = "The log of the agent is missing or cannot be read.";
const CUT_OFF: &str = "The log of the agent ends before its work does.";

/// The logs of the sub-agents below a session. One that cannot be read is not among them.
#[derive(Clone, Debug, Default)]
pub struct AgentLogs(Vec<Vec<Entry>>);

/// A story as a part of an export.
#[derive(Clone, Copy)]
pub struct ExportedStory<'a> {
    pub story: &'a Story<'a>,
    logs: &'a AgentLogs,
    /// So many others are around it.
    depth: usize,
}

#[derive(Clone, Debug)]
pub struct AgentStory<'a> {
    pub facts: AgentFacts<'a>,
    /// `None`: there is no log.
    pub story: Option<Story<'a>>,
    worked_ms: u64,
}

impl AgentLogs {
    /// Those of a session with these facts. The agents of a fork's first part are those of the session it is a copy of.
    pub fn read(store: &SessionStore, entries: &[Entry]) -> Self {
        let Some(Fact::Created { session, parent, .. }) = entries.first().map(|it| &it.fact) else {
            return Self::default();
        };
        let sessions = [Some(session), parent.as_ref()].into_iter().flatten();
        Self(sessions.flat_map(|it| Self::below_session(store, it).0).collect())
    }

    /// Those below a session.
    pub fn below_session(store: &SessionStore, id: &SessionId) -> Self {
        let ids = store.children(&id.root()).into_iter();
        Self(ids.filter_map(|it| store.read(&it).ok()).filter(|it| !it.is_empty()).collect())
    }

    pub fn all(&self) -> &[Vec<Entry>] {
        &self.0
    }

    /// The runs that a session started, in order, with their sessions.
    pub fn below<'a>(&'a self, session: &SessionId) -> Vec<(&'a SessionId, AgentStory<'a>)> {
        let run = |log: &'a Vec<Entry>| match &log.first()?.fact {
            Fact::Created { child_of: Some(it), session: id, principal, .. } if it.session == *session => {
                let name = principal.agent().unwrap_or_default();
                Some((log.first()?.at, id, AgentStory::new(AgentFacts::new(name), Some(log))))
            }
            _ => None,
        };
        let mut res: Vec<_> = self.0.iter().filter_map(run).collect();
        res.sort_by_key(|(at, id, _)| (*at, *id));
        res.into_iter().map(|(_, id, run)| (id, run)).collect()
    }

    /// The log of the agent that a call of one of these sessions started, and the agent's name.
    fn of_call(&self, sessions: [Option<&SessionId>; 2], id: &CallId) -> Option<(&[Entry], &str)> {
        self.0.iter().find_map(|log| match &log.first()?.fact {
            Fact::Created { child_of: Some(it), principal, .. }
                if it.call == *id && sessions.contains(&Some(&it.session)) =>
            {
                Some((log.as_slice(), principal.agent().unwrap_or_default()))
            }
            _ => None,
        })
    }
}

impl<'a> ExportedStory<'a> {
    pub fn new(story: &'a Story<'a>, logs: &'a AgentLogs) -> Self {
        Self { story, logs, depth: 0 }
    }

    /// The same of an agent's story in it.
    pub fn inner<'b>(&self, story: &'b Story<'b>) -> ExportedStory<'b>
    where
        'a: 'b,
    {
        ExportedStory { story, logs: self.logs, depth: self.depth + 1 }
    }

    /// The agent that a call started; `None`: it started none.
    pub fn agent(&self, call: &Call<'a>) -> Option<AgentStory<'a>> {
        let sessions = [Some(self.story.head.id), self.story.head.parent];
        let found = self.logs.of_call(sessions, call.id).filter(|_| self.depth < MAX_DEPTH);
        let facts = call.run.as_deref().cloned().or_else(|| Some(AgentFacts::new(found?.1)))?;
        Some(AgentStory::new(facts, found.map(|it| it.0)))
    }
}

impl<'a> AgentStory<'a> {
    fn new(facts: AgentFacts<'a>, log: Option<&'a [Entry]>) -> Self {
        let story = log.and_then(Story::new);
        let entries = || log.into_iter().flatten();
        let end = story.as_ref().and_then(|it| it.end).or(facts.end);
        let has_escalated = facts.has_escalated || entries().any(has_escalated);
        let worked_ms = entries().map(|it| if let Fact::Worked { ms } = it.fact { ms } else { 0 }).sum();
        Self { facts: AgentFacts { end, has_escalated, ..facts }, story, worked_ms }
    }

    /// What of it the export does not have.
    pub fn flaw(&self) -> Option<&'static str> {
        match &self.story {
            None => Some(LOST),
            Some(it) if it.end.is_none() => Some(CUT_OFF),
            Some(_) => None,
        }
    }

    /// Its end, time, tokens and cost, in words.
    pub fn in_words(&self) -> Vec<String> {
        let spent = self.story.as_ref().map(|it| &it.head.spent);
        let tokens = match spent {
            Some(it) if it.usage.input + it.output() > 0 => {
                Some(format!("{} in, {} out", compact(it.usage.input), compact(it.output())))
            }
            Some(_) => None,
            None => self.facts.tokens.map(|it| format!("{} tokens", grouped(it))),
        };
        let cost = spent.map_or_else(|| self.facts.cost.map(Money::in_words), |it| it.cost_in_words());
        let facts = [
            Some(self.facts.end.map_or("no end is known", end_in_words).to_owned()),
            self.facts.has_escalated.then(|| "ended the loop".to_owned()),
            self.took_ms().filter(|it| *it >= MIN_MS).map(time::duration),
            tokens,
            cost,
        ];
        facts.into_iter().flatten().collect()
    }

    /// Without the time in which the user was asked, where the log says so.
    pub fn took_ms(&self) -> Option<u64> {
        let turns = &self.story.as_ref()?.turns;
        let last: u64 = turns.iter().filter_map(|it| Some(it.ended_ms?.saturating_sub(it.at_ms))).sum();
        Some(if self.worked_ms > 0 { self.worked_ms } else { last }).filter(|it| *it > 0)
    }
}

fn has_escalated(entry: &Entry) -> bool {
    match &entry.fact {
        Fact::Event { event: AgentEvent { kind: EventKind::AgentEnd { data: Some(data), .. }, .. } } => {
            data.get("escalateReason").is_some()
        }
        _ => false,
    }
}
