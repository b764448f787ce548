//! A turn that waits for a utility call, and the step that follows the answer.

use super::{
    Phase, SessionScratch, Spec, Turn, compressing::Compressing, distilling::Distilling, router::Routing,
    utility_call::UtilityProgress,
};
use crate::engine::{record::Step, step::Input};

/// What the answer is for. It may be none, with a reason: the turn goes on all the same.
#[derive(Debug)]
pub(super) enum AfterConsulting {
    Compress(Compressing),
    Distill(Distilling),
    Route(Routing),
}

impl AfterConsulting {
    /// The turn ends before the answer is there.
    pub fn leave(&self, step: &mut Step<'_>) {
        match self {
            Self::Compress(it) => it.leave(step),
            Self::Distill(_) | Self::Route(_) => (),
        }
    }
}

impl Turn {
    /// Takes what is about the question; gives back what is not.
    pub(super) fn on_utility_input(
        &mut self,
        input: Input,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
    ) -> Option<Input> {
        let Phase::AskingUtility { utility, .. } = &mut self.phase else { return Some(input) };
        let said = match utility.on_input(step, kept, &input) {
            UtilityProgress::NotMine => return Some(input),
            UtilityProgress::Open => return None,
            UtilityProgress::Over(said) => said,
        };
        if let Phase::AskingUtility { then, .. } = std::mem::replace(&mut self.phase, Phase::Finished) {
            match then {
                AfterConsulting::Compress(it) => self.snapshot_said(step, spec, kept, it, said),
                AfterConsulting::Distill(it) => self.distilled(step, spec, kept, &it, said.ok().as_deref()),
                AfterConsulting::Route(it) => self.judge_said(step, spec, kept, it, said),
            }
        }
        None
    }
}
