//! Routing decisions as a table: settings and state, and the model that gets the prompt.

use std::collections::{BTreeMap, BTreeSet};

use super::{RoutingContext, RoutingOutcome, RoutingRules, STRATEGIES, route};
use crate::routing::{
    Chain,
    alias::{Alias, ModelConfig},
    aliases::Aliases,
    fallback_policies::{FallbackAction, FallbackPolicies, FallbackPolicy},
    health::Health,
    task_classifier::{Classification, ClassifierModel, TaskClass},
};
use castor_base::{
    fallback::{Outage, OutageCause},
    log::Mode,
    model_table::ModelTable,
};

const PRO: &str = "gemini-4-argon";
const FLASH: &str = "gemini-3.8-flash";

struct Case {
    aliases: Aliases,
    chain: Chain,
    health: Health,
    rules: RoutingRules,
    mode: Mode,
    has_plan: bool,
    judged: BTreeMap<ClassifierModel, Result<Classification, String>>,
    out_of_reach: BTreeSet<String>,
    unasked: bool,
}

fn case(models: &[&str], action: FallbackAction) -> Case {
    let policies = FallbackPolicies { otherwise: FallbackPolicy::always(action), ..FallbackPolicies::default() };
    let models = models.iter().map(|it| (*it).to_owned()).collect();
    Case {
        aliases: Aliases::new(BTreeMap::new(), Vec::new(), ModelTable::built_in()).0,
        chain: Chain { models, for_all: true, policies },
        health: Health::default(),
        rules: RoutingRules::default(),
        mode: Mode::Default,
        has_plan: false,
        judged: BTreeMap::new(),
        out_of_reach: BTreeSet::new(),
        unasked: false,
    }
}

impl Case {
    fn asking<'a>(&'a self, wanted: &'a str) -> RoutingContext<'a> {
        let Self { aliases, chain, health, rules, mode, has_plan, judged, out_of_reach, unasked } = self;
        let (mode, has_plan, unasked) = (*mode, *has_plan, *unasked);
        RoutingContext {
            wanted,
            aliases,
            unreachable_models: out_of_reach,
            chain,
            health,
            rules,
            mode,
            has_plan,
            classifications: judged,
            skip_classifier: unasked,
            now_ms: 0,
        }
    }

    fn to(&self, wanted: &str) -> String {
        match route(&self.asking(wanted)) {
            RoutingOutcome::Route(it) => format!("{} [{}] {}", it.model, it.by, it.why),
            RoutingOutcome::Ask(judge) => format!("ask the {}", judge.as_str()),
        }
    }

    fn out(mut self, model: &str, cause: OutageCause) -> Self {
        self.health.mark_out(model, Outage { cause, until_ms: Some(10) });
        self
    }

    fn said(mut self, judge: ClassifierModel, said: Result<TaskClass, &str>) -> Self {
        let said = said.map(|class| Classification { class, why: "it says so".to_owned() }).map_err(str::to_owned);
        self.judged.insert(judge, said);
        self
    }
}

#[test]
fn in_the_order_of_the_reference() {
    let names: Vec<&str> = STRATEGIES.iter().map(|(name, _)| *name).collect();
    let expected = ["fallback", "override", "approval-mode", "local-classifier", "classifier", "numerical-classifier"];
    assert_eq!(names, expected, "and the default, which always answers");
}

#[test]
fn chosen_model_is_used() {
    let plain = || case(&[], FallbackAction::Ask);
    assert_eq!(plain().to("m"), "m [override] configured");
    assert_eq!(plain().to("flash"), format!("{FLASH} [override] configured as flash"));
    let planning = Case { mode: Mode::Plan, ..plain() };
    assert_eq!(planning.to("m"), "m [override] configured");
}

#[test]
fn unavailable_model_is_skipped_when_configured() {
    let silent = || case(&["a", "b", "c"], FallbackAction::Silent);
    assert_eq!(silent().to("a"), "a [override] configured");
    let one = || silent().out("a", OutageCause::Quota);
    assert_eq!(one().to("a"), "b [fallback] fallback: a is out (quota)");
    assert_eq!(case(&["a", "b"], FallbackAction::Ask).out("a", OutageCause::Quota).to("a"), "a [override] configured");
    let two = || one().out("b", OutageCause::Capacity);
    assert_eq!(two().to("a"), "c [fallback] fallback: a is out (quota)");
    let all = || two().out("c", OutageCause::Missing);
    assert_eq!(all().to("a"), "a [override] configured");
    let mut last = all();
    last.chain
        .policies
        .by_model
        .insert("b".to_owned(), FallbackPolicy { last_resort: true, ..FallbackPolicy::default() });
    assert_eq!(last.to("a"), "b [fallback] fallback: a is out (quota)");
}

