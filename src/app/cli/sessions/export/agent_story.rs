//! The run of a sub-agent in the story of the session that started it: its own story, how it ended, and what it took.

use serde_json::Value;

use super::{
    super::time,
    spending::{compact, grouped},
    story::{Story, end_in_words},
};
use crate::{
    base::{
        agent::TerminateMode,
        event::{AgentEvent, EndReason, EventKind},
        ids::{CallId, SessionId},
        log::{Entry, Fact},
        money::Money,
    },
    world::store::SessionStore,
};

/// Stories within stories; castor's agents go less deep.
const MAX_DEPTH: usize = 8;
/// Shorter times are not worth saying.
const MIN_MS: u64 = 100;
const LOST: &str = "The log of the agent is missing or cannot be read.";
const CUT_OFF: &str = "The log of the agent ends before its work does.";

/// The logs of the sub-agents below a session. One that cannot be read is not among them.
#[derive(Clone, Debug, Default)]
pub struct AgentLogs(Vec<Vec<Entry>>);

#[derive(Clone, Debug)]
pub struct AgentStory<'a> {
    pub name: &'a str,
    /// `None`: there is no log.
    pub story: Option<Story<'a>>,
    /// `None`: neither its log nor its call says it.
    pub end: Option<EndReason>,
    /// It ended the loop that it worked in.
    pub has_escalated: bool,
    /// What its call says that it took, where there is no log.
    tokens: Option<u64>,
    cost: Option<Money>,
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
                let mut res = AgentStory::new(principal.agent().unwrap_or_default());
                res.set_log(log, Story::new(log));
                Some((log.first()?.at, id, res))
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

impl<'a> AgentStory<'a> {
    pub fn new(name: &'a str) -> Self {
        Self { name, story: None, end: None, has_escalated: false, tokens: None, cost: None, worked_ms: 0 }
    }

    /// What the result of a call says of the agent that it started; `None`: it started none.
    pub fn from_result(data: &'a Value) -> Option<Self> {
        let member = |name: &str| data.get(name).cloned().unwrap_or_default();
        let mode: TerminateMode = serde_json::from_value(member("terminateReason")).ok()?;
        Some(Self {
            end: Some(mode.into()),
            has_escalated: data.get("escalateReason").is_some(),
            tokens: data.get("tokens").and_then(Value::as_u64),
            cost: serde_json::from_value(member("cost")).ok(),
            ..Self::new(data.get("agent")?.as_str()?)
        })
    }

    /// The same with the agent's log, if there is one. `depth`: of the session that started it.
    pub fn with_log(
        found: Option<Self>,
        logs: &'a AgentLogs,
        (sessions, call): ([Option<&SessionId>; 2], &CallId),
        depth: usize,
    ) -> Option<Self> {
        let Some((log, name)) = logs.of_call(sessions, call).filter(|_| depth < MAX_DEPTH) else { return found };
        let mut res = found.unwrap_or(Self::new(name));
        res.set_log(log, Story::nested(log, logs, depth + 1));
        Some(res)
    }

    fn set_log(&mut self, log: &[Entry], story: Option<Story<'a>>) {
        self.worked_ms = log.iter().map(|it| if let Fact::Worked { ms } = it.fact { ms } else { 0 }).sum();
        self.has_escalated |= log.iter().any(has_escalated);
        self.end = story.as_ref().and_then(|it| it.end).or(self.end);
        self.story = story;
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
    pub fn facts(&self) -> Vec<String> {
        let spent = self.story.as_ref().map(|it| &it.head.spent);
        let tokens = match spent {
            Some(it) if it.usage.input + it.output() > 0 => {
                Some(format!("{} in, {} out", compact(it.usage.input), compact(it.output())))
            }
            Some(_) => None,
            None => self.tokens.map(|it| format!("{} tokens", grouped(it))),
        };
        let cost = spent.map_or_else(|| self.cost.map(Money::in_words), |it| it.cost_in_words());
        let facts = [
            Some(self.end.map_or("no end is known", end_in_words).to_owned()),
            self.has_escalated.then(|| "ended the loop".to_owned()),
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
