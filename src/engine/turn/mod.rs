//! A turn: one prompt from its arrival to its one outcome. It walks the stations of [`recipe`], from wait to wait.

mod agent_hooks;
pub mod agents;
mod answer;
mod background_results;
pub mod calls;
pub mod checkpoints;
mod checks;
pub mod endings;
pub mod flow;
mod held_programs;
mod inbox;
mod limits;
mod live_state;
pub mod messages;
pub mod model;
mod preamble;
pub mod prompt;
pub mod pseudo_call;
mod recipe;
mod servers;
pub mod spec;
mod spent;
pub mod state;
pub mod steering;
mod trust;
mod turn_hooks;
pub mod utility_call;
mod utility_wait;

pub use agents::agent_run::run_state;
pub use agents::child_spec::{ChildModel, ChildStart, child_spec};
pub use checks::loop_recovery::LOOP_DETECTED;
pub use messages::send_command_message;
pub use preamble::Preamble;
pub use spec::{
    Choices, MemorySources, Modes, OfferedModels, OfferedProvider, SessionScratch, Spec, TurnBounds, TurnContext,
};
pub use spent::limits;

use std::sync::Arc;

use crate::{
    record::{COMMAND_META, Record, STEERING_META, Step, TRANSFER, TitleSource},
    routing::retirement::{RetirementNotice, notices},
    scheduler::host_calls::pending_calls,
    step::{Effect, Input},
    turn::{
        endings::{Cause, TurnEnding},
        flow::{Flow, Phase, Station},
        messages::send_message,
        model::{failure_recovery::note_standing, router::Router},
        state::{RequestDraft, TurnState},
    },
};
use castor_base::{
    content::{HostResult, Part, PromptContent, joined_text},
    endings::PENDING_CALLS,
    event::{EndReason, EventKind, PromptOutcome, STOPPED, Speaker, Status, StopKind},
    file_prompt::Expansion,
    ids::{MessageId, PromptId},
    limits::Limits,
    log::Fact,
    tool::{ToolCall, ToolOutput},
};

/// One prompt under way.
#[derive(Debug)]
pub struct Turn {
    prompt: PromptId,
    state: TurnState,
    /// The station of the recipe.
    station: Station,
    /// The phase that waits; `None`: the turn is over.
    phase: Option<Box<dyn Phase>>,
    /// It is over, and its prompt is another agent's now.
    is_transferred: bool,
}

impl Turn {
    /// Begins: the prompt joins the history, once its hooks have heard it; the model is asked when trust, servers and hooks
    /// are ready.
    pub fn begin(
        cx: &mut TurnContext<'_, '_>,
        prompt: PromptId,
        content: PromptContent,
        expansion: Option<Expansion>,
    ) -> Self {
        cx.step.begin_stream(prompt);
        let model = cx.spec.aliases.model_of(&cx.step.record.model).into();
        let prompt_text = joined_text(&content.parts);
        let mut state = TurnState::new(model, Router::default(), cx.spec.toolbox.clone(), prompt_text);
        state.transcript.typed_text = joined_text(content.typed());
        state.transcript.unheard = Some(Box::new(content));
        state.transcript.expansion = expansion.map(Box::new);
        Self::walk_from_first(cx, prompt, state)
    }

    /// Goes on with the prompt of a turn that ended with a transfer: limits, and words that wait, are the prompt's.
    pub fn take_over(cx: &mut TurnContext<'_, '_>, before: Self) -> Self {
        cx.step.continue_in_stream(before.prompt);
        let (model, instead) = begin_with_model(cx, None);
        let prompt_text = before.state.transcript.prompt_text;
        let state = TurnState {
            draft: RequestDraft { n_samples: before.state.draft.n_samples, ..RequestDraft::default() },
            steering: before.state.steering,
            ..TurnState::new(model, Router::begin(instead), cx.spec.toolbox.clone(), prompt_text)
        };
        Self::walk_from_first(cx, before.prompt, state)
    }

