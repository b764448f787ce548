//! A turn that waits for an answer beside the conversation, and what it goes on with.

use super::{
    Kept, Phase, Spec, Turn, compressing::Compressing, distilling::Distilling, router::Routing, utility::Heard,
};
use crate::engine::{record::Step, step::Input};

/// What the answer is for. It may be none, with a reason: the turn goes on all the same.
#[derive(Debug)]
pub(super) enum Then {
    Compress(Compressing),
    Distill(Distilling),
    Route(Routing),
}

impl Then {
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
    pub(super) fn consulted(
        &mut self,
        input: Input,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
    ) -> Option<Input> {
        let Phase::Consulting { utility, .. } = &mut self.phase else { return Some(input) };
        let said = match utility.heard(step, kept, &input) {
            Heard::NotMine => return Some(input),
            Heard::Open => return None,
            Heard::Over(said) => said,
        };
        if let Phase::Consulting { then, .. } = std::mem::replace(&mut self.phase, Phase::Finished) {
            match then {
                Then::Compress(it) => self.snapshot_said(step, spec, kept, it, said),
                Then::Distill(it) => self.distilled(step, spec, kept, &it, said.ok().as_deref()),
                Then::Route(it) => self.judge_said(step, spec, kept, it, said),
            }
        }
        None
    }
}
