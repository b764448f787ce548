//! Prompt statistics: requests, tokens and cost by model, calls by tool, and lines changed in files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{model::Usage, money::Money};

/// All that one prompt took, questions of castor's own to models included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptStats {
    /// By the model's name.
    pub models: BTreeMap<String, ModelStats>,
    pub tools: ToolStats,
    /// Absent where no checkpoints are taken: then castor does not count lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<LineStats>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStats {
    /// Attempts that failed included.
    pub requests: u64,
    pub errors: u64,
    /// Of all requests, from the request to the end of the answer.
    pub latency_ms: u64,
    pub tokens: TokenStats,
    /// In US dollars. Absent where the model's price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Answers with a count of tokens.
    #[serde(skip)]
    n_bills: u64,
}

/// Tokens as providers count them. Thoughts are billed as output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenStats {
    /// The whole prompts, cached parts included.
    pub input: u64,
    /// Without thoughts.
    pub output: u64,
    pub cached: u64,
    pub thoughts: u64,
    pub total: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStats {
    #[serde(flatten)]
    pub all: ToolTally,
    /// By the tool's name.
    pub by_name: BTreeMap<String, ToolTally>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTally {
    pub total: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// While the calls ran, without the time in which the user was asked.
    pub duration_ms: u64,
    pub decisions: DecisionStats,
}

/// How calls were approved. A call that a rule denies counts nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionStats {
    /// By the user.
    pub accepted: u64,
    pub rejected: u64,
    /// By a rule or the mode, without a question.
    pub automatic: u64,
}

/// Lines in all files together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineStats {
    pub added: u64,
    pub removed: u64,
}

impl PromptStats {
    pub fn add_bill(&mut self, model: &str, usage: &Usage, cost: Option<Money>) {
        let it = self.models.entry(model.to_owned()).or_default();
        it.cost = match it.n_bills {
            0 => cost,
            _ => it.cost.zip(cost).map(|(all, one)| all.plus(one)),
        };
        it.n_bills += 1;
        it.tokens = it.tokens.plus(&usage.into());
    }

    /// `None`: a price is not known, or no model answered.
    pub fn cost(&self) -> Option<Money> {
        let mut costs = self.models.values().filter(|it| it.n_bills > 0).map(|it| it.cost).peekable();
        costs.peek()?;
        costs.try_fold(Money::default(), |all, it| Some(all.plus(it?)))
    }
}

impl TokenStats {
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            thoughts: self.thoughts.saturating_add(other.thoughts),
            total: self.total.saturating_add(other.total),
        }
    }
}

impl From<&Usage> for TokenStats {
    fn from(it: &Usage) -> Self {
        Self { input: it.input, output: it.output, cached: it.cached, thoughts: it.thought, total: it.total }
    }
}

impl ToolStats {
    /// Counts the same for the tool and for all of them.
    pub fn count(&mut self, name: &str, mut add: impl FnMut(&mut ToolTally)) {
        add(&mut self.all);
        add(self.by_name.entry(name.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::PromptStats;
    use crate::{model::Usage, money::Money};

    #[test]
    fn a_cost_is_known_only_whole() {
        let dollar = Money::dollars(1.0);
        let cost = |bills: &[(&str, Option<Money>)]| {
            let mut stats = PromptStats::default();
            bills.iter().for_each(|(model, it)| stats.add_bill(model, &Usage::default(), *it));
            stats.cost().map(Money::as_dollars)
        };
        assert_eq!(cost(&[]), None);
        assert_eq!(cost(&[("a", Some(dollar)), ("b", Some(dollar)), ("a", Some(dollar))]), Some(3.0));
        assert_eq!(cost(&[("a", Some(dollar)), ("a", None), ("a", Some(dollar))]), None);
        assert_eq!(cost(&[("a", None), ("a", Some(dollar))]), None);
        assert_eq!(cost(&[("a", Some(dollar)), ("b", None)]), None);
    }
}
