//! Hooks of a turn: waits for those of one point, and continues with their outcome.

use std::fmt::Debug;

use serde_json::Value;

use super::{
    endings::Cause,
    flow::{Flow, Phase},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    hooks::{
        HookOutcome, HookVerdict,
        firing::{AnswerEffect, Firing, FiringStart},
    },
    record::Step,
    step::{Effect, Input},
};
use castor_base::{hook::HookEvent, ids::EffectId};

/// What the turn goes on with when all hooks of a point have answered.
pub(super) trait HookContinuation: Debug + Send + 'static {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, outcome: &HookOutcome) -> Flow;
}

#[derive(Debug)]
struct RunningHooks<T> {
    firing: Firing,
    then: T,
}

/// Fires an event, and goes on with what follows it when all have answered: at once, if nobody is asked.
pub(super) fn fire_hooks<T: HookContinuation>(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    (event, subject, input): (HookEvent, &str, Value),
    then: T,
) -> Flow {
    let mut plan = cx.spec.toolbox.hooks.plan(event, subject, &cx.step.record.switches);
    let input = input.as_object().cloned().unwrap_or_default();
    cx.step.tell_hooks(std::mem::take(&mut plan.observers), &input);
    match Firing::begin(event, plan, input, |run| cx.step.start_hook(run)) {
        FiringStart::Waiting(firing) => Flow::wait(RunningHooks { firing, then }),
        FiringStart::Finished(outcome) => then.go_on(turn, cx, &outcome),
    }
}

impl<T: HookContinuation> Phase for RunningHooks<T> {
    fn step(mut self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let Input::HookFinished { effect, report } = &input else { return Flow::Unrelated(self, input) };
        match self.firing.take_report(*effect, report, |run| cx.step.start_hook(run)) {
            AnswerEffect::Waiting => Flow::Wait(self),
            // A notification of an earlier call.
            AnswerEffect::Unrelated => Flow::Unrelated(self, input),
            AnswerEffect::Finished(outcome) => self.then.go_on(turn, cx, &outcome),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        let running: Vec<EffectId> = self.firing.running().collect();
        running.into_iter().for_each(|effect| _ = step.start_effect(Effect::Abort { effect }));
    }
}

pub(super) fn cause_of(verdict: &HookVerdict) -> Cause {
    match verdict {
        HookVerdict::Stop(why) => Cause::HookStop(why.clone()),
        HookVerdict::Block(why) | HookVerdict::Ask(why) => Cause::HookBlock(why.clone()),
    }
}
