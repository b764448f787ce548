//! Where hooks come into a turn: what they are told, and what goes on when they have answered.

use serde_json::{Value, json};

use super::{Attempt, Kept, Phase, Spec, Turn, compressing::Old, endings::Cause, response::Response, upkeep::Unbuilt};
use crate::{
    base::{
        hook::{HookEvent, HookReport},
        ids::EffectId,
        log::Fact,
        model::{Chunk, Finish, ModelRequest},
    },
    engine::{
        hooks::{
            Outcome, Verdict,
            firing::{Begun, Firing, Taken},
            llm,
            plugins::{Moment, Point},
        },
        record::Step,
    },
};

/// What a model is said to have answered when it said nothing.
const NO_TEXT: &str = "[no response text]";

/// What the turn waits for the hooks with.
#[derive(Debug)]
pub(super) enum Next {
    /// SessionStart.
    Opened,
    /// BeforeAgent.
    Begun,
    /// BeforeModel.
    Request { attempt: Attempt, request: Box<ModelRequest> },
    /// BeforeToolSelection.
    Tools { attempt: Attempt, request: Box<ModelRequest> },
    /// AfterModel.
    Answer { response: Box<Response>, attempt: u32, chunks: Vec<Chunk> },
    /// PreCompress.
    Compress(Old),
    /// AfterAgent.
    Ended(Cause),
}

/// What is said in a turn as a whole; hooks are told of it.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// The prompt's text.
    pub asked: String,
    /// The agent's, so far.
    pub said: String,
    /// A hook did not let the agent stop.
    pub is_sent_back: bool,
    /// What the user said meanwhile.
    pub steering: super::steering::Steering,
}

/// An answer that hooks see before anybody else: whole.
#[derive(Debug)]
pub(super) struct Held {
    request: Value,
    pub chunks: Vec<Chunk>,
}

impl Turn {
    /// Fires an event, and goes on with what follows it when all have answered: at once, if nobody is asked.
    pub(super) fn fire(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        fired: (HookEvent, &str, Value),
        next: Next,
    ) {
        let (event, subject, input) = fired;
        let plan = spec.toolbox.hooks.plan(event, subject, &step.record.switches);
        let input = input.as_object().cloned().unwrap_or_default();
        match Firing::begin(event, plan, input, |run| step.hook(run)) {
            Begun::Waiting(firing) => self.phase = Phase::Hooking { firing, next: Box::new(next) },
            Begun::Over(outcome) => self.go_on(step, spec, kept, &outcome, next),
        }
    }

    /// A hook of the turn, or of one of its calls, has answered.
    pub(super) fn hooked(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        effect: EffectId,
        report: &HookReport,
    ) {
        let Phase::Hooking { firing, .. } = &mut self.phase else {
            let standing = self.scheduler.hooked(step, &self.tools, effect, report);
            return self.called(step, spec, kept, standing);
        };
        match firing.take(effect, report, |run| step.hook(run)) {
            Taken::Open => (),
            // A notification of an earlier call.
            Taken::NotMine => _ = self.scheduler.hooked(step, &self.tools, effect, report),
            Taken::Over(outcome) => {
                if let Phase::Hooking { next, .. } = std::mem::replace(&mut self.phase, Phase::Finished) {
                    self.go_on(step, spec, kept, &outcome, *next);
                }
            }
        }
    }

    fn go_on(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, outcome: &Outcome, next: Next) {
        match next {
            Next::Opened => {
                step.hooked(HookEvent::SessionStart, outcome, outcome.marked_context(), false);
                let input = json!({ "prompt": self.talk.asked });
                self.fire(step, spec, kept, (HookEvent::BeforeAgent, "", input), Next::Begun);
            }
            Next::Begun => self.begun(step, spec, kept, outcome),
            Next::Request { attempt, request } => self.requested(step, spec, kept, outcome, attempt, *request),
            Next::Tools { attempt, request } => self.tools_chosen(step, spec, outcome, attempt, *request),
            Next::Answer { response, attempt, chunks } => {
                self.answer_read(step, spec, kept, outcome, (*response, attempt), chunks);
            }
            Next::Compress(old) => self.hooks_heard(step, spec, kept, outcome, old),
            Next::Ended(cause) => self.ended(step, spec, kept, outcome, &cause),
        }
    }

