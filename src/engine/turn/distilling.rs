//! Distillation of a very large tool result during a turn: a small model extracts what matters, within seconds.

use super::{
    Phase, SessionScratch, Spec, Turn, request_builder,
    utility_call::{UtilityCall, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::AfterConsulting,
};
use crate::{
    base::{
        history::{Role, TurnPart},
        ids::CallId,
        model::{ModelParams, Purpose},
        tool::CallResult,
    },
    engine::{
        context::distillation::{self, distill_result},
        record::{Record, Step},
    },
};

const LIMITS: UtilityLimits = UtilityLimits { tokens: 1_000, ms: 15_000 };

/// A result that is looked at.
#[derive(Debug)]
pub(super) struct Distilling {
    call: CallId,
    /// Of the request that waits for it.
    attempt: u32,
}

impl Turn {
    pub(super) fn distill(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        call: CallId,
        attempt: u32,
    ) {
        let asked = spec.bounds.distill.zip(result_of(step.record, &call));
        let question = asked.and_then(|(limits, result)| distillation::build_prompt(result, limits));
        let it = Distilling { call, attempt };
        let Some(text) = question else { return self.distilled(step, spec, kept, &it, None) };
        let helper = spec.helpers.for_purpose(Purpose::Summarizer, &self.model, &spec.aliases);
        let contents = vec![text_turn(Role::User, text)];
        let wish = UtilityRequest {
            system: distillation::SYSTEM.into(),
            contents,
            params: ModelParams::default(),
            limits: LIMITS,
        };
        match UtilityCall::ask(step, spec, kept, helper, wish) {
            Ok(utility) => {
                self.phase = Phase::AskingUtility { utility: Box::new(utility), then: AfterConsulting::Distill(it) }
            }
            Err(_) => self.distilled(step, spec, kept, &it, None),
        }
    }

    /// With what counts in it, or without.
    pub(super) fn distilled(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        it: &Distilling,
        facts: Option<&str>,
    ) {
        let found = spec.bounds.distill.zip(result_of(step.record, &it.call));
        let mask = found.map(|(limits, result)| distill_result(result, limits, &spec.scratch, facts));
        mask.into_iter().for_each(|it| request_builder::mask(step, vec![it]));
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
