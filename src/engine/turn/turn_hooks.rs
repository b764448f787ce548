//! Where hooks come into a turn: what they are told, and what goes on when they have answered.

use serde_json::{Value, json};

use super::{
    Attempt, Phase, SessionScratch, Spec, Turn, compressing::OldContext, endings::Cause,
    request_builder::MissingRequest, response::Response,
};
use crate::{
    base::{
        hook::{HookEvent, HookReport},
        ids::EffectId,
        log::Fact,
        model::{Chunk, Finish, ModelRequest},
    },
    engine::{
        hooks::{
            HookOutcome, HookVerdict,
            firing::{AnswerEffect, Firing, FiringStart},
            llm,
            plugins::{PluginMoment, PluginPoint},
        },
        record::Step,
        scheduler::CallContext,
        step::Input,
    },
};

/// What a model is said to have answered when it said nothing.
const NO_TEXT: &str = "[no response text]";

/// What the turn waits for the hooks with.
#[derive(Debug)]
pub(super) enum AfterTurnHooks {
    /// SessionStart.
    SessionStart,
    /// BeforeAgent.
    BeforeAgent,
    /// BeforeModel.
    BeforeModel { attempt: Attempt, request: Box<ModelRequest> },
    /// BeforeToolSelection.
    BeforeToolSelection { attempt: Attempt, request: Box<ModelRequest> },
    /// AfterModel.
    AfterModel { response: Box<Response>, attempt: u32, chunks: Vec<Chunk> },
    /// PreCompress.
    PreCompress(OldContext),
    /// AfterAgent.
    AfterAgent(Cause),
}

/// What is said in a turn as a whole; hooks are told of it.
#[derive(Debug, Default)]
pub(super) struct TurnTranscript {
    /// The prompt's text.
    pub prompt_text: String,
    /// The agent's, so far.
    pub answer_text: String,
    /// A hook did not let the agent stop.
    pub is_sent_back: bool,
    /// What the user said meanwhile.
    pub steering: super::steering::Steering,
}

/// An answer that hooks see before anybody else: whole.
#[derive(Debug)]
pub(super) struct BufferedAnswer {
    request: Value,
    pub chunks: Vec<Chunk>,
}

