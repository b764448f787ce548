//! Which model serves this request, and what to do when it fails.

pub mod aliases;
pub mod class;
pub mod classify;
pub mod failure;
pub mod families;
pub mod health;
pub mod helpers;
pub mod limits;
pub mod outgrown;
pub mod policies;
pub mod prices;
pub mod strategies;

use std::sync::Arc;

use health::Health;
use policies::Policies;

/// Where a request goes, and why: the user will ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub model: Arc<str>,
    /// What it goes by, where that is an alias.
    pub name: String,
    /// The strategy that found it.
    pub by: &'static str,
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

#[cfg(test)]
mod tests {
    use super::{
        Chain,
        policies::{Action, Policies, Policy},
    };

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
}
