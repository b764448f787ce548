//! Sub-agents of a session as a tree: state, entries, time and spending of each.
//!
//! A client with the capability `subagents` hears of each as a session: announced by the session above, then with its
//! own traffic. The call that started it has its result.

use std::time::Duration;

use serde_json::Value;

use super::entries::{CallChange, Thread};
use castor_base::{shown_text::clean_line, text};
use castor_wire::acp::client::{
    CallUpdate, ClientEvent, ContextUsage, SessionActivity, SessionState, SubagentAnnouncement,
};

const MAX_NAME: usize = 60;
const MAX_TASK: usize = 200;
/// Characters of a result that are shown in its line.
const MAX_RESULT: usize = 200;
/// Between the names of agents that are below each other.
pub const BELOW: &str = " › ";

#[derive(Debug, Default)]
pub struct AgentTree {
    /// In the order in which they were announced: each after the one above it.
    agents: Vec<AgentRun>,
}

/// One run of a sub-agent. Its words are fit for one line.
#[derive(Debug)]
pub struct AgentRun {
    pub session: String,
    /// The session above.
    pub parent: String,
    /// The call of that session by which it was started; other agents than castor may not say.
    pub call: Option<String>,
    pub name: String,
    pub task: String,
    pub state: AgentState,
    pub spent: AgentSpending,
    pub outcome: AgentOutcome,
    pub thread: Thread,
    clock: RunClock,
    /// Context and cost as they were told last: the same figures again are no request.
    last_usage: ContextUsage,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct AgentOutcome {
    /// In the words of the agent above: `GOAL`, `TIMEOUT`, …
    pub reason: Option<String>,
    /// Its first line.
    pub result: String,
}

#[derive(Debug, Default)]
struct RunClock {
    started: Duration,
    ended: Option<Duration>,
    waits_since: Option<Duration>,
    waited: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    Running,
    /// The user is asked on its behalf.
    Waiting,
    Done,
    /// At a limit of turns, tokens or time.
    Stopped,
    Failed,
    Cancelled,
    /// Nothing was heard of its end.
    CutOff,
}

impl AgentState {
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }

    /// `None`: it says nothing that is shown.
    fn of(told: &SessionState) -> Option<Self> {
        Some(match (told.activity?, told.stop_reason.as_deref()) {
            (SessionActivity::Running, _) => Self::Running,
            (SessionActivity::RequiresAction, _) => Self::Waiting,
            (SessionActivity::Unknown, _) => Self::CutOff,
            (SessionActivity::Idle, Some("cancelled")) => Self::Cancelled,
            (SessionActivity::Idle, Some("error" | "refusal")) => Self::Failed,
            (SessionActivity::Idle, Some("max_tokens" | "max_turn_requests")) => Self::Stopped,
            (SessionActivity::Idle, _) => Self::Done,
        })
    }
}

/// What a run took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentSpending {
    pub requests: u64,
    pub tokens: u64,
    /// In US dollars.
    pub cost: Option<f64>,
    pub tool_calls: u64,
}

/// What an event meant for an agent; its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChange {
    Started(String),
    /// Its state and its result are known.
    Ended(String),
}

