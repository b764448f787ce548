//! Counts the statistics of the prompt under way: it watches what goes in and out of a session.

use std::collections::BTreeMap;

use crate::{
    record::{COMMAND_META, TRANSFER_META},
    step::{Act, Effect, Input},
};
use castor_base::{
    checkpoint::Changes,
    clock::Now,
    event::{AgentEvent, EventKind},
    ids::{CallId, EffectId},
    log::{Answer, Decision, Fact},
    prompt_stats::{LineStats, PromptStats, ToolTally},
};

#[derive(Debug, Default)]
pub(super) struct StatsCounter {
    stats: PromptStats,
    /// Requests and calls that run: of which model or tool, and since when.
    running: BTreeMap<EffectId, (RunningWork, u64)>,
    /// The model's calls of this prompt, by id.
    calls: BTreeMap<CallId, String>,
}

#[derive(Debug)]
enum RunningWork {
    Request(String),
    Call(String),
}

impl StatsCounter {
    /// Before anything is done about an input.
    pub fn observe_input(&mut self, input: &Input, now: Now) {
        match input {
            Input::Generated { effect, result } => self.end_work(*effect, now, result.is_err()),
            Input::RunEnded { effect, .. } => self.end_work(*effect, now, false),
            _ => (),
        }
    }

    /// What a step had done, in order. Answers to prompts get what was counted up to them. `counts_lines`: checkpoints are taken.
    pub fn observe_acts(&mut self, acts: &mut [Act], now: Now, counts_lines: bool) {
        for act in acts {
            match act {
                Act::Do(id, Effect::Generate { request, .. }) => {
                    self.stats.models.entry(request.model.to_string()).or_default().requests += 1;
                    self.running.insert(*id, (RunningWork::Request(request.model.to_string()), now.unix_ms));
                }
                Act::Do(id, Effect::Run { call, .. }) => {
                    self.running.insert(*id, (RunningWork::Call(call.name.clone()), now.unix_ms));
                }
                Act::Do(_, Effect::Abort { effect }) => self.end_work(*effect, now, false),
                Act::Do(_, Effect::AnswerPrompt { stats: Some(stats), .. }) => **stats = self.stats.clone(),
                Act::Log(entry) => self.observe_fact(&entry.fact, counts_lines),
                Act::Do(..) | Act::BeginStream { .. } => (),
            }
        }
    }

    fn observe_fact(&mut self, fact: &Fact, counts_lines: bool) {
        match fact {
            Fact::Event { event } => self.observe_event(event, counts_lines),
            Fact::Decision { call, decision: Decision::Allow, .. } => {
                self.count(call, |it| it.decisions.automatic += 1);
            }
            Fact::Answered { call, answer } => match answer {
                Answer::AllowOnce
                | Answer::AllowEdited { .. }
                | Answer::AllowSession
                | Answer::AllowAlways
                | Answer::AllowAuto => self.count(call, |it| it.decisions.accepted += 1),
                Answer::Reject => self.count(call, |it| it.decisions.rejected += 1),
                // An answer to a question of the tool's own, or none.
                _ => (),
            },
            Fact::Checkpoint { changes: Some(Changes { added, removed, .. }), .. } => {
                let lines = self.stats.files.get_or_insert_default();
                lines.added += added;
                lines.removed += removed;
            }
            _ => (),
        }
    }

    fn observe_event(&mut self, event: &AgentEvent, counts_lines: bool) {
        match &event.kind {
            EventKind::AgentStart {} if !event.meta.contains_key(TRANSFER_META) => {
                self.stats = PromptStats { files: counts_lines.then(LineStats::default), ..PromptStats::default() };
                self.calls.clear();
            }
            EventKind::Usage { model, usage, cost, .. } => self.stats.add_bill(model, usage, *cost),
            EventKind::ToolRequest { request_id, name, .. } if !event.meta.contains_key(COMMAND_META) => {
                self.calls.insert(request_id.clone(), name.clone());
                self.stats.tools.count(name, |it| it.total += 1);
            }
            EventKind::ToolResponse { request_id, error, .. } => self.count(request_id, |it| match error {
                None => it.succeeded += 1,
                Some(_) => it.failed += 1,
            }),
            _ => (),
        }
    }

    /// Counts for a call of the model; castor's own questions have the form of calls, and count nowhere.
    fn count(&mut self, call: &CallId, add: impl FnMut(&mut ToolTally)) {
        if let Some(name) = self.calls.get(call) {
            self.stats.tools.count(name, add);
        }
    }

    fn end_work(&mut self, effect: EffectId, now: Now, is_error: bool) {
        let Some((work, since)) = self.running.remove(&effect) else { return };
        let ms = now.unix_ms.saturating_sub(since);
        match work {
            RunningWork::Request(model) => {
                let it = self.stats.models.entry(model).or_default();
                it.latency_ms += ms;
                it.errors += u64::from(is_error);
            }
            RunningWork::Call(name) => self.stats.tools.count(&name, |it| it.duration_ms += ms),
        }
    }
}
