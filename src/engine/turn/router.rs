//! Routing of a turn in auto mode: asks the classifiers, and keeps the chosen model for the following requests.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Phase, SessionScratch, Spec, Turn,
    utility_call::{UtilityCall, UtilityLimits, UtilityRequest, text_turn},
    utility_wait::AfterConsulting,
};
use crate::{
    base::{
        content::joined_text,
        event::EventKind,
        history::{self, Role, TurnPart},
        log::Mode,
        model::{ModelParams, Purpose, Thinking},
        tool::CallResult,
    },
    engine::{
        record::{Record, Step},
        routing::{
            self, ModelRoute,
            strategies::{RoutingContext, RoutingOutcome, route},
            task_classifier::{Classification, ClassifierModel, ClassifierQuestion},
            utility_models::UtilityModel,
        },
        scheduler::plan,
    },
};

/// A slower classifier is not worth the wait.
const LIMITS: UtilityLimits = UtilityLimits { tokens: 1_024, ms: 10_000 };
/// Of the whole answer, and of the thoughts in it.
const MAX_TOKENS: u32 = 1_024;
const THOUGHTS: i32 = 512;

/// Where the requests of a turn go, as far as that is not the session's model itself.
#[derive(Debug, Default)]
pub(super) struct Router {
    /// Another model than the configured one, which is named first: for the rest of this turn.
    pub instead: Option<(String, String)>,
    sequence: Option<Sequence>,
    /// Classifications since the last decision.
    judged: BTreeMap<ClassifierModel, Result<Classification, String>>,
}

/// A model that was found. A new prompt is a new turn, and has none.
#[derive(Debug)]
struct Sequence {
    route: ModelRoute,
    holds: RouteScope,
}

/// What a decision was made for: it holds as long as this stays so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RouteScope {
    /// The session's model, as the user calls it.
    model: String,
    /// Plans, and work without questions, are other work.
    plans: bool,
    is_yolo: bool,
}

impl RouteScope {
    fn of(record: &Record) -> Self {
        let (model, mode) = (record.model.clone(), record.mode);
        Self { model, plans: mode == Mode::Plan, is_yolo: mode == Mode::Yolo }
    }
}

/// A classifier is asked.
#[derive(Debug)]
pub(super) struct Routing {
    attempt: u32,
    judge: ClassifierModel,
}

impl Router {
    pub fn begin(instead: Option<(String, String)>) -> Self {
        Self { instead, ..Self::default() }
    }

    /// What was found, where it still holds.
    pub fn found(&self, record: &Record) -> Option<&ModelRoute> {
        self.sequence.as_ref().filter(|it| it.holds == RouteScope::of(record)).map(|it| &it.route)
    }

    /// What `model` is called where its parameters are looked up.
    pub fn name<'a>(&'a self, record: &'a Record, model: &str) -> &'a str {
        let found = self.found(record).filter(|it| *it.model == *model);
        found.map_or(record.model.as_str(), |it| it.name.as_str())
    }
}

/// The model as a prompt begins, before any classifier.
pub(super) fn first(record: &Record, spec: &Spec, kept: &SessionScratch, now_ms: u64) -> Option<ModelRoute> {
    match route(&RoutingContext { skip_classifier: true, ..asking(record, spec, kept, &BTreeMap::new(), now_ms) }) {
        RoutingOutcome::Route(it) => Some(it),
        RoutingOutcome::Ask(_) => None,
    }
}

fn asking<'a>(
    record: &'a Record,
    spec: &'a Spec,
    kept: &'a SessionScratch,
    judged: &'a BTreeMap<ClassifierModel, Result<Classification, String>>,
    now_ms: u64,
) -> RoutingContext<'a> {
    // Of conversations that never planned, nothing is looked through.
    let may_have_plan = record.mode_before_plan().is_some() && spec.aliases.auto(&record.model).is_some();
    RoutingContext {
        wanted: &record.model,
        aliases: &spec.aliases,
        unreachable_models: &spec.helpers.unreachable_models,
        chain: &spec.chain,
        health: &kept.health,
        rules: &spec.helpers.rules,
        mode: record.mode,
        has_plan: may_have_plan && has_plan(record.turns()),
        classifications: judged,
        skip_classifier: false,
        now_ms,
    }
}

