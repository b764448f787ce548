//! A whole answer of the model: its AfterModel hooks, then its calls, or the agent's last word.

use serde_json::{Value, json};

use super::{
    endings::Cause,
    failure_recovery::{self, FailedAttempt},
    flow::{Flow, Station},
    limits,
    response::{AnswerKind, Response},
    spec::TurnContext,
    state::TurnState,
    turn_hooks::{HookContinuation, cause_of, fire_hooks},
};
use crate::{
    base::{
        agent::TaskResult,
        hook::HookEvent,
        log::Fact,
        model::{Chunk, Failure, Finish, ModelRequest},
    },
    engine::{
        hooks::{
            HookOutcome, llm,
            plugins::{PluginMoment, PluginPoint},
        },
        routing::failure_class::classify,
    },
};

/// A whole answer that hooks see before the client.
#[derive(Debug)]
pub(super) struct BufferedAnswer {
    request: Value,
    chunks: Vec<Chunk>,
}

#[derive(Debug)]
struct AfterModel {
    response: Box<Response>,
    chunks: Vec<Chunk>,
}

impl BufferedAnswer {
    /// `None`: no hook waits for it.
    pub fn of(cx: &TurnContext<'_, '_>, request: &ModelRequest) -> Option<Self> {
        let hooks = &cx.spec.toolbox.hooks;
        let has = hooks.has(HookEvent::AfterModel, "", &cx.step.record.switches)
            || hooks.plugins.has(PluginPoint::AfterModel);
        has.then(|| Self { request: llm::request_json(request), chunks: Vec::new() })
    }

    pub fn extend(&mut self, chunks: Vec<Chunk>) {
        self.chunks.extend(chunks);
    }
}

/// The hooks see an answer before the client does.
pub(super) fn fire_answer_hooks(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    response: Box<Response>,
    BufferedAnswer { request, chunks }: BufferedAnswer,
) -> Flow {
    let other = cx.spec.toolbox.hooks.plugins.chunks(PluginPoint::AfterModel, PluginMoment::Answer(&chunks));
    let chunks = other.unwrap_or(chunks);
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

/// A plugin or a hook answers for the model.
pub(super) fn take_other_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, mut chunks: Vec<Chunk>) -> Flow {
    if !chunks.iter().any(|it| matches!(it, Chunk::Finish(_))) {
        chunks.push(Chunk::Finish(Finish::Stop));
    }
    turn.draft.attempt = 1;
    let mut response = Response::new(turn.model.clone(), cx.spec, cx.step.record);
    response.take_chunks(turn, cx.step, chunks);
    take_answer(turn, cx, response)
}

/// A plugin may answer where the model failed.
pub(super) fn ask_plugins_instead(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    failure: &Failure,
) -> Option<Flow> {
    let plugins = &cx.spec.toolbox.hooks.plugins;
    let chunks = plugins.chunks(PluginPoint::OnModelError, PluginMoment::Failure(failure))?;
    turn.drop_calls(cx.step, failure_recovery::BROKE_OFF);
    let (class, decision) = (classify(failure).class.as_str().to_owned(), "answered".to_owned());
    cx.step.log(Fact::AttemptFailed { failure: failure.clone(), abandoned: true, class, decision });
    Some(take_other_answer(turn, cx, chunks))
}

/// An answer is there, and shown: its calls are made, or it was the last one.
pub(super) fn take_answer(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, mut response: Response) -> Flow {
    response.close(cx.step);
    let kind = match turn.scheduler.is_empty() {
        true => response.classify_answer(turn.n_samples > 1),
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
