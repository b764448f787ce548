//! A whole answer of the model: its AfterModel hooks, then its calls, or the agent's last word.

use serde_json::{Map, Value, json};

use super::{
    endings::Cause,
    flow::{Flow, Station},
    limits,
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, cause_of, fire_hooks},
};
use crate::hooks::{HookOutcome, llm};
use crate::turn::model::{
    failure_recovery::{self, FailedAttempt},
    response::{AnswerKind, Response},
};
use castor_base::{
    agent::TaskResult,
    hook::HookEvent,
    model::{Chunk, Failure, Finish, ModelRequest},
};

/// A whole answer, for its hooks.
#[derive(Debug)]
pub(super) struct BufferedAnswer {
    request: Value,
    chunks: Vec<Chunk>,
    /// Hooks see it before the client does, and may change it.
    pub is_held: bool,
}

#[derive(Debug)]
struct OnModelError(FailedAttempt);

#[derive(Debug)]
struct AfterModel {
    response: Box<Response>,
    chunks: Vec<Chunk>,
}

impl BufferedAnswer {
    /// `None`: no hook waits for it.
    pub fn of(cx: &TurnContext<'_, '_>, request: &ModelRequest) -> Option<Self> {
        let hooks = &cx.spec.toolbox.hooks;
        let plan = hooks.plan(HookEvent::AfterModel, "", &cx.step.record.switches);
        let is_held = !plan.hooks.is_empty();
        let is_wanted = is_held || !plan.observers.is_empty();
        is_wanted.then(|| Self { request: llm::request_json(request), chunks: Vec::new(), is_held })
    }

    pub fn extend(&mut self, chunks: Vec<Chunk>) {
        self.chunks.extend(chunks);
    }

    /// Tells the hooks that only listen: the client has seen it.
    pub fn tell_observers(self, cx: &mut TurnContext<'_, '_>) {
        let plan = cx.spec.toolbox.hooks.plan(HookEvent::AfterModel, "", &cx.step.record.switches);
        let input = json!({ "llm_request": self.request, "llm_response": llm::response_json(&self.chunks) });
        cx.step.tell_hooks(plan.observers, input.as_object().unwrap_or(&Map::new()));
    }
}

/// The hooks see an answer before the client does.
pub(super) fn fire_answer_hooks(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    response: Box<Response>,
    buffered: BufferedAnswer,
) -> Flow {
    let BufferedAnswer { request, chunks, .. } = buffered;
    let input = json!({ "llm_request": request, "llm_response": llm::response_json(&chunks) });
    fire_hooks(turn, cx, (HookEvent::AfterModel, "", input), AfterModel { response, chunks })
}

impl HookContinuation for AfterModel {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        let Self { mut response, mut chunks } = self;
        cx.step.log_hooks(HookEvent::AfterModel, outcome, None, false);
        if let Some(verdict) = &outcome.verdict {
            // What it cost is told, what it said is not.
            chunks.retain(|it| matches!(it, Chunk::Usage(_)));
            response.take_chunks(turn, cx.step, chunks);
            response.close(cx.step);
            return Flow::End(cause_of(verdict));
        }
        if let Some(text) = outcome.changed_object("llm_response").and_then(llm::response_text) {
            chunks = llm::replace_text(chunks, &text);
        }
        response.take_chunks(turn, cx.step, chunks);
        take_answer(turn, cx, *response)
    }
}

/// A hook answers for the model.
pub(super) fn take_other_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, text: String) -> Flow {
    turn.draft.attempt = 1;
    let mut response = Response::new(turn.model.clone(), cx.spec, cx.step.record);
    let chunks = vec![Chunk::Text { text, signature: None }, Chunk::Finish(Finish::Stop)];
    response.take_chunks(turn, cx.step, chunks);
    take_answer(turn, cx, response)
}

/// The request, where hooks hear of its failure.
pub(super) fn request_for_hooks(cx: &TurnContext<'_, '_>, request: &ModelRequest) -> Option<Value> {
    let hears = cx.spec.toolbox.hooks.has(HookEvent::OnModelError, "", &cx.step.record.switches);
    hears.then(|| llm::request_json(request))
}

/// The model failed: hooks may answer in its place. `request`: as hooks see it.
pub(super) fn fire_failure_hooks(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    failed: FailedAttempt,
    request: Option<Value>,
) -> Flow {
    let Failure { kind, status, message, .. } = &failed.failure;
    let error = json!({ "kind": kind.as_str(), "status": status, "message": message, "attempt": turn.draft.attempt });
    let input = json!({ "llm_request": request, "error": error });
    fire_hooks(turn, cx, (HookEvent::OnModelError, "", input), OnModelError(failed))
}

impl HookContinuation for OnModelError {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow {
        let Self(failed) = self;
        cx.step.log_hooks(HookEvent::OnModelError, outcome, None, false);
        let answer = outcome.changed_object("llm_response").and_then(llm::response_text);
        if answer.is_none() && outcome.verdict.is_none() {
            return failure_recovery::recover(turn, cx, failed);
        }
        let decision = if answer.is_some() { "answered" } else { "stopped" };
        failure_recovery::give_up(turn, cx, failed, decision);
        match (answer, &outcome.verdict) {
            (Some(text), _) => take_other_answer(turn, cx, text),
            (None, Some(verdict)) => Flow::End(cause_of(verdict)),
            (None, None) => Flow::Next,
        }
    }
}

/// An answer is there, and shown: its calls are made, or it was the last one.
pub(super) fn take_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, mut response: Response) -> Flow {
    response.close(cx.step);
    let kind = match turn.scheduler.is_empty() {
        true => response.classify_answer(turn.draft.n_samples > 1),
        false => AnswerKind::Calls,
    };
    if let AnswerKind::None(empty) = kind {
        let (failure, nudge, shown) = (empty.failure(), empty.nudge(), response.has_shown());
        let (said, cause) = (response.messages().to_vec(), Some(empty.cause()));
        return failure_recovery::recover(turn, cx, FailedAttempt { failure, shown, said, cause, nudge });
    }
    failure_recovery::note_answer(turn, cx);
    turn.transcript.answer_text += response.text();
    match kind {
        AnswerKind::Answer(_) if !turn.steering.is_empty() => Flow::Go(Station::Limits),
        AnswerKind::Answer(Cause::Completed | Cause::MaxTokens) if turn.tools.task.is_some() => {
            let submits = turn.tools.task.as_ref().is_some_and(|it| it.submits());
            // Its last words, or all of them where it has no last ones.
            let said = Some(response.text()).filter(|it| !it.trim().is_empty()).unwrap_or(&turn.transcript.answer_text);
            let result = || TaskResult { text: said.to_owned(), ..TaskResult::default() };
            Flow::End(if submits { Cause::NoCompleteTask } else { Cause::TaskCompleted(result()) })
        }
        AnswerKind::Answer(cause) => {
            turn.ending = cause;
            Flow::Go(Station::NextSpeaker)
        }
        _ => limits::check_spent(turn, cx).map_or(Flow::Go(Station::Calls), Flow::End),
    }
}
