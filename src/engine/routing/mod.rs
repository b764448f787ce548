//! Which model serves this request, and what to do when it fails.

pub mod aliases;
pub mod class;
pub mod failure;
pub mod families;
pub mod health;
pub mod helpers;
pub mod limits;
pub mod policies;
pub mod prices;

use std::sync::Arc;

use class::Kind;
use health::{Health, Standing};
use policies::{Action, Policies};

use crate::base::fallback::OutageCause;

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
    /// What may be done about each of them, and about those that it stands in for.
    pub policies: Policies,
}

impl Chain {
    /// Who comes after `model`. Nothing goes back up: who is before it was left for a reason, or is dearer.
    pub fn after(&self, model: &str) -> impl Iterator<Item = &str> {
        let at = self.models.iter().position(|it| it == model);
        let skipped = at.map_or(if self.for_all { 0 } else { self.models.len() }, |it| it + 1);
        self.models.iter().skip(skipped).map(String::as_str)
    }

    /// Who takes over from `model` now: the first that can be asked, else a last resort.
    pub fn next(&self, model: &str, health: &Health, now_ms: u64) -> Option<&str> {
        let last_resort = || self.after(model).find(|it| self.policies.of(it).last_resort);
        health.first(self.after(model), now_ms).or_else(last_resort)
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
        Standing::Out(cause) if chain.policies.of(configured).action(kind(cause)) == Some(Action::Silent) => {
            cause.as_str()
        }
        _ => return None,
    };
    let model = chain.next(configured, health, now_ms)?;
    Some(Route { model: model.into(), why: format!("fallback: {configured} is out ({cause})") })
}

fn kind(cause: OutageCause) -> Kind {
    match cause {
        OutageCause::Quota | OutageCause::Capacity => Kind::Terminal,
        OutageCause::Missing => Kind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Chain,
        health::Health,
        policies::{Action, Policies, Policy},
        route,
    };
    use crate::base::fallback::{Outage, OutageCause};

    fn chain(models: &[&str], silent: bool) -> Chain {
        let otherwise = Policy::always(if silent { Action::Silent } else { Action::Ask });
        let policies = Policies { otherwise, ..Policies::default() };
        Chain { models: models.iter().map(|it| (*it).to_owned()).collect(), for_all: true, policies }
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
        let mut chain = chain(&["a", "b", "c"], true);
        chain.policies.of.insert("b".to_owned(), Policy { last_resort: true, ..Policy::default() });
        assert_eq!([chain.next("a", &health, 0), chain.next("b", &health, 0)], [Some("b"), None]);
        assert_eq!(&*route("a", &chain, &health, 0).model, "b", "nobody else is left");
    }
}