impl Turn {
    /// Fires an event, and goes on with what follows it when all have answered: at once, if nobody is asked.
    pub(super) fn fire_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        fired: (HookEvent, &str, Value),
        next: AfterTurnHooks,
    ) {
        let (event, subject, input) = fired;
        let plan = spec.toolbox.hooks.plan(event, subject, &step.record.switches);
        let input = input.as_object().cloned().unwrap_or_default();
        match Firing::begin(event, plan, input, |run| step.start_hook(run)) {
            FiringStart::Waiting(firing) => self.phase = Phase::RunningHooks { firing, next: Box::new(next) },
            FiringStart::Finished(outcome) => self.continue_after_hooks(step, spec, kept, &outcome, next),
        }
    }

    /// A hook of the turn, or of one of its calls, has answered.
    pub(super) fn on_hook(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        effect: EffectId,
        report: Box<HookReport>,
    ) {
        let Phase::RunningHooks { firing, .. } = &mut self.phase else {
            return self.on_call_input(step, spec, kept, Input::HookFinished { effect, report });
        };
        match firing.take_report(effect, &report, |run| step.start_hook(run)) {
            AnswerEffect::Waiting => (),
            // A notification of an earlier call.
            AnswerEffect::Unrelated => self.on_call_input(step, spec, kept, Input::HookFinished { effect, report }),
            AnswerEffect::Finished(outcome) => {
                if let Phase::RunningHooks { next, .. } = std::mem::replace(&mut self.phase, Phase::Finished) {
                    self.continue_after_hooks(step, spec, kept, &outcome, *next);
                }
            }
        }
    }

    fn continue_after_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        outcome: &HookOutcome,
        next: AfterTurnHooks,
    ) {
        match next {
            AfterTurnHooks::SessionStart => {
                step.log_hooks(HookEvent::SessionStart, outcome, outcome.marked_context(), false);
                let input = json!({ "prompt": self.transcript.prompt_text });
                self.fire_hooks(step, spec, kept, (HookEvent::BeforeAgent, "", input), AfterTurnHooks::BeforeAgent);
            }
            AfterTurnHooks::BeforeAgent => self.begun(step, spec, kept, outcome),
            AfterTurnHooks::BeforeModel { attempt, request } => {
                self.requested(step, spec, kept, outcome, attempt, *request)
            }
            AfterTurnHooks::BeforeToolSelection { attempt, request } => {
                self.tools_chosen(step, spec, outcome, attempt, *request)
            }
            AfterTurnHooks::AfterModel { response, attempt, chunks } => {
                self.answer_read(step, spec, kept, outcome, (*response, attempt), chunks);
            }
            AfterTurnHooks::PreCompress(old) => self.hooks_heard(step, spec, kept, outcome, old),
            AfterTurnHooks::AfterAgent(cause) => self.ended(step, spec, kept, outcome, &cause),
        }
    }

    /// The first hooks of a turn. `opening`: why the session starts, if it does.
    pub(super) fn run_start_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        opening: Option<&'static str>,
    ) {
        match opening {
            Some(source) => {
                let input = json!({ "source": source });
                self.fire_hooks(
                    step,
                    spec,
                    kept,
                    (HookEvent::SessionStart, source, input),
                    AfterTurnHooks::SessionStart,
                );
            }
            None => self.continue_after_hooks(step, spec, kept, &HookOutcome::default(), AfterTurnHooks::SessionStart),
        }
    }

    fn begun(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, outcome: &HookOutcome) {
        let blocked = matches!(outcome.verdict, Some(HookVerdict::Block(_)));
        let context = outcome.marked_context().filter(|_| outcome.verdict.is_none());
        step.log_hooks(HookEvent::BeforeAgent, outcome, context, blocked);
        match &outcome.verdict {
            Some(verdict) => self.finish(step, &cause_of(verdict)),
            None => match spec.toolbox.hooks.plugins.parts(PluginPoint::BeforeAgent, PluginMoment::Turn) {
                Some(answer) => self.finish_with_answer(step, answer),
                None => self.sample(step, spec, kept, 1),
            },
        }
    }

    /// A plugin answers for the model.
    pub(super) fn substitute_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        mut chunks: Vec<Chunk>,
    ) {
        if !chunks.iter().any(|it| matches!(it, Chunk::Finish(_))) {
            chunks.push(Chunk::Finish(Finish::Stop));
        }
        let mut response = Response::new(self.model.clone(), spec, step.record);
        response.take_chunks(&mut CallContext { step, tools: &self.tools }, &mut self.scheduler, chunks);
        self.on_model_answer(step, spec, kept, response, 1);
    }

    /// Before a request goes to the model.
    pub(super) fn run_request_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        attempt: Attempt,
        request: ModelRequest,
    ) {
        if let Some(chunks) =
            spec.toolbox.hooks.plugins.chunks(PluginPoint::BeforeModel, PluginMoment::Request(&request))
        {
            return self.substitute_answer(step, spec, kept, chunks);
        }
        if !spec.toolbox.hooks.has(HookEvent::BeforeModel, "", &step.record.switches) {
            return self.run_tool_hooks(step, spec, kept, attempt, request);
        }
        let input = json!({ "llm_request": llm::request_json(&request) });
        let next = AfterTurnHooks::BeforeModel { attempt, request: Box::new(request) };
        self.fire_hooks(step, spec, kept, (HookEvent::BeforeModel, "", input), next);
    }

    fn requested(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        outcome: &HookOutcome,
        mut attempt: Attempt,
        mut request: ModelRequest,
    ) {
        step.log_hooks(HookEvent::BeforeModel, outcome, None, false);
        let answer = outcome.changed_object("llm_response").and_then(llm::response_text);
        match (&outcome.verdict, answer) {
            (Some(HookVerdict::Block(_)), Some(text)) => {
                return self.substitute_answer(step, spec, kept, vec![Chunk::Text { text, signature: None }]);
            }
            (Some(verdict), _) => return self.finish(step, &cause_of(verdict)),
            (None, Some(_)) => step.emit_notice("A hook's llm_response counts only where it blocks; ignored."),
            (None, None) => (),
        }
        if let Some(said) = outcome.changed_object("llm_request") {
            let model = said.get("model").and_then(Value::as_str).unwrap_or(&request.model);
            if *model != *request.model {
                attempt.why = format!("a hook named it in place of {}", request.model);
                request = match self.build_request(step, spec, model, false) {
                    Ok(request) => request,
                    Err(MissingRequest::Ended(cause)) => return self.finish(step, &cause),
                    // Not asked for here.
                    Err(MissingRequest::NeedsCompression { .. } | MissingRequest::NeedsDistilling(_)) => request,
                };
            }
            llm::apply_change(&mut request, said);
        }
        self.run_tool_hooks(step, spec, kept, attempt, request);
    }

    fn run_tool_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        attempt: Attempt,
        request: ModelRequest,
    ) {
        if !spec.toolbox.hooks.has(HookEvent::BeforeToolSelection, "", &step.record.switches) {
            return self.send(step, spec, attempt, request);
        }
        let input = json!({ "llm_request": llm::request_json(&request) });
        let next = AfterTurnHooks::BeforeToolSelection { attempt, request: Box::new(request) };
        self.fire_hooks(step, spec, kept, (HookEvent::BeforeToolSelection, "", input), next);
    }

    /// Tools that are not offered cannot be called either.
    fn tools_chosen(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        outcome: &HookOutcome,
        attempt: Attempt,
        mut request: ModelRequest,
    ) {
        step.log_hooks(HookEvent::BeforeToolSelection, outcome, None, false);
        if let Some(config) = outcome.changed_object("toolConfig") {
            let names = config.get("allowedFunctionNames").and_then(Value::as_array);
            let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
            let none = config.get("mode").and_then(Value::as_str) == Some("NONE");
            if none || !names.is_empty() {
                self.tools = self.tools.only(&names);
                request.tools = self.tools.tools.clone();
            }
        }
        self.send(step, spec, attempt, request);
    }

    /// What hooks are to see of an answer before it is shown; `None`: nobody waits for it.
    pub(super) fn buffer_for_hooks(step: &Step<'_>, spec: &Spec, request: &ModelRequest) -> Option<BufferedAnswer> {
        let hooks = &spec.toolbox.hooks;
        let has =
            hooks.has(HookEvent::AfterModel, "", &step.record.switches) || hooks.plugins.has(PluginPoint::AfterModel);
        has.then(|| BufferedAnswer { request: llm::request_json(request), chunks: Vec::new() })
    }

    /// An answer is whole: the hooks see it first.
    pub(super) fn run_answer_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        (response, attempt): (Response, u32),
        held: BufferedAnswer,
    ) {
        let BufferedAnswer { request, chunks } = held;
        let other = spec.toolbox.hooks.plugins.chunks(PluginPoint::AfterModel, PluginMoment::Answer(&chunks));
        let chunks = other.unwrap_or(chunks);
        let input = json!({ "llm_request": request, "llm_response": llm::response_json(&chunks) });
        let next = AfterTurnHooks::AfterModel { response: Box::new(response), attempt, chunks };
        self.fire_hooks(step, spec, kept, (HookEvent::AfterModel, "", input), next);
    }

    fn answer_read(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        outcome: &HookOutcome,
        (mut response, attempt): (Response, u32),
        mut chunks: Vec<Chunk>,
    ) {
        step.log_hooks(HookEvent::AfterModel, outcome, None, false);
        if let Some(verdict) = &outcome.verdict {
            // What it cost is told, what it said is not.
            chunks.retain(|it| matches!(it, Chunk::Usage(_)));
            response.take_chunks(&mut CallContext { step, tools: &self.tools }, &mut self.scheduler, chunks);
            response.close(step);
            return self.finish(step, &cause_of(verdict));
        }
        if let Some(text) = outcome.changed_object("llm_response").and_then(llm::response_text) {
            chunks = llm::replace_text(chunks, &text);
        }
        response.take_chunks(&mut CallContext { step, tools: &self.tools }, &mut self.scheduler, chunks);
        self.on_model_answer(step, spec, kept, response, attempt);
    }

    /// The agent has nothing more to do, unless a hook finds something.
    pub(super) fn run_end_hooks(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, cause: Cause) {
        let said = if self.transcript.answer_text.trim().is_empty() { NO_TEXT } else { &self.transcript.answer_text };
        let input = json!({ "prompt": self.transcript.prompt_text, "prompt_response": said, "stop_hook_active": self.transcript.is_sent_back });
        self.fire_hooks(step, spec, kept, (HookEvent::AfterAgent, "", input), AfterTurnHooks::AfterAgent(cause));
    }

    fn ended(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        outcome: &HookOutcome,
        cause: &Cause,
    ) {
        let again = match &outcome.verdict {
            Some(HookVerdict::Block(why)) => Some(why.clone()),
            _ => None,
        };
        if outcome.clears_context() {
            step.log(Fact::Cleared);
        }
        step.log_hooks(HookEvent::AfterAgent, outcome, again.clone(), false);
        match (&outcome.verdict, again) {
            (_, Some(why)) => {
                self.transcript.is_sent_back = true;
                step.emit_notice(&format!("A hook sends the agent back to work: {why}"));
                self.sample(step, spec, kept, 1);
            }
            (Some(verdict), None) => self.finish(step, &cause_of(verdict)),
            (None, None) => self.finish(step, cause),
        }
    }
}

fn cause_of(verdict: &HookVerdict) -> Cause {
    match verdict {
        HookVerdict::Stop(why) => Cause::HookStop(why.clone()),
        HookVerdict::Block(why) | HookVerdict::Ask(why) => Cause::HookBlock(why.clone()),
    }
}
