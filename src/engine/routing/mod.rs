//! Model routing: which model serves a request, and the chain of models behind it.

pub mod alias;
pub mod aliases;
pub mod context_overflow;
pub mod failure;
pub mod failure_class;
pub mod fallback_policies;
pub mod health;
pub mod model_limits;
pub mod overflow_words;
pub mod prices;
pub mod refusal;
pub mod retirement;
pub mod strategies;
pub mod task_classifier;
pub mod utility_models;

use std::sync::Arc;

use fallback_policies::FallbackPolicies;
use health::Health;

/// The route of a request, with the reason for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRoute {
    pub model: Arc<str>,
    /// The name that it goes by, where that is an alias.
    pub name: String,
    /// The strategy that found it.
    pub by: &'static str,
    pub why: String,
}

/// Models that may replace one that does not answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// The models in order, only those that can be reached.
    pub models: Vec<String>,
    /// They replace any model, or only those of the list.
    pub for_all: bool,
    /// Policies of each of them, and of the models that they replace.
    pub policies: FallbackPolicies,
}

impl Chain {
    /// The models after `model`. The chain never goes back up: an earlier model failed, or costs more.
    pub fn after(&self, model: &str) -> impl Iterator<Item = &str> {
        let at = self.models.iter().position(|it| it == model);
        let skipped = at.map_or(if self.for_all { 0 } else { self.models.len() }, |it| it + 1);
        self.models.iter().skip(skipped).map(String::as_str)
    }

    /// The model that takes over from `model` now: the first available one, else a last resort.
    pub fn next(&self, model: &str, health: &Health, now_ms: u64) -> Option<&str> {
        let last_resort = || self.after(model).find(|it| self.policies.of(it).last_resort);
        health.first_available(self.after(model), now_ms).or_else(last_resort)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Chain,
        fallback_policies::{FallbackAction, FallbackPolicies, FallbackPolicy},
    };

    fn chain(models: &[&str], silent: bool) -> Chain {
        let otherwise = FallbackPolicy::always(if silent { FallbackAction::Silent } else { FallbackAction::Ask });
        let policies = FallbackPolicies { otherwise, ..FallbackPolicies::default() };
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
