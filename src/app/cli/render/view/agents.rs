//! Sub-agents of a turn as a tree: state, last activity, time and spending of each, from `session/update` values.
//!
//! A client with the capability `subagents` hears of each as a session: announced by the session above, then with its
//! own traffic. The call that started it has its result.

use std::time::Duration;

use serde_json::Value;

use super::{call::CallView, text_block, thought::ThoughtView};
use crate::{
    app::cli::terminal_text::clean_line,
    base::{agent::COMPLETE_TASK, text},
};

const MAX_NAME: usize = 60;
const MAX_TASK: usize = 200;
/// Characters of a result that are shown in its line.
const MAX_RESULT: usize = 200;
/// Between the names of agents that are below each other.
const BELOW: &str = " › ";

#[derive(Debug, Default)]
pub struct AgentTree {
    /// In the order in which they were announced: each after the one above it.
    agents: Vec<AgentRun>,
}

/// One run of a sub-agent.
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
    /// Its end was written, where lines only grow.
    pub is_told: bool,
    activity: Activity,
    clock: RunClock,
    /// Context and cost as they were told last: the same figures again are no request.
    last_usage: Value,
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

/// What an agent does at the moment.
#[derive(Debug)]
enum Activity {
    Nothing,
    Thinking(ThoughtView),
    Writing,
    Call(Box<CallView>),
}

/// What an update meant for an agent; its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChange {
    Started(String),
    /// Its state and its result are known.
    Ended(String),
}

impl AgentTree {
    /// Takes one update of any session of the turn.
    pub fn update(&mut self, session: &str, update: &Value, now: Duration) -> Option<AgentChange> {
        let kind = update.get("sessionUpdate").and_then(Value::as_str)?;
        if let Some(it) = self.agents.iter_mut().find(|it| it.session == session) {
            it.note(kind, update, now);
        }
        match kind {
            "subagent_update" => self.note_agent(session, update, now),
            "tool_call" | "tool_call_update" => self.note_result(session, update, now),
            _ => None,
        }
    }

    /// Whether the session is an agent's.
    pub fn is_child(&self, session: &str) -> bool {
        self.get(session).is_some()
    }

    pub fn get(&self, session: &str) -> Option<&AgentRun> {
        self.agents.iter().find(|it| it.session == session)
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

    pub fn set_told(&mut self, session: &str) {
        self.agents.iter_mut().filter(|it| it.session == session).for_each(|it| it.is_told = true);
    }

    /// The turn is over: nothing more is heard of those that run.
    pub fn cut_off(&mut self, now: Duration) {
        self.agents.iter_mut().filter(|it| !it.state.is_over()).for_each(|it| it.set_state(AgentState::CutOff, now));
    }

    fn position(&self, session: &str) -> Option<usize> {
        self.agents.iter().position(|it| it.session == session)
    }

    fn note_agent(&mut self, parent: &str, update: &Value, now: Duration) -> Option<AgentChange> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let id = text("sessionId")?.to_owned();
        let is_new = !self.is_child(&id);
        if is_new {
            let call = update.pointer("/_meta/castor/call").and_then(Value::as_str);
            self.agents.push(AgentRun::new(&id, parent, call, now));
        }
        let agent = self.agents.iter_mut().find(|it| it.session == id)?;
        if let Some(it) = text("title") {
            agent.name = clean_line(it, MAX_NAME);
        }
        if let Some(it) = text("description") {
            agent.task = clean_line(it, MAX_TASK);
        }
        let was_over = agent.state.is_over();
        if let Some(state) = update.get("state").and_then(state) {
            agent.set_state(state, now);
        }
        if is_new {
            return Some(AgentChange::Started(id));
        }
        // A result comes with the end of the call.
        (agent.call.is_none() && agent.state.is_over() && !was_over).then_some(AgentChange::Ended(id))
    }

    /// The end of a call that started an agent.
    fn note_result(&mut self, session: &str, update: &Value, now: Duration) -> Option<AgentChange> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let is_failed = match text("status")? {
            "completed" => false,
            "failed" => true,
            _ => return None,
        };
        let call = text("toolCallId")?;
        let agent = self.agents.iter_mut().find(|it| it.parent == session && it.call.as_deref() == Some(call))?;
        if !agent.state.is_over() {
            agent.set_state(if is_failed { AgentState::Failed } else { AgentState::Done }, now);
        }
        let contents = update.get("content").and_then(Value::as_array).into_iter().flatten();
        agent.set_result(contents.filter_map(text_block).find(|it| !it.trim().is_empty()).unwrap_or_default());
        agent.take_output(update.get("rawOutput").unwrap_or(&Value::Null));
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
            is_told: false,
            activity: Activity::Nothing,
            clock: RunClock { started: now, ..RunClock::default() },
            last_usage: Value::Null,
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

    /// What it does, in words; empty before it did anything.
    pub fn activity(&self, cwd: &str) -> String {
        match &self.activity {
            Activity::Nothing => String::new(),
            Activity::Thinking(it) => format!("thinking  {}", it.heading()).trim_end().to_owned(),
            Activity::Writing => "writing".to_owned(),
            Activity::Call(it) if it.text("name") == COMPLETE_TASK => "handing in its result".to_owned(),
            Activity::Call(it) => it.label(cwd),
        }
    }

    /// An update of its own session.
    fn note(&mut self, kind: &str, update: &Value, now: Duration) {
        let id = || update.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let chunk = || update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "tool_call" => {
                let is_same = matches!(&self.activity, Activity::Call(it) if it.id == id());
                self.spent.tool_calls += u64::from(!is_same);
                let mut call = CallView::new(id());
                call.merge(update, now);
                self.activity = Activity::Call(Box::new(call));
            }
            "tool_call_update" => {
                if let Activity::Call(it) = &mut self.activity
                    && it.id == id()
                {
                    it.merge(update, now);
                }
            }
            "agent_thought_chunk" => {
                if !matches!(self.activity, Activity::Thinking(_)) {
                    self.activity = Activity::Thinking(ThoughtView::new(now));
                }
                if let Activity::Thinking(it) = &mut self.activity {
                    it.push(chunk());
                }
            }
            "agent_message_chunk" if !chunk().is_empty() => self.activity = Activity::Writing,
            "usage_update" => self.count(update),
            _ => (),
        }
    }

    /// Each answer fills the context with what it took.
    fn count(&mut self, update: &Value) {
        let figures = ["used", "cost"].map(|it| update.get(it).cloned().unwrap_or_default());
        let figures = Value::from(figures.to_vec());
        if figures != self.last_usage {
            self.spent.requests += 1;
            self.spent.tokens += update.get("used").and_then(Value::as_u64).unwrap_or_default();
            self.spent.cost = update.pointer("/cost/amount").and_then(Value::as_f64).or(self.spent.cost);
            self.last_usage = figures;
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

/// A state of the protocol's; `None`: it says nothing that is shown.
fn state(it: &Value) -> Option<AgentState> {
    let text = |key: &str| it.get(key).and_then(Value::as_str);
    Some(match (text("state")?, text("stopReason")) {
        ("running", _) => AgentState::Running,
        ("requires_action", _) => AgentState::Waiting,
        ("unknown", _) => AgentState::CutOff,
        ("idle", Some("cancelled")) => AgentState::Cancelled,
        ("idle", Some("error" | "refusal")) => AgentState::Failed,
        ("idle", Some("max_tokens" | "max_turn_requests")) => AgentState::Stopped,
        ("idle", _) => AgentState::Done,
        _ => return None,
    })
}
