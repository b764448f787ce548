//! Waiting for MCP servers at the start of a turn, and the notices about those that are missing.

use crate::turn::{
    flow::{Flow, Phase},
    messages::{ModelNote, tell_model},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Effect, Input},
};
use castor_base::{ids::EffectId, log::Fact};

#[derive(Debug)]
struct WaitingForServers {
    /// Wakes the turn when it has waited long enough.
    timer: EffectId,
}

pub(in crate::turn) fn wait_for_servers(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    match cx.scratch.preamble.wait_until(cx.step.now.unix_ms) {
        Some(at_ms) => Flow::wait(WaitingForServers { timer: cx.step.start_effect(Effect::SetTimer { at_ms }) }),
        None => Flow::Next,
    }
}

impl Phase for WaitingForServers {
    fn step(mut self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::TimerFired { effect } if effect == self.timer => Flow::Next,
            Input::ToolsChanged(_) if cx.scratch.preamble.wait_until(cx.step.now.unix_ms).is_none() => {
                self.leave(cx.step);
                Flow::Next
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.timer });
    }
}

pub(in crate::turn) fn tell_notices(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let (ended, notices) = cx.spec.toolbox.outdated_grants(&cx.step.record.grants);
    ended.into_iter().for_each(|grant| cx.step.log(Fact::Revoked { grant }));
    notices.into_iter().for_each(|it| cx.scratch.preamble.notice_once(it));
    if let Some(text) = cx.scratch.preamble.take_message() {
        // Servers and files have a say in it.
        tell_model(cx.step, ModelNote::quote(text));
    }
    Flow::Next
}