fn has_plan(turns: &[Arc<history::Turn>]) -> bool {
    let approved = |it: &CallResult| it.name == plan::EXIT && joined_text(&it.content).starts_with(plan::APPROVED);
    let is_plan = |it: &TurnPart| matches!(it, TurnPart::Result(it) if approved(it));
    turns.iter().any(|it| it.parts().iter().any(is_plan))
}

impl Turn {
    /// Whether a classifier has to choose the model first.
    pub(super) fn is_open(&self, record: &Record, spec: &Spec) -> bool {
        let taken_over = self.router.instead.as_ref().is_some_and(|(of, _)| *of == record.model);
        !taken_over && spec.aliases.auto(&record.model).is_some() && self.router.found(record).is_none()
    }

    /// Goes on with the chosen model, at once or after a classifier. `contents`: as a model would see them.
    pub(super) fn find_model(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        attempt: u32,
        contents: &[Arc<history::Turn>],
    ) {
        loop {
            let asking = asking(step.record, spec, kept, &self.router.judged, step.now.unix_ms);
            let judge = match route(&asking) {
                RoutingOutcome::Ask(judge) => judge,
                RoutingOutcome::Route(route) => return self.found_model(step, spec, kept, attempt, route),
            };
            let asked = match judge.question(contents) {
                None => Err("there is no request to judge".to_owned()),
                Some(question) => {
                    let helper = self.judge(spec, judge);
                    let wish = wish(question, &helper);
                    UtilityCall::ask(step, spec, kept, helper, wish)
                }
            };
            match asked {
                Ok(utility) => {
                    let then = AfterConsulting::Route(Routing { attempt, judge });
                    self.phase = Phase::AskingUtility { utility: Box::new(utility), then };
                    return;
                }
                Err(why) => _ = self.router.judged.insert(judge, Err(why)),
            }
        }
    }

    fn judge(&self, spec: &Spec, judge: ClassifierModel) -> UtilityModel {
        match &spec.helpers.rules.local {
            Some(local) if judge == ClassifierModel::Local => {
                let (purpose, model) = (Purpose::Router, spec.aliases.model_of(local));
                UtilityModel { purpose, model, params: ModelParams::default() }
            }
            _ => spec.helpers.for_purpose(Purpose::Router, &self.model, &spec.aliases),
        }
    }

    /// A classifier's answer, or the reason for none: then the next strategy decides.
    pub(super) fn judge_said(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        it: Routing,
        said: Result<String, String>,
    ) {
        let judged = said.and_then(|it_said| it.judge.parse_answer(&it_said, spec.helpers.rules.threshold));
        self.router.judged.insert(it.judge, judged);
        self.ask_model(step, spec, kept, it.attempt, true);
    }

    /// For all calls that follow, until a new prompt, another model or another kind of mode. The request is built again,
    /// with the parameters and tools of this model.
    fn found_model(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        attempt: u32,
        route: ModelRoute,
    ) {
        self.router.judged.clear();
        if *route.model != *self.model {
            step.emit_event(EventKind::SessionUpdate { title: None, model: Some(route.model.to_string()) });
            self.model = route.model.clone();
            (self.tries, self.retry_advice) = Default::default();
        }
        self.note_standing(step, kept);
        self.router.sequence = Some(Sequence { route, holds: RouteScope::of(step.record) });
        self.ask_model(step, spec, kept, attempt, true);
    }
}

fn wish(ClassifierQuestion { system, text, schema }: ClassifierQuestion, helper: &UtilityModel) -> UtilityRequest {
    // Others have no such budgets, or want larger ones.
    let thinking = routing::model_limits::is_gemini(&helper.model).then_some(Thinking::Budget(THOUGHTS));
    let params =
        ModelParams { max_output_tokens: Some(MAX_TOKENS), thinking, schema: Some(schema), ..ModelParams::default() };
    UtilityRequest { system: system.into(), contents: vec![text_turn(Role::User, text)], params, limits: LIMITS }
}