impl AgentTree {
    /// Takes what a session tells of agents below it.
    pub(super) fn take(&mut self, session: &str, event: &ClientEvent, now: Duration) -> Option<AgentChange> {
        match event {
            ClientEvent::Subagent(it) => self.note_agent(session, it, now),
            ClientEvent::Call(it) => self.note_result(session, it, now),
            ClientEvent::Chunk(..)
            | ClientEvent::Message(..)
            | ClientEvent::CallPart(_)
            | ClientEvent::Terminal(_)
            | ClientEvent::TerminalOutput(_)
            | ClientEvent::Plan(_)
            | ClientEvent::Usage(_)
            | ClientEvent::Mode(_)
            | ClientEvent::Options(_)
            | ClientEvent::Commands(_)
            | ClientEvent::Info(_)
            | ClientEvent::Notice(_)
            | ClientEvent::Aside(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => None,
        }
    }

    /// Whether the session is an agent's.
    pub fn is_child(&self, session: &str) -> bool {
        self.get(session).is_some()
    }

    pub fn get(&self, session: &str) -> Option<&AgentRun> {
        self.agents.iter().find(|it| it.session == session)
    }

    pub(super) fn get_mut(&mut self, session: &str) -> Option<&mut AgentRun> {
        self.agents.iter_mut().find(|it| it.session == session)
    }

    /// The names from the uppermost agent to that of the session.
    pub fn path(&self, session: &str) -> Option<String> {
        let agent = self.get(session)?;
        // An agent is announced after the one above it.
        let above = self.position(&agent.parent).filter(|it| self.position(session).is_some_and(|own| *it < own));
        let above = above.and_then(|_| self.path(&agent.parent));
        Some(above.map_or_else(|| agent.name.clone(), |it| format!("{it}{BELOW}{}", agent.name)))
    }

    /// The agent that stands for a call of the main session.
    pub fn of_row(&self, call: &str) -> Option<&AgentRun> {
        self.agents.iter().find(|it| !self.is_child(&it.parent) && it.is_row(call))
    }

    pub fn below<'a>(&'a self, session: &'a str) -> impl Iterator<Item = &'a AgentRun> {
        let from = self.position(session).map_or(self.agents.len(), |it| it + 1);
        self.agents.iter().skip(from).filter(move |it| it.parent == session)
    }

    pub fn all(&self) -> &[AgentRun] {
        &self.agents
    }

    /// The turn is over: nothing more is heard of those that run.
    pub fn cut_off(&mut self, now: Duration) {
        self.agents.iter_mut().filter(|it| !it.state.is_over()).for_each(|it| it.set_state(AgentState::CutOff, now));
    }

    fn position(&self, session: &str) -> Option<usize> {
        self.agents.iter().position(|it| it.session == session)
    }

    fn note_agent(&mut self, parent: &str, told: &SubagentAnnouncement, now: Duration) -> Option<AgentChange> {
        let id = &told.session;
        let is_new = !self.is_child(id);
        if is_new {
            self.agents.push(AgentRun::new(id, parent, told.meta.call(), now));
        }
        let agent = self.get_mut(id)?;
        if let Some(it) = &told.title {
            agent.name = clean_line(it, MAX_NAME);
        }
        if let Some(it) = &told.description {
            agent.task = clean_line(it, MAX_TASK);
        }
        let was_over = agent.state.is_over();
        if let Some(state) = told.state.as_ref().and_then(AgentState::of) {
            agent.set_state(state, now);
        }
        if is_new {
            return Some(AgentChange::Started(id.clone()));
        }
        // A result comes with the end of the call.
        (agent.call.is_none() && agent.state.is_over() && !was_over).then(|| AgentChange::Ended(id.clone()))
    }

    /// The end of a call that started an agent.
    fn note_result(&mut self, session: &str, told: &CallUpdate, now: Duration) -> Option<AgentChange> {
        let status = told.status.filter(|it| it.is_over())?;
        let is_its = |it: &&mut AgentRun| it.parent == session && it.call.as_deref() == Some(told.id.as_str());
        let agent = self.agents.iter_mut().find(is_its)?;
        if !agent.state.is_over() {
            agent.set_state(if status.is_failed() { AgentState::Failed } else { AgentState::Done }, now);
        }
        let texts = told.content.iter().flatten().filter_map(|it| it.text());
        agent.set_result(texts.into_iter().find(|it| !it.trim().is_empty()).unwrap_or_default());
        agent.take_output(told.raw_output.as_ref().unwrap_or(&Value::Null));
        Some(AgentChange::Ended(agent.session.clone()))
    }
}

impl AgentRun {
    fn new(session: &str, parent: &str, call: Option<&str>, now: Duration) -> Self {
        Self {
            session: session.to_owned(),
            parent: parent.to_owned(),
            call: call.map(str::to_owned),
            name: "agent".to_owned(),
            task: String::new(),
            state: AgentState::Running,
            spent: AgentSpending::default(),
            outcome: AgentOutcome::default(),
            thread: Thread::default(),
            clock: RunClock { started: now, ..RunClock::default() },
            last_usage: ContextUsage::default(),
        }
    }

    /// The row among the calls of the main session that is its own.
    pub fn row(&self) -> String {
        self.call.clone().unwrap_or_else(|| format!("agent {}", self.session))
    }

    fn is_row(&self, call: &str) -> bool {
        match &self.call {
            Some(it) => it == call,
            None => call.strip_prefix("agent ") == Some(&self.session),
        }
    }

    /// How long it worked: the time in which the user was asked is none of its own.
    pub fn took(&self, now: Duration) -> Duration {
        let RunClock { started, ended, waits_since, waited } = self.clock;
        let now = ended.unwrap_or(now);
        let waits = waits_since.map_or(Duration::ZERO, |it| now.saturating_sub(it));
        now.saturating_sub(started + waited + waits)
    }

    /// Takes an event of its own session.
    pub(super) fn take(&mut self, event: &ClientEvent, now: Duration) -> Option<CallChange> {
        if let ClientEvent::Usage(it) = event {
            self.count(it);
        }
        let change = self.thread.take(event, now)?;
        self.spent.tool_calls += u64::from(change.is_new);
        Some(change)
    }

    /// Each answer fills the context with what it took.
    fn count(&mut self, told: &ContextUsage) {
        let is_same = told.used == self.last_usage.used && told.cost == self.last_usage.cost;
        if !is_same {
            self.spent.requests += 1;
            self.spent.tokens += told.used.unwrap_or_default();
            self.spent.cost = told.cost.as_ref().map(|it| it.amount).or(self.spent.cost);
            self.last_usage = told.clone();
        }
    }

    /// What the call says that it took: with what is below it.
    fn take_output(&mut self, output: &Value) {
        let number = |key: &str| output.get(key).and_then(Value::as_u64);
        let spent = &mut self.spent;
        spent.requests = number("requests").unwrap_or(spent.requests);
        spent.tokens = number("tokens").unwrap_or(spent.tokens);
        spent.tool_calls = number("toolCalls").unwrap_or(spent.tool_calls);
        spent.cost = output.get("cost").and_then(Value::as_f64).or(spent.cost);
        let reason = output.get("terminateReason").and_then(Value::as_str);
        self.outcome.reason = reason.map(|it| clean_line(it, MAX_NAME)).or(self.outcome.reason.take());
    }

    /// castor's words around a failure are for the model above; the mark of a heading is no word.
    fn set_result(&mut self, text: &str) {
        let frame = format!("Subagent '{}' failed. Error: ", self.name);
        let words = text.strip_prefix(&frame).unwrap_or(text).trim_start_matches(['#', ' ']);
        self.outcome.result = clean_line(&text::first_line(words, MAX_RESULT), MAX_RESULT);
    }

    fn set_state(&mut self, state: AgentState, now: Duration) {
        let clock = &mut self.clock;
        if let Some(since) = clock.waits_since.take() {
            clock.waited += now.saturating_sub(since);
        }
        clock.waits_since = (state == AgentState::Waiting).then_some(now);
        clock.ended = state.is_over().then_some(clock.ended.unwrap_or(now));
        self.state = state;
    }
}
