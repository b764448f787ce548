//! Routing of a turn: selects the model, and asks the classifiers in auto mode.

use std::{collections::BTreeMap, sync::Arc};

use crate::turn::{
    flow::{Flow, Station},
    model::failure_recovery::note_standing,
    spec::{Spec, TurnContext},
    state::TurnState,
    utility_call::{UtilityCall, UtilityError, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::{AfterConsulting, Consulting},
};
use crate::{
    routing::{
        self, ModelRoute,
        strategies::{RoutingContext, RoutingOutcome, route},
        task_classifier::{Classification, ClassifierModel, ClassifierQuestion},
        utility_models::UtilityModel,
    },
    session_tools::plan,
};
use castor_base::{
    content::joined_text,
    event::EventKind,
    history::{self, Role, TurnPart},
    model::{ModelParams, Purpose, Thinking},
    tool::{CallResult, EXIT_PLAN_MODE},
};

/// A slower classifier is not worth the wait.
const LIMITS: UtilityLimits = UtilityLimits { tokens: 1_024, ms: 10_000 };
/// Of the whole answer, and of the thoughts in it.
const MAX_TOKENS: u32 = 1_024;
const THOUGHTS: i32 = 512;

/// A classifier is asked.
#[derive(Debug)]
struct Judging {
    judge: ClassifierModel,
}

/// Which model is asked next, and why: another one that took over in this turn, as long as the user chose none.
pub(in crate::turn) fn select_model(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let configured = &cx.step.record.model;
    let named = cx.spec.aliases.model_of(configured);
    let found = turn.router.found(cx.step.record);
    let (model, why) = match turn.router.instead.as_ref().filter(|(of, _)| of == configured) {
        Some((of, model)) if named != *model => (model.as_str(), format!("in place of {of}, in this turn")),
        _ if found.is_some() => found.map_or((named.as_str(), String::new()), |it| (&*it.model, it.why.clone())),
        _ if named != *configured => (named.as_str(), format!("configured as {configured}")),
        _ => (named.as_str(), "configured".to_owned()),
    };
    if *model != *turn.model {
        turn.model = model.into();
        turn.attempts = Default::default();
    }
    turn.draft.why = why;
    Flow::Next
}

/// Tells whether a classifier has to choose the model first.
fn is_open(turn: &TurnState, cx: &TurnContext<'_, '_>) -> bool {
    let record = &*cx.step.record;
    let taken_over = turn.router.instead.as_ref().is_some_and(|(of, _)| *of == record.model);
    !taken_over && cx.spec.aliases.auto(&record.model).is_some() && turn.router.found(record).is_none()
}

/// Goes on with the chosen model, at once or after a classifier. The request is built again then, with the
/// parameters and tools of this model.
pub(in crate::turn) fn find_model(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    if !is_open(turn, cx) {
        return Flow::Next;
    }
    // As a model would see them.
    let contents = turn.draft.request.take().map(|it| it.contents).unwrap_or_default();
    loop {
        let judge = match route(&routing_context(cx, &turn.router.judged)) {
            RoutingOutcome::Ask(judge) => judge,
            RoutingOutcome::Route(route) => return take_model(turn, cx, route),
        };
        let asked = match judge.question(&contents) {
            None => Err("there is no request to judge".to_owned()),
            Some(question) => {
                let helper = judge_model(turn, cx.spec, judge);
                let wish = wish(question, &helper);
                UtilityCall::ask(cx, helper, wish).map_err(|it| it.to_string())
            }
        };
        match asked {
            Ok(utility) => return Flow::wait(Consulting { utility, then: Judging { judge } }),
            Err(why) => _ = turn.router.judged.insert(judge, Err(why)),
        }
    }
}

fn judge_model(turn: &TurnState, spec: &Spec, judge: ClassifierModel) -> UtilityModel {
    match &spec.helpers.rules.local {
        Some(local) if judge == ClassifierModel::Local => {
            let (purpose, model) = (Purpose::Router, spec.aliases.model_of(local));
            UtilityModel { purpose, model, params: ModelParams::default() }
        }
        _ => spec.helpers.for_purpose(Purpose::Router, &turn.model, &spec.aliases),
    }
}

impl AfterConsulting for Judging {
    /// Without an answer the next strategy decides.
    fn go_on(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, said: Result<String, UtilityError>) -> Flow {
        let judged = said
            .map_err(|it| it.to_string())
            .and_then(|it| self.judge.parse_answer(&it, cx.spec.helpers.rules.threshold).map_err(|it| it.to_string()));
        turn.router.judged.insert(self.judge, judged);
        Flow::Go(Station::Model)
    }
}

fn take_model(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, route: ModelRoute) -> Flow {
    if *route.model != *turn.model {
        cx.step.emit_event(EventKind::SessionUpdate {
            title: None,
            model: Some(route.model.to_string()),
            state: Default::default(),
        });
        turn.model = route.model.clone();
        turn.attempts = Default::default();
    }
    note_standing(turn, cx);
    turn.router.hold(cx.step.record, route);
    Flow::Go(Station::Model)
}

/// The model as a prompt begins, before any classifier.
pub(in crate::turn) fn first_model(cx: &TurnContext<'_, '_>) -> Option<ModelRoute> {
    match route(&RoutingContext { skip_classifier: true, ..routing_context(cx, &BTreeMap::new()) }) {
        RoutingOutcome::Route(it) => Some(it),
        RoutingOutcome::Ask(_) => None,
    }
}

fn routing_context<'a>(
    cx: &'a TurnContext<'_, '_>,
    judged: &'a BTreeMap<ClassifierModel, Result<Classification, String>>,
) -> RoutingContext<'a> {
    let (record, spec) = (&*cx.step.record, cx.spec);
    // Of conversations that never planned, nothing is looked through.
    let may_have_plan = record.mode_before_plan().is_some() && spec.aliases.auto(&record.model).is_some();
    RoutingContext {
        wanted: &record.model,
        aliases: &spec.aliases,
        unreachable_models: &spec.helpers.unreachable_models,
        chain: &spec.chain,
        health: &cx.scratch.health,
        rules: &spec.helpers.rules,
        mode: record.mode,
        has_plan: may_have_plan && has_plan(record.turns()),
        classifications: judged,
        skip_classifier: false,
        now_ms: cx.step.now.unix_ms,
    }
}

fn has_plan(turns: &[Arc<history::Turn>]) -> bool {
    let approved = |it: &CallResult| it.name == EXIT_PLAN_MODE && joined_text(&it.content).starts_with(plan::APPROVED);
    let is_plan = |it: &TurnPart| matches!(it, TurnPart::Result(it) if approved(it));
    turns.iter().any(|it| it.parts().iter().any(is_plan))
}

fn wish(ClassifierQuestion { system, text, schema }: ClassifierQuestion, helper: &UtilityModel) -> UtilityRequest {
    // Others have no such budgets, or want larger ones.
    let thinking = routing::model_limits::is_gemini(&helper.model).then_some(Thinking::Budget(THOUGHTS));
    let params =
        ModelParams { max_output_tokens: Some(MAX_TOKENS), thinking, schema: Some(schema), ..ModelParams::default() };
    UtilityRequest { system: system.into(), contents: vec![text_turn(Role::User, text)], params, limits: LIMITS }
}