#[test]
fn auto_model_asks_a_classifier() {
    let auto = || case(&[PRO, FLASH], FallbackAction::Ask);
    assert_eq!([auto().to("auto"), auto().to("auto-gemini-3")], ["ask the numerical classifier"; 2]);
    assert_eq!(auto().to("auto-gemini-2.5"), "ask the numerical classifier");
    assert_eq!(Case { unasked: true, ..auto() }.to("auto"), format!("{PRO} [default] the default of auto"));
    let plain = RoutingRules { numerical: false, ..RoutingRules::default() };
    assert_eq!(Case { rules: plain, ..auto() }.to("auto"), "ask the classifier");
    let said = |class| auto().said(ClassifierModel::Score, Ok(class)).to("auto");
    assert_eq!(said(TaskClass::Pro), format!("{PRO} [numerical-classifier] it says so"));
    assert_eq!(said(TaskClass::Flash), format!("{FLASH} [numerical-classifier] it says so"));
    let failed = auto().said(ClassifierModel::Score, Err("it is busy"));
    assert_eq!(failed.to("auto"), format!("{PRO} [default] the default of auto: it is busy"));
    // A judgement for a model that cannot be asked is none.
    let gone = auto().said(ClassifierModel::Score, Ok(TaskClass::Flash));
    let away =
        Case { out_of_reach: [FLASH.to_owned()].into(), ..auto().said(ClassifierModel::Score, Ok(TaskClass::Flash)) };
    let default = format!("{PRO} [default] the default of auto");
    assert_eq!([gone.out(FLASH, OutageCause::Quota).to("auto"), away.to("auto")], [default.clone(), default]);
    // Who left the choice to castor is not asked about it.
    assert_eq!(
        auto().out(PRO, OutageCause::Quota).to("auto"),
        format!("{FLASH} [fallback] fallback: {PRO} is out (quota)")
    );
}

#[test]
fn a_local_judge_comes_first() {
    let local = || {
        let rules = RoutingRules { local: Some("ollama/gemma3".to_owned()), ..RoutingRules::default() };
        Case { rules, ..case(&[], FallbackAction::Ask) }
    };
    assert_eq!(local().to("auto"), "ask the local classifier");
    assert_eq!(local().said(ClassifierModel::Local, Err("gone")).to("auto"), "ask the numerical classifier");
    let said = local().said(ClassifierModel::Local, Ok(TaskClass::Flash)).to("auto-gemini-2.5");
    assert_eq!(said, "gemini-3.5-flash-lite [local-classifier] it says so");
    assert_eq!(local().to("m"), "m [override] configured");
}

#[test]
fn plans_are_for_the_larger_model() {
    let planning = || Case { mode: Mode::Plan, has_plan: true, ..case(&[], FallbackAction::Ask) };
    assert_eq!(planning().to("auto"), format!("{PRO} [approval-mode] the mode plan"));
    let planned = Case { mode: Mode::AutoEdit, ..planning() };
    assert_eq!(planned.to("auto"), format!("{FLASH} [approval-mode] a plan was approved"));
}

#[test]
fn the_user_says_what_the_names_mean() {
    let alias = |name: &str, model: &str| {
        let config = ModelConfig { model: Some(model.to_owned()), ..ModelConfig::default() };
        (name.to_owned(), Alias { extends: None, config })
    };
    let own = [alias("pro", "anthropic/opus"), alias("flash", "ollama/small")];
    let it = Case {
        aliases: Aliases::new(own.into(), Vec::new(), ModelTable::built_in()).0,
        ..case(&[], FallbackAction::Ask)
    };
    assert_eq!(it.to("auto"), "ask the classifier", "numbers are for the models that they were found for");
    assert_eq!(
        it.said(ClassifierModel::Choice, Ok(TaskClass::Flash)).to("auto"),
        "ollama/small [classifier] it says so"
    );
    let own = [alias("auto", "ollama/small")];
    let it = Case {
        aliases: Aliases::new(own.into(), Vec::new(), ModelTable::built_in()).0,
        ..case(&[], FallbackAction::Ask)
    };
    assert_eq!(it.to("auto"), "ollama/small [override] configured as auto");
}
