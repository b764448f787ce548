//! A turn that waits for a utility call, and the step that follows the answer.

use std::fmt::Debug;

use super::{
    flow::{Flow, Phase},
    spec::TurnContext,
    state::TurnState,
    utility_call::{UtilityCall, UtilityError, UtilityProgress, UtilityRequest},
};
use crate::{record::Step, routing::utility_models::UtilityModel, step::Input};

/// What the answer is for. It may be none, with a reason: the turn goes on all the same.
pub(super) trait AfterConsulting: Debug + Send + Sized + 'static {
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, said: Result<String, UtilityError>) -> Flow;

    /// The turn ends before the answer is there.
    fn leave(&self, _: &mut Step<'_>) {}
}

#[derive(Debug)]
pub(super) struct Consulting<T> {
    pub utility: UtilityCall,
    pub then: T,
}

/// Asks, and goes on at once where it is clear that no answer would come.
pub(super) fn consult<T: AfterConsulting>(
    turn: &mut TurnState,
    cx: &mut TurnContext<'_, '_>,
    (helper, wish): (UtilityModel, UtilityRequest),
    then: T,
) -> Flow {
    match UtilityCall::ask(cx, helper, wish) {
        Ok(utility) => Flow::wait(Consulting { utility, then }),
        Err(why) => then.go_on(turn, cx, Err(why)),
    }
}

impl<T: AfterConsulting> Phase for Consulting<T> {
    fn step(mut self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match self.utility.on_input(cx, &input) {
            UtilityProgress::NotMine => Flow::Unrelated(self, input),
            UtilityProgress::Open => Flow::Wait(self),
            UtilityProgress::Over(said) => self.then.go_on(turn, cx, said),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.utility.abandon(step);
        self.then.leave(step);
    }
}
