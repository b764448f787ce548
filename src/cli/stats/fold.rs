//! The fold over the facts of one log to sums. What is in a log twice by a copy, or before a time, counts for nothing.

use std::ops::Range;

use jiff::tz::TimeZone;

use super::sums::{StatsGroup, StatsSums, StatsTable, ToolCallCounts};
use crate::cli::sessions::{
    spans::{SpanKind, SpanTracker, TimeSpan},
    time,
};
use castor_base::{
    endings::INTERRUPTED,
    event::{AgentEvent, EventKind},
    log::{Entry, Fact},
    model::Purpose,
    tool::{ToolError, UNASKED},
};
use castor_engine::record::{COMMAND_META, TRANSFER_META};

/// In lines that count, or by which time is counted; all others need not be read.
pub const WORDS: &[&[u8]] = &[
    b"\"created\"",
    b"\"usage\"",
    b"\"attempt\"",
    b"\"attempt_failed\"",
    b"\"decision\"",
    b"\"answered\"",
    b"\"trust\"",
    b"\"fallback\"",
    b"\"agent_start\"",
    b"\"agent_end\"",
    b"\"tool_request\"",
    b"\"tool_update\"",
    b"\"tool_response\"",
];
/// Errors of calls that the tool had no say in.
const STOPPED: &[&str] = &["cancelled", "policy_violation", "stop_execution", INTERRUPTED, UNASKED];
/// A day begins where a quarter of an hour does, in every time zone.
const QUARTER: u64 = 15 * 60 * 1_000;

/// What a log is, and what of it counts.
#[derive(Clone, Debug)]
pub struct LogScope<'a> {
    pub folder: String,
    /// It is a sub-agent's.
    pub is_agent: bool,
    /// The spending of sub-agents counts here, as they have no logs.
    pub has_lost_agents: bool,
    /// Lines at its beginning that another log has, too.
    pub n_copied: u64,
    /// Unix times in milliseconds that count.
    pub period: Range<u64>,
    pub zone: &'a TimeZone,
}

pub struct LogFold<'a> {
    scope: LogScope<'a>,
    table: StatsTable,
    tracker: SpanTracker,
    spans: Vec<TimeSpan>,
    /// The one that was asked last.
    model: Option<String>,
    /// The quarter of an hour of the last fact, and the day of it.
    day: (u64, String),
}

impl<'a> LogFold<'a> {
    pub fn new(scope: LogScope<'a>) -> Self {
        let (table, tracker, spans) = Default::default();
        Self { scope, table, tracker, spans, model: None, day: (u64::MAX, String::new()) }
    }

    /// A fact, and the number of its line.
    pub fn add(&mut self, line: u64, entry: &Entry) {
        if let Fact::Attempt { model, .. } = &entry.fact {
            self.model = Some(model.clone());
        }
        let counts = line > self.scope.n_copied && self.scope.period.contains(&entry.at);
        if counts {
            self.count(entry);
        }
        // What it follows from may lie before the time that counts.
        self.tracker.track(entry, &mut self.spans);
        for span in std::mem::take(&mut self.spans).into_iter().filter(|_| counts) {
            self.count_span(entry.at, &span);
        }
    }

    /// The sums, and in each that this was a session or a run.
    pub fn finish(mut self) -> StatsTable {
        let is_agent = self.scope.is_agent;
        self.table.add_to_all(|it| if is_agent { it.agents += 1 } else { it.sessions += 1 });
        self.table
    }

    fn count(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.fact {
            Fact::Attempt { .. } => self.sum(at, None, |it| it.requests += 1),
            Fact::AttemptFailed { .. } => self.sum(at, None, |it| it.failed_requests += 1),
            Fact::Answered { call, answer } => {
                let tool = self.tracker.tool_of(call).map(str::to_owned);
                self.sum(at, tool.as_deref(), |it| it.answers.add(answer));
            }
            Fact::Trust { answer, .. } => self.sum(at, None, |it| it.answers.add(answer)),
            Fact::Fallback { answer: Some(answer), .. } => self.sum(at, None, |it| it.answers.add(answer)),
            Fact::Event { event } => self.count_event(at, event),
            _ => (),
        }
    }

    fn count_event(&mut self, at: u64, event: &AgentEvent) {
        let is_own = event.meta.contains_key(COMMAND_META);
        match &event.kind {
            EventKind::AgentStart {} if !self.scope.is_agent && !event.meta.contains_key(TRANSFER_META) => {
                self.sum(at, None, |it| it.prompts += 1);
            }
            EventKind::Usage { purpose: Purpose::Subagent, .. } if !self.scope.has_lost_agents => (),
            EventKind::Usage { model, usage, cost, purpose, .. } => {
                // The requests of the conversation have facts of their own.
                let n = u64::from(*purpose != Purpose::Agent);
                self.sum_of_model(at, Some(model), None, |it| {
                    it.requests += n;
                    it.spent.add(usage, *cost);
                });
            }
            EventKind::ToolRequest { name, .. } if !is_own => self.sum(at, Some(name), |it| it.calls.total += 1),
            EventKind::ToolResponse { name, error: Some(error), .. } if !is_own => {
                self.sum(at, Some(name), |it| *failures(&mut it.calls, error) += 1);
            }
            _ => (),
        }
    }

    fn count_span(&mut self, at: u64, span: &TimeSpan) {
        let (ms, name) = (span.ms(), Some(span.name.as_str()).filter(|it| !it.is_empty()));
        match span.kind {
            SpanKind::Model => self.sum_of_model(at, name, None, |it| it.models_ms += ms),
            SpanKind::Tool => self.sum(at, name, |it| it.tools_ms += ms),
            SpanKind::Waiting => self.sum(at, name, |it| it.waited_ms += ms),
            // It is the time of the models and tools in its own log.
            SpanKind::Agent => (),
        }
    }

    fn sum(&mut self, at: u64, tool: Option<&str>, act: impl FnMut(&mut StatsSums)) {
        let model = self.model.take();
        self.sum_of_model(at, model.as_deref(), tool, act);
        self.model = model;
    }

    fn sum_of_model(&mut self, at: u64, model: Option<&str>, tool: Option<&str>, act: impl FnMut(&mut StatsSums)) {
        if self.day.0 != at / QUARTER {
            self.day = (at / QUARTER, time::day(at, self.scope.zone));
        }
        let names = [
            (StatsGroup::Day, Some(self.day.1.as_str())),
            (StatsGroup::Model, model),
            (StatsGroup::Tool, tool),
            (StatsGroup::Folder, Some(self.scope.folder.as_str())),
        ];
        self.table.add(&names, act);
    }
}

fn failures<'a>(calls: &'a mut ToolCallCounts, error: &ToolError) -> &'a mut u64 {
    if STOPPED.contains(&error.kind.as_str()) { &mut calls.stopped } else { &mut calls.failed }
}
