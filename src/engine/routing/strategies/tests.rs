//! Decisions as a table: what is wanted and known, and where the prompt goes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Asking, Outcome, Rules, STRATEGIES, route};
use crate::{
    base::{
        fallback::{Outage, OutageCause},
        log::Mode,
    },
    engine::routing::{
        Chain,
        aliases::{Alias, Aliases, ModelConfig},
        classify::{Class, Judge, Judged},
        health::Health,
        policies::{Action, Policies, Policy},
    },
};

const PRO: &str = "gemini-3-pro-preview";
const FLASH: &str = "gemini-3-flash-preview";

struct Case {
    aliases: Aliases,
    chain: Chain,
    health: Health,
    rules: Rules,
    mode: Mode,
    has_plan: bool,
    judged: BTreeMap<Judge, Result<Judged, String>>,
    out_of_reach: BTreeSet<String>,
    unasked: bool,
}

fn case(models: &[&str], action: Action) -> Case {
    let policies = Policies { otherwise: Policy::always(action), ..Policies::default() };
    let models = models.iter().map(|it| (*it).to_owned()).collect();
    Case {
        aliases: Aliases::new(BTreeMap::new(), Vec::new()).0,
        chain: Chain { models, for_all: true, policies },
        health: Health::default(),
        rules: Rules::default(),
        mode: Mode::Default,
        has_plan: false,
        judged: BTreeMap::new(),
        out_of_reach: BTreeSet::new(),
        unasked: false,
    }
}

impl Case {
    fn asking<'a>(&'a self, wanted: &'a str) -> Asking<'a> {
        let Self { aliases, chain, health, rules, mode, has_plan, judged, out_of_reach, unasked } = self;
        let (mode, has_plan, unasked) = (*mode, *has_plan, *unasked);
        Asking { wanted, aliases, out_of_reach, chain, health, rules, mode, has_plan, judged, unasked, now_ms: 0 }
    }

    fn to(&self, wanted: &str) -> String {
        match route(&self.asking(wanted)) {
            Outcome::To(it) => format!("{} [{}] {}", it.model, it.by, it.why),
            Outcome::Ask(judge) => format!("ask the {}", judge.as_str()),
        }
    }

    fn out(mut self, model: &str, cause: OutageCause) -> Self {
        self.health.mark_out(model, Outage { cause, until_ms: Some(10) });
        self
    }

    fn said(mut self, judge: Judge, said: Result<Class, &str>) -> Self {
        let said = said.map(|class| Judged { class, why: "it says so".to_owned() }).map_err(str::to_owned);
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
fn a_model_that_was_chosen_is_asked() {
    let plain = || case(&[], Action::Ask);
    assert_eq!(plain().to("m"), "m [override] configured");
    assert_eq!(plain().to("flash"), format!("{FLASH} [override] configured as flash"));
    let planning = Case { mode: Mode::Plan, ..plain() };
    assert_eq!(planning.to("m"), "m [override] configured");
}

#[test]
fn who_is_out_is_passed_over_where_that_is_wanted() {
    let silent = || case(&["a", "b", "c"], Action::Silent);
    assert_eq!(silent().to("a"), "a [override] configured");
    let one = || silent().out("a", OutageCause::Quota);
    assert_eq!(one().to("a"), "b [fallback] fallback: a is out (quota)");
    assert_eq!(case(&["a", "b"], Action::Ask).out("a", OutageCause::Quota).to("a"), "a [override] configured");
    let two = || one().out("b", OutageCause::Capacity);
    assert_eq!(two().to("a"), "c [fallback] fallback: a is out (quota)");
    let all = || two().out("c", OutageCause::Missing);
    assert_eq!(all().to("a"), "a [override] configured");
    let mut last = all();
    last.chain.policies.of.insert("b".to_owned(), Policy { last_resort: true, ..Policy::default() });
    assert_eq!(last.to("a"), "b [fallback] fallback: a is out (quota)");
}

#[test]
fn auto_models_ask_who_can_judge() {
    let auto = || case(&[PRO, FLASH], Action::Ask);
    assert_eq!([auto().to("auto"), auto().to("auto-gemini-3")], ["ask the numerical classifier"; 2]);
    assert_eq!(auto().to("auto-gemini-2.5"), "ask the classifier");
    assert_eq!(Case { unasked: true, ..auto() }.to("auto"), format!("{PRO} [default] the default of auto"));
    let plain = Rules { numerical: false, ..Rules::default() };
    assert_eq!(Case { rules: plain, ..auto() }.to("auto"), "ask the classifier");
    let said = |class| auto().said(Judge::Score, Ok(class)).to("auto");
    assert_eq!(said(Class::Pro), format!("{PRO} [numerical-classifier] it says so"));
    assert_eq!(said(Class::Flash), format!("{FLASH} [numerical-classifier] it says so"));
    let failed = auto().said(Judge::Score, Err("it is busy"));
    assert_eq!(failed.to("auto"), format!("{PRO} [default] the default of auto: it is busy"));
    // A judgement for a model that cannot be asked is none.
    let gone = auto().said(Judge::Score, Ok(Class::Flash));
    let away = Case { out_of_reach: [FLASH.to_owned()].into(), ..auto().said(Judge::Score, Ok(Class::Flash)) };
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
        let rules = Rules { local: Some("ollama/gemma3".to_owned()), ..Rules::default() };
        Case { rules, ..case(&[], Action::Ask) }
    };
    assert_eq!(local().to("auto"), "ask the local classifier");
    assert_eq!(local().said(Judge::Local, Err("gone")).to("auto"), "ask the numerical classifier");
    let said = local().said(Judge::Local, Ok(Class::Flash)).to("auto-gemini-2.5");
    assert_eq!(said, "gemini-2.5-flash [local-classifier] it says so");
    assert_eq!(local().to("m"), "m [override] configured");
}

#[test]
fn plans_are_for_the_larger_model() {
    let planning = || Case { mode: Mode::Plan, has_plan: true, ..case(&[], Action::Ask) };
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
    let it = Case { aliases: Aliases::new(own.into(), Vec::new()).0, ..case(&[], Action::Ask) };
    assert_eq!(it.to("auto"), "ask the classifier", "numbers are for the models that they were found for");
    assert_eq!(it.said(Judge::Choice, Ok(Class::Flash)).to("auto"), "ollama/small [classifier] it says so");
    let own = [alias("auto", "ollama/small")];
    let it = Case { aliases: Aliases::new(own.into(), Vec::new()).0, ..case(&[], Action::Ask) };
    assert_eq!(it.to("auto"), "ollama/small [override] configured as auto");
}