    fn walk_from_first(cx: &mut TurnContext<'_, '_>, prompt: PromptId, mut state: TurnState) -> Self {
        note_standing(&mut state, cx);
        let mut res = Self { prompt, state, station: Station::FIRST, phase: None, is_transferred: false };
        res.walk(cx, Flow::Go(Station::FIRST));
        res
    }

    /// Begins a turn for a command, which says how. `typed`: its line, and whether that is part of the conversation, as a
    /// prompt is.
    pub fn begin_command(
        cx: &mut TurnContext<'_, '_>,
        prompt: PromptId,
        typed: (Vec<Part>, bool),
        begin: impl FnOnce(&mut TurnState, &mut TurnContext<'_, '_>) -> Flow,
    ) -> Self {
        cx.step.begin_stream(prompt);
        match typed {
            (typed, true) => send_message(cx.step, Speaker::User, typed, &[]),
            (typed, false) => send_command_message(cx.step, Speaker::User, typed),
        }
        let model = cx.spec.aliases.model_of(&cx.step.record.model).into();
        let state = TurnState::new(model, Router::default(), cx.spec.toolbox.clone(), String::new());
        let mut res = Self { prompt, state, station: Station::FIRST, phase: None, is_transferred: false };
        let flow = begin(&mut res.state, cx);
        res.walk(cx, flow);
        res
    }

    pub fn prompt(&self) -> PromptId {
        self.prompt
    }

    pub fn is_finished(&self) -> bool {
        self.phase.is_none()
    }

    /// Tells whether another agent is to continue its prompt.
    pub fn is_transferred(&self) -> bool {
        self.is_finished() && self.is_transferred
    }

    /// Takes one thing that happened. Whatever is not waited for is late, and ignored.
    pub fn step(&mut self, cx: &mut TurnContext<'_, '_>, input: Input) {
        if let Input::Hint(content) = input {
            return self.hint(cx.step, content);
        }
        let Some(phase) = self.phase.take() else { return };
        match servers::server_sampling::on_input(&mut self.state, cx, input) {
            Some(input) => {
                let flow = phase.step(&mut self.state, cx, input);
                self.walk(cx, flow);
            }
            None => self.phase = Some(phase),
        }
    }

    /// Goes from station to station, until something is waited for or the turn is over.
    fn walk(&mut self, cx: &mut TurnContext<'_, '_>, mut flow: Flow) {
        loop {
            let station = match flow {
                Flow::Next => self.station.next(),
                Flow::Go(station) => Some(station),
                Flow::Wait(phase) => {
                    self.phase = Some(phase);
                    return;
                }
                Flow::Unrelated(phase, input) => {
                    self.phase = Some(phase);
                    // Hooks that were told of a question, and servers that ask, do not mind what the turn waits for.
                    let (scheduler, mut calls) = self.state.calls(cx.step);
                    scheduler.on_input(&mut calls, input);
                    return;
                }
                Flow::End(cause) => match agents::agent_run::recover(&mut self.state, cx, &cause) {
                    Some(it) => {
                        flow = it;
                        continue;
                    }
                    None => return self.finish(cx.step, &cause),
                },
                Flow::Report { text, rewind_to } => return self.finish_with_report(cx.step, text, rewind_to),
            };
            let Some(station) = station else {
                let cause = self.state.ending.clone();
                return self.finish(cx.step, &cause);
            };
            self.station = station;
            flow = station.enter(&mut self.state, cx);
        }
    }

    /// Ends the turn from outside.
    pub fn end(&mut self, step: &mut Step<'_>, cause: Cause) {
        if let Some(mut phase) = self.phase.take() {
            phase.leave(step);
            self.finish(step, &cause);
        }
    }

    /// A limit is reached between two steps.
    pub fn run_out(&mut self, cx: &mut TurnContext<'_, '_>, cause: Cause) {
        if let Some(mut phase) = self.phase.take() {
            phase.leave(cx.step);
            self.walk(cx, Flow::End(cause));
        }
    }

    /// The limits of the turn.
    pub fn limits(&self, record: &Record, spec: &Spec) -> Limits {
        self.state.granted(limits(record, spec))
    }

