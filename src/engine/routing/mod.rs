//! Which model serves this request, and what to do when it fails.

pub mod aliases;
pub mod class;
pub mod failure;
pub mod families;
pub mod health;
pub mod helpers;
pub mod limits;
pub mod prices;

use std::sync::Arc;

use health::{Health, Standing};

/// Where a request goes, and why: the user will ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub model: Arc<str>,
    pub why: String,
}

/// Which models may take the place of one that does not answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// In order. Only such as can be reached.
    pub models: Vec<String>,
    /// Whether they stand in for any model, or only for those of the list.
    pub for_all: bool,
    /// Whether the next one takes over without a question.
    pub silent: bool,
}

impl Chain {
    /// Who comes after `model`. Nothing goes back up: who is before it was left for a reason, or is dearer.
    pub fn after(&self, model: &str) -> impl Iterator<Item = &str> {
        let at = self.models.iter().position(|it| it == model);
        let skipped = at.map_or(if self.for_all { 0 } else { self.models.len() }, |it| it + 1);
        self.models.iter().skip(skipped).map(String::as_str)
    }
}

/// The model for a turn, by strategies in order; the last one always answers.
pub fn route(configured: &str, chain: &Chain, health: &Health, now_ms: u64) -> Route {
    type Strategy = fn(&str, &Chain, &Health, u64) -> Option<Route>;
    const STRATEGIES: &[Strategy] = &[fallback];
    let found = STRATEGIES.iter().find_map(|it| it(configured, chain, health, now_ms));
    found.unwrap_or_else(|| Route { model: configured.into(), why: "configured".to_owned() })
}

/// The configured model is known not to answer, and the user said that the next one may take over. Where the user is
/// asked, the configured one is always tried: nothing is switched behind anybody's back.
fn fallback(configured: &str, chain: &Chain, health: &Health, now_ms: u64) -> Option<Route> {
    let cause = match health.standing(configured, now_ms) {
        Standing::Out(cause) if chain.silent => cause.as_str(),
        _ => return None,
    };
    let model = health.first(chain.after(configured), now_ms)?;
    Some(Route { model: model.into(), why: format!("fallback: {configured} is out ({cause})") })
}

#[cfg(test)]
mod tests {
    use super::{Chain, health::Health, route};
    use crate::base::fallback::{Outage, OutageCause};

    fn chain(models: &[&str], silent: bool) -> Chain {
        Chain { models: models.iter().map(|it| (*it).to_owned()).collect(), for_all: true, silent }
    }

    #[test]
    fn a_chain_goes_down_only() {
        let list = chain(&["a", "b", "c"], false);
        let after = |model: &str, for_all| {
            let chain = Chain { for_all, ..list.clone() };
            chain.after(model).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([after("a", true), after("b", true), after("c", true), after("x", true)], ["b c", "c", "", "a b c"]);
        assert_eq!([after("a", false), after("x", false)], ["b c", ""]);
    }

    #[test]
    fn who_is_out_is_passed_over_where_that_is_wanted() {
        let mut health = Health::default();
        let out = |cause| Outage { cause, until_ms: Some(10) };
        let to = |health: &Health, silent, now| {
            let route = route("a", &chain(&["a", "b", "c"], silent), health, now);
            format!("{} {}", route.model, route.why)
        };
        assert_eq!(to(&health, true, 0), "a configured");
        health.mark_out("a", out(OutageCause::Quota));
        assert_eq!(to(&health, true, 0), "b fallback: a is out (quota)");
        assert_eq!(to(&health, false, 0), "a configured");
        assert_eq!(to(&health, true, 10), "a configured");
        health.mark_out("b", out(OutageCause::Capacity));
        assert_eq!(to(&health, true, 0), "c fallback: a is out (quota)");
        health.mark_out("c", out(OutageCause::Missing));
        assert_eq!(to(&health, true, 0), "a configured");
    }
}
