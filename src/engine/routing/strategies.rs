//! Which model a prompt goes to: strategies in order, each of which may pass; the last one always answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Chain, Route,
    aliases::Aliases,
    class::Kind,
    classify::{Class, Judge, Judged},
    families::Auto,
    health::{Health, Standing},
    policies::Action,
};
use crate::base::{fallback::OutageCause, log::Mode};

/// What the user says about routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The model that judges in the first place, where there is one.
    pub local: Option<String>,
    /// Whether how hard a request is is asked for as a number, where that can be.
    pub numerical: bool,
    /// From which number on a request is for the larger model.
    pub threshold: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { local: None, numerical: true, threshold: 90 }
    }
}

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The session's model, as the user calls it.
    pub wanted: &'a str,
    pub aliases: &'a Aliases,
    pub out_of_reach: &'a BTreeSet<String>,
    pub chain: &'a Chain,
    pub health: &'a Health,
    pub rules: &'a Rules,
    pub mode: Mode,
    /// The user approved a plan in this session.
    pub has_plan: bool,
    /// What was judged so far, or why nothing was.
    pub judged: &'a BTreeMap<Judge, Result<Judged, String>>,
    /// Nobody is to be asked: there is nothing to judge yet, or it would take too long.
    pub unasked: bool,
    pub now_ms: u64,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    To(Route),
    /// A judge is to be heard first.
    Ask(Judge),
}

/// A strategy's word.
pub enum Said {
    /// The next one has its say.
    Pass,
    /// To this model, for this reason.
    Go(String, String),
    Ask(Judge),
}

/// What a strategy says, for an auto model where it is one.
type Strategy = fn(&Asking<'_>, Option<&Auto>) -> Said;

/// In order.
pub const STRATEGIES: &[(&str, Strategy)] = &[
    ("fallback", fallback),
    ("override", chosen),
    ("approval-mode", approval_mode),
    ("local-classifier", local),
    ("classifier", classifier),
    ("numerical-classifier", numerical),
];

/// The model for what is asked now, with the reason.
pub fn route(asking: &Asking<'_>) -> Outcome {
    let auto = asking.aliases.auto(asking.wanted);
    for (by, strategy) in STRATEGIES {
        match strategy(asking, auto.as_ref()) {
            Said::Pass => (),
            Said::Go(name, why) => return Outcome::To(to(asking, by, &name, why)),
            Said::Ask(judge) => return Outcome::Ask(judge),
        }
    }
    // The last one: whoever could not judge is named.
    let failed: Vec<&str> = asking.judged.values().filter_map(|it| it.as_ref().err()).map(String::as_str).collect();
    let why = match (&auto, failed.is_empty()) {
        (None, _) => configured(asking),
        (Some(_), true) => format!("the default of {}", asking.wanted),
        (Some(_), false) => format!("the default of {}: {}", asking.wanted, failed.join("; ")),
    };
    Outcome::To(to(asking, "default", &default_of(asking, auto.as_ref()), why))
}

fn to(asking: &Asking<'_>, by: &'static str, name: &str, why: String) -> Route {
    Route { model: Arc::from(asking.aliases.model_of(name)), name: name.to_owned(), by, why }
}

fn configured(asking: &Asking<'_>) -> String {
    match asking.aliases.model_of(asking.wanted) == asking.wanted {
        true => "configured".to_owned(),
        false => format!("configured as {}", asking.wanted),
    }
}

fn default_of(asking: &Asking<'_>, auto: Option<&Auto>) -> String {
    auto.map_or(asking.wanted, |it| it.pro).to_owned()
}

/// The model is known not to answer. Where the user is asked about that, it is tried all the same: nothing is switched
/// behind anybody's back. Who chose an auto model left the choice to castor.
fn fallback(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    let Asking { aliases, chain, health, now_ms, .. } = *asking;
    let model = aliases.model_of(&default_of(asking, auto));
    let Standing::Out(cause) = health.standing(&model, now_ms) else { return Said::Pass };
    let silent = auto.is_some() || chain.policies.of(&model).action(kind(cause)) == Some(Action::Silent);
    match chain.next(&model, health, now_ms).filter(|_| silent) {
        Some(it) => Said::Go(it.to_owned(), format!("fallback: {model} is out ({})", cause.as_str())),
        None => Said::Pass,
    }
}

fn kind(cause: OutageCause) -> Kind {
    match cause {
        OutageCause::Quota | OutageCause::Limit | OutageCause::Capacity => Kind::Terminal,
        OutageCause::Missing => Kind::NotFound,
    }
}

/// One model was chosen, and that is it.
fn chosen(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    match auto {
        None => Said::Go(asking.wanted.to_owned(), configured(asking)),
        Some(_) => Said::Pass,
    }
}

/// Plans are for the larger model, what is planned for the smaller one.
fn approval_mode(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    let Some(auto) = auto else { return Said::Pass };
    match (asking.mode, asking.has_plan) {
        (Mode::Plan, _) => available(asking, auto.pro, "the mode plan".to_owned()),
        (_, true) => available(asking, auto.flash, "a plan was approved".to_owned()),
        (_, false) => Said::Pass,
    }
}

fn local(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    let Some(auto) = auto.filter(|_| asking.rules.local.is_some()) else { return Said::Pass };
    judged(asking, auto, Judge::Local)
}

fn classifier(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    let Some(auto) = auto.filter(|it| !takes_numbers(asking, it)) else { return Said::Pass };
    judged(asking, auto, Judge::Choice)
}

fn numerical(asking: &Asking<'_>, auto: Option<&Auto>) -> Said {
    let Some(auto) = auto.filter(|it| takes_numbers(asking, it)) else { return Said::Pass };
    judged(asking, auto, Judge::Score)
}

/// The numbers were found for these models.
fn takes_numbers(asking: &Asking<'_>, auto: &Auto) -> bool {
    let model = asking.aliases.model_of(auto.pro);
    let family = model.trim_start_matches("models/").strip_prefix("gemini-3");
    asking.rules.numerical && family.is_some_and(|it| it.is_empty() || it.starts_with(['.', '-']))
}

/// Whoever cannot judge, or judges for a model that cannot be asked, is passed over.
fn judged(asking: &Asking<'_>, auto: &Auto, judge: Judge) -> Said {
    match asking.judged.get(&judge) {
        None if asking.unasked => Said::Pass,
        None => Said::Ask(judge),
        Some(Err(_)) => Said::Pass,
        Some(Ok(Judged { class, why })) => {
            let name = if *class == Class::Pro { auto.pro } else { auto.flash };
            available(asking, name, why.clone())
        }
    }
}

fn available(asking: &Asking<'_>, name: &str, why: String) -> Said {
    let model = asking.aliases.model_of(name);
    let standing = asking.health.standing(&model, asking.now_ms);
    if standing.can_be_asked() && !asking.out_of_reach.contains(&model) {
        Said::Go(name.to_owned(), why)
    } else {
        Said::Pass
    }
}

#[cfg(test)]
mod tests;