    /// Words of the user that come while it runs: they enter with the next request, and sub-agents at work hear them, too.
    pub fn steer(&mut self, step: &mut Step<'_>, prompt: PromptId, content: Vec<Part>) {
        if self.state.steering.add(step, prompt, content.clone()) {
            self.hint_agents(step, content);
        }
    }

    /// Such words came to the agent above. What only answers once has no use for them.
    fn hint(&mut self, step: &mut Step<'_>, content: Vec<Part>) {
        if self.state.tools.task.as_ref().is_some_and(|it| it.submits()) {
            self.state.steering.add_hint(content.clone());
        }
        self.hint_agents(step, content);
    }

    fn hint_agents(&self, step: &mut Step<'_>, content: Vec<Part>) {
        if self.state.scheduler.runs_agents() {
            step.start_effect(Effect::HintAgents { content });
        }
    }

    /// They are not wanted any more. Whether they were waiting here.
    pub fn cancel_steering(&mut self, step: &mut Step<'_>, prompt: PromptId) -> bool {
        self.state.steering.cancel(step, prompt)
    }

    /// The turn is over: words that the model was not told of go back.
    pub fn reject_steering(&mut self, step: &mut Step<'_>) {
        self.state.steering.reject(step);
    }

    /// The one end of the turn: open calls end, the reason is told, the prompt is answered.
    fn finish(&mut self, step: &mut Step<'_>, cause: &Cause) {
        let pending = (*cause == Cause::CallsReturned).then(|| pending_calls(self.state.scheduler.returned_calls()));
        self.state.samplings.leave(step);
        if pending.is_none() {
            self.state.scheduler.cancel(step, cause.cancel_reason());
        }
        let cause = &agents::agent_run::final_cause(self.state.recovery.as_ref(), cause);
        let TurnEnding { reason, outcome, text, aside, error } = match &self.state.tools.task {
            Some(task) => agents::agent_run::ending(task, cause),
            None => endings::ending(cause),
        };
        if let Some(text) = text {
            let marks = aside.then_some(COMMAND_META).into_iter().chain(error.is_some().then_some(STOPPED));
            send_message(step, Speaker::Agent, vec![Part::text(text)], &marks.collect::<Vec<_>>());
        }
        if let Some((status, code)) = error {
            let meta = serde_json::Map::from_iter([("code".to_owned(), code.into())]);
            let message = match &outcome {
                PromptOutcome::Failed { why: it, .. } | PromptOutcome::AuthRequired(it) => it.clone(),
                PromptOutcome::Agent(it) => it.result.clone(),
                PromptOutcome::Stop(_) | PromptOutcome::Steered(_) => cause.why().to_owned(),
            };
            step.emit_event_with(EventKind::Error { status, message, fatal: true }, meta);
        }
        let data = match &outcome {
            PromptOutcome::Agent(it) => serde_json::to_value(it).ok(),
            PromptOutcome::Stop(StopKind::CallsReturned) => pending.map(|it| serde_json::json!({ PENDING_CALLS: it })),
            _ => error.map(|(_, code)| serde_json::json!({ "code": code })),
        };
        if let Cause::Transferred(agent) = cause {
            self.is_transferred = true;
            let data = Some(serde_json::json!({ TRANSFER: agent }));
            return step.emit_event(EventKind::AgentEnd { reason, data });
        }
        self.settle(step, EventKind::AgentEnd { reason, data }, outcome);
        agent_hooks::after_run(&self.state, step, reason);
    }

    /// The one end of a command.
    fn finish_with_report(&mut self, step: &mut Step<'_>, text: String, rewind_to: Option<MessageId>) {
        if !text.is_empty() {
            send_command_message(step, Speaker::Agent, vec![Part::text(text)]);
        }
        let end = EventKind::AgentEnd { reason: EndReason::Completed, data: None };
        self.settle(step, end, PromptOutcome::Stop(StopKind::EndTurn));
        // After all that is to be said: the answer stays, as the user is to read it.
        if let Some(to) = rewind_to {
            step.start_effect(Effect::RewindConversation { to });
        }
    }

