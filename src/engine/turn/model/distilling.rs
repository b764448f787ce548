//! Distillation of a very large tool result during a turn: a small model extracts what matters, within seconds.

use crate::turn::{
    flow::{Flow, Station},
    model::request_builder,
    spec::TurnContext,
    state::TurnState,
    utility_call::{UtilityError, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::{AfterConsulting, consult},
};
use crate::{
    context::distillation::{self, distill_result},
    record::Record,
};
use castor_base::{
    history::{Role, TurnPart},
    ids::CallId,
    model::{ModelParams, Purpose},
    tool::CallResult,
};

const LIMITS: UtilityLimits = UtilityLimits { tokens: 1_000, ms: 15_000 };

/// A result that is looked at.
#[derive(Debug)]
struct Distilling {
    call: CallId,
}

pub(in crate::turn) fn distill(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, call: CallId) -> Flow {
    let asked = cx.spec.bounds.distill.zip(result_of(cx.step.record, &call));
    let question = asked.and_then(|(limits, result)| distillation::build_prompt(result, limits));
    let it = Distilling { call };
    let Some(text) = question else { return it.mask_result(cx, None) };
    let helper = cx.spec.helpers.for_purpose(Purpose::Summarizer, &turn.model, &cx.spec.aliases);
    let wish = UtilityRequest {
        system: distillation::SYSTEM.into(),
        contents: vec![text_turn(Role::User, text)],
        params: ModelParams::default(),
        limits: LIMITS,
    };
    consult(turn, cx, (helper, wish), it)
}

impl AfterConsulting for Distilling {
    fn go_on(self, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, said: Result<String, UtilityError>) -> Flow {
        self.mask_result(cx, said.ok().as_deref())
    }
}

impl Distilling {
    /// With what counts in it, or without.
    fn mask_result(&self, cx: &mut TurnContext<'_, '_>, facts: Option<&str>) -> Flow {
        let found = cx.spec.bounds.distill.zip(result_of(cx.step.record, &self.call));
        let mask = found.map(|(limits, result)| distill_result(result, limits, &cx.spec.scratch, facts));
        mask.into_iter().for_each(|it| request_builder::mask(cx.step, vec![it]));
        Flow::Go(Station::Model)
    }
}

fn result_of<'a>(record: &'a Record, call: &CallId) -> Option<&'a CallResult> {
    let last = record.turns().last()?;
    last.parts().iter().find_map(|it| match it {
        TurnPart::Result(it) if it.id == *call => Some(it),
        _ => None,
    })
}
