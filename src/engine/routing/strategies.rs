//! Routing strategies in order: each may pass a prompt on, and the last one always names a model.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Chain, ModelRoute,
    aliases::Aliases,
    failure_class::PolicyKind,
    fallback_policies::FallbackAction,
    health::{Availability, Health},
    task_classifier::{Classification, ClassifierModel, TaskClass},
};
use castor_base::{fallback::OutageCause, log::Mode, model_table::AutoModels};

/// The user's settings for routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingRules {
    /// The first classifier, if there is one.
    pub local: Option<String>,
    /// The effort of a request is a number, where it can be.
    pub numerical: bool,
    /// From which number on a request is for the larger model.
    pub threshold: u32,
}

impl Default for RoutingRules {
    fn default() -> Self {
        Self { local: None, numerical: true, threshold: 90 }
    }
}

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct RoutingContext<'a> {
    /// The session's model, as the user calls it.
    pub wanted: &'a str,
    pub aliases: &'a Aliases,
    pub unreachable_models: &'a BTreeSet<String>,
    pub chain: &'a Chain,
    pub health: &'a Health,
    pub rules: &'a RoutingRules,
    pub mode: Mode,
    /// The user approved a plan in this session.
    pub has_plan: bool,
    /// The judgements so far, or the reasons why there are none.
    pub classifications: &'a BTreeMap<ClassifierModel, Result<Classification, String>>,
    /// No classifier is asked: there is nothing to judge yet, or it would take too long.
    pub skip_classifier: bool,
    pub now_ms: u64,
}

/// The outcome of routing.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutingOutcome {
    Route(ModelRoute),
    /// A classifier is asked first.
    Ask(ClassifierModel),
}

/// A strategy's word.
pub enum StrategyAnswer {
    /// The next one has its say.
    Pass,
    /// This model, for this reason.
    UseModel(String, String),
    Ask(ClassifierModel),
}

