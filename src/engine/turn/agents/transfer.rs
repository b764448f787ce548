//! Transfer of a session to another agent: it is chosen as a client would do it, then it goes on with the same prompt.

use crate::turn::{
    endings::Cause,
    flow::{Flow, Phase},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    step::{Effect, Input},
};
use castor_base::ids::EffectId;

/// The session becomes another agent's.
#[derive(Debug)]
struct Transferring {
    effect: EffectId,
    agent: String,
}

pub(in crate::turn) fn hand_over(step: &mut Step<'_>, agent: String) -> Flow {
    let effect = step.start_effect(Effect::ChooseAgent { agent: agent.clone() });
    Flow::wait(Transferring { effect, agent })
}

impl Phase for Transferring {
    fn step(self: Box<Self>, _: &mut TurnState, _: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::AgentChosen { effect } if effect == self.effect => Flow::End(Cause::Transferred(self.agent)),
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}
