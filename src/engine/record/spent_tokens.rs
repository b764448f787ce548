//! Tokens and money that a session spent, by purpose and model.

use std::collections::BTreeMap;

use castor_base::{
    model::{Purpose, Usage},
    money::Money,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpentTokens {
    /// Of the last answer to the conversation, with the size of the context window.
    pub last: Option<(Usage, u64)>,
    pub by_model: BTreeMap<(Purpose, String), CallTally>,
}

/// A sum of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTally {
    pub n_calls: u64,
    pub usage: Usage,
    pub cost: Money,
    /// Calls of models whose price is known.
    pub n_priced: u64,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Bill<'a> {
    pub purpose: Purpose,
    pub model: &'a str,
    pub usage: Usage,
    pub size: u64,
    pub cost: Option<Money>,
}

impl SpentTokens {
    pub fn add(&mut self, bill: Bill<'_>) {
        if bill.purpose == Purpose::Agent {
            self.last = Some((bill.usage, bill.size));
        }
        let one = CallTally {
            n_calls: 1,
            usage: bill.usage,
            cost: bill.cost.unwrap_or_default(),
            n_priced: u64::from(bill.cost.is_some()),
        };
        self.by_model.entry((bill.purpose, bill.model.to_owned())).or_default().add(&one);
    }

    pub fn total(&self) -> CallTally {
        let mut res = CallTally::default();
        self.by_model.values().for_each(|it| res.add(it));
        res
    }

    /// What the session cost with one more call of that cost; `None` as long as no price is known.
    pub fn cost_with(&self, more: Option<Money>) -> Option<Money> {
        let total = self.total();
        (total.n_priced > 0 || more.is_some()).then(|| total.cost.plus(more.unwrap_or_default()))
    }
}

impl CallTally {
    fn add(&mut self, other: &Self) {
        self.n_calls += other.n_calls;
        self.n_priced += other.n_priced;
        self.usage = self.usage.plus(&other.usage);
        self.cost = self.cost.plus(other.cost);
    }

    /// The part of the prompts that came from a cache, in percent; `None` without any prompt.
    pub fn hit_rate(&self) -> Option<u64> {
        self.usage.cached.min(self.usage.input).saturating_mul(100).checked_div(self.usage.input)
    }
}
