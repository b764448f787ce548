//! Running the tool calls of an answer: the turn waits until the scheduler has ended all of them.

use super::{
    endings::Cause,
    flow::{Flow, Phase},
    spec::TurnContext,
    state::TurnState,
};
use crate::engine::{record::Step, scheduler::BatchStatus, step::Input};

#[derive(Debug)]
struct RunningCalls;

pub(super) fn run_calls(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let (scheduler, mut calls) = turn.calls(cx.step);
    flow_of(scheduler.advance(&mut calls))
}

impl Phase for RunningCalls {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let (scheduler, mut calls) = turn.calls(cx.step);
        flow_of(scheduler.on_input(&mut calls, input))
    }

    fn leave(&mut self, _: &mut Step<'_>) {}
}

fn flow_of(status: BatchStatus) -> Flow {
    match status {
        BatchStatus::Open => Flow::wait(RunningCalls),
        BatchStatus::Done => Flow::Next,
        BatchStatus::AskedInText(question) => Flow::End(Cause::AskedInText(question)),
        BatchStatus::TurnCancelled => Flow::End(Cause::Cancelled),
        BatchStatus::HookStopped(why) => Flow::End(Cause::HookStop(why)),
        BatchStatus::Fatal(why) => Flow::End(Cause::ToolFatal(why)),
    }
}
