//! Sampling: sends a request to the model and reads its answer.

use serde_json::Value;

use crate::turn::{
    answer::{self, BufferedAnswer},
    checks::loop_recovery,
    flow::{Flow, Phase, Station},
    limits,
    model::{failure_recovery::FailedAttempt, response::Response},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    context::tokens,
    record::Step,
    scheduler::CancelReason,
    step::{Effect, Input},
};
use castor_base::{
    ids::EffectId,
    log::Fact,
    model::{Chunk, Failure, FailureKind, Purpose},
    peer_agent::PeerReport,
    text::end_sentence,
};

const REPEATS: CancelReason =
    CancelReason::new("the model repeats itself", "Cancelled, because the model repeats itself.");

/// The model answers.
#[derive(Debug)]
struct Sampling {
    effect: EffectId,
    response: Box<Response>,
    /// The answer, where hooks read it before the user does.
    buffered: Option<BufferedAnswer>,
    /// The request, where hooks hear of a failure.
    request: Option<Value>,
}

pub(in crate::turn) fn send_request(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let Some(request) = turn.draft.request.take() else { return Flow::Go(Station::Model) };
    // What prepared it may have taken what was left.
    if let Some(cause) = limits::check_spent(turn, cx) {
        return Flow::End(cause);
    }
    let (model, buffered) = (request.model.clone(), BufferedAnswer::of(cx, &request));
    let told = answer::request_for_hooks(cx, &request);
    let (attempt, why) = (turn.draft.attempt, std::mem::take(&mut turn.draft.why));
    let tokens = tokens::of_request(&request);
    cx.step.log(Fact::Attempt { model: model.to_string(), attempt, tokens, why });
    let effect = cx.step.start_effect(Effect::Generate { purpose: Purpose::Agent, request });
    let response = Box::new(Response::new(model, cx.spec, cx.step.record));
    Flow::wait(Sampling { effect, response, buffered, request: told })
}

impl Phase for Sampling {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Chunks { effect, chunks } if effect == self.effect => self.take_chunks(turn, cx, chunks),
            Input::Generated { effect, result } if effect == self.effect => self.end(turn, cx, result),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

impl Sampling {
    /// Takes chunks, and breaks the answer off where the model repeats itself: it would not stop.
    fn take_chunks(
        mut self: Box<Self>,
        turn: &mut TurnState,
        cx: &mut TurnContext<'_, '_>,
        chunks: Vec<Chunk>,
    ) -> Flow {
        if let Some(buffered) = &mut self.buffered {
            if buffered.is_held {
                buffered.extend(chunks);
                return Flow::Wait(self);
            }
            buffered.extend(chunks.clone());
        }
        let spent = chunks.iter().any(|it| matches!(it, Chunk::Report(PeerReport::Spent { .. })));
        let from = self.response.text().len();
        self.response.take_chunks(turn, cx.step, chunks);
        if let Some(cause) = spent.then(|| limits::check_spent(turn, cx)).flatten() {
            self.leave(cx.step);
            return Flow::End(cause);
        }
        let delta = self.response.text().get(from..).unwrap_or_default();
        let found = turn.loops.repeated.record_text(delta);
        let Some(found) = found.filter(|_| cx.spec.bounds.watches_loops) else { return Flow::Wait(self) };
        self.leave(cx.step);
        self.response.close(cx.step);
        turn.drop_calls(cx.step, REPEATS);
        loop_recovery::stop_loop(turn, cx, found)
    }

    fn end(mut self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, result: Result<(), Failure>) -> Flow {
        match (result, self.buffered) {
            (Err(mut failure), _) => {
                self.response.close(cx.step);
                let n_said = self.response.text().chars().count();
                if failure.kind == FailureKind::Stream && n_said > 0 {
                    let message = end_sentence(&failure.message);
                    failure.message = format!("{message} The answer broke off after {n_said} characters.");
                }
                let (shown, said) = (self.response.has_shown(), self.response.messages().to_vec());
                let failed = FailedAttempt { failure, shown, said, cause: None, nudge: None };
                answer::fire_failure_hooks(turn, cx, failed, self.request)
            }
            (Ok(()), Some(buffered)) if buffered.is_held => {
                answer::fire_answer_hooks(turn, cx, self.response, buffered)
            }
            (Ok(()), buffered) => {
                if let Some(it) = buffered {
                    it.tell_observers(cx);
                }
                answer::take_answer(turn, cx, *self.response)
            }
        }
    }
}