/// A strategy's answer, for an auto model where it is one.
type Strategy = fn(&RoutingContext<'_>, Option<&AutoModels>) -> StrategyAnswer;

/// The strategies in order.
pub const STRATEGIES: &[(&str, Strategy)] = &[
    ("fallback", fallback),
    ("override", chosen),
    ("approval-mode", approval_mode),
    ("local-classifier", local),
    ("classifier", classifier),
    ("numerical-classifier", numerical),
];

/// The model for what is asked now, with the reason.
pub fn route(asking: &RoutingContext<'_>) -> RoutingOutcome {
    let auto = asking.aliases.auto(asking.wanted);
    for (by, strategy) in STRATEGIES {
        match strategy(asking, auto) {
            StrategyAnswer::Pass => (),
            StrategyAnswer::UseModel(name, why) => return RoutingOutcome::Route(route_to(asking, by, &name, why)),
            StrategyAnswer::Ask(judge) => return RoutingOutcome::Ask(judge),
        }
    }
    // The last one: whoever could not judge is named.
    let failed: Vec<&str> =
        asking.classifications.values().filter_map(|it| it.as_ref().err()).map(String::as_str).collect();
    let why = match (auto, failed.is_empty()) {
        (None, _) => configured(asking),
        (Some(_), true) => format!("the default of {}", asking.wanted),
        (Some(_), false) => format!("the default of {}: {}", asking.wanted, failed.join("; ")),
    };
    RoutingOutcome::Route(route_to(asking, "default", default_of(asking, auto), why))
}

fn route_to(asking: &RoutingContext<'_>, by: &'static str, name: &str, why: String) -> ModelRoute {
    ModelRoute { model: Arc::from(asking.aliases.model_of(name)), name: name.to_owned(), by, why }
}

fn configured(asking: &RoutingContext<'_>) -> String {
    match asking.aliases.model_of(asking.wanted) == asking.wanted {
        true => "configured".to_owned(),
        false => format!("configured as {}", asking.wanted),
    }
}

fn default_of<'a>(asking: &RoutingContext<'a>, auto: Option<&'a AutoModels>) -> &'a str {
    auto.map_or(asking.wanted, |it| it.pro.as_str())
}

/// The model is known not to answer. Where the user is asked about that, it is tried all the same: nothing is switched
/// behind anybody's back. Who chose an auto model left the choice to castor.
fn fallback(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    let RoutingContext { aliases, chain, health, now_ms, .. } = *asking;
    let model = aliases.model_of(default_of(asking, auto));
    let Availability::Unavailable(cause) = health.availability(&model, now_ms) else { return StrategyAnswer::Pass };
    let silent = auto.is_some() || chain.policies.of(&model).action(kind(cause)) == Some(FallbackAction::Silent);
    match chain.next(&model, health, now_ms).filter(|_| silent) {
        Some(it) => StrategyAnswer::UseModel(it.to_owned(), format!("fallback: {model} is out ({})", cause.as_str())),
        None => StrategyAnswer::Pass,
    }
}

fn kind(cause: OutageCause) -> PolicyKind {
    match cause {
        OutageCause::Quota | OutageCause::Limit | OutageCause::Capacity => PolicyKind::Terminal,
        OutageCause::Missing => PolicyKind::NotFound,
    }
}

/// One model was chosen, and that is it.
fn chosen(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    match auto {
        None => StrategyAnswer::UseModel(asking.wanted.to_owned(), configured(asking)),
        Some(_) => StrategyAnswer::Pass,
    }
}

/// Plans are for the larger model, what is planned for the smaller one.
fn approval_mode(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    let Some(auto) = auto else { return StrategyAnswer::Pass };
    match (asking.mode, asking.has_plan) {
        (Mode::Plan, _) => available(asking, &auto.pro, "the mode plan".to_owned()),
        (_, true) => available(asking, &auto.flash, "a plan was approved".to_owned()),
        (_, false) => StrategyAnswer::Pass,
    }
}

fn local(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    let Some(auto) = auto.filter(|_| asking.rules.local.is_some()) else { return StrategyAnswer::Pass };
    by_classifier(asking, auto, ClassifierModel::Local)
}

fn classifier(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    let Some(auto) = auto.filter(|it| !takes_numbers(asking, it)) else { return StrategyAnswer::Pass };
    by_classifier(asking, auto, ClassifierModel::Choice)
}

fn numerical(asking: &RoutingContext<'_>, auto: Option<&AutoModels>) -> StrategyAnswer {
    let Some(auto) = auto.filter(|it| takes_numbers(asking, it)) else { return StrategyAnswer::Pass };
    by_classifier(asking, auto, ClassifierModel::Score)
}

/// The numbers were found for these models.
fn takes_numbers(asking: &RoutingContext<'_>, auto: &AutoModels) -> bool {
    let model = asking.aliases.model_of(&auto.pro);
    asking.rules.numerical && asking.aliases.models().family_of(&model).is_some_and(|it| it.scores)
}

/// A classifier that fails, or that names a model that is out, is skipped.
fn by_classifier(asking: &RoutingContext<'_>, auto: &AutoModels, judge: ClassifierModel) -> StrategyAnswer {
    match asking.classifications.get(&judge) {
        None if asking.skip_classifier => StrategyAnswer::Pass,
        None => StrategyAnswer::Ask(judge),
        Some(Err(_)) => StrategyAnswer::Pass,
        Some(Ok(Classification { class, why })) => {
            let name = if *class == TaskClass::Pro { &auto.pro } else { &auto.flash };
            available(asking, name, why.clone())
        }
    }
}

fn available(asking: &RoutingContext<'_>, name: &str, why: String) -> StrategyAnswer {
    let model = asking.aliases.model_of(name);
    let standing = asking.health.availability(&model, asking.now_ms);
    if standing.can_be_asked() && !asking.unreachable_models.contains(&model) {
        StrategyAnswer::UseModel(name.to_owned(), why)
    } else {
        StrategyAnswer::Pass
    }
}

#[cfg(test)]
mod tests;