    fn settle(&mut self, step: &mut Step<'_>, end: EventKind, outcome: PromptOutcome) {
        step.emit_event(end);
        let usage = step.record.turn_usage();
        // The session fills in what it counted.
        let stats = Some(Box::default());
        step.start_effect(Effect::AnswerPrompt { prompt: self.prompt, outcome, usage, stats });
    }
}

/// The host ran the calls that the prompt before ended with.
fn answer_returned_calls(step: &mut Step<'_>, results: Vec<HostResult>) {
    let names: Vec<ToolCall> = step.record.pending_calls();
    for HostResult { call, answer } in results {
        let Some(ToolCall { name, .. }) = names.iter().find(|it| it.id == call).cloned() else { continue };
        let ToolOutput { content, display, error, .. } = ToolOutput::of_host(&name, answer);
        let (request_id, summary, data, seen) = (call, None, serde_json::Value::Null, None);
        step.emit_event(EventKind::ToolResponse { request_id, name, content, display, summary, error, data, seen });
    }
}

/// The prompt joins the history.
fn join_history(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, content: PromptContent) {
    let title = TitleSource::Prompt.title(cx.step.record, &joined_text(content.typed()));
    // Behind results, the user's words are no new prompt: the model goes on with its work.
    let marks = if content.results.is_empty() { &[][..] } else { &[STEERING_META][..] };
    // Agents are told their work by a model.
    if cx.spec.toolbox.task.is_none() {
        prompt::named_paths::open_named_paths(cx.step, content.typed());
    }
    answer_returned_calls(cx.step, content.results);
    if !content.parts.is_empty() {
        send_message(cx.step, Speaker::User, content.parts, marks);
    }
    // Once for each prompt of the user, not for each call: a model that failed stays away for the whole turn.
    cx.scratch.health.begin_turn();
    let (model, instead) = begin_with_model(cx, title);
    (turn.model, turn.router) = (model, Router::begin(instead));
    note_standing(turn, cx);
    announce_retirement(cx);
}

/// The user hears of a model that is switched off, or soon will be.
fn announce_retirement(cx: &mut TurnContext<'_, '_>) {
    let own = cx.step.record.principal.agent().is_none();
    let found = own.then(|| notices(&cx.step.record.model, &cx.spec.aliases, &cx.spec.prices));
    for RetirementNotice { text, daily } in found.into_iter().flatten() {
        if !cx.scratch.told_faults.insert(text.clone()) {
            continue;
        }
        match daily {
            Some(subject) => _ = cx.step.start_effect(Effect::SayOnce { subject, text }),
            None => cx.step.emit_notice(&text),
        }
    }
}

/// The model that a prompt goes to, as far as that is known before anybody is asked; and what it is in place of.
fn begin_with_model(cx: &mut TurnContext<'_, '_>, title: Option<String>) -> (Arc<str>, Option<(String, String)>) {
    let configured = cx.spec.aliases.model_of(&cx.step.record.model);
    // A composite asks none: what its agents find out is theirs to tell.
    let composes = cx.spec.toolbox.task.as_ref().is_some_and(|it| it.composition().is_some());
    let found = if composes { None } else { model::route::first_model(cx) };
    let is_fallback = found.as_ref().is_some_and(|it| it.by == "fallback");
    let (model, why) = found.map_or((configured.as_str().into(), String::new()), |it| (it.model, it.why));
    cx.step.emit_event(EventKind::SessionUpdate { title, model: Some(model.to_string()), state: Default::default() });
    if !is_fallback {
        return (model, None);
    }
    let message = format!("{configured} is known not to answer now: this turn goes to {model}.");
    cx.step.emit_event(EventKind::Error { status: Status::Unavailable, message, fatal: false });
    let instead = (cx.step.record.model.clone(), model.to_string());
    let to = Some(model.to_string());
    cx.step.log(Fact::Fallback { from: configured, to, intent: None, answer: None, why });
    (model, Some(instead))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_agents;
#[cfg(test)]
mod tests_credentials;
#[cfg(test)]
mod tests_hooks;
#[cfg(test)]
mod tests_router;
#[cfg(test)]
mod tests_utility;
