//! A very large result, before the model first sees it: a small model lists what counts in it, within seconds, or nobody.

use super::{
    Kept, Phase, Spec, Turn,
    consulting::Then,
    upkeep,
    utility::{Limits, Utility, Wish, saying},
};
use crate::{
    base::{
        history::{Role, TurnPart},
        ids::CallId,
        model::{Params, Purpose},
        tool::CallResult,
    },
    engine::{
        context::distillation::{self, distilled},
        record::{Record, Step},
    },
};

const LIMITS: Limits = Limits { tokens: 1_000, ms: 15_000 };

/// A result that is looked at.
#[derive(Debug)]
pub(super) struct Distilling {
    call: CallId,
    /// Of the request that waits for it.
    attempt: u32,
}

impl Turn {
    pub(super) fn distill(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, call: CallId, attempt: u32) {
        let asked = spec.bounds.distill.zip(result_of(step.record, &call));
        let question = asked.and_then(|(limits, result)| distillation::question(result, limits));
        let it = Distilling { call, attempt };
        let Some(text) = question else { return self.distilled(step, spec, kept, &it, None) };
        let helper = spec.helpers.of(Purpose::Summarizer, &self.model, &spec.aliases);
        let contents = vec![saying(Role::User, text)];
        let wish = Wish { system: distillation::SYSTEM.into(), contents, params: Params::default(), limits: LIMITS };
        match Utility::ask(step, spec, kept, helper, wish) {
            Ok(utility) => self.phase = Phase::Consulting { utility: Box::new(utility), then: Then::Distill(it) },
            Err(_) => self.distilled(step, spec, kept, &it, None),
        }
    }

    /// With what counts in it, or without.
    pub(super) fn distilled(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut Kept,
        it: &Distilling,
        facts: Option<&str>,
    ) {
        let found = spec.bounds.distill.zip(result_of(step.record, &it.call));
        let mask = found.map(|(limits, result)| distilled(result, limits, &spec.scratch, facts));
        mask.into_iter().for_each(|it| upkeep::mask(step, vec![it]));
        self.ask_model(step, spec, kept, it.attempt, true);
    }
}

fn result_of<'a>(record: &'a Record, call: &CallId) -> Option<&'a CallResult> {
    let last = record.turns().last()?;
    last.parts().iter().find_map(|it| match it {
        TurnPart::Result(it) if it.id == *call => Some(it),
        _ => None,
    })
}
