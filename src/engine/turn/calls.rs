//! Running the tool calls of an answer: the turn waits until the scheduler has ended all of them.

use super::{
    endings::Cause,
    flow::{Flow, Phase, Station},
    limits,
    spec::TurnContext,
    state::TurnState,
};
use crate::turn::agents::{composing, transfer};
use crate::{record::Step, scheduler::BatchStatus, step::Input};

#[derive(Debug)]
struct RunningCalls;

pub(super) fn run_calls(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let (scheduler, mut calls) = turn.calls(cx.step);
    let status = scheduler.advance(&mut calls);
    flow_of(cx.step, status)
}

impl Phase for RunningCalls {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let is_of_child = matches!(input, Input::ChildEvent { .. });
        let (scheduler, mut calls) = turn.calls(cx.step);
        let status = scheduler.on_input(&mut calls, input);
        if status == BatchStatus::Open && composing::gives_up(turn, cx) {
            turn.drop_calls(cx.step, composing::OTHER_FAILED);
            return Flow::Go(Station::Limits);
        }
        // What a sub-agent spends counts here, too.
        let spent = if is_of_child { limits::check_spent(turn, cx) } else { None };
        spent.map_or_else(|| flow_of(cx.step, status), Flow::End)
    }

    fn leave(&mut self, _: &mut Step<'_>) {}
}

pub fn flow_of(step: &mut Step<'_>, status: BatchStatus) -> Flow {
    match status {
        BatchStatus::Open => Flow::wait(RunningCalls),
        BatchStatus::Done => Flow::Next,
        BatchStatus::TaskCompleted(result) => Flow::End(Cause::TaskCompleted(result)),
        BatchStatus::Returned => Flow::End(Cause::CallsReturned),
        BatchStatus::Transferred(agent) => transfer::hand_over(step, agent),
        BatchStatus::AskedInText(question) => Flow::End(Cause::AskedInText(question)),
        BatchStatus::TurnCancelled => Flow::End(Cause::Cancelled),
        BatchStatus::HookStopped(why) => Flow::End(Cause::HookStop(why)),
        BatchStatus::Fatal(why) => Flow::End(Cause::ToolFatal(why)),
    }
}