    /// The first hooks of a turn. `opening`: why the session starts, if it does.
    pub(super) fn open(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, opening: Option<&'static str>) {
        match opening {
            Some(source) => {
                let input = json!({ "source": source });
                self.fire(step, spec, kept, (HookEvent::SessionStart, source, input), Next::Opened);
            }
            None => self.go_on(step, spec, kept, &Outcome::default(), Next::Opened),
        }
    }

    fn begun(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, outcome: &Outcome) {
        let blocked = matches!(outcome.verdict, Some(Verdict::Block(_)));
        let context = outcome.marked_context().filter(|_| outcome.verdict.is_none());
        step.hooked(HookEvent::BeforeAgent, outcome, context, blocked);
        match &outcome.verdict {
            Some(verdict) => self.finish(step, &cause_of(verdict)),
            None => match spec.toolbox.hooks.plugins.parts(Point::BeforeAgent, Moment::Turn) {
                Some(answer) => self.answer(step, answer),
                None => self.sample(step, spec, kept, 1),
            },
        }
    }

    /// A plugin answers for the model.
    pub(super) fn say_instead(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, mut chunks: Vec<Chunk>) {
        if !chunks.iter().any(|it| matches!(it, Chunk::Finish(_))) {
            chunks.push(Chunk::Finish(Finish::Stop));
        }
        let mut response = Response::new(self.model.clone(), spec, step.record);
        response.take(step, &self.tools, &mut self.scheduler, chunks);
        self.answered_by_model(step, spec, kept, response, 1);
    }

    /// Before a request goes to the model.
    pub(super) fn request(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        attempt: Attempt,
        request: ModelRequest,
    ) {
        if let Some(chunks) = spec.toolbox.hooks.plugins.chunks(Point::BeforeModel, Moment::Request(&request)) {
            return self.say_instead(step, spec, kept, chunks);
        }
        if !spec.toolbox.hooks.has(HookEvent::BeforeModel, "", &step.record.switches) {
            return self.choose_tools(step, spec, kept, attempt, request);
        }
        let input = json!({ "llm_request": llm::request(&request) });
        let next = Next::Request { attempt, request: Box::new(request) };
        self.fire(step, spec, kept, (HookEvent::BeforeModel, "", input), next);
    }

    fn requested(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        outcome: &Outcome,
        mut attempt: Attempt,
        mut request: ModelRequest,
    ) {
        step.hooked(HookEvent::BeforeModel, outcome, None, false);
        let answer = outcome.object("llm_response").and_then(llm::response_text);
        match (&outcome.verdict, answer) {
            (Some(Verdict::Block(_)), Some(text)) => {
                return self.say_instead(step, spec, kept, vec![Chunk::Text { text, signature: None }]);
            }
            (Some(verdict), _) => return self.finish(step, &cause_of(verdict)),
            (None, Some(_)) => step.notice("A hook's llm_response counts only where it blocks; ignored."),
            (None, None) => (),
        }
        if let Some(said) = outcome.object("llm_request") {
            let model = said.get("model").and_then(Value::as_str).unwrap_or(&request.model);
            if *model != *request.model {
                attempt.why = format!("a hook named it in place of {}", request.model);
                request = match self.build(step, spec, model, false) {
                    Ok(request) => request,
                    Err(Unbuilt::Over(cause)) => return self.finish(step, &cause),
                    // Not asked for here.
                    Err(Unbuilt::Long { .. } | Unbuilt::Large(_)) => request,
                };
            }
            llm::change(&mut request, said);
        }
        self.choose_tools(step, spec, kept, attempt, request);
    }

