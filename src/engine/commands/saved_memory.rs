//! `/memory add` and `/memory inbox`: a change of what is kept for later sessions, which the user orders.

use crate::{
    record::Step,
    step::{Effect, Input},
    turn::{
        flow::{Flow, Phase},
        prompt::memory_reading,
        spec::TurnContext,
        state::TurnState,
    },
};
use castor_base::{ids::EffectId, saved_memory::MemoryOrder, text::end_sentence};

#[derive(Debug)]
struct ChangingMemory {
    effect: EffectId,
    /// This session is to know what it adds, too.
    adds: bool,
}

pub(super) fn begin(step: &mut Step<'_>, order: MemoryOrder) -> Flow {
    let adds = matches!(order, MemoryOrder::Add(_) | MemoryOrder::Accept(_));
    Flow::wait(ChangingMemory { effect: step.start_effect(Effect::ChangeMemory(Box::new(order))), adds })
}

impl Phase for ChangingMemory {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::MemoryChanged { effect, report } if effect == self.effect => match report {
                Ok(done) if self.adds => memory_reading::read_after_change(cx.step, done),
                Ok(done) => Flow::report(done),
                Err(why) => Flow::report(end_sentence(&format!("Nothing changed: {why}"))),
            },
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}
