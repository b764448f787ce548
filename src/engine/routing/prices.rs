//! Model prices from settings. castor ships none: they change, and a wrong one is worse than none.

use std::collections::BTreeMap;

use crate::base::{model::Usage, money::Money};

/// By model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);

/// Of a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    pub input: Money,
    /// Thoughts cost as much as what is said.
    pub output: Money,
    /// Read from the provider's cache.
    pub cached: Money,
    /// Written to it.
    pub written: Money,
}

impl Prices {
    pub fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).or_else(|| self.0.get(model.trim_start_matches("models/"))).copied()
    }
}

impl Price {
    pub fn cost(&self, usage: &Usage) -> Money {
        let Usage { input, output, cached, written, thought, .. } = *usage;
        let plain = input.saturating_sub(cached).saturating_sub(written);
        let parts = [
            self.input.per_million(plain),
            self.cached.per_million(cached),
            self.written.per_million(written),
            self.output.per_million(output.saturating_add(thought)),
        ];
        parts.into_iter().fold(Money::default(), Money::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::{Price, Prices};
    use crate::base::{model::Usage, money::Money};

    #[test]
    fn each_kind_has_its_price() {
        let [input, output, cached, written] = [2.0, 10.0, 0.5, 2.5].map(Money::dollars);
        let price = Price { input, output, cached, written };
        let usage = Usage { input: 1_000, output: 10, cached: 600, written: 100, thought: 20, total: 1_030 };
        // 300 × 2, 600 × 0.5, 100 × 2.5, 30 × 10.
        assert_eq!(price.cost(&usage), Money::dollars(0.001_45));
        // A provider that counts what it cached beside the prompt.
        assert_eq!(price.cost(&Usage { input: 1, cached: 2, ..Usage::default() }), Money::dollars(0.000_001));
        let prices = Prices([("m".to_owned(), price)].into());
        assert_eq!(["m", "models/m", "x/m"].map(|it| prices.of(it).is_some()), [true, true, false]);
    }
}