    fn choose_tools(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        attempt: Attempt,
        request: ModelRequest,
    ) {
        if !spec.toolbox.hooks.has(HookEvent::BeforeToolSelection, "", &step.record.switches) {
            return self.send(step, spec, attempt, request);
        }
        let input = json!({ "llm_request": llm::request(&request) });
        let next = Next::Tools { attempt, request: Box::new(request) };
        self.fire(step, spec, kept, (HookEvent::BeforeToolSelection, "", input), next);
    }

    /// Tools that are not offered cannot be called either.
    fn tools_chosen(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        outcome: &Outcome,
        attempt: Attempt,
        mut request: ModelRequest,
    ) {
        step.hooked(HookEvent::BeforeToolSelection, outcome, None, false);
        if let Some(config) = outcome.object("toolConfig") {
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
    pub(super) fn held(step: &Step<'_>, spec: &Spec, request: &ModelRequest) -> Option<Held> {
        let hooks = &spec.toolbox.hooks;
        let has = hooks.has(HookEvent::AfterModel, "", &step.record.switches) || hooks.plugins.has(Point::AfterModel);
        has.then(|| Held { request: llm::request(request), chunks: Vec::new() })
    }

    /// An answer is whole: the hooks see it first.
    pub(super) fn show_hooks(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        (response, attempt): (Response, u32),
        held: Held,
    ) {
        let Held { request, chunks } = held;
        let other = spec.toolbox.hooks.plugins.chunks(Point::AfterModel, Moment::Answer(&chunks));
        let chunks = other.unwrap_or(chunks);
        let input = json!({ "llm_request": request, "llm_response": llm::response(&chunks) });
        let next = Next::Answer { response: Box::new(response), attempt, chunks };
        self.fire(step, spec, kept, (HookEvent::AfterModel, "", input), next);
    }

    fn answer_read(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        outcome: &Outcome,
        (mut response, attempt): (Response, u32),
        mut chunks: Vec<Chunk>,
    ) {
        step.hooked(HookEvent::AfterModel, outcome, None, false);
        if let Some(verdict) = &outcome.verdict {
            // What it cost is told, what it said is not.
            chunks.retain(|it| matches!(it, Chunk::Usage(_)));
            response.take(step, &self.tools, &mut self.scheduler, chunks);
            response.close(step);
            return self.finish(step, &cause_of(verdict));
        }
        if let Some(text) = outcome.object("llm_response").and_then(llm::response_text) {
            chunks = llm::with_text(chunks, &text);
        }
        response.take(step, &self.tools, &mut self.scheduler, chunks);
        self.answered_by_model(step, spec, kept, response, attempt);
    }

    /// The agent has nothing more to do, unless a hook finds something.
    pub(super) fn over(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, cause: Cause) {
        let said = if self.talk.said.trim().is_empty() { NO_TEXT } else { &self.talk.said };
        let input =
            json!({ "prompt": self.talk.asked, "prompt_response": said, "stop_hook_active": self.talk.is_sent_back });
        self.fire(step, spec, kept, (HookEvent::AfterAgent, "", input), Next::Ended(cause));
    }

    fn ended(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, outcome: &Outcome, cause: &Cause) {
        let again = match &outcome.verdict {
            Some(Verdict::Block(why)) => Some(why.clone()),
            _ => None,
        };
        if outcome.clears() {
            step.log(Fact::Cleared);
        }
        step.hooked(HookEvent::AfterAgent, outcome, again.clone(), false);
        match (&outcome.verdict, again) {
            (_, Some(why)) => {
                self.talk.is_sent_back = true;
                step.notice(&format!("A hook sends the agent back to work: {why}"));
                self.sample(step, spec, kept, 1);
            }
            (Some(verdict), None) => self.finish(step, &cause_of(verdict)),
            (None, None) => self.finish(step, cause),
        }
    }
}

fn cause_of(verdict: &Verdict) -> Cause {
    match verdict {
        Verdict::Stop(why) => Cause::HookStop(why.clone()),
        Verdict::Block(why) | Verdict::Ask(why) => Cause::HookBlock(why.clone()),
    }
}
